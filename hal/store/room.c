/* store/room.c: room in device memory for the buffers of an entry, which others leave. */
#include "store/store.h"

#include "core/error.h"

#include <inttypes.h>

/* What the entry has in device memory goes back to the pool, behind the work that uses it. Without the mutex. */
static void release_parts(gpuhal_entry *entry)
{
    for (uint32_t i = 0; i < entry->part_count; i++) {
        gpuhal_buffer_release(entry->parts[i].device);
        entry->parts[i].device = NULL;
    }
}

/* With the mutex held, which is released meanwhile. Returns how many bytes that gave. */
static uint64_t evict(gpuhal_store *store, gpuhal_entry *entry)
{
    const uint64_t bytes = entry->bytes;
    gpuhal_entry *gone = gpuhal_entry_remove(store, entry);
    store->evictions++;
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return bytes;
}

uint64_t gpuhal_store_make_room(gpuhal_store *store, uint64_t bytes)
{
    uint64_t given = 0;
    gpuhal_entry *entry = NULL;
    gpuhal_mutex_lock(&store->mutex);
    const uint64_t attempt = ++store->attempts;
    while (given < bytes && (entry = gpuhal_entry_oldest(store, attempt))) {
        entry->attempt = attempt;
        given += entry->reloadable ? evict(store, entry) : 0;
    }
    gpuhal_mutex_unlock(&store->mutex);
    return given;
}

/* The oldest of the lowest priority that is worth nothing more than its loading. */
bool gpuhal_store_forget_one(gpuhal_store *store)
{
    return gpuhal_store_make_room(store, 1) > 0;
}

/* Takes so many bytes of the store's limit, making room as far as possible. */
static gpuhal_status reserve(gpuhal_store *store, gpuhal_entry *entry)
{
    const uint64_t limit = store->desc.device_bytes;
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&store->mutex);
    while (!status && limit && (entry->bytes > limit || store->in_device.bytes > limit - entry->bytes)) {
        const uint64_t used = store->in_device.bytes, over = entry->bytes > limit ? 0 : used - (limit - entry->bytes);
        gpuhal_mutex_unlock(&store->mutex);
        if (entry->bytes > limit || gpuhal_store_make_room(store, over) == 0) {
            status = gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                                      "%s: %" PRIu64 " bytes requested for an entry of a store that may have %" PRIu64
                                      " in device memory, of which %" PRIu64 " are in use and cannot be given up",
                                      store->device->id, entry->bytes, limit, used);
            gpuhal_error_add_device(store->device->candidate->name, store->device->id);
            gpuhal_error_add_bytes(entry->bytes, limit > used ? limit - used : 0, limit);
        }
        gpuhal_mutex_lock(&store->mutex);
    }
    if (!status) {
        gpuhal_entry_enters_device(store, entry);
    }
    gpuhal_mutex_unlock(&store->mutex);
    return status;
}

static gpuhal_status allocate_part(gpuhal_store *store, gpuhal_entry_part *part, gpuhal_queue *queue,
                                   uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    while (status == GPUHAL_NOT_READY) {
        const uint64_t now = gpuhal_os_monotonic_ns();
        const uint64_t left_ns = deadline_ns == UINT64_MAX ? UINT64_MAX : deadline_ns > now ? deadline_ns - now : 0;
        status = gpuhal_pool_allocate(store->pool, queue, part->bytes, 0, left_ns, &part->device);
        if (status == GPUHAL_ERROR_OUT_OF_MEMORY && gpuhal_store_make_room(store, part->bytes) > 0) {
            status = GPUHAL_NOT_READY;
        }
    }
    return status;
}

gpuhal_status gpuhal_entry_allocate(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                    uint64_t deadline_ns)
{
    gpuhal_status status = reserve(store, entry);
    if (status) {
        return status;
    }
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        status = entry->parts[i].device ? status : allocate_part(store, &entry->parts[i], queue, deadline_ns);
    }
    if (status) {
        release_parts(entry);
        gpuhal_mutex_lock(&store->mutex);
        gpuhal_entry_leaves_device(store, entry);
        gpuhal_mutex_unlock(&store->mutex);
    }
    return status;
}
