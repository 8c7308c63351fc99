/* store/pressure.c: what a store gives when its pool, or its device, is short of memory (pool/pressure.h): entries of
 * which nothing has to be copied first, then the others. */
#include "store/store.h"

static uint64_t give(gpuhal_store *store, const gpuhal_pool *pool, uint64_t bytes, uint32_t which,
                     uint64_t deadline_ns)
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

/* What a rung could give; the first one also reports what is pinned. */
static void count(gpuhal_store *store, const gpuhal_pool *pool, uint32_t which, uint64_t *out_bytes,
                  uint64_t *out_pinned)
{
    uint64_t given = 0, unpinned = 0;
    *out_bytes = *out_pinned = 0;
    if (pool && pool != store->pool) {
        return;
    }
    gpuhal_mutex_lock(&store->mutex);
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES; class++) {
        const gpuhal_entry *entry = store->lists[GPUHAL_STORE_UNPINNED].oldest[class];
        for (; entry; entry = entry->links[GPUHAL_STORE_UNPINNED].newer) {
            unpinned += entry->bytes;
            given += gpuhal_entry_rung(store, entry) == which ? entry->bytes : 0;
        }
    }
    *out_bytes = given;
    *out_pinned = which == GPUHAL_ROOM_EVICT ? store->in_device.bytes - store->arriving - unpinned : 0;
    gpuhal_mutex_unlock(&store->mutex);
}

static void count_evict(void *user, const gpuhal_pool *pool, uint64_t *out_bytes, uint64_t *out_pinned_bytes)
{
    count(user, pool, GPUHAL_ROOM_EVICT, out_bytes, out_pinned_bytes);
}

static void count_spill(void *user, const gpuhal_pool *pool, uint64_t *out_bytes, uint64_t *out_pinned_bytes)
{
    count(user, pool, GPUHAL_ROOM_SPILL, out_bytes, out_pinned_bytes);
}

gpuhal_status gpuhal_store_offer(gpuhal_store *store)
{
    const gpuhal_pressure_source sources[] = {
        {.rung = GPUHAL_PRESSURE_EVICT, .give = evict, .count = count_evict, .user = store},
        {.rung = GPUHAL_PRESSURE_SPILL, .give = spill, .count = count_spill, .user = store}};
    gpuhal_status status = GPUHAL_OK;
    for (int i = 0; i < 2 && !status; i++) {
        status = gpuhal_pressure_add(store->device, &sources[i], &store->sources[i]);
    }
    return status;
}

void gpuhal_store_withdraw(gpuhal_store *store)
{
    for (int i = 0; i < 2; i++) {
        gpuhal_pressure_remove(store->sources[i]);
        store->sources[i] = NULL;
    }
}
