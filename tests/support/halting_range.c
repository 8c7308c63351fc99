/* tests/support/halting_range.c: see halting.h. All of a range always has memory, so commits are ignored. */
#include "support/halting.h"

#include <stdlib.h>
#include <sys/mman.h>

struct gpuhal_plugin_range {
    void *bytes;
    uint64_t count;
};

static gpuhal_status granularity(gpuhal_plugin_device *device, uint64_t range_bytes, uint64_t *out_bytes)
{
    (void)device, (void)range_bytes;
    gpuhal_halting_pass("range_granularity");
    *out_bytes = 65536;
    return GPUHAL_OK;
}

static gpuhal_status reserve(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                             gpuhal_plugin_range **out_range)
{
    (void)device;
    gpuhal_halting_pass("range_reserve");
    gpuhal_plugin_range *range = malloc(sizeof *range);
    void *at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!range || at == MAP_FAILED) {
        free(range);
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *range = (gpuhal_plugin_range){.bytes = at, .count = bytes};
    out_memory->object = at;
    out_memory->bytes = bytes;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    *out_range = range;
    return GPUHAL_OK;
}

static gpuhal_status commit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
                            gpuhal_plugin_device *const *peers, uint32_t peer_count)
{
    (void)range, (void)offset, (void)bytes, (void)peers, (void)peer_count;
    gpuhal_halting_pass("range_commit");
    return GPUHAL_OK;
}

static gpuhal_status decommit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    (void)range, (void)offset, (void)bytes;
    gpuhal_halting_pass("range_decommit");
    return GPUHAL_OK;
}

static void release(gpuhal_plugin_range *range)
{
    gpuhal_halting_pass("range_release");
    munmap(range->bytes, (size_t)range->count);
    free(range);
}

void gpuhal_halting_describe_ranges(gpuhal_ops *ops)
{
    static const gpuhal_range_ops ranges = {
        .size = sizeof ranges,
        .version = GPUHAL_RANGES_VERSION,
        .range_granularity = granularity,
        .range_reserve = reserve,
        .range_commit = commit,
        .range_decommit = decommit,
        .range_release = release,
    };
    ops->ranges = &ranges;
}
