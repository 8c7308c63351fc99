/* queue/follow.c: a queue takes over memory that work of another queue still uses, and waits for that work in order.
 * The memory is a pool's, or belongs to a recording whose previous run is in the other queue.
 *
 * A failure or a reset drops waits, but the queue keeps the memory. So the queue keeps a list of the timepoints that it
 * follows until their work has ended. A reset and the end of the queue wait for all timepoints in the list. The queue
 * also copies the other queue's list, because the work before those timepoints may also use the memory. Therefore the
 * queue never depends on the other queue's own waits, and queues that follow each other cannot deadlock. */
#include "base/error.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>
#include <string.h>

/* Maximum number of timepoints that are removed each time the mutex is locked. */
enum { AT_A_TIME = 64 };

/* How long to wait for one timepoint before checking the device again. */
#define SLICE_NS UINT64_C(10000000)

static bool is_done_well(const gpuhal_timepoint *timepoint)
{
    return gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE && !timepoint->failure;
}

/* Returns whether the work before the timepoint is over. After a failure the driver may still be executing the work.
 * Work of a lost device counts as over. */
static bool is_over(const gpuhal_timepoint *timepoint)
{
    return gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE &&
           (!timepoint->failure || !atomic_load(&timepoint->queue->in_flight) ||
            atomic_load(&timepoint->queue->device->lost));
}

/* Copies a queue's list, ordered by ordinal, with a reference to each timepoint and room for one more. Returns NULL if
 * out of memory. */
static gpuhal_timepoint **copy_list(gpuhal_queue *queue, uint32_t *out_count)
{
    gpuhal_mutex_lock(&queue->mutex);
    gpuhal_timepoint **copy = malloc((queue->followed_count + 1) * sizeof *copy);
    *out_count = copy ? queue->followed_count : 0;
    for (uint32_t i = 0; i < *out_count; i++) {
        copy[i] = gpuhal_timepoint_retain(queue->followed[i]);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return copy;
}

/* Adds the timepoint to the list, with a reference, unless the list already contains it. Returns the new count. */
static uint32_t insert(gpuhal_timepoint **list, uint32_t count, gpuhal_timepoint *timepoint)
{
    uint32_t at = count;
    while (at > 0 && list[at - 1]->ordinal > timepoint->ordinal) {
        at--;
    }
    if (at > 0 && list[at - 1] == timepoint) {
        return count;
    }
    memmove(list + at + 1, list + at, (count - at) * sizeof *list);
    list[at] = gpuhal_timepoint_retain(timepoint);
    return count + 1;
}

/* Moves references from the list to the queue. Timepoints that the queue already follows stay in the list, and *count
 * is set to their number. If they were added again, two queues that pass memory back and forth would double their lists
 * each time. Returns false if out of memory. */
static bool merge(gpuhal_queue *queue, gpuhal_timepoint **list, uint32_t *count)
{
    uint32_t known = 0, merged_count = 0;
    gpuhal_mutex_lock(&queue->mutex);
    gpuhal_timepoint **own = queue->followed;
    const uint32_t own_count = queue->followed_count;
    gpuhal_timepoint **merged = malloc(((size_t)own_count + *count) * sizeof *merged);
    for (uint32_t i = 0, o = 0; merged && (i < *count || o < own_count);) {
        if (i < *count && o < own_count && list[i] == own[o]) {
            list[known++] = list[i++];
        } else {
            const bool is_own = i == *count || (o < own_count && own[o]->ordinal < list[i]->ordinal);
            merged[merged_count++] = is_own ? own[o++] : list[i++];
        }
    }
    if (merged) {
        free(own);
        queue->followed = merged;
        queue->followed_count = merged_count;
        *count = known;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return merged;
}

/* Returns the number of removed timepoints, at most `space`. */
static uint32_t take_some(gpuhal_queue *queue, bool (*is_past)(const gpuhal_timepoint *timepoint),
                          gpuhal_timepoint **out, uint32_t space)
{
    uint32_t taken = 0, left = 0;
    gpuhal_mutex_lock(&queue->mutex);
    for (uint32_t i = 0; i < queue->followed_count; i++) {
        gpuhal_timepoint *timepoint = queue->followed[i];
        if (taken < space && is_past(timepoint)) {
            out[taken++] = timepoint;
        } else {
            queue->followed[left++] = timepoint;
        }
    }
    queue->followed_count = left;
    gpuhal_mutex_unlock(&queue->mutex);
    return taken;
}

static void forget(gpuhal_queue *queue, bool (*is_past)(const gpuhal_timepoint *timepoint))
{
    gpuhal_timepoint *past[AT_A_TIME];
    uint32_t count = 0;
    do {
        count = take_some(queue, is_past, past, AT_A_TIME);
        for (uint32_t i = 0; i < count; i++) {
            gpuhal_timepoint_release(past[i]);
        }
    } while (count == AT_A_TIME);
}

/* The timepoint is added to the list before the queue waits. If the queue then refuses to wait, the caller does not
 * let it use the memory. */
gpuhal_status gpuhal_queue_follow(gpuhal_queue *queue, gpuhal_timepoint *timepoint)
{
    uint32_t count = 0;
    gpuhal_timepoint **added = copy_list(timepoint->queue, &count);
    if (!added) {
        return gpuhal_error_host_memory();
    }
    count = insert(added, count, timepoint);
    forget(queue, is_done_well);
    const bool merged = merge(queue, added, &count);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_timepoint_release(added[i]);
    }
    free(added);
    return merged ? gpuhal_queue_wait_for_timepoint(queue, timepoint) : gpuhal_error_host_memory();
}

/* Returns a timepoint whose work may still be executing, or NULL. The caller holds the mutex. */
static gpuhal_timepoint *find_open(const gpuhal_queue *queue)
{
    for (uint32_t i = 0; i < queue->followed_count; i++) {
        if (!is_over(queue->followed[i])) {
            return queue->followed[i];
        }
    }
    return NULL;
}

bool gpuhal_queue_follows(const gpuhal_queue *queue)
{
    return find_open(queue) != NULL;
}

/* Returns find_open() with a reference, or NULL if the device is lost. */
static gpuhal_timepoint *next_open(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    gpuhal_timepoint *open = atomic_load(&queue->device->lost) ? NULL : find_open(queue);
    open = open ? gpuhal_timepoint_retain(open) : NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    return open;
}

static bool is_any(const gpuhal_timepoint *timepoint)
{
    return timepoint != NULL;
}

void gpuhal_queue_await_followed(gpuhal_queue *queue)
{
    uint64_t pause_ns = 0;
    for (gpuhal_timepoint *open = NULL; (open = next_open(queue));) {
        if (gpuhal_timepoint_now(open) != GPUHAL_TIMEPOINT_DONE) {
            (void)gpuhal_timepoint_wait(open, gpuhal_deadline(SLICE_NS));
        } else { /* the timepoint's queue has failed, and a reset of that queue does not wake this thread */
            pause_ns = gpuhal_poll_longer(pause_ns);
            gpuhal_os_sleep(pause_ns);
        }
        gpuhal_timepoint_release(open);
    }
    forget(queue, is_any);
}
