/* queue/complete.c: the effects on a queue when a timepoint is done or work has failed. */
#include "base/error.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdio.h>

/* Removes timepoints up to `last` from the list and ends them. The caller holds the mutex. */
static void end_points(gpuhal_queue *queue, const gpuhal_timepoint *last, gpuhal_failure *failure,
                       gpuhal_completion **completions)
{
    for (bool more = true; more && queue->timepoints;) {
        gpuhal_timepoint *timepoint = queue->timepoints;
        more = timepoint != last;
        queue->timepoints = timepoint->next;
        queue->done = timepoint->number > queue->done ? timepoint->number : queue->done;
        gpuhal_timepoint_finish(timepoint, failure, completions);
        timepoint->next = queue->ended;
        queue->ended = timepoint;
    }
    if (!queue->timepoints) {
        queue->timepoints_end = &queue->timepoints;
    }
    gpuhal_queue_note_busy(queue);
}

/* If the worker is busy with the first element, the worker removes the element later. The element's timepoint still
 * ends now, because the worker may be stuck and waiting threads must be notified. */
static void drop_held(gpuhal_queue *queue, gpuhal_completion **completions)
{
    gpuhal_deferred **rest = &queue->deferred;
    for (gpuhal_deferred *deferred = *rest; deferred; deferred = *rest) {
        const bool stays = queue->worker == GPUHAL_QUEUE_RUNNING && deferred == queue->deferred;
        if (deferred->op.record) {
            gpuhal_timepoint_finish(deferred->op.record, queue->failure, completions);
        }
        if (deferred->op.record || !stays) {
            gpuhal_queue_notify(queue, &deferred->op, queue->observer->dropped, queue->failure->detail.error.status);
            deferred->op.observed = NULL;
        }
        if (stays) {
            rest = &deferred->next;
        } else {
            *rest = deferred->next;
            deferred->next = queue->dropped;
            queue->dropped = deferred;
        }
    }
    queue->deferred_end = rest;
}

void gpuhal_queue_fail(gpuhal_queue *queue, gpuhal_failure *failure, bool submitted, gpuhal_completion **completions)
{
    if (!gpuhal_queue_has_failed(queue)) {
        gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_FAILED);
        queue->failure = gpuhal_failure_retain(failure);
        atomic_store(&queue->in_flight, queue->vendor || queue->worker == GPUHAL_QUEUE_RUNNING);
    }
    if (submitted) {
        uint64_t done = queue->done;
        end_points(queue, NULL, failure, completions);
        queue->done = atomic_load(&queue->device->lost) ? queue->submitted : done;
        gpuhal_queue_note_busy(queue);
    }
    drop_held(queue, completions);
    gpuhal_condition_signal_all(&queue->condition);
}

void gpuhal_queue_break(gpuhal_queue *queue, gpuhal_failure *failure, bool submitted)
{
    gpuhal_completion *completions = NULL;
    gpuhal_queue_lock(queue);
    gpuhal_queue_fail(queue, failure, submitted, &completions);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_completions_notify(completions);
}

/* Returns the failure of the first failed timepoint among those that the plugin's queue waited for up to the given
 * submission, with a reference, or NULL if no failure is known. The caller holds the mutex. */
static gpuhal_failure *failure_of_awaited(const gpuhal_queue *queue, uint64_t number)
{
    for (size_t i = 0; i < queue->submission_count; i++) {
        const gpuhal_submission *submission =
            &queue->submissions[(queue->first_submission + i) % queue->submission_space];
        const gpuhal_timepoint *awaited = submission->number <= number ? submission->awaited : NULL;
        if (awaited && gpuhal_timepoint_now(awaited) == GPUHAL_TIMEPOINT_DONE && awaited->failure) {
            return gpuhal_failure_retain(awaited->failure);
        }
    }
    return NULL;
}

/* Prepends completions to *completions. `may_retire` must be false in a driver callback. */
static void settle(gpuhal_timepoint *timepoint, gpuhal_status status, bool may_retire, gpuhal_completion **completions)
{
    gpuhal_queue *queue = timepoint->queue;
    gpuhal_failure *failure = status ? gpuhal_failure_create() : NULL;
    gpuhal_queue_lock(queue);
    if (gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED && status) {
        gpuhal_failure *original = failure_of_awaited(queue, timepoint->number);
        queue->done = timepoint->number > queue->done ? timepoint->number : queue->done;
        gpuhal_queue_fail(queue, original ? original : failure, true, completions);
        gpuhal_failure_release(original);
    } else if (gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED) {
        end_points(queue, timepoint, NULL, completions);
        if (gpuhal_queue_has_waiters(queue)) {
            gpuhal_condition_signal_all(&queue->condition);
        }
    }
    if (may_retire) {
        (void)gpuhal_queue_retire_unlocks(queue);
        atomic_store_explicit(&timepoint->retired, !status && queue->retiring == 0, memory_order_release);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_failure_release(failure);
}

/* Memory is released before any completion is notified, unless another thread is releasing it: this thread does not
 * wait for that thread. */
void gpuhal_timepoint_settle(gpuhal_timepoint *timepoint, gpuhal_status status)
{
    gpuhal_completion *completions = NULL;
    settle(timepoint, status, true, &completions);
    gpuhal_completions_notify(completions);
}

void gpuhal_timepoint_settle_notified(gpuhal_timepoint *timepoint, gpuhal_status status)
{
    gpuhal_completion *completions = NULL;
    settle(timepoint, status, false, &completions);
    gpuhal_completions_notify(completions);
}

/* Polls the timepoints that the queue waited for, because a failure may not have been noticed yet. Only one thread at a
 * time polls for a queue, so the recursion depth is at most the number of queues. */
static void ask_awaited(gpuhal_queue *queue, uint64_t number)
{
    if (atomic_exchange(&queue->asking, true)) {
        return;
    }
    bool more = true;
    for (size_t i = 0; more; i++) {
        gpuhal_queue_lock(queue);
        const gpuhal_submission *submission =
            i < queue->submission_count ? &queue->submissions[(queue->first_submission + i) % queue->submission_space]
                                        : NULL;
        more = submission && submission->number <= number;
        gpuhal_timepoint *awaited = more && submission->awaited ? gpuhal_timepoint_retain(submission->awaited) : NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        if (awaited) {
            (void)gpuhal_timepoint_poll(awaited);
            gpuhal_timepoint_release(awaited);
        }
    }
    atomic_store(&queue->asking, false);
}

/* Writes a clause with the name of the first recording that may have failed, or "" if there is none. */
static void name_recording(gpuhal_queue *queue, uint64_t number, char *out_name, size_t size)
{
    *out_name = 0;
    gpuhal_queue_lock(queue);
    for (size_t i = 0; i < queue->submission_count && !*out_name; i++) {
        const gpuhal_submission *submission =
            &queue->submissions[(queue->first_submission + i) % queue->submission_space];
        if (submission->number > queue->done && submission->number <= number && submission->uses &&
            submission->uses->alone) {
            snprintf(out_name, size, ", which includes recording %s", submission->uses->name);
        }
    }
    gpuhal_mutex_unlock(&queue->mutex);
}

void gpuhal_timepoint_failed(gpuhal_timepoint *timepoint, gpuhal_status status)
{
    gpuhal_error_detail detail;
    char name[128];
    name_recording(timepoint->queue, timepoint->number, name, sizeof name);
    status = gpuhal_device_failed(timepoint->queue->device, status, "the work before an event%s", name);
    gpuhal_error_save(&detail);
    ask_awaited(timepoint->queue, timepoint->number);
    (void)gpuhal_error_restore(&detail);
    gpuhal_timepoint_settle(timepoint, status);
}

gpuhal_status gpuhal_timepoint_poll(gpuhal_timepoint *timepoint)
{
    gpuhal_timepoint_state state = gpuhal_timepoint_now(timepoint);
    if (state == GPUHAL_TIMEPOINT_DONE) {
        return gpuhal_timepoint_result(timepoint);
    }
    if (!timepoint->queue) {
        return GPUHAL_NOT_READY;
    }
    gpuhal_device *device = timepoint->queue->device;
    gpuhal_status status = gpuhal_queue_check(timepoint->queue);
    status = !status && state == GPUHAL_TIMEPOINT_DEFERRED ? GPUHAL_NOT_READY : status;
    if (status) {
        return status;
    }
    if (!gpuhal_timepoint_use_event(timepoint)) { /* the timepoint has ended in the meantime */
        return gpuhal_timepoint_result(timepoint);
    }
    status = gpuhal_plugin_event_query(device, timepoint->event);
    gpuhal_timepoint_leave_event(timepoint);
    if (status == GPUHAL_NOT_READY) {
        return status;
    }
    if (status) {
        gpuhal_timepoint_failed(timepoint, status);
    } else {
        gpuhal_timepoint_settle(timepoint, GPUHAL_OK);
    }
    return gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE ? gpuhal_timepoint_result(timepoint) : status;
}
