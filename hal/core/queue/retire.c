/* queue/retire.c: releases the objects that completed work kept alive: buffers, plugin events and dropped work.
 *
 * One thread at a time retires a queue's work, in order of submission: a thread that waits for the work, else the
 * thread that notices the end of the work, else the worker. A wait returns OK only after the work was retired, so that
 * memory released before the wait can be allocated after the wait. Retiring calls the plugin, but no application
 * function (gpuhal_buffer_drop()), and waits for no queue. */
#include "memory/buffer.h"
#include "queue/queue.h"

/* Maximum number of submissions that are retired between two checks of the queue. */
enum { AT_ONCE = 8 };

typedef struct completed {
    gpuhal_timepoint *timepoints;
    gpuhal_deferred *dropped;
    gpuhal_submission submissions[AT_ONCE];
    size_t count;
} completed;

/* Takes ended timepoints, except those with a pending plugin callback. The caller holds the mutex. */
static gpuhal_timepoint *take_points(gpuhal_queue *queue)
{
    gpuhal_timepoint *taken = NULL;
    for (gpuhal_timepoint **link = &queue->ended; *link;) {
        gpuhal_timepoint *timepoint = *link;
        if (timepoint->armed && !timepoint->signaled) {
            link = &timepoint->next;
            continue;
        }
        *link = timepoint->next;
        timepoint->next = taken;
        taken = timepoint;
    }
    return taken;
}

/* The caller holds the mutex. */
static void take(gpuhal_queue *queue, completed *out)
{
    out->timepoints = take_points(queue);
    out->dropped = queue->dropped;
    queue->dropped = NULL;
    for (out->count = 0; out->count < AT_ONCE && gpuhal_queue_oldest_has_ended(queue); out->count++) {
        out->submissions[out->count] = queue->submissions[queue->first_submission];
        queue->first_submission = (queue->first_submission + 1) % queue->submission_space;
        queue->submission_count--;
    }
}

static void end_flight(const gpuhal_submission *submission)
{
    gpuhal_buffers_leave(submission->to, submission->from);
    gpuhal_buffer_drop(submission->from);
    gpuhal_buffer_drop(submission->to);
    gpuhal_buffer_drop(submission->kept);
    for (gpuhal_uses *uses = submission->uses, *next; uses; uses = next) {
        next = gpuhal_uses_next(uses);
        gpuhal_uses_leave(uses);
        gpuhal_uses_release(uses);
    }
    if (submission->awaited) {
        gpuhal_timepoint_leave_event(submission->awaited);
        gpuhal_timepoint_release(submission->awaited);
    }
}

static void give_back(completed *work)
{
    for (size_t i = 0; i < work->count; i++) {
        end_flight(&work->submissions[i]);
    }
    while (work->timepoints) {
        gpuhal_timepoint *timepoint = work->timepoints;
        work->timepoints = timepoint->next;
        gpuhal_timepoint_leave_event(timepoint);
        gpuhal_timepoint_release(timepoint);
    }
    while (work->dropped) {
        gpuhal_deferred *deferred = work->dropped;
        work->dropped = deferred->next;
        gpuhal_deferred_free(deferred);
    }
}

bool gpuhal_queue_retire_unlocks(gpuhal_queue *queue)
{
    bool any = false;
    while (gpuhal_queue_has_completed(queue)) {
        completed work;
        take(queue, &work);
        queue->retiring = work.count > 0 ? work.submissions[0].number : UINT64_MAX;
        gpuhal_mutex_unlock(&queue->mutex);
        give_back(&work);
        gpuhal_queue_lock(queue);
        queue->retiring = 0;
        any = true;
        if (gpuhal_queue_has_waiters(queue) || queue->waiting[GPUHAL_WAITS_WORK] > 0) {
            gpuhal_condition_signal_all(&queue->condition);
        }
    }
    return any;
}

bool gpuhal_queue_retire(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    bool any = gpuhal_queue_retire_unlocks(queue);
    gpuhal_mutex_unlock(&queue->mutex);
    return any;
}

gpuhal_status gpuhal_queue_wait_retired(gpuhal_queue *queue, uint64_t number, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_OK;
    if (!gpuhal_device_is_reachable(queue->device)) {
        return GPUHAL_OK;
    }
    gpuhal_queue_lock(queue);
    (void)gpuhal_queue_retire_unlocks(queue);
    while (!status && queue->retiring != 0 && queue->retiring <= number) {
        status =
            deadline_ns == 0 ? GPUHAL_NOT_READY : gpuhal_queue_wait_until(queue, GPUHAL_WAITS_RETIREMENT, deadline_ns);
        status = status ? status : gpuhal_queue_check(queue);
        (void)gpuhal_queue_retire_unlocks(queue);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return status;
}
