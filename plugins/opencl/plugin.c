/* opencl/plugin.c: the entry points of the OpenCL plugin.
 *
 * Reading order: driver.h (functions and errors), device.h (entries, opened devices, internal streams, and kinds of
 * memory), discovery.c, facts.c and identity.c (devices and their facts), context.c, open.c, memory.c, share.c,
 * transfer.c, queue.c, pending.c, event.c, program.c, part.c, reflect.c, kernel.c.
 */
#include "device.h"

#define NATIVE_SLOTS                                                                                                   \
    .size = sizeof(gpuhal_native_ops), .version = GPUHAL_NATIVE_VERSION, .native_device = gpuhal_opencl_native_device, \
    .native_memory = gpuhal_opencl_native_memory, .wrap_memory = gpuhal_opencl_wrap_memory
static const gpuhal_native_ops native = {NATIVE_SLOTS, .native_queue = gpuhal_opencl_native_queue,
                                         .native_event = gpuhal_opencl_native_event};
static const gpuhal_native_ops native_without_queues = {NATIVE_SLOTS};

static gpuhal_status opencl_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                     gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    const gpuhal_opencl_entry *entry = gpuhal_opencl_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_opencl_describe_context(out_ops);
    gpuhal_opencl_describe_memory(out_ops);
    gpuhal_opencl_describe_share(out_ops);
    gpuhal_opencl_describe_transfer(entry, out_ops);
    gpuhal_opencl_describe_queue(entry, out_ops);
    gpuhal_opencl_describe_program(entry, out_ops);
    out_ops->native = gpuhal_opencl_has_queues(entry) ? &native : &native_without_queues;
    return GPUHAL_OK;
}

static const gpuhal_plugin opencl_plugin = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .flags = GPUHAL_PLUGIN_HONORS_TIMEOUTS,
    .name = "opencl",
    .version = GPUHAL_VERSION,
    .start = gpuhal_opencl_start,
    .enumerate = gpuhal_opencl_enumerate,
    .describe = opencl_describe,
    .open = gpuhal_opencl_open,
    .close = gpuhal_opencl_close,
    .sample = gpuhal_opencl_sample,
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    if (host_abi >> 16 != GPUHAL_ABI_MAJOR) {
        (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, 0,
                           "the opencl plugin supports another major version of the plugin ABI");
        return NULL;
    }
    return &opencl_plugin;
}
