/* vulkan/hardware.c: the properties of a physical device, read before anything is created on it.
 *
 * Only structures that the version or an extension defines are chained, because a driver may not fill in other
 * structures, or may fail. Numbers that index arrays are validated only here, so that later code can rely on them.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NVIDIA 0x10deu

typedef struct property_set {
    VkPhysicalDeviceMaintenance3Properties maintenance3;
    VkPhysicalDeviceMaintenance4Properties maintenance4;
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host;
    VkPhysicalDevicePCIBusInfoPropertiesEXT pci;
    VkPhysicalDeviceDrmPropertiesEXT drm;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia;
    VkPhysicalDeviceShaderCorePropertiesAMD amd;
    VkPhysicalDeviceShaderCoreProperties2AMD amd2;
    VkPhysicalDeviceSubgroupProperties subgroup;
    VkPhysicalDeviceSubgroupSizeControlProperties subgroup_sizes;
    VkPhysicalDevicePushDescriptorPropertiesKHR push;
    VkPhysicalDeviceShaderIntegerDotProductProperties dot;
} property_set;

static void chain(VkPhysicalDeviceProperties2 *head, void *structure, VkStructureType type, bool known)
{
    VkBaseOutStructure *base = structure;
    if (known) {
        base->sType = type;
        base->pNext = head->pNext;
        head->pNext = (void *)base;
    }
}

/* Structures that were not chained, and members that the driver did not fill in, are zero. In these cases the value is
 * read from another structure, or 0 means "unknown". */
static void keep_properties(const property_set *set, gpuhal_vulkan_hardware *hardware)
{
    const uint64_t largest = set->maintenance3.maxMemoryAllocationSize, buffer = set->maintenance4.maxBufferSize;
    hardware->allocation_max = largest > 0 ? largest : UINT64_MAX;
    if (buffer > 0 && buffer < hardware->allocation_max) {
        hardware->allocation_max = buffer;
    }
    hardware->import_alignment = set->host.minImportedHostPointerAlignment;
    const uint32_t pci[4] = {set->pci.pciDomain, set->pci.pciBus, set->pci.pciDevice, set->pci.pciFunction};
    memcpy(hardware->pci, pci, sizeof pci);
    const uint32_t least = set->subgroup_sizes.minSubgroupSize, most = set->subgroup_sizes.maxSubgroupSize;
    hardware->subgroup_min = least > 0 ? least : set->subgroup.subgroupSize;
    hardware->subgroup_max = most > 0 ? most : set->subgroup.subgroupSize;
    hardware->subgroup_size = set->subgroup.subgroupSize;
    hardware->subgroups_max = set->subgroup_sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT
                                  ? set->subgroup_sizes.maxComputeWorkgroupSubgroups
                                  : 0;
    hardware->subgroup_operations =
        set->subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT ? set->subgroup.supportedOperations : 0;
    hardware->push_descriptors = set->push.maxPushDescriptors;
    hardware->data_types |= set->dot.integerDotProduct4x8BitPackedSignedAccelerated ? GPUHAL_DATA_INT8_DOT : 0u;
    hardware->drm_render[0] = set->drm.hasRender ? set->drm.renderMajor : -1;
    hardware->drm_render[1] = set->drm.hasRender ? set->drm.renderMinor : -1;
    hardware->compute_units = set->nvidia.shaderSMCount ? set->nvidia.shaderSMCount : set->amd2.activeComputeUnitCount;
    if (hardware->compute_units == 0) {
        hardware->compute_units =
            set->amd.shaderEngineCount * set->amd.shaderArraysPerEngineCount * set->amd.computeUnitsPerShaderArray;
    }
}

static void ask_properties(const gpuhal_vulkan_instance_functions *api, const gpuhal_vulkan_extensions *extensions,
                           gpuhal_vulkan_hardware *hardware)
{
    const bool v12 = hardware->api_version >= VK_API_VERSION_1_2, v13 = hardware->api_version >= VK_API_VERSION_1_3;
    const bool pci = gpuhal_vulkan_offers(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
    const bool drm = gpuhal_vulkan_offers(extensions, VK_EXT_PHYSICAL_DEVICE_DRM_EXTENSION_NAME);
    VkPhysicalDeviceProperties2 head = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    property_set set = {0};
    const struct {
        void *structure;
        VkStructureType type;
        bool known;
    } all[] = {
        {&hardware->id, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES, true},
        {&hardware->driver, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
         v12 || gpuhal_vulkan_offers(extensions, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)},
        {&set.maintenance3, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, true},
        {&set.maintenance4, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
         v13 || gpuhal_vulkan_offers(extensions, VK_KHR_MAINTENANCE_4_EXTENSION_NAME)},
        {&set.host, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
         gpuhal_vulkan_offers(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)},
        {&set.pci, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT, pci},
        {&set.drm, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT, drm},
        {&set.nvidia, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV,
         gpuhal_vulkan_offers(extensions, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)},
        {&set.amd, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD,
         gpuhal_vulkan_offers(extensions, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)},
        {&set.amd2, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD,
         gpuhal_vulkan_offers(extensions, VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME)},
        {&set.subgroup, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES, true},
        {&set.subgroup_sizes, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES,
         v13 || gpuhal_vulkan_offers(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)},
        {&set.push, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR,
         gpuhal_vulkan_offers(extensions, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME)},
        {&set.dot, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES,
         v13 || gpuhal_vulkan_offers(extensions, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        chain(&head, all[i].structure, all[i].type, all[i].known);
    }
    api->vkGetPhysicalDeviceProperties2(hardware->handle, &head);
    hardware->properties = head.properties;
    hardware->properties.deviceName[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE - 1] = '\0'; /* drivers may not terminate it */
    /* The chain points into this function's stack. */
    hardware->id.pNext = NULL;
    hardware->driver.pNext = NULL;
    const bool spirv = v12 || gpuhal_vulkan_offers(extensions, VK_KHR_SPIRV_1_4_EXTENSION_NAME);
    hardware->offered |= (pci ? GPUHAL_VULKAN_PCI_BUS_INFO : 0) | (drm ? GPUHAL_VULKAN_DRM : 0) |
                         (set.push.maxPushDescriptors > 0 ? GPUHAL_VULKAN_PUSH_DESCRIPTOR : 0) |
                         (spirv ? GPUHAL_VULKAN_SPIRV_1_4 : 0);
    keep_properties(&set, hardware);
}

static bool ask_families(const gpuhal_vulkan_instance_functions *api, gpuhal_vulkan_hardware *hardware)
{
    const VkQueueFlags useful = VK_QUEUE_TRANSFER_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT;
    uint32_t count = 0;
    api->vkGetPhysicalDeviceQueueFamilyProperties(hardware->handle, &count, NULL);
    count = count < GPUHAL_VULKAN_FAMILIES ? count : GPUHAL_VULKAN_FAMILIES;
    hardware->family_count = count;
    /* SwiftShader fills in as many families as fit, but does not update the count. */
    api->vkGetPhysicalDeviceQueueFamilyProperties(hardware->handle, &count, hardware->families);
    bool found = false;
    for (uint32_t i = 0; i < hardware->family_count; i++) {
        found = found || (hardware->families[i].queueCount > 0 && (hardware->families[i].queueFlags & useful));
    }
    return found;
}

/* SwiftShader and old llvmpipe versions do not report the type CPU on some systems. */
static bool is_software(const gpuhal_vulkan_hardware *hardware)
{
    const char *name = hardware->properties.deviceName;
    return hardware->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU || strstr(name, "llvmpipe") ||
           strstr(name, "SwiftShader");
}

static bool is_unified(const gpuhal_vulkan_hardware *hardware)
{
    const VkPhysicalDeviceMemoryProperties *memory = &hardware->memory;
    bool visible = true;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = memory->memoryTypes[i].propertyFlags;
        visible = visible &&
                  (!(flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) || (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT));
    }
    return hardware->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || hardware->software ||
           (hardware->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU && visible);
}

/* Returns false if an index is out of range, nonCoherentAtomSize is not within Vulkan's limits, or there is no device
 * memory. */
static bool ask_memory(const gpuhal_vulkan_instance_functions *api, gpuhal_vulkan_hardware *hardware)
{
    VkPhysicalDeviceMemoryProperties2 head = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
    api->vkGetPhysicalDeviceMemoryProperties2(hardware->handle, &head);
    hardware->memory = head.memoryProperties;
    const VkPhysicalDeviceMemoryProperties *memory = &hardware->memory;
    const uint64_t atom = hardware->properties.limits.nonCoherentAtomSize;
    if (memory->memoryTypeCount > VK_MAX_MEMORY_TYPES || memory->memoryHeapCount > VK_MAX_MEMORY_HEAPS || atom == 0 ||
        atom > GPUHAL_VULKAN_ATOM_MAX || (atom & (atom - 1)) != 0) {
        return false;
    }
    uint64_t largest = 0;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        if (memory->memoryTypes[i].heapIndex >= memory->memoryHeapCount) {
            return false;
        }
        uint64_t heap = memory->memoryHeaps[memory->memoryTypes[i].heapIndex].size;
        largest = heap > largest ? heap : largest;
    }
    if (largest < hardware->allocation_max) {
        hardware->allocation_max = largest;
    }
    hardware->allocation_max &= (uint64_t)INT64_MAX - 3; /* a multiple of 4, with room to round up */
    hardware->unified = is_unified(hardware);
    hardware->memory_kinds = gpuhal_vulkan_memory_kinds(hardware);
    return largest > 0 && hardware->memory_kinds & 1u << GPUHAL_MEMORY_DEVICE;
}

VkBufferUsageFlags gpuhal_vulkan_usage(uint32_t enabled)
{
    return VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
           VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
           VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT |
           (enabled & GPUHAL_VULKAN_BUFFER_ADDRESS ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0);
}

static VkExternalMemoryFeatureFlags external_features(const gpuhal_vulkan_instance_functions *api,
                                                      const gpuhal_vulkan_hardware *hardware,
                                                      VkExternalMemoryHandleTypeFlagBits type)
{
    const VkPhysicalDeviceExternalBufferInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .usage = gpuhal_vulkan_usage(hardware->offered),
        .handleType = type,
    };
    VkExternalBufferProperties answer = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    api->vkGetPhysicalDeviceExternalBufferProperties(hardware->handle, &info, &answer);
    return answer.externalMemoryProperties.externalMemoryFeatures;
}

/* A handle type is offered only if it works for the plugin's buffers. Drivers may report other types as well. */
static void ask_sharing(const gpuhal_vulkan_instance_functions *api, const gpuhal_vulkan_extensions *extensions,
                        gpuhal_vulkan_hardware *hardware)
{
    const VkExternalMemoryFeatureFlags in = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    const VkExternalMemoryFeatureFlags both = in | VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT;
    const bool fd = gpuhal_vulkan_offers(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    const struct {
        bool known;
        VkExternalMemoryHandleTypeFlagBits type;
        VkExternalMemoryFeatureFlags needed;
        uint32_t bit;
    } all[] = {
        {hardware->import_alignment > 0 && (hardware->import_alignment & (hardware->import_alignment - 1)) == 0,
         VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, in, GPUHAL_VULKAN_HOST_IMPORT},
        {fd, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, both, GPUHAL_VULKAN_OPAQUE_FD},
        {fd && gpuhal_vulkan_offers(extensions, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME),
         VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT, both, GPUHAL_VULKAN_DMABUF_FD},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].known && (external_features(api, hardware, all[i].type) & all[i].needed) == all[i].needed) {
            hardware->offered |= all[i].bit;
        }
    }
    if (!(hardware->offered & GPUHAL_VULKAN_HOST_IMPORT)) {
        hardware->import_alignment = 0;
    }
}

/* Each step uses earlier results. ask_memory() depends on whether the device is software. ask_sharing() uses the import
 * alignment and the features, which determine the usage flags of the plugin's buffers. */
static const char *ask_all(const gpuhal_vulkan_instance_functions *api, const gpuhal_vulkan_extensions *extensions,
                           gpuhal_vulkan_hardware *hardware)
{
    gpuhal_vulkan_features *features =
        gpuhal_vulkan_features_ask(api, hardware->handle, hardware->api_version, extensions);
    if (!features) {
        return "no host memory to ask for its features";
    }
    hardware->offered = gpuhal_vulkan_features_bits(features);
    hardware->data_types = gpuhal_vulkan_features_data_types(features);
    free(features);
    ask_properties(api, extensions, hardware);
    hardware->software = is_software(hardware);
    if (!(hardware->offered & GPUHAL_VULKAN_TIMELINE)) {
        return "it has no timeline semaphores (Vulkan 1.2 or VK_KHR_timeline_semaphore)";
    }
    if (!ask_families(api, hardware)) {
        return hardware->family_count == 0 ? "it has no queue families" : "none of its queue families can copy";
    }
    if (!ask_memory(api, hardware)) {
        return hardware->memory.memoryTypeCount == 0 ? "it has no memory types" : "its memory types are invalid";
    }
    ask_sharing(api, extensions, hardware);
    hardware->offered |=
        gpuhal_vulkan_offers(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME) ? GPUHAL_VULKAN_MEMORY_BUDGET : 0;
    return NULL;
}

bool gpuhal_vulkan_survey(const gpuhal_vulkan_instance_functions *api, VkPhysicalDevice physical,
                          uint32_t instance_version, gpuhal_vulkan_hardware *out_hardware, char *out_why,
                          size_t why_size)
{
    gpuhal_vulkan_hardware *hardware = out_hardware;
    *hardware = (gpuhal_vulkan_hardware){.handle = physical};
    api->vkGetPhysicalDeviceProperties(physical, &hardware->properties);
    const uint32_t version = hardware->properties.apiVersion;
    if (version < VK_API_VERSION_1_1) {
        snprintf(out_why, why_size, "it supports Vulkan %u.%u; 1.1 or later is needed", VK_API_VERSION_MAJOR(version),
                 VK_API_VERSION_MINOR(version));
        return false;
    }
    hardware->api_version = version < instance_version ? version : instance_version;
    gpuhal_vulkan_extensions extensions;
    VkResult code = gpuhal_vulkan_list_extensions(api, physical, &extensions);
    if (code != VK_SUCCESS) {
        snprintf(out_why, why_size, "it does not list its extensions (result %d)", code);
        return false;
    }
    const char *why = ask_all(api, &extensions, hardware);
    free(extensions.list);
    snprintf(out_why, why_size, "%s", why ? why : "");
    return !why;
}

/* A discrete AMD GPU splits its memory into a host-visible heap and another heap. NVIDIA's second heap is a window
 * onto the first. With unified memory, heaps are views of the same memory, and the smaller one may be called
 * device-local. Among heaps of equal size the first counts as the largest, independent of @p heap, so that only one
 * of them counts. */
bool gpuhal_vulkan_counts_heap(const gpuhal_vulkan_hardware *hardware, uint32_t heap)
{
    const VkPhysicalDeviceMemoryProperties *memory = &hardware->memory;
    const bool sum = !hardware->unified && hardware->properties.vendorID != NVIDIA;
    const VkMemoryHeapFlags needed = hardware->unified ? 0 : VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    uint32_t largest = heap;
    for (uint32_t i = memory->memoryHeapCount; i-- > 0;) {
        bool larger = memory->memoryHeaps[i].size >= memory->memoryHeaps[largest].size;
        largest = (memory->memoryHeaps[i].flags & needed) == needed && larger ? i : largest;
    }
    return (memory->memoryHeaps[heap].flags & needed) == needed && (sum || largest == heap);
}

/* Returns the first family with all flags in @p wanted and none in @p unwanted, or family_count. */
static uint32_t find_family(const gpuhal_vulkan_hardware *hardware, VkQueueFlags wanted, VkQueueFlags unwanted)
{
    for (uint32_t i = 0; i < hardware->family_count; i++) {
        const VkQueueFamilyProperties *family = &hardware->families[i];
        if (family->queueCount > 0 && (family->queueFlags & wanted) == wanted && !(family->queueFlags & unwanted)) {
            return i;
        }
    }
    return hardware->family_count;
}

static void add_wrappers(const gpuhal_vulkan_hardware *hardware, gpuhal_vulkan_plan *plan, uint32_t family,
                         uint32_t most)
{
    for (uint32_t i = 0; i < most && i < hardware->families[family].queueCount; i++) {
        plan->wrappers[plan->count].family = family;
        plan->wrappers[plan->count].index = i;
        plan->count++;
    }
}

/* A compute family without graphics runs concurrently with the desktop's rendering. Video and sparse-only families are
 * skipped. More queues would gain nothing, and some drivers have a cost per queue. */
gpuhal_vulkan_plan gpuhal_vulkan_plan_wrappers(const gpuhal_vulkan_hardware *hardware)
{
    static const struct {
        VkQueueFlags wanted, unwanted;
    } choices[] = {{VK_QUEUE_COMPUTE_BIT, VK_QUEUE_GRAPHICS_BIT},
                   {VK_QUEUE_COMPUTE_BIT, 0},
                   {VK_QUEUE_GRAPHICS_BIT, 0},
                   {VK_QUEUE_TRANSFER_BIT, 0}};
    gpuhal_vulkan_plan plan = {0};
    uint32_t family = hardware->family_count;
    for (size_t i = 0; i < sizeof choices / sizeof choices[0] && family == hardware->family_count; i++) {
        family = find_family(hardware, choices[i].wanted, choices[i].unwanted);
    }
    if (family < hardware->family_count) {
        add_wrappers(hardware, &plan, family, 4);
    }
    const VkQueueFlags other =
        VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | 0x20 | 0x40 | 0x100; /* video decode, encode, optical flow */
    uint32_t copy = find_family(hardware, VK_QUEUE_TRANSFER_BIT, other);
    if (copy < hardware->family_count && copy != family) {
        plan.copy_wrapper = plan.count;
        add_wrappers(hardware, &plan, copy, 2);
    }
    return plan;
}

bool gpuhal_vulkan_computes(const gpuhal_vulkan_hardware *hardware, uint32_t family)
{
    return family < hardware->family_count && (hardware->families[family].queueFlags & VK_QUEUE_COMPUTE_BIT);
}
