/* store/item.c: implements items and their release. Callers receive an item when they put or acquire an entry. */
#include "store/store.h"

#include "base/error.h"

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

/* If recording fails, the use is recorded later, when a thread waits for it. But if the queue has failed, the contents
 * are unknown, and *out_failure is the reason. The caller must not hold the mutex. */
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

/* Reports to the pool which queue uses the memory, because the memory may be released as soon as the item is. This
 * queue may differ from the queue that acquired the item. The caller must not hold the mutex. */
static void announce(const gpuhal_entry *entry, gpuhal_queue *queue)
{
    gpuhal_error_detail before;
    if (gpuhal_uses_are_announced(entry, queue)) {
        return;
    }
    gpuhal_error_save(&before);
    (void)gpuhal_uses_announce(entry, queue); /* if host memory is short, the pool still knows of work enqueued through
                                               * the library */
    gpuhal_error_restore(&before);
}

/* Returns a timepoint or NULL, and outdated copies. The caller holds the mutex, but must release these without it. */
static gpuhal_timepoint *end_use(const gpuhal_item *item, const gpuhal_entry_use *use, gpuhal_failure *failure,
                                 gpuhal_host_copy **out_host, gpuhal_file_copy **out_file)
{
    gpuhal_entry *entry = item->entry;
    *out_host = gpuhal_entry_detach_host(item->store, entry);
    *out_file = gpuhal_entry_detach_file(item->store, entry);
    entry->reloadable = false;
    gpuhal_entry_count(item->store, entry);
    entry->failure = entry->failure ? entry->failure : gpuhal_failure_retain(failure);
    if (item->fills) {
        entry->worker = 0;
        gpuhal_entry_change(item->store, entry, entry->listed ? GPUHAL_ENTRY_DEVICE : GPUHAL_ENTRY_ABSENT);
    }
    return use->queue && !failure ? gpuhal_uses_add(entry, *use) : NULL;
}

static void end_modifying(gpuhal_item *item, gpuhal_queue *queue)
{
    gpuhal_store *store = item->store;
    gpuhal_entry *entry = item->entry;
    gpuhal_entry_use use = {.queue = queue, .modifies = true};
    gpuhal_failure *failure = NULL;
    gpuhal_host_copy *host = NULL;
    gpuhal_file_copy *file = NULL;
    gpuhal_mutex_lock(&store->mutex);
    use.number = entry->use_number;
    gpuhal_mutex_unlock(&store->mutex);
    if (queue) {
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
    gpuhal_store_unreference(store);
    free(item);
}

/* Maximum number of items processed before other threads can lock the mutex. */
enum { TURN = 32 };

/* Locks the mutex only once unless an entry or store has to be freed. */
static void end_reading(gpuhal_item *const *items, uint32_t count, gpuhal_queue *queue)
{
    gpuhal_store *store = items[0]->store;
    gpuhal_timepoint *old[TURN];
    gpuhal_entry *gone[TURN];
    uint32_t ends = 0;
    gpuhal_mutex_lock(&store->mutex);
    for (uint32_t i = 0; i < count; i++) {
        old[i] = queue ? gpuhal_uses_add_read(items[i]->entry, queue) : NULL;
        gone[i] = gpuhal_entry_unpin(store, items[i]->entry);
        const bool ends_it = gone[i] || store->references == 1;
        store->references -= !ends_it;
        ends += ends_it;
    }
    gpuhal_mutex_unlock(&store->mutex);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_timepoint_release(old[i]);
        gpuhal_entry_free(gone[i]);
        free(items[i]);
    }
    while (ends-- > 0) {
        gpuhal_store_unreference(store);
    }
}

/* Counts the leading items that only read and belong to the same store. A modifying item is handled alone. */
static uint32_t turn_of(gpuhal_item *const *items, uint32_t count)
{
    uint32_t turn = 1;
    const uint32_t most = items[0]->modifies ? 1 : count < TURN ? count : TURN;
    while (turn < most && items[turn] && !items[turn]->modifies && items[turn]->store == items[0]->store) {
        turn++;
    }
    return turn;
}

void gpuhal_item_release_many(gpuhal_item *const *items, uint32_t count, gpuhal_queue *queue)
{
    for (uint32_t i = 0, turn = 0; i < count; i += turn) {
        turn = 1;
        if (!items[i] || gpuhal_is_inherited(items[i]->store->device->gpu)) {
            continue;
        }
        turn = turn_of(&items[i], count - i);
        for (uint32_t k = i; k < i + turn; k++) {
            announce(items[k]->entry, queue);
        }
        if (items[i]->modifies) {
            end_modifying(items[i], queue);
        } else {
            end_reading(&items[i], turn, queue);
        }
    }
}

void gpuhal_item_release(gpuhal_item *item, gpuhal_queue *queue)
{
    gpuhal_item_release_many(&item, 1, queue);
}
