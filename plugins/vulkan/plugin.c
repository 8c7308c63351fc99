/* vulkan/plugin.c: the entry points of the Vulkan plugin.
 *
 * Reading order: driver.h (functions and errors), device.h (hardware, entries, opened devices, queue wrappers, internal
 * streams, memory), hardware.c and features.c, discovery.c, facts.c and identity.c (devices and their facts),
 * tables.c, context.c, open.c and adopt.c, type.c, device_memory.c, memory.c and import.c, wrapper.c,
 * internal_stream.c, transfer.c, timeline.c, queue.c and event.c with hazard.c, program.c with spirv.c and grammar.c,
 * kernel.c with kernel_check.c and reflect.c, launch.c with arena.c.
 */
#include "device.h"

static gpuhal_status vulkan_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                     gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    const gpuhal_vulkan_entry *entry = gpuhal_vulkan_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_vulkan_describe_context(out_ops);
    gpuhal_vulkan_describe_memory(&entry->hardware, out_ops);
    gpuhal_vulkan_describe_transfer(out_ops);
    gpuhal_vulkan_describe_groups(&entry->hardware, out_ops);
    return GPUHAL_OK;
}

static const gpuhal_plugin vulkan_plugin = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .flags = GPUHAL_PLUGIN_HONORS_TIMEOUTS,
    .name = "vulkan",
    .version = GPUHAL_VERSION,
    .start = gpuhal_vulkan_start,
    .enumerate = gpuhal_vulkan_enumerate,
    .describe = vulkan_describe,
    .open = gpuhal_vulkan_open,
    .close = gpuhal_vulkan_close,
    .sample = gpuhal_vulkan_sample,
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    if (host_abi >> 16 != GPUHAL_ABI_MAJOR) {
        (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, 0,
                           "the vulkan plugin supports another major version of the plugin ABI");
        return NULL;
    }
    return &vulkan_plugin;
}
