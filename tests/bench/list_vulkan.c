/* list_vulkan.c: lists the Vulkan devices, like a program that has to choose one of them.
 *
 * Creates an instance of Vulkan 1.1 or later, because all queries require this version. For each device, first queries
 * the extensions, because the other queries depend on them. Then queries the name, versions, UUID, driver, PCI address,
 * memory and queues. */
#include "measure.h"
#include "members.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64, FAMILIES_MAX = 16 };

typedef struct functions {
    PFN_vkEnumeratePhysicalDevices devices;
    PFN_vkEnumerateDeviceExtensionProperties extensions;
    PFN_vkGetPhysicalDeviceProperties2 properties;
    PFN_vkGetPhysicalDeviceMemoryProperties2 memory;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
} functions;

static bool failed(const char *call, VkResult code)
{
    return gpuhal_bench_failed("%s returned %d", call, (int)code);
}

/* Sets @out_instance to NULL if there is no driver. */
static bool create_instance(PFN_vkGetInstanceProcAddr get, VkInstance *out_instance)
{
    const PFN_vkEnumerateInstanceVersion ask = (PFN_vkEnumerateInstanceVersion)get(NULL, "vkEnumerateInstanceVersion");
    const PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    uint32_t version = VK_API_VERSION_1_0;
    *out_instance = NULL;
    if (ask == NULL || create == NULL || ask(&version) != VK_SUCCESS) {
        return gpuhal_bench_failed("the Vulkan library lacks functions");
    }
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = version < VK_API_VERSION_1_3 ? version : VK_API_VERSION_1_3,
    };
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    const VkResult code = create(&info, NULL, out_instance);
    return code == VK_SUCCESS || code == VK_ERROR_INCOMPATIBLE_DRIVER || failed("vkCreateInstance", code);
}

static bool find_functions(PFN_vkGetInstanceProcAddr get, VkInstance instance, functions *out_vk)
{
    const struct {
        const char *name;
        void *slot;
    } all[] = {
        {"vkEnumeratePhysicalDevices", &out_vk->devices},
        {"vkEnumerateDeviceExtensionProperties", &out_vk->extensions},
        {"vkGetPhysicalDeviceProperties2", &out_vk->properties},
        {"vkGetPhysicalDeviceMemoryProperties2", &out_vk->memory},
        {"vkGetPhysicalDeviceQueueFamilyProperties", &out_vk->families},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const PFN_vkVoidFunction function = get(instance, all[i].name);
        if (function == NULL) {
            return gpuhal_bench_failed("the Vulkan instance has no %s", all[i].name);
        }
        memcpy(all[i].slot, &function, sizeof function);
    }
    return true;
}

static bool ask_extensions(const functions *vk, VkPhysicalDevice device, bool *out_pci)
{
    uint32_t count = 0;
    *out_pci = false;
    VkResult code = vk->extensions(device, NULL, &count, NULL);
    VkExtensionProperties *list = calloc(count + 1u, sizeof *list);
    code = code == VK_SUCCESS && list != NULL ? vk->extensions(device, NULL, &count, list) : code;
    for (uint32_t i = 0; list != NULL && code == VK_SUCCESS && i < count; i++) {
        *out_pci = *out_pci || strcmp(list[i].extensionName, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME) == 0;
    }
    free(list);
    return code == VK_SUCCESS || failed("vkEnumerateDeviceExtensionProperties", code);
}

static bool describe(const functions *vk, VkPhysicalDevice device)
{
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {.sType =
                                                       VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
    VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, .pNext = &driver};
    VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    VkPhysicalDeviceMemoryProperties2 memory = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    VkQueueFamilyProperties families[FAMILIES_MAX];
    uint32_t family_count = FAMILIES_MAX;
    bool has_pci;
    if (!ask_extensions(vk, device, &has_pci)) {
        return false;
    }
    driver.pNext = has_pci ? &pci : NULL;
    vk->properties(device, &properties);
    vk->memory(device, &memory);
    vk->families(device, &family_count, families);
    return true;
}

bool gpuhal_bench_vulkan_list(void *library, uint32_t *out_count)
{
    PFN_vkGetInstanceProcAddr get;
    functions vk;
    VkInstance instance;
    VkPhysicalDevice devices[DEVICES_MAX];
    uint32_t count = DEVICES_MAX;
    void *function = dlsym(library, "vkGetInstanceProcAddr");
    memcpy(&get, &function, sizeof get);
    if (function == NULL) {
        return gpuhal_bench_failed("the Vulkan library has no vkGetInstanceProcAddr");
    }
    if (!create_instance(get, &instance) || (instance != NULL && !find_functions(get, instance, &vk))) {
        return false;
    }
    if (instance == NULL) {
        return true;
    }
    const VkResult code = vk.devices(instance, &count, devices);
    if (code != VK_SUCCESS && code != VK_INCOMPLETE) {
        return failed("vkEnumeratePhysicalDevices", code);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!describe(&vk, devices[i])) {
            return false;
        }
    }
    *out_count = count;
    return true;
}
