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

/* ---- counting, with the mutex held */

/* Room for copies, by the limits and by what the last attempts found. */
typedef struct room {
    uint64_t host, file;
    uint64_t file_piece; /* the largest one */
    uint32_t lacks;      /* where that does not suffice */
} room;

/* Copies that can be given up for others: a loader or the file has the entry, too. Those of what is in device memory
 * stay, since it leaves without a copy. */
static uint64_t spare_in_host(const gpuhal_store *store)
{
    uint64_t bytes = 0;
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES; class++) {
        const gpuhal_entry *entry = store->lists[GPUHAL_STORE_COPIED].oldest[class];
        for (; entry; entry = entry->links[GPUHAL_STORE_COPIED].newer) {
            bytes += entry->state == GPUHAL_ENTRY_HOST && (entry->reloadable || entry->file) ? entry->bytes : 0;
        }
    }
    return bytes;
}

static room find_room(const gpuhal_store *store)
{
    const uint64_t used = store->in_host.bytes + store->host_reserved, limit = store->desc.host_bytes;
    room r = {0};
    if (limit > 0 && !store->host_refused) {
        r.host = limit - used + spare_in_host(store);
    }
    r.lacks = limit == 0            ? GPUHAL_LACKS_HOST_BYTES
              : store->host_refused ? GPUHAL_LACKS_HOST_MEMORY
                                    : GPUHAL_LACKS_HOST_ROOM;
    r.lacks |= gpuhal_file_room(store, &r.file, &r.file_piece);
    return r;
}

/* Takes it for the entry: false where there is none. */
static bool take_room(room *r, const gpuhal_entry *entry)
{
    uint64_t largest = 0;
    const uint64_t in_file = gpuhal_file_bytes(entry, &largest);
    if (entry->bytes <= r->host) {
        r->host -= entry->bytes;
        return true;
    }
    const bool fits = in_file <= r->file && largest <= r->file_piece;
    r->file -= fits ? in_file : 0;
    return fits;
}

/* What a loader can bring back leaves without a copy, too. */
static void count_entry(const gpuhal_store *store, const gpuhal_entry *entry, uint32_t which, room *r,
                        gpuhal_pressure_figures *out_figures)
{
    if (gpuhal_entry_rung(store, entry) == which) {
        const bool leaves = which == GPUHAL_ROOM_EVICT || take_room(r, entry) || entry->reloadable;
        *(leaves ? &out_figures->bytes : &out_figures->stuck_bytes) += entry->bytes;
        out_figures->lacks |= leaves ? 0 : r->lacks;
    }
}

/* What a rung could give; the first one also reports what is pinned. */
static void count(gpuhal_store *store, const gpuhal_pool *pool, uint32_t which, gpuhal_pressure_figures *out_figures)
{
    uint64_t unpinned = 0;
    if (pool && pool != store->pool) {
        return;
    }
    gpuhal_mutex_lock(&store->mutex);
    room r = find_room(store);
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES; class++) {
        const gpuhal_entry *entry = store->lists[GPUHAL_STORE_UNPINNED].oldest[class];
        for (; entry; entry = entry->links[GPUHAL_STORE_UNPINNED].newer) {
            unpinned += entry->bytes;
            count_entry(store, entry, which, &r, out_figures);
        }
    }
    const uint64_t pinned = store->in_device.bytes - store->arriving - unpinned;
    out_figures->pinned_bytes = which == GPUHAL_ROOM_EVICT ? pinned : 0;
    gpuhal_mutex_unlock(&store->mutex);
}

static void count_evict(void *user, const gpuhal_pool *pool, gpuhal_pressure_figures *out_figures)
{
    count(user, pool, GPUHAL_ROOM_EVICT, out_figures);
}

static void count_spill(void *user, const gpuhal_pool *pool, gpuhal_pressure_figures *out_figures)
{
    count(user, pool, GPUHAL_ROOM_SPILL, out_figures);
}

/* ---- the store's two sources */

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
