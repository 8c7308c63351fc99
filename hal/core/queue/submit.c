/* queue/submit.c: passes work from the caller to the plugin's queue, or to the list of deferred work. */
#include "base/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"
#include "transfer/account.h"
#include "transfer/plugin_event.h"

/* Memory that must be flushed around every access needs blocking work, because the plugin's flush blocks, and no other
 * access may happen between the flush and the work. */
static bool is_plain(const gpuhal_buffer *buffer)
{
    return !buffer || !buffer->needs_clean;
}

/* A plugin that returns either code has done nothing (plugin.h), so the worker can start the work from the
 * beginning, or continue a recording with the first remaining step. */
static bool is_deferred(gpuhal_status status)
{
    return status == GPUHAL_ERROR_NOT_SUPPORTED || status == GPUHAL_NOT_READY;
}

/* Returns whether the plugin accepted steps of a recording in the last call. */
static bool has_accepted_steps(const gpuhal_op *op)
{
    return op->uses && op->uses->alone && op->uses->accepted > 0;
}

/* Buffers are entered before the plugin receives them, so that no other thread can map them in the meantime. If the
 * plugin accepts nothing, the function leaves the buffers. For joined work, the newest submission has already entered
 * the buffers. */
static inline __attribute__((always_inline)) gpuhal_status submit_once(gpuhal_queue *queue, const gpuhal_op *op,
                                                                       bool begins)
{
    gpuhal_status status = queue->joined ? GPUHAL_OK
                           : op->uses    ? gpuhal_uses_enter(op->uses)
                                         : gpuhal_buffers_enter(op->to, op->from);
    if (status) {
        return status;
    }
    if (begins) {
        gpuhal_queue_notify(queue, op, queue->observer->submits, GPUHAL_OK);
    }
    status = op->kind->submit(queue->vendor, op);
    if (status && !queue->joined && !has_accepted_steps(op)) {
        gpuhal_buffers_leave(op->to, op->from);
        gpuhal_uses_leave(op->uses);
    }
    return status;
}

/* Tracks the accepted steps of a recording, if there are any, and prepares for the next steps. The caller has the right
 * to call, but not the mutex. */
static gpuhal_status track_steps(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_queue_lock(queue);
    if (has_accepted_steps(op)) {
        gpuhal_queue_track(queue, op);
    }
    const uint64_t unrecorded = gpuhal_queue_unrecorded(queue);
    if (unrecorded > 0 && unrecorded + op->uses->at_once > GPUHAL_TIMEPOINT_EVERY) {
        gpuhal_queue_record_own_unlocks(queue, false);
    }
    gpuhal_status status = gpuhal_queue_has_failed(queue)  ? gpuhal_failure_status(queue->failure)
                           : gpuhal_queue_reserve(queue, op) ? GPUHAL_OK
                                                             : gpuhal_error_host_memory();
    gpuhal_mutex_unlock(&queue->mutex);
    return status;
}

/* The steps between two timepoints (GPUHAL_TIMEPOINT_EVERY) are a part, which is a submission of its own. If the plugin
 * accepts no further step now, the work is deferred with the remaining steps; BUSY then also means that they must be
 * submitted later. */
static __attribute__((noinline)) gpuhal_status submit_recording(gpuhal_queue *queue, const gpuhal_op *op)
{
    bool *const begun = &op->uses->begun;
    op->uses->accepted = 0;
    gpuhal_status status = op->uses->at_once > 1 ? track_steps(queue, op) : GPUHAL_OK;
    for (bool more = !status; more;) {
        op->uses->accepted = 0;
        op->uses->room = GPUHAL_TIMEPOINT_EVERY - (uint32_t)(gpuhal_queue_unrecorded(queue) % GPUHAL_TIMEPOINT_EVERY);
        status = submit_once(queue, op, !*begun);
        more = has_accepted_steps(op) && (status || op->uses->remains);
        *begun = *begun || more;
        if (more) {
            gpuhal_error_detail detail;
            gpuhal_error_save(&detail);
            const gpuhal_status tracked = track_steps(queue, op);
            more = !status && !tracked;
            if (status && !tracked) {
                (void)gpuhal_error_restore(&detail); /* NOT_SUPPORTED and NOT_READY have no detail */
            }
            status = tracked ? tracked : status;
        }
    }
    if (status == GPUHAL_ERROR_BUSY && gpuhal_uses_are_mapped(op->uses)) {
        gpuhal_error_set(status, "%s: recording %s: a buffer is mapped: unmap it first", queue->device->id,
                         op->uses->name);
        gpuhal_error_add_device(queue->device->candidate->name, queue->device->id);
    }
    return *begun && status == GPUHAL_ERROR_BUSY ? GPUHAL_NOT_READY : status;
}

gpuhal_status gpuhal_queue_submit(gpuhal_queue *queue, const gpuhal_op *op)
{
    if (!queue->vendor || !op->kind->submit || !is_plain(op->to) || !is_plain(op->from) ||
        (op->uses && op->uses->needs_clean)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_status status =
        op->uses && op->uses->alone ? submit_recording(queue, op) : submit_once(queue, op, true);
    return status && !is_deferred(status) ? gpuhal_queue_refused(queue, status) : status;
}

/* Called after the plugin accepted the work and before the right to call is released, so that the numbers are in the
 * plugin's order. gpuhal_queue_reserve() has made the room, so this function cannot fail. */
void gpuhal_queue_track(gpuhal_queue *queue, const gpuhal_op *op)
{
    queue->submitted += has_accepted_steps(op) ? op->uses->accepted : 1;
    if (!queue->joined) {
        queue->submission_count++;
        *gpuhal_queue_last_submission(queue) = (gpuhal_submission){.to = gpuhal_buffer_retain(op->to),
                                              .from = gpuhal_buffer_retain(op->from),
                                              .kept = gpuhal_buffer_retain(op->kept),
                                              .uses = gpuhal_uses_retain(op->uses),
                                              .awaited = op->await ? gpuhal_timepoint_retain(op->await) : NULL};
    }
    gpuhal_queue_last_submission(queue)->number = queue->submitted;
    if (op->counter) {
        gpuhal_count(op->counter, op->bytes, 0);
    }
    gpuhal_queue_note_busy(queue);
}

/* Returns OK with the right to call, NOT_READY if the work must be deferred, or the status of a refusal. Each iteration
 * checks all conditions again: while this thread waited, the queue may have failed, or another thread may have deferred
 * earlier work. */
static gpuhal_status admit_unlocks(gpuhal_queue *queue, uint64_t deadline_ns)
{
    while (gpuhal_queue_is_called(queue) && !gpuhal_queue_has_failed(queue) && !gpuhal_queue_has_deferred(queue)) {
        gpuhal_status status = gpuhal_queue_wait_for_call(queue, GPUHAL_WAITS_CALL, deadline_ns);
        if (status) {
            return status;
        }
    }
    if (gpuhal_queue_has_failed(queue)) {
        return gpuhal_failure_status(queue->failure);
    }
    return gpuhal_queue_has_deferred(queue) ? GPUHAL_NOT_READY : gpuhal_queue_begin_call_unlocks(queue, deadline_ns);
}

/* Handles the plugin's result for work and releases the right to call. If the work must be deferred, it is
 * appended before the right is released, because the next thread would otherwise submit its later work first. The fast
 * path is opened last, since it admits threads without the mutex. The caller holds the mutex. */
static gpuhal_status conclude(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    if (status == GPUHAL_OK) {
        gpuhal_queue_track(queue, op);
        gpuhal_queue_notify(queue, op, queue->observer->submitted_unlocks, GPUHAL_OK);
        if (gpuhal_queue_needs_timepoint(queue)) {
            gpuhal_queue_record_own_unlocks(queue, false);
        }
    } else if (is_deferred(status)) {
        bool on_host = status == GPUHAL_ERROR_NOT_SUPPORTED;
        queue->submitted += on_host && queue->adopted; /* one number for earlier native submissions */
        status = gpuhal_queue_append_deferred(queue, op, on_host);
        if (status && op->uses && op->uses->alone && op->uses->begun) { /* the other steps are missing */
            gpuhal_mutex_unlock(&queue->mutex);
            status = gpuhal_queue_refused(queue, status);
            gpuhal_queue_lock(queue);
        }
    }
    gpuhal_queue_end_call(queue);
    if (status == GPUHAL_OK) {
        gpuhal_queue_open_fast_path(queue);
    }
    return status;
}

static gpuhal_status defer_locked(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_queue_lock(queue);
    gpuhal_status status = gpuhal_queue_refusal(queue);
    status = status ? status : gpuhal_queue_append_deferred(queue, op, false);
    gpuhal_queue_unlock_and_wake(queue);
    return status;
}

static __attribute__((noinline)) gpuhal_status
enqueue_observed(gpuhal_queue *queue, const gpuhal_op *op,
                 gpuhal_status (*enqueue)(gpuhal_queue *queue, const gpuhal_op *op))
{
    gpuhal_op own = *op;
    own.observed = queue->observer->enqueue(queue, op);
    const gpuhal_status status = enqueue(queue, &own);
    if (status) {
        gpuhal_queue_lock(queue);
        gpuhal_queue_notify(queue, &own, queue->observer->dropped, status);
        gpuhal_mutex_unlock(&queue->mutex);
    }
    return status;
}

gpuhal_status gpuhal_queue_defer(gpuhal_queue *queue, const gpuhal_op *op)
{
    const gpuhal_status status = gpuhal_queue_check(queue);
    return status                            ? status
           : gpuhal_queue_is_observed(queue) ? enqueue_observed(queue, op, defer_locked)
                                             : defer_locked(queue, op);
}

/* The general path. */
static gpuhal_status enqueue_locked(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_queue_lock(queue);
    gpuhal_status status = admit_unlocks(queue, UINT64_MAX);
    if (status == GPUHAL_OK) {
        /* Reserve room before the submission: once the plugin has the work, keeping the buffers alive must not fail. */
        bool space = gpuhal_queue_reserve(queue, op);
        gpuhal_mutex_unlock(&queue->mutex);
        status = space ? gpuhal_queue_submit(queue, op) : gpuhal_error_host_memory();
        gpuhal_queue_lock(queue);
        status = conclude(queue, op, status);
    } else if (status == GPUHAL_NOT_READY) {
        status = gpuhal_queue_append_deferred(queue, op, false);
    }
    bool rest = queue->worker == GPUHAL_QUEUE_UNATTENDED && gpuhal_queue_has_completed(queue);
    gpuhal_queue_unlock_and_wake(queue);
    if (rest) {
        (void)gpuhal_queue_retire(queue);
    }
    return status;
}

/* Copies a launch whose record belongs to the caller, before the plugin receives the work, and enqueues the copy. */
static gpuhal_status enqueue_kept(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_op own = *op;
    own.uses = op->uses->kind->make_lasting(op->uses);
    const gpuhal_status status = own.uses ? enqueue_locked(queue, &own) : gpuhal_error_host_memory();
    gpuhal_uses_release(own.uses);
    return status;
}

/* Handles a result other than OK on the fast path. The caller has the right to call. */
static gpuhal_status conclude_fast(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    gpuhal_op own = *op;
    const bool deferred = is_deferred(status);
    status = deferred ? status : gpuhal_queue_refused(queue, status);
    own.uses = op->uses && deferred ? op->uses->kind->make_lasting(op->uses) : NULL;
    if (op->uses && deferred && !own.uses) {
        status = gpuhal_error_host_memory(); /* the plugin has done nothing */
    }
    gpuhal_queue_lock(queue);
    status = conclude(queue, &own, status);
    gpuhal_queue_unlock_and_wake(queue);
    gpuhal_uses_release(own.uses);
    return status;
}

static gpuhal_status foreign_queue(const gpuhal_device *device, const gpuhal_device *other)
{
    return device->gpu != other->gpu
               ? gpuhal_two_objects("a transfer", "queue and buffer", device->gpu, other->gpu)
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "%s: the queue is of a device that has none of the buffers; they are of %s",
                                  device->id, other->id);
}

gpuhal_status gpuhal_queue_enqueue(gpuhal_queue *queue, const gpuhal_op *op)
{
    const gpuhal_device *device = queue->device;
    gpuhal_status status = gpuhal_queue_check(queue);
    if (status) {
        return status;
    }
    if (!op->kept && !op->uses && !(op->to && op->to->device == device) && !(op->from && op->from->device == device)) {
        return foreign_queue(device, (op->to ? op->to : op->from)->device);
    }
    if (gpuhal_queue_is_observed(queue)) {
        return enqueue_observed(queue, op, op->uses ? enqueue_kept : enqueue_locked);
    }
    if (!gpuhal_queue_try_fast_path(queue, op, &status)) {
        return op->uses ? enqueue_kept(queue, op) : enqueue_locked(queue, op);
    }
    return __builtin_expect(status != GPUHAL_OK, 0) ? conclude_fast(queue, op, status) : GPUHAL_OK;
}

/* Polls the oldest timepoints, so that a queue that no thread waits for releases its buffers. Skips the newest
 * timepoint, which make_timepoint() has recorded just now if it is the caller. */
static void look_back(gpuhal_queue *queue)
{
    for (bool more = true; more;) {
        gpuhal_queue_lock(queue);
        gpuhal_timepoint *oldest =
            queue->timepoints && queue->timepoints->next ? gpuhal_timepoint_retain(queue->timepoints) : NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        more = oldest && gpuhal_timepoint_poll(oldest) == GPUHAL_OK;
        gpuhal_timepoint_release(oldest);
    }
}

/* If there is no plugin queue and no work is deferred, no work is in flight. The caller holds the mutex and has the
 * right to call. */
static gpuhal_status record_now(gpuhal_queue *queue, gpuhal_timepoint *timepoint, gpuhal_completion **completions)
{
    if (!queue->vendor) {
        timepoint->number = queue->submitted;
        gpuhal_timepoint_finish(timepoint, NULL, completions);
        return GPUHAL_OK;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_status status = gpuhal_queue_submit_timepoint(queue, timepoint);
    gpuhal_queue_lock(queue);
    if (!status) {
        gpuhal_queue_track_timepoint(queue, timepoint, completions);
    }
    return status;
}

/* After native access, a driver with a full ring may block in this function until the application's own submissions
 * make progress. So the native access counts as ongoing until the call returns. */
void gpuhal_queue_record_own_unlocks(gpuhal_queue *queue, bool is_access)
{
    gpuhal_completion *none = NULL; /* stays empty, because no other thread has the timepoint before it is in the
                                     * queue */
    gpuhal_mutex_unlock(&queue->mutex);
    look_back(queue);
    gpuhal_timepoint *timepoint = gpuhal_timepoint_create(queue, false);
    gpuhal_queue_lock(queue);
    if (timepoint && !gpuhal_queue_has_failed(queue)) {
        atomic_fetch_add(&queue->device->native_accesses, is_access);
        (void)record_now(queue, timepoint, &none);
        atomic_fetch_sub(&queue->device->native_accesses, is_access);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_timepoint_release(timepoint);
    gpuhal_queue_lock(queue);
}

static gpuhal_status record_unlocks(gpuhal_queue *queue, gpuhal_timepoint *timepoint, void *observed,
                                    uint64_t deadline_ns, gpuhal_completion **completions)
{
    gpuhal_status status = admit_unlocks(queue, deadline_ns);
    if (status == GPUHAL_OK && gpuhal_queue_is_closed(queue)) { /* the queue was destroyed in the meantime, so all its
                                                                 * work has ended */
        timepoint->number = queue->submitted;
        gpuhal_timepoint_finish(timepoint, queue->failure, completions);
        gpuhal_queue_end_call(queue);
    } else if (status == GPUHAL_OK) {
        status = record_now(queue, timepoint, completions);
        gpuhal_queue_end_call(queue);
    }
    return status == GPUHAL_NOT_READY
               ? gpuhal_queue_append_deferred(queue, &(gpuhal_op){.record = timepoint, .observed = observed}, false)
               : status;
}

/* If there is no work to wait for, the timepoint is done immediately, without a plugin call; never in an adopted queue,
 * because the application may have submitted work by itself. If the plugin may not return in time, the timepoint is
 * deferred, so that the worker calls the plugin. If deferring fails, this thread calls the plugin. */
static gpuhal_status record_to_wait_unlocks(gpuhal_queue *queue, gpuhal_timepoint *timepoint, uint64_t deadline_ns,
                                            gpuhal_completion **completions)
{
    bool may_call = gpuhal_device_honors_timeouts(queue->device);
    if (!queue->adopted && !gpuhal_queue_has_failed(queue) && gpuhal_queue_is_idle(queue)) {
        timepoint->number = queue->submitted;
        gpuhal_timepoint_finish(timepoint, NULL, completions);
        return GPUHAL_OK;
    }
    if (!may_call && queue->vendor && queue->right != GPUHAL_QUEUE_NATIVE && !gpuhal_queue_has_failed(queue) &&
        gpuhal_queue_append_deferred(queue, &(gpuhal_op){.record = timepoint}, false) == GPUHAL_OK) {
        return GPUHAL_OK;
    }
    return record_unlocks(queue, timepoint, NULL, deadline_ns, completions);
}

/* With `waits`, the caller will wait until the deadline. With `observes`, the recording is observed. noinline because
 * the compiler would otherwise inline part of the function. */
static __attribute__((noinline)) gpuhal_status make_timepoint(gpuhal_queue *queue, bool timed, bool waits,
                                                              uint64_t deadline_ns, bool observes,
                                                              gpuhal_timepoint **out_point)
{
    gpuhal_status status = gpuhal_queue_check(queue);
    status = !status && waits ? gpuhal_queue_own_call(queue) : status;
    if (status) {
        return status;
    }
    gpuhal_timepoint *timepoint = gpuhal_timepoint_create(queue, timed);
    if (!timepoint) {
        return gpuhal_error_host_memory();
    }
    void *observed = observes ? queue->observer->enqueue(queue, &(gpuhal_op){.record = timepoint}) : NULL;
    gpuhal_completion *completions = NULL;
    gpuhal_queue_lock(queue);
    timepoint->stamped = observed != NULL;
    if (gpuhal_queue_is_closed(queue)) {
        timepoint->number = queue->submitted;
        gpuhal_timepoint_finish(timepoint, queue->failure, &completions);
    } else {
        status = waits ? record_to_wait_unlocks(queue, timepoint, deadline_ns, &completions)
                       : record_unlocks(queue, timepoint, observed, deadline_ns, &completions);
    }
    if (observed && (status || gpuhal_timepoint_now(timepoint) != GPUHAL_TIMEPOINT_DEFERRED)) {
        const gpuhal_op op = {.record = timepoint, .observed = observed};
        (status ? queue->observer->dropped : queue->observer->submitted_unlocks)(queue, &op, status);
    }
    bool older = queue->timepoints && queue->timepoints->next;
    gpuhal_queue_unlock_and_wake(queue);
    gpuhal_completions_notify(completions);
    if (status) {
        gpuhal_timepoint_release(timepoint);
        return status;
    }
    if (!waits && older) {
        look_back(queue);
    }
    *out_point = timepoint;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_queue_record(gpuhal_queue *queue, bool timed, gpuhal_timepoint **out_point)
{
    return make_timepoint(queue, timed, false, UINT64_MAX, false, out_point);
}

gpuhal_status gpuhal_queue_record_event(gpuhal_queue *queue, bool timed, gpuhal_timepoint **out_point)
{
    const bool observed = gpuhal_queue_is_observed(queue);
    timed = timed || (observed && atomic_load(&queue->has_times)); /* the observer may need the device's time */
    return make_timepoint(queue, timed, false, UINT64_MAX, observed, out_point);
}

gpuhal_status gpuhal_queue_record_to_wait(gpuhal_queue *queue, uint64_t deadline_ns, gpuhal_timepoint **out_point)
{
    return make_timepoint(queue, false, true, deadline_ns, false, out_point);
}

/* The plugin's queue waits only for work that was submitted to the same device. Drivers do not report another device's
 * failures to a waiting device. */
static bool may_wait_natively(const gpuhal_queue *queue, const gpuhal_timepoint *timepoint)
{
    return queue->vendor && timepoint->queue && queue->device->queues.queue_wait &&
           queue->device == timepoint->queue->device &&
           gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED;
}

/* Returns NOT_SUPPORTED or NOT_READY if the worker must wait instead, and NOT_SUPPORTED if the timepoint was done
 * before the plugin's call or has failed. On OK this queue's work is a user of the event, and the caller must track the
 * work. The caller has the right to call, but not the mutex. */
static gpuhal_status wait_natively(gpuhal_queue *queue, gpuhal_timepoint *timepoint)
{
    gpuhal_error_detail detail;
    if (!gpuhal_timepoint_use_event(timepoint)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_small(queue->device); /* the allowance is the same as for recording */
    gpuhal_status status =
        gpuhal_device_result(queue->device, call, queue->device->queues.queue_wait(queue->vendor, timepoint->event));
    if (!status) {
        return status;
    }
    gpuhal_timepoint_leave_event(timepoint);
    if (is_deferred(status)) {
        return status;
    }
    gpuhal_device_failed(queue->device, status, "waiting for an event");
    gpuhal_error_save(&detail);
    status = gpuhal_timepoint_poll(timepoint);
    if (status && status != GPUHAL_NOT_READY && gpuhal_device_is_reachable(queue->device)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return gpuhal_queue_refused(queue, gpuhal_error_restore(&detail));
}

gpuhal_status gpuhal_queue_wait_for_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint)
{
    const gpuhal_op op = {.await = timepoint};
    gpuhal_status status = gpuhal_queue_check(queue);
    bool is_done = !timepoint || gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE;
    /* Read without the mutex: the failure is written before the state becomes DONE, and never changes again. */
    bool has_failed = timepoint && is_done && timepoint->failure;
    bool is_behind = !has_failed && (is_done || timepoint->queue == queue);
    if (status) {
        return status;
    }
    gpuhal_queue_lock(queue);
    if (is_behind) {
        status = gpuhal_queue_refusal(queue);
        gpuhal_mutex_unlock(&queue->mutex);
        return status;
    }
    status = admit_unlocks(queue, UINT64_MAX);
    bool hold = status == GPUHAL_NOT_READY;
    if (status == GPUHAL_OK) {
        hold = !may_wait_natively(queue, timepoint) || !gpuhal_queue_reserve(queue, &op);
        if (!hold) {
            gpuhal_mutex_unlock(&queue->mutex);
            status = wait_natively(queue, timepoint);
            gpuhal_queue_lock(queue);
            hold = is_deferred(status);
        }
        if (status == GPUHAL_OK && !hold) {
            gpuhal_queue_track(queue, &op);
        }
        /* Append before the right to call is released, as in conclude(). */
        status = hold ? gpuhal_queue_append_deferred(queue, &op, false) : status;
        gpuhal_queue_end_call(queue);
    } else if (hold) {
        status = gpuhal_queue_append_deferred(queue, &op, false);
    }
    gpuhal_queue_unlock_and_wake(queue);
    return status;
}
