/* queue/worker.c: a queue's worker thread. The worker exists only if it is needed to wait or to make blocking calls. It
 * processes deferred work from the front of the list, and waits for timepoints whose end must be noticed.
 *
 * No thread joins the worker. The queue structure outlives the worker; gpuhal_workers_settle() waits until all workers
 * have ended, but at most for the hang timeout. */
#include "base/error.h"
#include "memory/buffer.h"
#include "queue/completion_service.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>

/* Releases the objects of the first list element after its work is done or submitted. State RUNNING keeps the element
 * in the list until the release, so that no later work ends before this memory is released. */
static void empty_first_unlocks(gpuhal_queue *queue, gpuhal_deferred *deferred)
{
    gpuhal_buffer *to = deferred->op.to, *from = deferred->op.from, *kept = deferred->op.kept;
    gpuhal_uses *uses = deferred->op.uses;
    void *job = deferred->op.kind && deferred->op.kind->form == GPUHAL_OP_JOB ? deferred->op.job : NULL;
    deferred->op.to = deferred->op.from = deferred->op.kept = NULL;
    deferred->op.uses = NULL;
    deferred->op.observed = NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_buffer_drop(from);
    gpuhal_buffer_drop(to);
    gpuhal_buffer_drop(kept);
    gpuhal_uses_release(uses);
    if (job) {
        deferred->op.free_job(job);
    }
    gpuhal_queue_lock(queue);
    if (job) {
        deferred->op.job = NULL;
    }
}

/* The caller holds the mutex, and frees the element after unlocking the mutex. */
static gpuhal_deferred *take_first(gpuhal_queue *queue)
{
    gpuhal_deferred *deferred = queue->deferred;
    queue->deferred = deferred->next;
    if (!queue->deferred) {
        queue->deferred_end = &queue->deferred;
    }
    return deferred;
}

/* Finishes the first list element, whose work is done or submitted, or has failed with this thread's last error. */
static void finish_first_unlocks(gpuhal_queue *queue, gpuhal_status status)
{
    gpuhal_completion *completions = NULL;
    gpuhal_failure *failure = status ? gpuhal_failure_create() : NULL;
    gpuhal_deferred *deferred = take_first(queue);
    if (status) {
        gpuhal_queue_fail(queue, failure, false, &completions);
    }
    if (deferred->op.record && (status || !queue->vendor)) {
        deferred->op.record->number = queue->submitted;
        gpuhal_timepoint_finish(deferred->op.record, gpuhal_queue_has_failed(queue) ? queue->failure : NULL,
                                &completions);
    }
    gpuhal_queue_notify(queue, &deferred->op, queue->observer->dropped, status);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_condition_signal_all(&queue->condition); /* a thread woken earlier would block on the mutex */
    gpuhal_completions_notify(completions);
    gpuhal_failure_release(failure);
    gpuhal_deferred_free(deferred);
    (void)gpuhal_queue_retire(queue);
    gpuhal_queue_lock(queue);
}

/* Waits for a timepoint of this queue with any method that the plugin supports. */
static void wait_for_unlocks(gpuhal_queue *queue, gpuhal_timepoint *timepoint)
{
    gpuhal_timepoint_retain(timepoint);
    bool notifies = queue->device->queues.event_notify && !queue->probed;
    gpuhal_mutex_unlock(&queue->mutex);
    if (notifies) {
        (void)gpuhal_timepoint_request_notify(timepoint);
        gpuhal_queue_lock(queue);
        bool sleeps = gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED && timepoint->armed;
        if (sleeps) {
            gpuhal_queue_wait_at(queue, GPUHAL_WAITS_NOTIFICATION, UINT64_MAX);
        }
        gpuhal_mutex_unlock(&queue->mutex);
        notifies = sleeps || gpuhal_timepoint_now(timepoint) != GPUHAL_TIMEPOINT_SUBMITTED;
    }
    if (!notifies) {
        gpuhal_timepoint_block(timepoint);
    }
    (void)gpuhal_queue_retire(queue);
    gpuhal_timepoint_release(timepoint);
    gpuhal_queue_lock(queue);
}

static void sleep_before_retry_unlocks(gpuhal_queue *queue)
{
    queue->retry_ns = gpuhal_poll_longer(queue->retry_ns);
    gpuhal_queue_wait_at(queue, GPUHAL_WAITS_RETRY, gpuhal_deadline(queue->retry_ns));
}

/* Records a timepoint after all submissions. If the plugin cannot accept it now, sleeps before the next attempt; if
 * recording fails otherwise, fails the queue. If the queue had failed before, it is being destroyed, and then the
 * destruction of the plugin's queue can also show that its work has ended. */
static void record_tail_unlocks(gpuhal_queue *queue)
{
    const bool had_failed = gpuhal_queue_has_failed(queue);
    gpuhal_completion *completions = NULL;
    gpuhal_failure *failure = NULL;
    gpuhal_timepoint *timepoint = gpuhal_timepoint_create(queue, false);
    gpuhal_status status = timepoint ? gpuhal_queue_begin_late_call(queue) : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_mutex_unlock(&queue->mutex);
        status = gpuhal_queue_submit_timepoint(queue, timepoint);
        gpuhal_queue_lock(queue);
        if (!status) {
            gpuhal_queue_append_timepoint(queue, timepoint);
        }
        gpuhal_queue_end_call(queue);
    }
    if (status == GPUHAL_NOT_READY || status == GPUHAL_ERROR_BUSY ||
        (status == GPUHAL_ERROR_HOST_MEMORY && had_failed)) {
        sleep_before_retry_unlocks(queue);
    } else if (status && had_failed) {
        if (gpuhal_queue_await_events_unlocks(queue)) {
            (void)gpuhal_queue_replace_vendor_unlocks(queue, false);
        }
    } else if (status) {
        failure = gpuhal_failure_create();
        gpuhal_queue_fail(queue, failure, false, &completions);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_completions_notify(completions);
    gpuhal_failure_release(failure);
    gpuhal_timepoint_release(timepoint);
    gpuhal_queue_lock(queue);
}

/* Returns whether all submissions so far have ended. If not, first waits for some of the submissions, or records a
 * timepoint. */
static bool tail_has_ended_unlocks(gpuhal_queue *queue)
{
    if (!queue->vendor || (queue->done == queue->submitted && !queue->timepoints)) {
        return true;
    }
    if (queue->timepoints && queue->recorded == queue->submitted) {
        gpuhal_timepoint *last = queue->timepoints;
        while (last->next) {
            last = last->next;
        }
        wait_for_unlocks(queue, last);
        return false;
    }
    record_tail_unlocks(queue);
    return false;
}

static void run_first(gpuhal_queue *queue)
{
    gpuhal_deferred *deferred = queue->deferred;
    if (!tail_has_ended_unlocks(queue) || queue->deferred != deferred) {
        return;
    }
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_RUNNING);
    gpuhal_queue_note_busy(queue);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_queue_notify(queue, &deferred->op, queue->observer->runs, GPUHAL_OK);
    gpuhal_status status = deferred->op.kind->run(&deferred->op);
    gpuhal_queue_notify(queue, &deferred->op, queue->observer->ran, status);
    gpuhal_queue_lock(queue);
    empty_first_unlocks(queue, deferred);
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
    gpuhal_queue_note_busy(queue);
    finish_first_unlocks(queue, gpuhal_queue_has_failed(queue) ? gpuhal_failure_status(queue->failure) : status);
}

/* Returns whether the plugin cannot accept the work now but will accept it later, because the driver's ring is full, or
 * another thread is capturing the vendor's queue or has native access to it. Returns false for BUSY with a mapped
 * buffer, because only the application can end the mapping. */
static bool comes_later(const gpuhal_op *op, gpuhal_status status)
{
    const bool mapped = gpuhal_buffer_is_mapped(op->to) || gpuhal_buffer_is_mapped(op->from) ||
                        gpuhal_uses_are_mapped(op->uses);
    return status == GPUHAL_NOT_READY || (status == GPUHAL_ERROR_BUSY && !mapped);
}

static void submit_first(gpuhal_queue *queue)
{
    gpuhal_deferred *deferred = queue->deferred;
    gpuhal_status status = gpuhal_queue_begin_late_call(queue);
    if (status || queue->deferred != deferred) {
        if (!status) {
            gpuhal_queue_end_call(queue);
        }
        return; /* the work was dropped in the meantime, or the device is lost */
    }
    bool space = gpuhal_queue_reserve(queue, &deferred->op);
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_RUNNING);
    gpuhal_mutex_unlock(&queue->mutex);
    if (!space) {
        status = gpuhal_error_host_memory();
    } else {
        status = deferred->op.record ? gpuhal_queue_submit_timepoint(queue, deferred->op.record)
                                     : gpuhal_queue_submit(queue, &deferred->op);
    }
    gpuhal_queue_lock(queue);
    bool refused = status == GPUHAL_ERROR_NOT_SUPPORTED && !deferred->op.record;
    bool later = comes_later(&deferred->op, status);
    gpuhal_completion *completions = NULL;
    if (status == GPUHAL_OK && deferred->op.record) {
        gpuhal_queue_track_timepoint(queue, deferred->op.record, &completions);
        gpuhal_queue_notify(queue, &deferred->op, queue->observer->submitted_unlocks, GPUHAL_OK);
        deferred->op.observed = NULL;
    } else if (status == GPUHAL_OK) {
        gpuhal_queue_track(queue, &deferred->op);
        gpuhal_queue_notify(queue, &deferred->op, queue->observer->submitted_unlocks, GPUHAL_OK);
        empty_first_unlocks(queue, deferred);
        const bool is_access = deferred->op.kind->form == GPUHAL_OP_CALL;
        if (gpuhal_queue_needs_timepoint(queue) || (is_access && gpuhal_queue_records_access(queue))) {
            gpuhal_queue_record_own_unlocks(queue, is_access);
        }
    }
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
    queue->submitted += refused && queue->adopted; /* as in submit.c */
    gpuhal_queue_end_call(queue);
    if ((refused || later) && !gpuhal_queue_has_failed(queue)) {
        deferred->on_host = refused;
        if (later && queue->recorded != queue->submitted) {
            record_tail_unlocks(queue); /* also flushes: the plugin may lack room only because earlier work was not
                                         * flushed */
        } else if (later) {
            sleep_before_retry_unlocks(queue);
        }
        return;
    }
    queue->retry_ns = 0;
    bool notify_requested = status == GPUHAL_OK && deferred->op.record && deferred->op.record->notify_requested;
    gpuhal_timepoint *timepoint = notify_requested ? gpuhal_timepoint_retain(deferred->op.record) : NULL;
    finish_first_unlocks(queue, status);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_completions_notify(completions);
    if (timepoint) {
        (void)gpuhal_timepoint_request_notify(timepoint);
        gpuhal_timepoint_release(timepoint);
    }
    gpuhal_queue_lock(queue);
}

/* Handles a wait at the front of the list, for a timepoint of another queue or of the host. Returns true if it changed
 * anything. The caller holds the mutex. */
static bool look_at_wait(gpuhal_queue *queue)
{
    gpuhal_deferred *deferred = queue->deferred;
    gpuhal_timepoint *timepoint = deferred->op.await;
    if (gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE) {
        finish_first_unlocks(queue, gpuhal_timepoint_result(timepoint));
        return true;
    }
    if (deferred->on_host) { /* the completion is already set */
        return false;
    }
    gpuhal_completion *completion = calloc(1, sizeof *completion);
    if (!completion) {
        finish_first_unlocks(queue, gpuhal_error_host_memory());
        return true;
    }
    completion->queue = gpuhal_queue_retain(queue);
    deferred->on_host = true;
    gpuhal_timepoint_retain(timepoint);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_status status = gpuhal_timepoint_add_completion(timepoint, completion);
    gpuhal_timepoint_release(timepoint);
    gpuhal_queue_lock(queue);
    if (status && queue->deferred == deferred) {
        finish_first_unlocks(queue, status);
    }
    return true;
}

/* Does the worker's next step. Returns false if no step is possible now. The caller holds the mutex. */
static bool step(gpuhal_queue *queue)
{
    gpuhal_deferred *deferred = queue->deferred;
    if (deferred && gpuhal_queue_has_failed(queue)) { /* enqueued while the queue failed */
        finish_first_unlocks(queue, gpuhal_failure_status(queue->failure));
        return true;
    }
    if (!deferred && queue->health == GPUHAL_QUEUE_RESETTING) {
        gpuhal_queue_run_reset_unlocks(queue);
        return true;
    }
    if (deferred && deferred->op.await) {
        if (look_at_wait(queue)) {
            return true;
        }
    } else if (deferred && deferred->op.record && !queue->vendor) {
        finish_first_unlocks(queue, GPUHAL_OK);
        return true;
    } else if (deferred && (deferred->on_host || !queue->vendor)) {
        run_first(queue);
        return true;
    } else if (deferred) {
        submit_first(queue);
        return true;
    }
    queue->probed = queue->probed && !gpuhal_queue_has_failed(queue);
    if (queue->probed && queue->vendor) {
        queue->probed = !tail_has_ended_unlocks(queue);
        return true;
    }
    gpuhal_timepoint *notify_requested = queue->timepoints;
    while (notify_requested &&
           (!notify_requested->notify_requested || notify_requested->armed || notify_requested->blocked_on)) {
        notify_requested = notify_requested->next;
    }
    if (notify_requested) {
        wait_for_unlocks(queue, notify_requested);
        return true;
    }
    return false;
}

/* Returns whether nothing is left to do for a destroyed queue without deferred work, or its device cannot be reached.
 * The caller holds the mutex, which is released only if something is left to do. */
static bool may_end(gpuhal_queue *queue)
{
    if (!gpuhal_device_is_reachable(queue->device)) {
        return true;
    }
    if (!tail_has_ended_unlocks(queue)) {
        return false;
    }
    if (queue->ended || gpuhal_queue_is_called(queue)) { /* the plugin must still call back, or a thread is calling
                                                          * it */
        gpuhal_queue_wait_at(queue, GPUHAL_WAITS_LAST, UINT64_MAX);
        return false;
    }
    return !queue->deferred;
}

void gpuhal_queue_work(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    for (bool ends = false; !ends;) {
        if (step(queue)) {
            continue;
        }
        if (gpuhal_queue_has_completed(queue)) {
            gpuhal_mutex_unlock(&queue->mutex);
            (void)gpuhal_queue_retire(queue);
            gpuhal_queue_lock(queue);
        } else if (queue->life != GPUHAL_QUEUE_OPEN && !queue->deferred) {
            ends = may_end(queue);
            if (ends) {
                gpuhal_queue_change(&queue->life, GPUHAL_QUEUE_CLOSED);
            }
        } else {
            gpuhal_queue_wait_at(queue, GPUHAL_WAITS_WORK, UINT64_MAX);
        }
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_queue_finish(queue);
}

/* hang.c has already uncounted an abandoned worker, so such a worker does not use the gpuhal object at its end. */
void *gpuhal_queue_thread(void *user)
{
    gpuhal_queue *queue = user;
    gpuhal *gpu = queue->device->gpu;
    gpuhal_os_thread_name("gpuhal-queue");
    gpuhal_worker_is_this(gpu);
    gpuhal_queue_work(queue);
    gpuhal_queue_lock(queue);
    bool counted = !queue->uncounted;
    queue->uncounted = true; /* a worker that has ended must not be abandoned later */
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_queue_release(queue);
    if (counted) {
        gpuhal_worker_ends(gpu);
    }
    return NULL;
}
