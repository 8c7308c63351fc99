/* store/item.c: what a caller has of an entry, and its release. */
#include "store/store.h"

#include "core/error.h"

#include <stdlib.h>
#include <string.h>

gpuhal_buffer *gpuhal_item_buffer(const gpuhal_item *item, const char *name)
{
    const gpuhal_entry *entry = item ? item->entry : NULL;
    for (uint32_t i = 0; entry && i < entry->part_count; i++) {
        const gpuhal_entry_part *part = &entry->parts[i];
        if (!name || (part->name && strcmp(part->name, name) == 0)) {
            return part->device;
        }
    }
    return NULL;
}

/* Without the mutex. What cannot be recorded now is recorded when it is waited for, unless the queue has failed: then
 * the contents are unknown, and *out_failure says why. */
static void record(gpuhal_entry_use *use, gpuhal_failure **out_failure)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    if (gpuhal_queue_record(use->queue, false, &use->timepoint) &&
        (gpuhal_queue_is_broken(use->queue) || gpuhal_queue_check(use->queue))) {
        *out_failure = gpuhal_failure_create();
    }
    gpuhal_error_restore(&before);
}

/* Without the mutex. The memory may go as soon as the item does, so its pool has to know the queue, which need not be
 * the one that the item was acquired for. */
static void announce(const gpuhal_entry *entry, gpuhal_queue *queue)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    (void)gpuhal_uses_announce(entry, queue); /* without host memory the pool knows what the library has seen */
    gpuhal_error_restore(&before);
}

/* With the mutex held: what the item's work means for the entry. Returns a timepoint, and gives copies that are out
 * of date, to release without it, or NULL. */
static gpuhal_timepoint *end_use(const gpuhal_item *item, const gpuhal_entry_use *use, gpuhal_failure *failure,
                                 gpuhal_host_copy **out_host, gpuhal_file_copy **out_file)
{
    gpuhal_entry *entry = item->entry;
    if (item->modifies) {
        *out_host = gpuhal_entry_detach_host(item->store, entry);
        *out_file = gpuhal_entry_detach_file(item->store, entry);
        entry->reloadable = false;
        entry->failure = entry->failure ? entry->failure : gpuhal_failure_retain(failure);
    }
    if (item->fills) {
        entry->worker = 0;
        gpuhal_entry_change(item->store, entry, entry->listed ? GPUHAL_ENTRY_DEVICE : GPUHAL_ENTRY_ABSENT);
    }
    return use->queue && !failure ? gpuhal_uses_add(entry, *use) : NULL;
}

void gpuhal_item_release(gpuhal_item *item, gpuhal_queue *queue)
{
    if (!item || gpuhal_is_inherited(item->store->device->gpu)) {
        return;
    }
    gpuhal_store *store = item->store;
    gpuhal_entry *entry = item->entry;
    gpuhal_entry_use use = {.queue = queue, .modifies = item->modifies};
    gpuhal_failure *failure = NULL;
    gpuhal_host_copy *host = NULL;
    gpuhal_file_copy *file = NULL;
    gpuhal_mutex_lock(&store->mutex);
    use.number = entry->use_number;
    gpuhal_mutex_unlock(&store->mutex);
    announce(entry, queue);
    if (queue && use.modifies) {
        record(&use, &failure);
    }
    gpuhal_mutex_lock(&store->mutex);
    if (queue && !failure) {
        gpuhal_queue_retain(queue);
    }
    gpuhal_timepoint *old = end_use(item, &use, failure, &host, &file);
    gpuhal_entry *gone = gpuhal_entry_unpin(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_timepoint_release(old);
    gpuhal_failure_release(failure);
    gpuhal_host_release(host);
    gpuhal_file_release(file);
    gpuhal_entry_free(gone);
    free(item);
    gpuhal_store_unreference(store);
}

gpuhal_status gpuhal_store_prefetch(gpuhal_store *store, gpuhal_queue *queue, const void *key, uint64_t key_bytes,
                                    uint64_t timeout_ns)
{
    gpuhal_item *item = NULL;
    gpuhal_status status = gpuhal_store_acquire(store, queue, key, key_bytes, NULL, 0, timeout_ns, &item);
    gpuhal_item_release(item, queue);
    return status;
}
