/* fakes/vulkan/instance.c: instances and the list of physical devices. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

static const VkExtensionProperties instance_extensions[] = {
    {"VK_KHR_get_physical_device_properties2", 2},
    {"VK_KHR_external_memory_capabilities", 1},
};
enum { INSTANCE_EXTENSIONS = sizeof instance_extensions / sizeof *instance_extensions };

VKAPI_ATTR VkResult VKAPI_CALL fake_vkEnumerateInstanceVersion(uint32_t *version)
{
    fake_count(FN_vkEnumerateInstanceVersion);
    *version = fake_get_script()->api;
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkEnumerateInstanceExtensionProperties(const char *layer, uint32_t *count,
                                                                           VkExtensionProperties *properties)
{
    VkResult injected = fake_enter(FN_vkEnumerateInstanceExtensionProperties);
    if (injected) {
        return injected;
    }
    if (layer) {
        return VK_ERROR_LAYER_NOT_PRESENT;
    }
    uint32_t room = properties ? *count : INSTANCE_EXTENSIONS;
    *count = room < INSTANCE_EXTENSIONS ? room : INSTANCE_EXTENSIONS;
    if (properties) {
        memcpy(properties, instance_extensions, *count * sizeof *properties);
    }
    return room < INSTANCE_EXTENSIONS ? VK_INCOMPLETE : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                     const VkAllocationCallbacks *allocator, VkInstance *out_instance)
{
    (void)allocator;
    VkResult injected = fake_enter(FN_vkCreateInstance);
    if (injected) {
        return injected;
    }
    if (info->flags) { /* the loader has already removed the flags for the loader */
        fake_violation("vkCreateInstance: flags 0x%x, which the driver does not know", info->flags);
    }
    const fake_script *script = fake_get_script();
    fake_instance *instance = calloc(1, sizeof *instance);
    if (!instance) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    set_loader_magic_value(instance);
    uint32_t wanted = info->pApplicationInfo ? info->pApplicationInfo->apiVersion : 0;
    instance->api = wanted ? wanted : VK_API_VERSION_1_0;
    for (unsigned d = 0; d < script->devices; d++) {
        set_loader_magic_value(&instance->physical[d]);
        instance->physical[d].index = d;
        instance->physical[d].api = instance->api < script->api ? instance->api : script->api;
    }
    *out_instance = (VkInstance)instance;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyInstance(VkInstance instance, const VkAllocationCallbacks *allocator)
{
    (void)allocator;
    fake_count(FN_vkDestroyInstance);
    free(instance);
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkEnumeratePhysicalDevices(VkInstance handle, uint32_t *count,
                                                               VkPhysicalDevice *devices)
{
    VkResult injected = fake_enter(FN_vkEnumeratePhysicalDevices);
    if (injected) {
        return injected;
    }
    fake_instance *instance = (fake_instance *)handle;
    const uint32_t all = fake_get_script()->devices;
    uint32_t room = devices ? *count : all;
    *count = room < all ? room : all;
    for (uint32_t d = 0; devices && d < *count; d++) {
        devices[d] = (VkPhysicalDevice)&instance->physical[d];
    }
    return room < all ? VK_INCOMPLETE : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkEnumerateDeviceExtensionProperties(VkPhysicalDevice physical, const char *layer,
                                                                         uint32_t *count,
                                                                         VkExtensionProperties *properties)
{
    (void)physical;
    VkResult injected = fake_enter(FN_vkEnumerateDeviceExtensionProperties);
    if (injected) {
        return injected;
    }
    uint32_t all = 0, room = properties ? *count : EXTENSION_COUNT;
    for (unsigned e = 0; e < EXTENSION_COUNT && !layer; e++) {
        if (!fake_offers((fake_extension)e)) {
            continue;
        }
        if (properties && all < room) {
            snprintf(properties[all].extensionName, sizeof properties[all].extensionName, "%s",
                     fake_extension_names[e]);
            properties[all].specVersion = 1;
        }
        all++;
    }
    *count = all < room ? all : room;
    return all > room ? VK_INCOMPLETE : VK_SUCCESS;
}
