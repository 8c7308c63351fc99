/* fakes/vulkan/icd.c: the entry points for the Vulkan loader, and the lookup of functions by name. As in a strict
 * driver, the lookup finds an extension's functions only if the extension is enabled, and hides functions of Vulkan
 * versions later than the version in use. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct entry {
    const char *name;
    PFN_vkVoidFunction function;
    fake_level level;
    uint32_t version;
    fake_extension extension;
} entry;

static const entry entries[] = {
#define FUNCTION(name, level, version, extension) {#name, (PFN_vkVoidFunction)fake_##name, level, version, extension},
#define ALIAS(name, target, extension)                                                                                 \
    {#name, (PFN_vkVoidFunction)fake_##target, (extension) == NONE ? LEVEL_INSTANCE : LEVEL_DEVICE,                    \
     (extension) == NONE ? 0 : NEVER, extension},
#include "functions.inc"
#undef FUNCTION
#undef ALIAS
};

PFN_vkVoidFunction fake_function_named(const char *name, fake_level most, uint32_t api, uint32_t extensions)
{
    if (strcmp(name, fake_get_script()->without_function) == 0) {
        return NULL;
    }
    for (unsigned e = 0; e < sizeof entries / sizeof *entries; e++) {
        const entry *found = &entries[e];
        if (strcmp(found->name, name) == 0) {
            bool by_version = found->version != NEVER && api >= found->version;
            bool by_extension = found->extension != NONE && extensions >> found->extension & 1;
            return found->level <= most && (by_version || by_extension) ? found->function : NULL;
        }
    }
    return NULL;
}

EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name);
EXPORT VKAPI_ATTR VkResult VKAPI_CALL vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance, const char *name);
EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vk_icdGetPhysicalDeviceProcAddr(VkInstance instance, const char *name);

VKAPI_ATTR VkResult VKAPI_CALL vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
    const char *fault = fake_get_script()->fault;
    if (*fault) {
        fprintf(stderr, "%s\n", fault);
        fake_violation("%s", fault);
        return VK_ERROR_INCOMPATIBLE_DRIVER;
    }
    if (*version > 5) {
        *version = 5;
    }
    return VK_SUCCESS;
}

/* The loader looks up all functions without a device. The loader, not the driver, hides the functions that the instance
 * has not enabled. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance, const char *name)
{
    (void)instance;
    uint32_t extensions = ~fake_get_script()->without;
    return fake_function_named(name, LEVEL_DEVICE, fake_get_script()->api, extensions);
}

/* For programs that open the driver without a loader, as SwiftShader permits. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name)
{
    return vk_icdGetInstanceProcAddr(instance, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vk_icdGetPhysicalDeviceProcAddr(VkInstance instance, const char *name)
{
    (void)instance;
    bool of_physical = strncmp(name, "vkGetPhysicalDevice", 19) == 0 || strcmp(name, "vkCreateDevice") == 0 ||
                       strcmp(name, "vkEnumerateDeviceExtensionProperties") == 0;
    return of_physical ? fake_function_named(name, LEVEL_INSTANCE, fake_get_script()->api, 0) : NULL;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fake_vkGetDeviceProcAddr(VkDevice handle, const char *name)
{
    const fake_device *device = fake_find(handle, A_DEVICE, "vkGetDeviceProcAddr");
    return device ? fake_function_named(name, LEVEL_DEVICE, device->api, device->extensions) : NULL;
}
