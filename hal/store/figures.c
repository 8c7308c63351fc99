/* store/figures.c: counts the device memory that a store can release, and finds why it cannot release more. Call all
 * functions with the mutex held. */
#include "store/store.h"

uint32_t gpuhal_entry_rung(const gpuhal_store *store, const gpuhal_entry *entry)
{
    const bool has_copy = entry->host || entry->file, has_tiers = store->desc.host_bytes || store->file;
    const bool wants_copy = !has_copy && (!entry->reloadable || (entry->keeps_copy && has_tiers));
    return wants_copy ? GPUHAL_ROOM_SPILL : GPUHAL_ROOM_EVICT;
}

/* Room for copies, according to the limits and the results of the most recent attempts. */
typedef struct room {
    uint64_t host, file;
    uint64_t file_piece; /* the largest free block */
    uint32_t lacks;      /* reasons for insufficient room */
} room;

/* Returns the bytes of copies that can be dropped for other copies, because a loader or the file can restore the entry.
 * Excludes copies of entries in device memory, because the copies let these entries leave without copying. */
static uint64_t spare_in_host(const gpuhal_store *store)
{
    uint64_t bytes = 0;
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES; class ++) {
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
        r.host = (used < limit ? limit - used : 0) + spare_in_host(store);
    }
    r.lacks = limit == 0            ? GPUHAL_LACKS_HOST_BYTES
              : store->host_refused ? GPUHAL_LACKS_HOST_MEMORY
                                    : GPUHAL_LACKS_HOST_ROOM;
    r.lacks |= gpuhal_file_room(store, &r.file, &r.file_piece);
    return r;
}

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

/* If a loader can restore the entry, it can leave without a copy. */
static void count_entry(const gpuhal_store *store, const gpuhal_entry *entry, uint32_t which, room *r,
                        gpuhal_pressure_figures *out_figures)
{
    if (gpuhal_entry_rung(store, entry) == which) {
        const bool leaves = which == GPUHAL_ROOM_EVICT || take_room(r, entry) || entry->reloadable;
        *(leaves ? &out_figures->bytes : &out_figures->stuck_bytes) += entry->bytes;
        out_figures->lacks |= leaves ? 0 : r->lacks;
    }
}

void gpuhal_store_count(const gpuhal_store *store, uint32_t which, gpuhal_pressure_figures *figures)
{
    uint64_t unpinned = 0;
    room r = find_room(store);
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES; class ++) {
        const gpuhal_entry *entry = store->lists[GPUHAL_STORE_UNPINNED].oldest[class];
        for (; entry; entry = entry->links[GPUHAL_STORE_UNPINNED].newer) {
            unpinned += entry->bytes;
            count_entry(store, entry, which, &r, figures);
        }
    }
    const uint64_t pinned = store->in_device.bytes - store->arriving - unpinned;
    figures->pinned_bytes += which == GPUHAL_ROOM_EVICT ? pinned : 0;
}
