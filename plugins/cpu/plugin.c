/* cpu/plugin.c: the entry points of the reference plugin.
 *
 * Reading order: this file, discovery.c (devices and their facts), memory.c, share.c, transfer.c, program.c, kernel.c
 * and pool.c. system.c reads /proc and /sys for them. Every call blocks; the calling thread does the copy. The core
 * implements queues on top of these blocking calls.
 */
#include "device.h"

#include <stdlib.h>

static gpuhal_status cpu_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  gpuhal_ops *out_ops)
{
    (void)host;
    if (gpuhal_cpu_find(instance, index) == NULL) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_cpu_describe_memory(out_ops);
    gpuhal_cpu_describe_transfer(out_ops);
    gpuhal_cpu_describe_programs(out_ops);
    return GPUHAL_OK;
}

static gpuhal_status cpu_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)ops;
    *out_device = NULL;
    gpuhal_cpu_entry *entry = gpuhal_cpu_find(instance, index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (adopt) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "a processor has no device object to adopt");
    }
    gpuhal_plugin_device *device = malloc(sizeof *device);
    if (!device) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    *device = (gpuhal_plugin_device){.host = host, .instance = instance, .entry = entry};
    atomic_fetch_add(&instance->opened, 1);
    *out_device = device;
    return GPUHAL_OK;
}

static void cpu_close(gpuhal_plugin_device *device)
{
    if (atomic_fetch_sub(&device->instance->opened, 1) == 1) {
        gpuhal_cpu_pool_rest(device->instance);
    }
    free(device);
}

static void cpu_stop(const gpuhal_host *host, gpuhal_plugin_instance *instance)
{
    (void)host;
    gpuhal_cpu_pool_free(instance);
    free(instance);
}

static const gpuhal_plugin cpu_plugin = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .flags = GPUHAL_PLUGIN_FORK_SAFE,
    .name = "cpu",
    .version = GPUHAL_VERSION,
    .start = gpuhal_cpu_start,
    .enumerate = gpuhal_cpu_enumerate,
    .describe = cpu_describe,
    .open = cpu_open,
    .close = cpu_close,
    .sample = gpuhal_cpu_sample,
    .stop = cpu_stop,
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    if (host_abi >> 16 != GPUHAL_ABI_MAJOR) {
        (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, 0,
                           "the cpu plugin supports another major version of the plugin ABI");
        return NULL;
    }
    return &cpu_plugin;
}
