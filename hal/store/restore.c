/* store/restore.c: restores entries to device memory from a copy. */
#include "store/store.h"

#include "base/error.h"

/* Allocates memory and copies the entry's bytes to it, in the queue if possible. The caller must not hold the mutex. */
static gpuhal_status bring_back(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, uint64_t deadline_ns,
                                gpuhal_entry_use *out_use)
{
    const bool in_queue = queue && queue->device == store->device && entry->host && entry->host->parts[0].buffer;
    *out_use = (gpuhal_entry_use){.queue = in_queue ? queue : NULL, .modifies = true};
    gpuhal_status status = gpuhal_entry_allocate(store, entry, out_use->queue, deadline_ns);
    if (status) {
        return status;
    }
    status = entry->host ? gpuhal_host_give(entry->host, entry, out_use->queue)
                         : gpuhal_file_give(store, entry->file, entry);
    if (!status && out_use->queue) {
        status = gpuhal_queue_record(out_use->queue, false, &out_use->timepoint);
    }
    if (status) {
        gpuhal_mutex_lock(&store->mutex);
        gpuhal_entry_loses_memory(store, entry);
        gpuhal_mutex_unlock(&store->mutex);
        gpuhal_entry_release_parts(entry);
        gpuhal_mutex_lock(&store->mutex);
        gpuhal_entry_leaves_device(store, entry);
        gpuhal_mutex_unlock(&store->mutex);
    }
    return status;
}

/* Restores the entry in exchange for an entry whose copy would have no other place (see exchange.c). */
static gpuhal_status exchange(gpuhal_store *store, gpuhal_entry *entry, uint64_t deadline_ns, gpuhal_entry_use *out_use)
{
    gpuhal_status status = gpuhal_exchange_begin(store, entry);
    if (status) {
        return status;
    }
    status = bring_back(store, entry, NULL, deadline_ns, out_use);
    gpuhal_exchange_end(store, entry, status == GPUHAL_OK);
    return status;
}

gpuhal_status gpuhal_restore_unlocks(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue,
                                     uint64_t deadline_ns)
{
    gpuhal_entry *gone = NULL;
    gpuhal_timepoint *old = NULL;
    gpuhal_entry_use use;
    gpuhal_status status = gpuhal_entry_pin(store, entry);
    if (status) {
        return status;
    }
    gpuhal_entry_begin_work(store, entry, GPUHAL_ENTRY_RESTORING);
    gpuhal_mutex_unlock(&store->mutex);
    status = bring_back(store, entry, queue, deadline_ns, &use);
    status = status == GPUHAL_ERROR_OUT_OF_MEMORY ? exchange(store, entry, deadline_ns, &use) : status;
    gpuhal_mutex_lock(&store->mutex);
    if (!status && use.queue) {
        gpuhal_queue_retain(use.queue);
        old = gpuhal_uses_add(entry, use);
    }
    if (status == GPUHAL_ERROR_FILE && entry->reloadable && entry->listed) {
        (void)gpuhal_entry_remove(store, entry); /* the copy is unusable; the next acquire loads the entry */
    }
    (void)gpuhal_entry_end_work(store, entry, status ? gpuhal_entry_tier(entry) : GPUHAL_ENTRY_DEVICE);
    if (status) {
        gone = gpuhal_entry_unpin(store, entry);
    } else {
        store->restores++;
        store->restored_bytes += entry->bytes;
    }
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_timepoint_release(old);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return status;
}

/* Other threads may read the uses without a pin, so the uses are detached from the entry before they are freed. */
gpuhal_status gpuhal_restore_failed(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_entry past = {.uses = entry->uses, .use_count = entry->use_count};
    gpuhal_entry_begin_work(store, entry, GPUHAL_ENTRY_SPILLING);
    entry->uses = NULL;
    entry->use_count = entry->use_space = 0;
    gpuhal_entry_loses_memory(store, entry);
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_release_parts(entry);
    gpuhal_uses_free(&past);
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry_leaves_device(store, entry);
    gpuhal_entry *gone = gpuhal_entry_end_work(store, entry, gpuhal_entry_tier(entry));
    gpuhal_mutex_unlock(&store->mutex);
    gpuhal_entry_free(gone);
    gpuhal_mutex_lock(&store->mutex);
    return GPUHAL_NOT_READY;
}
