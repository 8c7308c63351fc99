/* store/uses.c: tracks work that uses an entry and was enqueued before the entry's items were released, so that later
 * users can be ordered after it. The release of a modifying item records a timepoint, because a failure of the work
 * matters. The release of a reading item records only the queue, so reads cost no event. Their timepoint is recorded
 * when a modifying user must be ordered after them. */
#include "store/store.h"

#include "base/error.h"

#include <stdlib.h>

enum { REFUSING_QUEUE_POLL_NS = 100000 };

bool gpuhal_uses_reserve(gpuhal_entry *entry)
{
    const size_t need = entry->use_count + entry->pins + 2;
    if (need <= entry->use_space) {
        return true;
    }
    gpuhal_entry_use *grown = realloc(entry->uses, 2 * need * sizeof *grown);
    if (grown) {
        entry->uses = grown;
        entry->use_space = 2 * need;
    }
    return grown != NULL;
}

static bool is_done(const gpuhal_entry_use *use)
{
    return use->timepoint && gpuhal_timepoint_now(use->timepoint) == GPUHAL_TIMEPOINT_DONE;
}

/* Safe with the mutex held, because releasing a queue only frees memory. */
static gpuhal_timepoint *take_out(gpuhal_entry *entry, size_t i)
{
    gpuhal_timepoint *timepoint = entry->uses[i].timepoint;
    gpuhal_queue_release(entry->uses[i].queue);
    entry->uses[i] = entry->uses[--entry->use_count];
    return timepoint;
}

/* Returns whether the new use supersedes the old use, or the old use has ended successfully. A modifying use supersedes
 * modifying uses of the same queue if they were recorded before its own recording began. gpuhal_uses_add() removes at
 * most one old use, which is enough, because it adds one. */
static bool is_superfluous(const gpuhal_entry_use *old, const gpuhal_entry_use *use)
{
    bool covered = old->queue == use->queue && old->modifies && use->modifies && use->timepoint && old->timepoint &&
                   old->number <= use->number;
    return covered || (is_done(old) && !old->timepoint->failure);
}

bool gpuhal_uses_are_before(const gpuhal_entry *entry, const gpuhal_queue *queue, bool all)
{
    bool are_before = !entry->failure;
    for (size_t i = 0; i < entry->use_count && are_before; i++) {
        const gpuhal_entry_use *use = &entry->uses[i];
        if (use->modifies || (all && use->queue != queue)) {
            are_before = is_done(use) ? !use->timepoint->failure : use->queue == queue;
        }
    }
    return are_before;
}

gpuhal_timepoint *gpuhal_uses_add(gpuhal_entry *entry, gpuhal_entry_use use)
{
    gpuhal_timepoint *old = NULL;
    for (size_t i = 0; i < entry->use_count; i++) {
        if (is_superfluous(&entry->uses[i], &use)) {
            old = take_out(entry, i);
            break;
        }
    }
    use.number = ++entry->use_number;
    entry->uses[entry->use_count++] = use;
    return old;
}

gpuhal_timepoint *gpuhal_uses_add_read(gpuhal_entry *entry, gpuhal_queue *queue)
{
    for (size_t i = 0; i < entry->use_count; i++) {
        gpuhal_entry_use *use = &entry->uses[i];
        if (use->queue == queue && !use->modifies) {
            use->number = ++entry->use_number;
            return NULL;
        }
    }
    return gpuhal_uses_add(entry, (gpuhal_entry_use){.queue = gpuhal_queue_retain(queue)});
}

gpuhal_failure *gpuhal_uses_failure(const gpuhal_entry *entry)
{
    gpuhal_failure *failure = entry->failure;
    for (size_t i = 0; i < entry->use_count && !failure; i++) {
        const gpuhal_entry_use *use = &entry->uses[i];
        failure = use->modifies && is_done(use) ? use->timepoint->failure : NULL;
    }
    return failure;
}

/* ---- waiting for copies of the uses; call without the mutex */

/* Records work that was not recorded at the item's release. If the queue has failed, no later work can be ordered after
 * it, because its work was dropped or has an unknown result until the queue is reset. */
static gpuhal_status record(gpuhal_entry_use *use, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    while (status == GPUHAL_NOT_READY) {
        bool over = gpuhal_queue_has_finished(use->queue) || gpuhal_queue_is_quiet(use->queue) ||
                    gpuhal_queue_is_broken(use->queue);
        if (over || gpuhal_queue_record(use->queue, false, &use->timepoint) == GPUHAL_OK) {
            status = GPUHAL_OK;
        } else if (gpuhal_os_monotonic_ns() >= deadline_ns) {
            status = gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "%s: a queue that uses an entry does not end",
                                      use->queue->device->id);
        } else {
            gpuhal_os_sleep(REFUSING_QUEUE_POLL_NS);
        }
    }
    return status;
}

/* A failed read does not affect the wait. */
static gpuhal_status wait_for(gpuhal_entry_use *use, gpuhal_queue *queue, uint64_t deadline_ns)
{
    gpuhal_status status = use->timepoint ? GPUHAL_OK : record(use, deadline_ns);
    if (status || !use->timepoint) {
        return status;
    }
    if (gpuhal_timepoint_now(use->timepoint) != GPUHAL_TIMEPOINT_DONE) {
        (void)gpuhal_timepoint_poll(use->timepoint);
    }
    if (is_done(use) && use->timepoint->failure) {
        return use->modifies ? gpuhal_failure_status(use->timepoint->failure) : GPUHAL_OK;
    }
    status = queue ? gpuhal_queue_wait_for_timepoint(queue, use->timepoint)
                   : gpuhal_timepoint_wait(use->timepoint, deadline_ns);
    bool read_failed = !queue && !use->modifies && is_done(use);
    return read_failed ? GPUHAL_OK : status;
}

/* Copies the uses, except the queue's own, which are ordered anyway. */
static size_t copy_uses(const gpuhal_entry *entry, const gpuhal_queue *queue, bool all, gpuhal_entry_use *copies)
{
    size_t count = 0;
    for (size_t i = 0; i < entry->use_count; i++) {
        const gpuhal_entry_use *use = &entry->uses[i];
        if (use->queue != queue && (all || use->modifies)) {
            copies[count] = *use;
            gpuhal_queue_retain(use->queue);
            copies[count++].timepoint = use->timepoint ? gpuhal_timepoint_retain(use->timepoint) : NULL;
        }
    }
    return count;
}

gpuhal_status gpuhal_uses_wait(gpuhal_store *store, gpuhal_entry *entry, gpuhal_queue *queue, bool all,
                               uint64_t deadline_ns)
{
    size_t count = 0;
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&store->mutex);
    gpuhal_entry_use *copies = entry->use_count ? malloc(entry->use_count * sizeof *copies) : NULL;
    const bool none = entry->use_count == 0;
    count = copies ? copy_uses(entry, queue, all, copies) : 0;
    gpuhal_mutex_unlock(&store->mutex);
    status = copies || none ? GPUHAL_OK : gpuhal_error_host_memory();
    for (size_t i = 0; i < count; i++) {
        status = status ? status : wait_for(&copies[i], queue, deadline_ns);
        gpuhal_timepoint_release(copies[i].timepoint);
        gpuhal_queue_release(copies[i].queue);
    }
    free(copies);
    return status;
}

bool gpuhal_uses_are_announced(const gpuhal_entry *entry, const gpuhal_queue *queue)
{
    bool announced = true;
    for (uint32_t i = 0; i < entry->part_count && queue && announced; i++) {
        announced = atomic_load_explicit(&entry->parts[i].device->used_in, memory_order_relaxed) == queue;
    }
    return announced;
}

gpuhal_status gpuhal_uses_announce(const gpuhal_entry *entry, gpuhal_queue *queue)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < entry->part_count && queue && !status; i++) {
        status = gpuhal_queue_uses(queue, entry->parts[i].device);
    }
    return status;
}

void gpuhal_uses_free(gpuhal_entry *entry)
{
    while (entry->use_count > 0) {
        gpuhal_timepoint_release(take_out(entry, 0));
    }
    free(entry->uses);
    entry->uses = NULL;
    entry->use_space = 0;
}
