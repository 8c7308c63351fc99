/* pool/statistics.c: statistics of pools and devices. A pool's statistics are read without its mutex. */
#include "pool/pool.h"

#include "base/error.h"

#include <string.h>

/* A thread may be interrupted for a long time while it writes statistics. After this many tries the values are used as
 * read. */
enum { TRIES = 100 };

/* Threads that take kept parts may change their lanes' values constantly. After this many tries the lanes' values are
 * used although they were read at different moments. */
enum { LANE_TRIES = 10 };

static gpuhal_pool_amount amount(uint64_t in, uint64_t out, uint64_t peak)
{
    return (gpuhal_pool_amount){.current = in > out ? in - out : 0, .peak = peak, .total_in = in, .total_out = out};
}

static uint64_t load(const _Atomic uint64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_acquire);
}

/* Both values only grow. If `out` has the same value before and after `in` is read, the difference is exact. If a
 * thread changes `out` at each try, the difference is too large, but never negative. */
static void read_both(const gpuhal_amount *figure, uint64_t *out_in, uint64_t *out_out)
{
    bool same = false;
    for (int tries = 0; tries < TRIES && !same; tries++) {
        *out_out = load(&figure->out);
        *out_in = load(&figure->in);
        same = load(&figure->out) == *out_out;
    }
}

gpuhal_pool_amount gpuhal_amount_read(const gpuhal_amount *figure)
{
    uint64_t in = 0, out = 0;
    read_both(figure, &in, &out);
    return amount(in, out, load(&figure->peak));
}

static uint64_t difference(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* Returns how many bytes can be allocated once `unused` bytes are returned, if `taken` bytes count against the limit
 * now. A limit of 0 means no limit. */
static uint64_t room(uint64_t limit, uint64_t taken, uint64_t unused)
{
    return limit ? difference(limit, difference(taken, unused)) : UINT64_MAX;
}

static uint64_t least(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static uint64_t room_on(const gpuhal_device *device, uint64_t unused)
{
    const uint64_t total = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const uint64_t taken = atomic_load(&device->allocated_bytes);
    const uint64_t fits = least(room(total, taken, unused), room(gpuhal_device_limit(device), taken, unused));
    return least(fits, device->allocation_max_bytes);
}

/* Corrects the value for kept parts. Kept parts count as released, and each kept part that was taken again counts as
 * one more allocation and release. */
static gpuhal_pool_amount with_kept(const gpuhal_amount *figure, uint64_t keeps, uint64_t again)
{
    uint64_t in = 0, out = 0;
    read_both(figure, &in, &out);
    return amount(in + again, out + again + keeps, load(&figure->peak));
}

/* Returns false if a lane changed during the read. */
static bool read_figures(const gpuhal_pool *pool, gpuhal_pool_statistics *out)
{
    uint64_t keeps[GPUHAL_SUM_COUNT] = {0}, again[GPUHAL_SUM_COUNT] = {0};
    const bool steady = gpuhal_lanes_read(pool, keeps, again);
    out->reserved = gpuhal_amount_read(&pool->reserved);
    out->used = with_kept(&pool->used, keeps[GPUHAL_SUM_USED], again[GPUHAL_SUM_USED]);
    out->requested = with_kept(&pool->requested, keeps[GPUHAL_SUM_REQUESTED], again[GPUHAL_SUM_REQUESTED]);
    out->buffers = with_kept(&pool->buffers, keeps[GPUHAL_SUM_BUFFERS], again[GPUHAL_SUM_BUFFERS]);
    out->free_bytes = load(&pool->free_bytes);
    out->largest_free_bytes = load(&pool->largest_bytes);
    out->segments = atomic_load_explicit(&pool->segment_count, memory_order_acquire);
    return steady;
}

static void read_pool(gpuhal_pool *pool, gpuhal_pool_statistics *out)
{
    bool steady = false;
    for (int tries = 0; tries < TRIES && !steady; tries++) {
        const uint32_t before = atomic_load_explicit(&pool->changes, memory_order_acquire);
        steady = (read_figures(pool, out) || tries >= LANE_TRIES) && before % 2 == 0 &&
                 before == atomic_load_explicit(&pool->changes, memory_order_relaxed);
    }
    out->limit_bytes = atomic_load(&pool->limit_bytes);
    out->searches_failed = atomic_load(&pool->searches_failed);
    out->out_of_memory = atomic_load(&pool->out_of_memory);
    out->ordered_bytes = difference(difference(out->reserved.current, out->used.current), out->free_bytes);
    out->unused_segment_bytes = gpuhal_pool_unused_now(pool);
    const uint64_t unused = out->unused_segment_bytes, reserved = out->reserved.current;
    const uint64_t grown = least(room(out->limit_bytes, reserved, unused), room_on(pool->device, unused));
    const uint64_t units = grown & ~(pool->unit - 1);
    out->allocatable_bytes = units > out->largest_free_bytes ? units : out->largest_free_bytes;
    const double ratio = out->used.peak > 0 ? (double)out->reserved.peak / (double)out->used.peak : 0;
    out->peak_permille = (uint64_t)(1000 * ratio + 0.5);
}

static gpuhal_status check(const char *call, const gpuhal_device *device, const uint32_t *size)
{
    if (!device || !size || *size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL, or its size is 0", call);
    }
    return gpuhal_check(device->gpu);
}

gpuhal_status gpuhal_pool_get_statistics(gpuhal_pool *pool, gpuhal_pool_statistics *out_statistics)
{
    gpuhal_status status =
        check("gpuhal_pool_get_statistics", pool ? pool->device : NULL, out_statistics ? &out_statistics->size : NULL);
    if (status) {
        return status;
    }
    gpuhal_pool_statistics all = {.size = out_statistics->size};
    read_pool(pool, &all);
    memcpy(out_statistics, &all, all.size < sizeof all ? all.size : sizeof all);
    return GPUHAL_OK;
}

static void add_pool(gpuhal_memory_statistics *sum, gpuhal_pool *pool)
{
    gpuhal_pool_statistics one = {0};
    read_pool(pool, &one);
    sum->pools++;
    sum->reserved_bytes += one.reserved.current;
    sum->used_bytes += one.used.current;
    sum->requested_bytes += one.requested.current;
    sum->buffers += one.buffers.current;
    sum->free_bytes += one.free_bytes;
    sum->ordered_bytes += one.ordered_bytes;
    sum->unused_segment_bytes += one.unused_segment_bytes;
    const bool larger = one.largest_free_bytes > sum->largest_free_bytes;
    sum->largest_free_bytes = larger ? one.largest_free_bytes : sum->largest_free_bytes;
}

/* Locks the list of pools. Creating or destroying a pool waits for it, an allocation only if it finds no free block. */
gpuhal_status gpuhal_device_get_memory_statistics(gpuhal_device *device, gpuhal_memory_statistics *out_statistics)
{
    gpuhal_status status =
        check("gpuhal_device_get_memory_statistics", device, out_statistics ? &out_statistics->size : NULL);
    if (status) {
        return status;
    }
    gpuhal_memory_statistics all = {.size = out_statistics->size, .limit_bytes = gpuhal_device_limit(device)};
    gpuhal_pools *pools = device->gpu->layers.pools;
    gpuhal_mutex_lock(&pools->mutex);
    for (gpuhal_pool *pool = pools->first; pool; pool = pool->next) {
        if (pool->device == device) {
            add_pool(&all, pool);
        }
    }
    gpuhal_mutex_unlock(&pools->mutex);
    const uint64_t out = load(&device->allocated_out), in = load(&device->allocated_in);
    all.allocated = amount(in, out, load(&device->allocated_peak));
    all.allocatable_bytes = room_on(device, all.unused_segment_bytes);
    memcpy(out_statistics, &all, all.size < sizeof all ? all.size : sizeof all);
    return GPUHAL_OK;
}
