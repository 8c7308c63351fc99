/* vulkan/compute.c: shader limits: group sizes and data types. Disabled features are not listed, because applications
 * must not use them.
 */
#include "memory.h"
#include "program.h"

static const struct {
    gpuhal_key key;
    const char *why;
} absent[] = {
    {GPUHAL_FACT_TARGET_ARCHITECTURE, "Vulkan takes SPIR-V on every device"},
    {GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, "Vulkan does not report it"},
};

static void list_number(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    if (value > 0) {
        host->u64(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_FAILED, "the driver gives no usable value");
    }
}

/* Lists the host-visible memory kinds, and the kinds that need no flush. */
static void list_host_kinds(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    uint32_t visible = 0, coherent = 0;
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_DEVICE_MAPPED; kind++) {
        const uint32_t type = hardware->memory_kinds >> kind & 1 ? gpuhal_vulkan_pick_type(hardware, kind, UINT32_MAX)
                                                                 : GPUHAL_VULKAN_NO_TYPE;
        if (type == GPUHAL_VULKAN_NO_TYPE) {
            continue;
        }
        const VkMemoryPropertyFlags flags = hardware->memory.memoryTypes[type].propertyFlags;
        const bool shows = gpuhal_vulkan_shows_host(kind, flags);
        visible |= shows ? 1u << kind : 0;
        coherent |= shows && (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) ? 1u << kind : 0;
    }
    host->u64(host, sink, GPUHAL_FACT_HOST_VISIBLE_KINDS, visible);
    host->u64(host, sink, GPUHAL_FACT_HOST_COHERENT_KINDS, coherent);
}

void gpuhal_vulkan_list_compute(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    const VkPhysicalDeviceLimits *limits = &hardware->properties.limits;
    const struct {
        gpuhal_key key;
        uint64_t value;
    } numbers[] = {
        {GPUHAL_FACT_SUBGROUP_SIZE_MIN, hardware->subgroup_min},
        {GPUHAL_FACT_SUBGROUP_SIZE_MAX, hardware->subgroup_max},
        {GPUHAL_FACT_GROUP_SIZE_MAX, limits->maxComputeWorkGroupInvocations},
        {GPUHAL_FACT_GROUP_SIZE_MAX_X, limits->maxComputeWorkGroupSize[0]},
        {GPUHAL_FACT_GROUP_SIZE_MAX_Y, limits->maxComputeWorkGroupSize[1]},
        {GPUHAL_FACT_GROUP_SIZE_MAX_Z, limits->maxComputeWorkGroupSize[2]},
        {GPUHAL_FACT_GROUP_MEMORY_BYTES, limits->maxComputeSharedMemorySize},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        list_number(host, sink, numbers[i].key, numbers[i].value);
    }
    host->u64(host, sink, GPUHAL_FACT_DATA_TYPES, hardware->data_types);
    if (gpuhal_vulkan_computes(hardware, gpuhal_vulkan_plan_wrappers(hardware).wrappers[0].family)) {
        host->text(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, "spirv");
        host->u64(host, sink, GPUHAL_FACT_KERNEL_KINDS, hardware->memory_kinds);
        host->u64(host, sink, GPUHAL_FACT_LAUNCH_FORMS, GPUHAL_VULKAN_FORMS | GPUHAL_VULKAN_SIZES);
    } else {
        host->missing(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, GPUHAL_MISSING_NOT_SUPPORTED,
                      "none of its queue families computes");
    }
    list_host_kinds(host, sink, hardware);
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        host->missing(host, sink, absent[i].key, GPUHAL_MISSING_NOT_SUPPORTED, absent[i].why);
    }
}
