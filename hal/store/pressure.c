/* store/pressure.c: releases memory when the store's pool or its device runs short (pool/pressure.h): first from
 * entries that need no copy, then from the others. Also moves entries to free contiguous memory. */
#include "store/store.h"

#include "base/error.h"

static uint64_t give(gpuhal_store *store, const gpuhal_pool *pool, uint64_t bytes, uint32_t which, uint64_t deadline_ns)
{
    const bool helps = !pool || pool == store->pool;
    return helps ? gpuhal_store_make_room(store, bytes, which, deadline_ns) : 0;
}

static uint64_t evict(void *user, gpuhal_device *device, gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns)
{
    (void)device;
    return give(user, pool, bytes, GPUHAL_ROOM_EVICT, deadline_ns);
}

static uint64_t spill(void *user, gpuhal_device *device, gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns)
{
    (void)device;
    return give(user, pool, bytes, GPUHAL_ROOM_SPILL, deadline_ns);
}

/* For memory outside of all pools, returns whole segments to the driver. */
static uint64_t compact(void *user, gpuhal_device *device, gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns)
{
    gpuhal_store *store = user;
    gpuhal_error_detail before;
    (void)device;
    gpuhal_error_save(&before);
    const uint64_t given = pool == store->pool ? gpuhal_store_make_piece(store, bytes, deadline_ns)
                           : pool              ? 0
                                               : gpuhal_store_empty_segments(store, bytes, deadline_ns);
    gpuhal_error_restore(&before);
    return given;
}

/* ---- counting */

static void count(gpuhal_store *store, const gpuhal_pool *pool, uint32_t which, gpuhal_pressure_figures *out_figures)
{
    if (!pool || pool == store->pool) {
        gpuhal_mutex_lock(&store->mutex);
        gpuhal_store_count(store, which, out_figures);
        gpuhal_mutex_unlock(&store->mutex);
    }
}

static void count_evict(void *user, const gpuhal_pool *pool, gpuhal_pressure_figures *out_figures)
{
    count(user, pool, GPUHAL_ROOM_EVICT, out_figures);
}

static void count_spill(void *user, const gpuhal_pool *pool, gpuhal_pressure_figures *out_figures)
{
    count(user, pool, GPUHAL_ROOM_SPILL, out_figures);
}

/* ---- the store's sources */

gpuhal_status gpuhal_store_offer(gpuhal_store *store)
{
    const gpuhal_pressure_source sources[] = {
        {.rung = GPUHAL_PRESSURE_EVICT, .give = evict, .count = count_evict, .user = store},
        {.rung = GPUHAL_PRESSURE_SPILL, .give = spill, .count = count_spill, .user = store},
        {.rung = GPUHAL_PRESSURE_COMPACT, .give = compact, .user = store}};
    gpuhal_status status = GPUHAL_OK;
    for (int i = 0; i < 3 && !status; i++) {
        status = gpuhal_pressure_add(store->device, &sources[i], &store->sources[i]);
    }
    return status;
}

void gpuhal_store_withdraw(gpuhal_store *store)
{
    for (int i = 0; i < 3; i++) {
        gpuhal_pressure_remove(store->sources[i]);
        store->sources[i] = NULL;
    }
}
