/* direct.h: calls the plugin's functions directly, without the library, on separate memory. */
#ifndef GPUHAL_BENCH_DIRECT_H
#define GPUHAL_BENCH_DIRECT_H

#include <gpuhal/direct.h>
#include <gpuhal/gpuhal.h>

#include <stdbool.h>

/* A device opened through plugin.h, with two allocations. */
typedef struct gpuhal_bench_direct {
    const gpuhal_plugin *plugin;
    gpuhal_plugin_instance *instance; /* returned by a separate call of start() */
    gpuhal_plugin_device *device;
    gpuhal_ops ops;
    gpuhal_memory to;
    gpuhal_memory from;
} gpuhal_bench_direct;

/* Opens @device again in its plugin, with two allocations of @bytes. The library must already have opened @device, so
 * that the plugin is started. The library uses the same functions, since the plugin file is loaded only once. Returns
 * false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_direct_open(const gpuhal *gpu, gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes,
                              gpuhal_bench_direct *out_direct);
void gpuhal_bench_direct_close(gpuhal_bench_direct *direct);

/* Makes @count blocking copies of @bytes. */
bool gpuhal_bench_direct_copy(gpuhal_bench_direct *direct, uint64_t bytes, uint64_t count);

/* Makes @count blocking copies of 64 bytes on separate memory, through the library or directly. */
bool gpuhal_bench_direct_calls(const gpuhal *gpu, gpuhal_device *device, bool directly, uint64_t count);

#endif
