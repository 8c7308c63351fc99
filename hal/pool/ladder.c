/* pool/ladder.c: what a pool does when it has no free block that fits. After every step it searches again, so nothing
 * is called impossible for which there is room. */
#include "pool/pool.h"

#include "core/error.h"
#include "device/fault_log.h"

#include <inttypes.h>

static bool search(const gpuhal_request *request, gpuhal_block_id *out_block)
{
    gpuhal_pool *pool = request->pool;
    gpuhal_mutex_lock(&pool->mutex);
    bool space = gpuhal_blocks_reserve(&pool->blocks);
    *out_block = space ? gpuhal_pool_search(pool, request->queue, request->block_bytes) : 0;
    gpuhal_mutex_unlock(&pool->mutex);
    return *out_block != 0;
}

/* How often a thread looks whether the driver that another one is waiting for hangs. */
enum { LOST_POLL_NS = 20000000 };

/* One thread at a time: a second one would ask for a segment although the first's may have room for both, and would
 * fail at the limit because of a request that is then refused. DEVICE_LOST when the first one is stuck. */
static gpuhal_status begin_growing(gpuhal_pool *pool)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&pool->mutex);
    while (pool->growing && !(status = gpuhal_device_check(pool->device))) {
        gpuhal_condition_wait_until(&pool->condition, &pool->mutex, gpuhal_deadline(LOST_POLL_NS));
    }
    pool->growing = pool->growing || !status;
    gpuhal_mutex_unlock(&pool->mutex);
    return status;
}

static void end_growing(gpuhal_pool *pool)
{
    gpuhal_mutex_lock(&pool->mutex);
    pool->growing = false;
    gpuhal_condition_signal_all(&pool->condition);
    gpuhal_mutex_unlock(&pool->mutex);
}

/* Gives back unused segments, only as many as are needed; false if there is none. */
static bool trim(gpuhal_pool *pool, uint64_t bytes)
{
    uint64_t freed = 0;
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_buffer *list = gpuhal_pool_take_unused(pool, 0, bytes, &freed);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_segments_release(list);
    return freed > 0;
}

/* A further segment; where that is refused, one in place of unused ones. Searches first: another thread may have made
 * room while this one waited for its turn. */
static gpuhal_status grow(const gpuhal_request *request, gpuhal_block_id *out_block)
{
    gpuhal_pool *pool = request->pool;
    gpuhal_status status = begin_growing(pool);
    if (status) {
        return status;
    }
    while (!search(request, out_block) && !status) {
        status = gpuhal_pool_grow(pool, request->block_bytes);
        if (status == GPUHAL_ERROR_OUT_OF_MEMORY && trim(pool, request->block_bytes)) {
            status = GPUHAL_OK;
        }
    }
    end_growing(pool);
    return *out_block ? GPUHAL_OK : status;
}

/* Merges what the queue may have now, also what others may have as well. */
static bool gather(const gpuhal_request *request, gpuhal_block_id *out_block)
{
    gpuhal_pool *pool = request->pool;
    gpuhal_mutex_lock(&pool->mutex);
    const bool merged = gpuhal_lane_gather(pool, request->queue, request->block_bytes);
    gpuhal_mutex_unlock(&pool->mutex);
    return merged && search(request, out_block);
}

static bool may_grow(const gpuhal_request *request)
{
    return !(request->flags & GPUHAL_ALLOCATE_WITHIN_POOL);
}

/* Memory that waits for work of queues: first by making the caller's queue wait, then by waiting here. */
static bool take_over(const gpuhal_request *request, gpuhal_block_id *out_block)
{
    gpuhal_pool *pool = request->pool;
    bool follows = request->queue && !(pool->desc.flags & GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES);
    if (follows) {
        gpuhal_pool_part_lanes(pool, request->queue, request->block_bytes);
    }
    while (follows && gpuhal_pool_follow(pool, request->queue, request->block_bytes)) {
        if (search(request, out_block)) {
            return true;
        }
    }
    if (request->queue && gather(request, out_block)) {
        return true;
    }
    bool waits = request->deadline_ns > 0 && !(request->flags & GPUHAL_ALLOCATE_NO_WAIT);
    if (waits) { /* the queue's own lane as well: what becomes common is merged with its neighbours there */
        gpuhal_pool_part_lanes(pool, NULL, 1);
    }
    while (waits && gpuhal_pool_wait_oldest(pool, request->deadline_ns)) {
        gpuhal_pool_poll(pool);
        if (search(request, out_block)) {
            return true;
        }
    }
    return false;
}

/* `refusal`: why the pool could not grow; that sentence stays, since it names the limit or the driver's call. */
static gpuhal_status out_of_memory(const gpuhal_request *request, const gpuhal_error_detail *refusal)
{
    gpuhal_pool *pool = request->pool;
    gpuhal_mutex_lock(&pool->mutex);
    const uint64_t reserved = gpuhal_amount_now(&pool->reserved), used = gpuhal_amount_now(&pool->used);
    const uint64_t common = gpuhal_bins_free_bytes(pool->common);
    const uint64_t largest = gpuhal_bins_largest(&pool->blocks, pool->common);
    gpuhal_mutex_unlock(&pool->mutex);
    atomic_fetch_add(&pool->out_of_memory, 1);
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: %" PRIu64 " bytes requested of a pool of %" PRIu64 ", of which %" PRIu64
                     " are in use, %" PRIu64 " behind work of queues and %" PRIu64 " free, %" PRIu64
                     " in one piece%s%s",
                     pool->device->id, request->bytes, reserved, used, reserved - used - common, common, largest,
                     refusal ? "; " : "", refusal ? refusal->sentence : "");
    gpuhal_error_add_device(pool->device->candidate->name, pool->device->id);
    const uint64_t limit = atomic_load(&pool->limit_bytes);
    gpuhal_error_add_bytes(request->bytes, common, limit ? limit : reserved);
    gpuhal_error_add_pending(reserved - used - common);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

gpuhal_status gpuhal_pool_climb(const gpuhal_request *request, gpuhal_block_id *out_block)
{
    gpuhal_pool *pool = request->pool;
    gpuhal_error_detail refusal;
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    atomic_fetch_add(&pool->searches_failed, 1);
    if (!(pool->desc.flags & GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC)) {
        gpuhal_pool_poll(pool);
        if (search(request, out_block)) {
            return GPUHAL_OK;
        }
    }
    if (may_grow(request)) {
        status = grow(request, out_block);
        if (status != GPUHAL_ERROR_OUT_OF_MEMORY) {
            return status;
        }
        gpuhal_error_save(&refusal);
    }
    if (take_over(request, out_block)) {
        return GPUHAL_OK;
    }
    /* What has ended meanwhile may be whole segments, and one in their place may do. */
    if (may_grow(request) && grow(request, out_block) == GPUHAL_OK) {
        return GPUHAL_OK;
    }
    return out_of_memory(request, may_grow(request) ? &refusal : NULL);
}
