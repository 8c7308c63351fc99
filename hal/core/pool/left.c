/* pool/left.c: reports objects that a program has not released before it closes its gpuhal object. */
#include "pool/pool.h"

#include "base/log.h"
#include "device/snapshot.h"
#include "pool/pressure.h"

#include <inttypes.h>

/* Counts the parts of each tag. They are not counted at allocation, which must be fast. The caller holds the pool's
 * mutex. */
static void count_parts(gpuhal_pool *pool)
{
    gpuhal_pool_give_kept(pool);
    for (gpuhal_block_id id = 1; id < pool->blocks.touched; id++) {
        const gpuhal_buffer *buffer = gpuhal_block_at(&pool->blocks, id)->user;
        if (buffer) {
            gpuhal_tag *tag = atomic_load_explicit(&buffer->tag, memory_order_relaxed);
            tag->parts++;
            tag->part_bytes += buffer->bytes;
        }
    }
}

/* Counts parts, and pools that were not destroyed. */
static uint64_t count_pools(const gpuhal_device *device, uint64_t *out_bytes)
{
    gpuhal_pools *pools = device->gpu->layers.pools;
    uint64_t count = 0;
    gpuhal_mutex_lock(&pools->mutex);
    for (gpuhal_pool *pool = pools->first; pool; pool = pool->next) {
        if (pool->device == device) {
            gpuhal_mutex_lock(&pool->mutex);
            count_parts(pool);
            count += !pool->destroyed;
            *out_bytes += pool->destroyed ? 0 : gpuhal_amount_now(&pool->reserved);
            gpuhal_mutex_unlock(&pool->mutex);
        }
    }
    gpuhal_mutex_unlock(&pools->mutex);
    return count;
}

static void report_tag(const gpuhal_device *device, gpuhal_tag *tag)
{
    const uint64_t buffers = atomic_load(&tag->buffers) + tag->parts;
    const uint64_t bytes = atomic_load(&tag->bytes) + tag->part_bytes;
    tag->parts = tag->part_bytes = 0;
    if (buffers > 0) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_INFO,
                        "%s: not released before gpuhal_close: %" PRIu64 " %s %s%s%s, %" PRIu64 " bytes", device->id,
                        buffers, buffers == 1 ? "buffer" : "buffers", *tag->text ? "tagged \"" : "without a tag",
                        tag->text, *tag->text ? "\"" : "", bytes);
    }
}

/* A store keeps its pool, and therefore the memory of its entries, until it is destroyed. Each store has exactly one
 * source on the evict rung. */
static void report_stores(const gpuhal_device *device)
{
    const uint64_t stores = gpuhal_pressure_source_count(device, GPUHAL_PRESSURE_EVICT);
    if (stores > 0) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_INFO, "%s: not destroyed before gpuhal_close: %" PRIu64 " %s",
                        device->id, stores, stores == 1 ? "store" : "stores");
    }
}

/* No other thread uses the gpuhal object at this point, so only a log callback can add tags. */
void gpuhal_pools_report_left(gpuhal *gpu)
{
    const bool wanted = gpuhal_log_wants(gpu->log, GPUHAL_LEVEL_INFO);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu) && wanted; d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        uint64_t bytes = 0;
        const uint64_t pools = count_pools(device, &bytes);
        if (pools > 0) {
            gpuhal_log_line(gpu->log, GPUHAL_LEVEL_INFO,
                            "%s: not destroyed before gpuhal_close: %" PRIu64 " %s with segments of %" PRIu64 " bytes",
                            device->id, pools, pools == 1 ? "pool" : "pools", bytes);
        }
        report_stores(device);
        for (gpuhal_tag *tag = &device->untagged; tag; tag = tag->next) {
            report_tag(device, tag);
        }
    }
}
