/* store/demote.c: copies entries from device memory to host memory or the file, and from host memory to the file. To
 * make room, the least recently used copies leave host memory. */
#include "store/store.h"

#include "base/error.h"

#include <inttypes.h>

/* Drops the copy of an entry that is also in device memory. First waits until the work that restored the entry has
 * succeeded, because until then only the copy has its bytes. If the entry was used during the wait, keeps the copy,
 * because another thread may be restoring the entry again. */
static bool drop_copy_unlocks(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    gpuhal_host_copy *copy = NULL;
    const uint64_t uses = entry->use_number;
    entry->references++;
    gpuhal_mutex_unlock(&store->mutex);
    const bool is_there = gpuhal_uses_wait(store, entry, NULL, false, deadline_ns) == GPUHAL_OK;
    gpuhal_mutex_lock(&store->mutex);
    if (is_there && entry->use_number == uses && entry->state == GPUHAL_ENTRY_DEVICE &&
        entry->links[GPUHAL_STORE_COPIED].in_list) {
        copy = gpuhal_entry_detach_host(store, entry);
    }
    gpuhal_entry *gone = gpuhal_entry_unreference(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_host_release(copy);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return copy != NULL;
}

static bool copy_to_file_unlocks(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_file_copy *copy = NULL;
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_status status = gpuhal_file_take(store, entry, entry->host, &copy);
    gpuhal_mutex_lock(&store->mutex);
    if (!status) {
        gpuhal_entry_attach_file(store, entry, copy);
    }
    return status == GPUHAL_OK;
}

/* Moves an entry that is not in device memory to the file. If that fails and a loader can restore the entry, removes it
 * from the store. */
static bool leave_host_unlocks(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_host_copy *copy = NULL;
    if (!entry->file && !store->file && !entry->reloadable) {
        return false;
    }
    gpuhal_entry_begin_work(store, entry, GPUHAL_ENTRY_SPILLING);
    if (entry->file || (store->file && copy_to_file_unlocks(store, entry))) {
        copy = gpuhal_entry_detach_host(store, entry);
    }
    const bool leaves = copy || entry->reloadable;
    if (!copy && leaves && entry->listed) {
        (void)gpuhal_entry_remove(store, entry); /* this thread has a reference */
    }
    gpuhal_entry *gone = gpuhal_entry_end_work(store, entry, gpuhal_entry_tier(entry));
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_host_release(copy);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return leaves;
}

/* Returns whether the copy may leave host memory. Perhaps only one of thousands may. */
static bool may_leave(const gpuhal_store *store, const gpuhal_entry *entry, const void *user)
{
    uint64_t room = 0, largest_room = 0, largest = 0;
    (void)user;
    if (entry->state == GPUHAL_ENTRY_DEVICE || entry->file || entry->reloadable) {
        return true;
    }
    (void)gpuhal_file_room(store, &room, &largest_room);
    return gpuhal_file_bytes(entry, &largest) <= room && largest <= largest_room;
}

static bool free_one(gpuhal_store *store, uint64_t attempt, uint64_t deadline_ns)
{
    bool freed = false;
    gpuhal_entry *entry = NULL;
    gpuhal_mutex_lock(&store->mutex);
    while (!freed && (entry = gpuhal_entry_next(store, GPUHAL_STORE_COPIED, attempt, may_leave, NULL))) {
        freed = entry->state == GPUHAL_ENTRY_DEVICE ? drop_copy_unlocks(store, entry, deadline_ns)
                                                    : leave_host_unlocks(store, entry);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return freed;
}

static gpuhal_status no_room(const gpuhal_store *store, uint64_t bytes)
{
    return gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                            "%s: a store may have %" PRIu64
                            " bytes of copies in host memory, and has no room for %" PRIu64,
                            store->device->id, store->desc.host_bytes, bytes);
}

static uint64_t bytes_in_host(gpuhal_store *store)
{
    gpuhal_mutex_lock(&store->mutex);
    const uint64_t bytes = store->in_host.bytes + store->host_reserved;
    gpuhal_mutex_unlock(&store->mutex);
    return bytes;
}

/* Frees the host memory of one copy. Returns whether this succeeded, or other threads made room, so that less than
 * `used` bytes are in use now. */
static bool find_room(gpuhal_store *store, uint64_t used, uint64_t attempt, uint64_t deadline_ns)
{
    return free_one(store, attempt, deadline_ns) || bytes_in_host(store) < used;
}

static gpuhal_status reserve(gpuhal_store *store, uint64_t bytes, uint64_t attempt, uint64_t deadline_ns)
{
    const uint64_t limit = store->desc.host_bytes;
    bool fits = bytes <= limit, may_fit = fits;
    while (may_fit) {
        gpuhal_mutex_lock(&store->mutex);
        const uint64_t used = store->in_host.bytes + store->host_reserved;
        fits = used <= limit - bytes;
        store->host_reserved += fits ? bytes : 0;
        gpuhal_mutex_unlock(&store->mutex);
        may_fit = !fits && find_room(store, used, attempt, deadline_ns);
    }
    return fits ? GPUHAL_OK : no_room(store, bytes);
}

static gpuhal_status copy_to_host(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    gpuhal_host_copy *copy = NULL;
    uint64_t used = 0;
    gpuhal_mutex_lock(&store->mutex);
    const uint64_t attempt = ++store->attempts;
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_status status = reserve(store, entry->bytes, attempt, deadline_ns);
    if (status) {
        return status;
    }
    do { /* the limit has room, but perhaps no free block is large enough */
        used = bytes_in_host(store);
        status = gpuhal_host_create(store, entry, &copy);
    } while (status == GPUHAL_ERROR_OUT_OF_MEMORY && find_room(store, used, attempt, deadline_ns));
    const bool refused = status != GPUHAL_OK;
    status = status ? status : gpuhal_host_take(copy, entry);
    if (status) {
        gpuhal_host_release(copy);
    }
    gpuhal_mutex_lock(&store->mutex);
    store->host_refused = refused;
    store->host_reserved -= entry->bytes;
    if (!status) {
        gpuhal_entry_attach_host(store, entry, copy);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}

gpuhal_status gpuhal_demote(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns)
{
    gpuhal_file_copy *copy = NULL;
    gpuhal_status status = copy_to_host(store, entry, deadline_ns);
    const bool to_file = status && store->file;
    status = to_file ? gpuhal_file_take(store, entry, NULL, &copy) : status;
    gpuhal_mutex_lock(&store->mutex);
    if (to_file && !status) {
        gpuhal_entry_attach_file(store, entry, copy);
    }
    store->spills += status == GPUHAL_OK;
    store->spilled_bytes += status ? 0 : entry->bytes;
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}
