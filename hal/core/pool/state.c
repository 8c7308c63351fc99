/* pool/state.c: trims and maintains the pools of a gpuhal object. */
#include "pool/pool.h"

#include "base/error.h"
#include "queue/queue.h"

#include <stdlib.h>

gpuhal_pools *gpuhal_pools_create(void)
{
    gpuhal_pools *pools = calloc(1, sizeof *pools);
    if (pools) {
        gpuhal_mutex_init(&pools->mutex);
        gpuhal_pressure_init(&pools->pressure);
        gpuhal_trace_init(&pools->trace);
    }
    return pools;
}

/* All pools are already freed, because each has a reference to the gpuhal object. */
void gpuhal_pools_destroy(gpuhal_pools *pools)
{
    if (pools) {
        gpuhal_pressure_finish(&pools->pressure);
        gpuhal_trace_finish(&pools->trace);
        gpuhal_mutex_finish(&pools->mutex);
        free(pools);
    }
}

/* Polls first, because memory whose work has ended is unused as well. */
static uint64_t trim(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t want_bytes, uint64_t *polled)
{
    uint64_t freed = 0;
    *polled += gpuhal_pool_poll(pool);
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_buffer *list = gpuhal_pool_take_unused(pool, keep_bytes, want_bytes, &freed);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_segments_release(list);
    return freed;
}

/* Returns the pools of a device, or of all devices if `device` is NULL, each with a reference. The list is NULL if
 * there are no pools. May return HOST_MEMORY. */
static gpuhal_status pools_of(gpuhal *gpu, const gpuhal_device *device, gpuhal_pool ***out_list, size_t *out_count)
{
    gpuhal_pools *pools = gpu->layers.pools;
    size_t count = 0;
    *out_count = 0;
    gpuhal_mutex_lock(&pools->mutex);
    for (const gpuhal_pool *pool = pools->first; pool; pool = pool->next) {
        count++;
    }
    gpuhal_pool **list = count ? malloc(count * sizeof *list) : NULL;
    for (gpuhal_pool *pool = pools->first; pool && list; pool = pool->next) {
        if (!device || pool->device == device) {
            gpuhal_mutex_lock(&pool->mutex);
            bool lives = pool->references > 0;
            pool->references += lives;
            gpuhal_mutex_unlock(&pool->mutex);
            list[*out_count] = pool;
            *out_count += lives;
        }
    }
    gpuhal_mutex_unlock(&pools->mutex);
    *out_list = list;
    return count && !list ? gpuhal_error_host_memory() : GPUHAL_OK;
}

/* Trims older pools last; `keep_bytes` applies to all pools together. */
gpuhal_status gpuhal_pools_trim(gpuhal *gpu, const gpuhal_device *device, uint64_t keep_bytes, uint64_t want_bytes,
                                uint64_t *out_polled, uint64_t *out_freed)
{
    size_t count = 0;
    gpuhal_pool **list = NULL;
    *out_polled = *out_freed = 0;
    gpuhal_status status = pools_of(gpu, device, &list, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t kept = 0;
        for (size_t other = i + 1; other < count; other++) {
            kept += gpuhal_pool_unused_now(list[other]);
        }
        if (*out_freed < want_bytes) {
            const uint64_t keep = keep_bytes > kept ? keep_bytes - kept : 0;
            *out_freed += trim(list[i], keep, want_bytes - *out_freed, out_polled);
        }
        gpuhal_pool_unreference(list[i]);
    }
    free(list);
    return status;
}

gpuhal_status gpuhal_pools_part_lanes(const gpuhal_device *device)
{
    size_t count = 0;
    gpuhal_pool **list = NULL;
    gpuhal_status status = pools_of(device->gpu, device, &list, &count);
    for (size_t i = 0; i < count; i++) {
        gpuhal_pool_part_lanes(list[i], NULL, 1);
        gpuhal_pool_unreference(list[i]);
    }
    free(list);
    return status;
}

void gpuhal_pools_report(const gpuhal_device *device, gpuhal_memory_report *report)
{
    gpuhal_pools *pools = device->gpu->layers.pools;
    gpuhal_mutex_lock(&pools->mutex);
    for (gpuhal_pool *pool = pools->first; pool; pool = pool->next) {
        if (pool->device == device) {
            gpuhal_mutex_lock(&pool->mutex);
            const uint64_t common = gpuhal_bins_free_bytes(pool->common);
            const uint64_t largest = gpuhal_bins_largest(&pool->blocks, pool->common);
            report->free_bytes += common;
            report->ordered_bytes += gpuhal_amount_now(&pool->reserved) - gpuhal_pool_used_now(pool) - common;
            report->largest_free_bytes = largest > report->largest_free_bytes ? largest : report->largest_free_bytes;
            gpuhal_mutex_unlock(&pool->mutex);
        }
    }
    gpuhal_mutex_unlock(&pools->mutex);
    /* Pools may have grown since the sums were computed. Then `used_bytes` is too large by the growth. */
    const uint64_t held = atomic_load(&device->allocated_bytes), idle = report->free_bytes + report->ordered_bytes;
    report->used_bytes = held > idle ? held - idle : 0;
    report->reserved_bytes = report->used_bytes + idle;
}

/* In a forked child, returns an error for an inherited gpuhal object, which is not used any further. */
static gpuhal_status check(const gpuhal *gpu, uint64_t *out_freed)
{
    if (out_freed) {
        *out_freed = 0;
    }
    return gpu ? gpuhal_check(gpu) : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "trimming: the object is NULL");
}

gpuhal_status gpuhal_pool_trim(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t *out_freed)
{
    gpuhal_status status = check(pool ? pool->device->gpu : NULL, out_freed);
    if (status) {
        return status;
    }
    uint64_t polled = 0;
    const uint64_t freed = trim(pool, keep_bytes, UINT64_MAX, &polled);
    if (out_freed) {
        *out_freed = freed;
    }
    return GPUHAL_OK;
}

static gpuhal_status trim_all(gpuhal *gpu, const gpuhal_device *device, uint64_t keep_bytes, uint64_t *out_freed)
{
    uint64_t polled = 0, freed = 0;
    const gpuhal_status status = gpuhal_pools_trim(gpu, device, keep_bytes, UINT64_MAX, &polled, &freed);
    if (out_freed) {
        *out_freed = freed;
    }
    return status;
}

gpuhal_status gpuhal_device_trim(gpuhal_device *device, uint64_t keep_bytes, uint64_t *out_freed)
{
    gpuhal_status status = check(device ? device->gpu : NULL, out_freed);
    return status ? status : trim_all(device->gpu, device, keep_bytes, out_freed);
}

gpuhal_status gpuhal_trim(gpuhal *gpu, uint64_t keep_bytes, uint64_t *out_freed)
{
    gpuhal_status status = check(gpu, out_freed);
    return status ? status : trim_all(gpu, NULL, keep_bytes, out_freed);
}

gpuhal_status gpuhal_pool_set_limit(gpuhal_pool *pool, uint64_t limit_bytes)
{
    gpuhal_status status = check(pool ? pool->device->gpu : NULL, NULL);
    if (status) {
        return status;
    }
    limit_bytes = limit_bytes < UINT64_MAX ? limit_bytes : 0;
    gpuhal_mutex_lock(&pool->mutex);
    atomic_store(&pool->limit_bytes, limit_bytes);
    gpuhal_trace_pool(pool, GPUHAL_TRACE_LIMIT, 0, limit_bytes);
    gpuhal_mutex_unlock(&pool->mutex);
    const uint64_t reserved = gpuhal_amount_now(&pool->reserved);
    if (limit_bytes && reserved > limit_bytes) {
        uint64_t polled = 0;
        (void)trim(pool, 0, reserved - limit_bytes, &polled);
    }
    return GPUHAL_OK;
}

/* Polls, and returns unused segments above keep_bytes to the driver if keep_bytes is set. If other programs leave less
 * free memory than the pool's headroom, instead returns as much unused memory as is lacking. */
static void maintain(gpuhal_pool *pool)
{
    const uint64_t headroom = pool->desc.headroom_bytes, keep = pool->desc.keep_bytes;
    const uint64_t left = headroom ? gpuhal_memory_free_bytes(pool->device) : UINT64_MAX;
    uint64_t polled = 0;
    if (left < headroom) {
        (void)trim(pool, 0, headroom - left, &polled);
    } else {
        (void)trim(pool, keep ? keep : UINT64_MAX, UINT64_MAX, &polled);
    }
}

gpuhal_status gpuhal_maintain(gpuhal *gpu, uint32_t every_n)
{
    if (!gpu || every_n == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_maintain: gpu is NULL, or every_n is 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status || (atomic_fetch_add_explicit(&gpu->layers.pools->maintained, 1, memory_order_relaxed) + 1) % every_n) {
        return status;
    }
    size_t count = 0;
    gpuhal_pool **list = NULL;
    status = pools_of(gpu, NULL, &list, &count);
    for (size_t i = 0; i < count; i++) {
        maintain(list[i]);
        gpuhal_pool_unreference(list[i]);
    }
    free(list);
    return status;
}
