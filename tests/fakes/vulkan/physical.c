/* fakes/vulkan/physical.c: facts about the physical devices. Unknown structures in a chain are not modified. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

static const fake_physical *physical_of(VkPhysicalDevice handle)
{
    return (const fake_physical *)(const void *)handle;
}

static const fake_plan *plan_of(const fake_physical *physical)
{
    return &fake_get_script()->plans[physical->index];
}

const void *fake_chained(const void *chain, VkStructureType type)
{
    const VkBaseInStructure *link = chain;
    while (link && link->sType != type) {
        link = link->pNext;
    }
    return link;
}

/* The library does not use graphics, so the fake supports no format and no image, although its queue families may have
 * the graphics bit. */
VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceFormatProperties(VkPhysicalDevice physical, VkFormat format,
                                                                    VkFormatProperties *properties)
{
    (void)physical, (void)format;
    *properties = (VkFormatProperties){0};
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceFormatProperties2(VkPhysicalDevice physical, VkFormat format,
                                                                     VkFormatProperties2 *properties)
{
    (void)physical, (void)format;
    properties->formatProperties = (VkFormatProperties){0};
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetPhysicalDeviceImageFormatProperties(VkPhysicalDevice physical, VkFormat format,
                                                                             VkImageType type, VkImageTiling tiling,
                                                                             VkImageUsageFlags usage,
                                                                             VkImageCreateFlags flags,
                                                                             VkImageFormatProperties *properties)
{
    (void)physical, (void)format, (void)type, (void)tiling, (void)usage, (void)flags, (void)properties;
    return VK_ERROR_FORMAT_NOT_SUPPORTED;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetPhysicalDeviceImageFormatProperties2(
    VkPhysicalDevice physical, const VkPhysicalDeviceImageFormatInfo2 *info, VkImageFormatProperties2 *properties)
{
    (void)physical, (void)info, (void)properties;
    return VK_ERROR_FORMAT_NOT_SUPPORTED;
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceSparseImageFormatProperties(
    VkPhysicalDevice physical, VkFormat format, VkImageType type, VkSampleCountFlagBits samples,
    VkImageUsageFlags usage, VkImageTiling tiling, uint32_t *count, VkSparseImageFormatProperties *properties)
{
    (void)physical, (void)format, (void)type, (void)samples, (void)usage, (void)tiling, (void)properties;
    *count = 0;
}

/* ---- properties */

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceProperties(VkPhysicalDevice physical,
                                                              VkPhysicalDeviceProperties *properties)
{
    const fake_script *script = fake_get_script();
    const fake_plan *plan = plan_of(physical_of(physical));
    fake_count(FN_vkGetPhysicalDeviceProperties);
    *properties = (VkPhysicalDeviceProperties){.apiVersion = script->api,
                                               .driverVersion = VK_MAKE_API_VERSION(0, 7, 5, 3),
                                               .vendorID = plan->vendor,
                                               .deviceID = plan->id,
                                               .deviceType = plan->type};
    snprintf(properties->deviceName, sizeof properties->deviceName, "%s", plan->name);
    VkPhysicalDeviceLimits *limits = &properties->limits;
    limits->maxMemoryAllocationCount = script->allocation_count;
    limits->maxStorageBufferRange = 128u << 20;
    limits->minStorageBufferOffsetAlignment = 64;
    limits->minMemoryMapAlignment = 64;
    limits->nonCoherentAtomSize = script->atom;
    limits->optimalBufferCopyOffsetAlignment = 1;
    limits->timestampPeriod = 1;
    limits->timestampComputeAndGraphics = VK_TRUE;
    memcpy(properties->pipelineCacheUUID, "fake cache uuid", VK_UUID_SIZE);
    limits->maxComputeWorkGroupInvocations = 1024;
    limits->maxComputeSharedMemorySize = 32u << 10;
    for (unsigned d = 0; d < 3; d++) {
        limits->maxComputeWorkGroupSize[d] = d < 2 ? 1024 : 64;
        limits->maxComputeWorkGroupCount[d] = 65535;
    }
    limits->maxPushConstantsSize = 128;
    limits->maxUniformBufferRange = 16384;
    limits->minUniformBufferOffsetAlignment = 64;
    limits->maxPerStageDescriptorStorageBuffers = limits->maxDescriptorSetStorageBuffers = FAKE_BINDINGS - 1;
    limits->maxPerStageDescriptorUniformBuffers = limits->maxDescriptorSetUniformBuffers = 12;
    limits->maxPerStageResources = FAKE_BINDINGS + 11;
    limits->maxBoundDescriptorSets = FAKE_SETS;
}

static void report_identity(const fake_physical *physical, uint8_t device[VK_UUID_SIZE], uint8_t driver[VK_UUID_SIZE])
{
    memcpy(device, "fake device uuid", VK_UUID_SIZE);
    device[VK_UUID_SIZE - 1] = (uint8_t)(fake_get_script()->same_uuid ? 0 : physical->index);
    memcpy(driver, "fake driver uuid", VK_UUID_SIZE);
}

static void report_driver(const fake_plan *plan, char name[VK_MAX_DRIVER_NAME_SIZE], char info[VK_MAX_DRIVER_INFO_SIZE])
{
    snprintf(name, VK_MAX_DRIVER_NAME_SIZE, "%s", plan->driver);
    snprintf(info, VK_MAX_DRIVER_INFO_SIZE, "%s", plan->driver_info);
}

static void report_properties(const fake_physical *physical, VkBaseOutStructure *link)
{
    const fake_script *script = fake_get_script();
    const fake_plan *plan = plan_of(physical);
    switch ((int)link->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES: {
        VkPhysicalDeviceIDProperties *id = (VkPhysicalDeviceIDProperties *)link;
        report_identity(physical, id->deviceUUID, id->driverUUID);
        id->deviceLUIDValid = VK_FALSE;
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES: {
        VkPhysicalDeviceVulkan11Properties *all = (VkPhysicalDeviceVulkan11Properties *)link;
        report_identity(physical, all->deviceUUID, all->driverUUID);
        all->maxMemoryAllocationSize = script->allocation_size;
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES:
        ((VkPhysicalDeviceMaintenance3Properties *)link)->maxMemoryAllocationSize = script->allocation_size;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES:
        ((VkPhysicalDeviceMaintenance4Properties *)link)->maxBufferSize = script->allocation_size;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES:
        ((VkPhysicalDeviceVulkan13Properties *)link)->maxBufferSize = script->allocation_size;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES: {
        VkPhysicalDeviceDriverProperties *driver = (VkPhysicalDeviceDriverProperties *)link;
        report_driver(plan, driver->driverName, driver->driverInfo);
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES: {
        VkPhysicalDeviceVulkan12Properties *all = (VkPhysicalDeviceVulkan12Properties *)link;
        report_driver(plan, all->driverName, all->driverInfo);
        all->maxTimelineSemaphoreValueDifference = INT32_MAX;
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_PROPERTIES:
        ((VkPhysicalDeviceTimelineSemaphoreProperties *)link)->maxTimelineSemaphoreValueDifference = INT32_MAX;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT:
        ((VkPhysicalDeviceExternalMemoryHostPropertiesEXT *)link)->minImportedHostPointerAlignment =
            script->import_alignment;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR:
        ((VkPhysicalDevicePushDescriptorPropertiesKHR *)link)->maxPushDescriptors = 32;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT: {
        VkPhysicalDevicePCIBusInfoPropertiesEXT *pci = (VkPhysicalDevicePCIBusInfoPropertiesEXT *)link;
        pci->pciDomain = plan->pci_domain;
        pci->pciBus = plan->pci_bus;
        pci->pciDevice = plan->pci_device;
        pci->pciFunction = 0;
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRM_PROPERTIES_EXT: {
        VkPhysicalDeviceDrmPropertiesEXT *drm = (VkPhysicalDeviceDrmPropertiesEXT *)link;
        drm->hasPrimary = VK_FALSE;
        drm->hasRender = plan->render_minor != 0;
        drm->renderMajor = 226;
        drm->renderMinor = plan->render_minor;
        break;
    }
    default:
        break;
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceProperties2(VkPhysicalDevice physical,
                                                               VkPhysicalDeviceProperties2 *properties)
{
    fake_vkGetPhysicalDeviceProperties(physical, &properties->properties);
    for (VkBaseOutStructure *link = properties->pNext; link; link = link->pNext) {
        report_properties(physical_of(physical), link);
    }
}

/* ---- features */

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceFeatures(VkPhysicalDevice physical,
                                                            VkPhysicalDeviceFeatures *features)
{
    (void)physical;
    *features = (VkPhysicalDeviceFeatures){
        .shaderInt64 = VK_TRUE, .shaderFloat64 = VK_TRUE, .shaderStorageBufferArrayDynamicIndexing = VK_TRUE};
}

/* Returns the structure's member that enables the extension's feature, or NULL if the structure has none. */
static VkBool32 *switch_in(VkBaseOutStructure *link, fake_extension extension)
{
    VkPhysicalDeviceVulkan12Features *all = (VkPhysicalDeviceVulkan12Features *)link;
    bool is_all = link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    switch (extension) {
    case TIMELINE_SEMAPHORE:
        return is_all ? &all->timelineSemaphore
               : link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES
                   ? &((VkPhysicalDeviceTimelineSemaphoreFeatures *)link)->timelineSemaphore
                   : NULL;
    case HOST_QUERY_RESET:
        return is_all ? &all->hostQueryReset
               : link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES
                   ? &((VkPhysicalDeviceHostQueryResetFeatures *)link)->hostQueryReset
                   : NULL;
    case BUFFER_DEVICE_ADDRESS:
        return is_all ? &all->bufferDeviceAddress
               : link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES
                   ? &((VkPhysicalDeviceBufferDeviceAddressFeatures *)link)->bufferDeviceAddress
                   : NULL;
    default:
        return NULL;
    }
}

static const fake_extension switched[] = {TIMELINE_SEMAPHORE, HOST_QUERY_RESET, BUFFER_DEVICE_ADDRESS};
enum { SWITCHED = sizeof switched / sizeof *switched };

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceFeatures2(VkPhysicalDevice physical,
                                                             VkPhysicalDeviceFeatures2 *features)
{
    fake_count(FN_vkGetPhysicalDeviceFeatures2);
    fake_vkGetPhysicalDeviceFeatures(physical, &features->features);
    for (VkBaseOutStructure *link = features->pNext; link; link = link->pNext) {
        for (unsigned s = 0; s < SWITCHED; s++) {
            VkBool32 *value = switch_in(link, switched[s]);
            if (value) {
                *value = fake_offers(switched[s]);
            }
        }
    }
}

bool fake_read_features(const void *chain, uint32_t *out_enabled)
{
    *out_enabled = 0;
    if (fake_chained(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) &&
        (fake_chained(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES) ||
         fake_chained(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_HOST_QUERY_RESET_FEATURES) ||
         fake_chained(chain, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES))) {
        fake_violation("vkCreateDevice: VkPhysicalDeviceVulkan12Features beside a structure that it replaces");
    }
    for (VkBaseOutStructure *link = (VkBaseOutStructure *)(uintptr_t)chain; link; link = link->pNext) {
        for (unsigned s = 0; s < SWITCHED; s++) {
            const VkBool32 *value = switch_in(link, switched[s]);
            if (value && *value && !fake_offers(switched[s])) {
                return false;
            }
            *out_enabled |= value && *value ? 1u << switched[s] : 0;
        }
    }
    return true;
}

/* ---- families and memory */

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice physical, uint32_t *count,
                                                                         VkQueueFamilyProperties *families)
{
    (void)physical;
    const fake_script *script = fake_get_script();
    fake_count(FN_vkGetPhysicalDeviceQueueFamilyProperties);
    if (families && script->fills_families) {
        for (uint32_t f = 0; f < *count; f++) {
            families[f] = script->families[f < script->family_count ? f : script->family_count - 1];
        }
        return;
    }
    *count = families && *count < script->family_count ? *count : script->family_count;
    if (families) {
        memcpy(families, script->families, *count * sizeof *families);
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceQueueFamilyProperties2(VkPhysicalDevice physical, uint32_t *count,
                                                                          VkQueueFamilyProperties2 *families)
{
    (void)physical;
    const fake_script *script = fake_get_script();
    *count = families && *count < script->family_count ? *count : script->family_count;
    for (uint32_t f = 0; families && f < *count; f++) {
        families[f].queueFamilyProperties = script->families[f];
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice physical,
                                                                    VkPhysicalDeviceMemoryProperties *memory)
{
    fake_count(FN_vkGetPhysicalDeviceMemoryProperties);
    *memory = plan_of(physical_of(physical))->memory;
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice physical,
                                                                     VkPhysicalDeviceMemoryProperties2 *memory)
{
    const fake_plan *plan = plan_of(physical_of(physical));
    fake_vkGetPhysicalDeviceMemoryProperties(physical, &memory->memoryProperties);
    for (VkBaseOutStructure *link = memory->pNext; link; link = link->pNext) {
        if (link->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT ||
            !fake_offers(MEMORY_BUDGET)) {
            continue;
        }
        VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = (VkPhysicalDeviceMemoryBudgetPropertiesEXT *)link;
        for (uint32_t h = 0; h < VK_MAX_MEMORY_HEAPS; h++) {
            bool there = h < plan->memory.memoryHeapCount;
            budget->heapBudget[h] = !there                   ? 0
                                    : h == 0 && plan->budget ? plan->budget
                                                             : plan->memory.memoryHeaps[h].size;
            budget->heapUsage[h] = there ? fake_heap_used(physical_of(physical)->index, h) : 0;
        }
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceExternalBufferProperties(
    VkPhysicalDevice physical, const VkPhysicalDeviceExternalBufferInfo *info, VkExternalBufferProperties *properties)
{
    (void)physical;
    const bool by_fd = info->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT ||
                       info->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    const fake_extension needed = info->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT ? EXTERNAL_MEMORY_FD
                                  : info->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
                                      ? EXTERNAL_MEMORY_DMA_BUF
                                      : EXTERNAL_MEMORY_HOST;
    VkExternalMemoryProperties *external = &properties->externalMemoryProperties;
    *external = (VkExternalMemoryProperties){.compatibleHandleTypes = info->handleType};
    if (!fake_offers(needed) ||
        (!by_fd && info->handleType != VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT)) {
        return;
    }
    external->externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT |
                                       (by_fd ? VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT : 0) |
                                       ((fake_get_script()->dedicated || fake_get_script()->dedicated_fds) && by_fd
                                            ? VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT
                                            : 0);
    external->exportFromImportedHandleTypes = by_fd ? info->handleType : 0;
}
