/* queue/submit.c: from the caller to the plugin's queue, or to the list of held work. */
#include "core/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"
#include "transfer/account.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>

/* Memory that has to be cleaned around every access is blocking work: the plugin's clean blocks, and nobody may come between. */
static bool is_plain(const gpuhal_buffer *buffer)
{
    return !buffer || !buffer->needs_clean;
}

/* What is no failure: the work is to be deferred. */
static bool is_deferred(gpuhal_status status)
{
    return status == GPUHAL_ERROR_NOT_SUPPORTED || status == GPUHAL_NOT_READY;
}

gpuhal_status gpuhal_queue_refused(gpuhal_queue *queue, gpuhal_status status)
{
    if (status == GPUHAL_ERROR_BUSY) {
        return status;
    }
    gpuhal_cause *cause = gpuhal_cause_create();
    gpuhal_queue_break(queue, cause, false);
    status = gpuhal_cause_status(cause);
    gpuhal_cause_release(cause);
    return status;
}

gpuhal_status gpuhal_queue_hand_over(gpuhal_queue *queue, const gpuhal_op *op)
{
    if (!queue->vendor || !op->kind->submit || !is_plain(op->to) || !is_plain(op->from)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_status status = queue->joined ? GPUHAL_OK : gpuhal_buffers_enter(op->to, op->from);
    if (status) {
        return status;
    }
    status = op->kind->submit(queue->vendor, op);
    if (status && !queue->joined) {
        gpuhal_buffers_leave(op->to, op->from);
    }
    return status && !is_deferred(status) ? gpuhal_queue_refused(queue, status) : status;
}

void gpuhal_queue_note(gpuhal_queue *queue, const gpuhal_op *op)
{
    queue->submitted++;
    if (!queue->joined) {
        queue->flight_count++;
        *gpuhal_queue_last_flight(queue) = (gpuhal_flight){.to = gpuhal_buffer_retain(op->to),
                                              .from = gpuhal_buffer_retain(op->from),
                                              .kept = gpuhal_buffer_retain(op->kept),
                                              .awaited = op->await ? gpuhal_point_retain(op->await) : NULL};
    }
    gpuhal_queue_last_flight(queue)->number = queue->submitted;
    if (op->counter) {
        gpuhal_count(op->counter, op->bytes, 0);
    }
}

gpuhal_status gpuhal_queue_hand_over_point(gpuhal_queue *queue, gpuhal_point *point)
{
    gpuhal_device *device = queue->device;
    gpuhal_plugin_event *event = gpuhal_queue_take_event(queue, point->timed);
    gpuhal_status status = event ? GPUHAL_OK : gpuhal_plugin_event_create(device, point->timed ? GPUHAL_TIMED : 0, &event);
    if (status) {
        return gpuhal_device_failed(device, status, "making an event");
    }
    status = gpuhal_plugin_event_record(device, queue->vendor, event);
    if (status) {
        status = status == GPUHAL_NOT_READY ? status : gpuhal_queue_refused(queue, gpuhal_device_failed(device, status, "recording an event"));
        gpuhal_queue_put_event(queue, event, point->timed);
        return status;
    }
    point->event = event;
    return GPUHAL_OK;
}

void gpuhal_queue_list_point(gpuhal_queue *queue, gpuhal_point *point)
{
    point->number = queue->submitted;
    queue->marked = queue->submitted;
    point->next = NULL;
    *queue->points_end = gpuhal_point_retain(point);
    queue->points_end = &point->next;
    atomic_store_explicit(&point->state, GPUHAL_POINT_SUBMITTED, memory_order_release);
}

/* The work before a point may be gone by now, also where the plugin took the point. */
void gpuhal_queue_note_point(gpuhal_queue *queue, gpuhal_point *point, gpuhal_watcher **told)
{
    if (gpuhal_queue_has_failed(queue)) {
        gpuhal_point_finish(point, queue->cause, told);
    } else {
        gpuhal_queue_list_point(queue, point);
    }
}

/* With the mutex held, which is let go meanwhile. OK with the right to call; NOT_READY: get in line; or why nothing is taken. */
static gpuhal_status admit(gpuhal_queue *queue, uint64_t deadline_ns)
{
    while (gpuhal_queue_is_called(queue) && !gpuhal_queue_has_failed(queue) && !gpuhal_queue_has_deferred(queue)) {
        gpuhal_status status = gpuhal_queue_sleep_through_call(queue, GPUHAL_WAITS_CALL, deadline_ns);
        if (status) {
            return status;
        }
    }
    if (gpuhal_queue_has_failed(queue)) {
        return gpuhal_cause_status(queue->cause);
    }
    return gpuhal_queue_has_deferred(queue) ? GPUHAL_NOT_READY : gpuhal_queue_begin_call(queue, deadline_ns);
}

/* What became of a transfer that the plugin was given; ends the right to call. With the mutex held. */
static gpuhal_status conclude(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    if (status == GPUHAL_OK) {
        gpuhal_queue_note(queue, op);
    } else if (is_deferred(status)) {
        bool on_host = status == GPUHAL_ERROR_NOT_SUPPORTED;
        queue->submitted += on_host && queue->adopted; /* what the caller submitted by itself comes before, too */
        status = gpuhal_queue_hold(queue, op, on_host);
    }
    gpuhal_queue_end_call(queue);
    if (status == GPUHAL_OK) {
        gpuhal_queue_open_gate(queue);
    }
    return status;
}

gpuhal_status gpuhal_queue_defer(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_status status = gpuhal_queue_check(queue);
    if (status) {
        return status;
    }
    gpuhal_queue_lock(queue);
    status = gpuhal_queue_refusal(queue);
    status = status ? status : gpuhal_queue_hold(queue, op, false);
    gpuhal_mutex_unlock(&queue->mutex);
    return status;
}

/* The usual way; the gate is the short cut for what comes right behind its like. */
static gpuhal_status enqueue_locked(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_queue_lock(queue);
    gpuhal_status status = admit(queue, UINT64_MAX);
    if (status == GPUHAL_OK) {
        bool space = gpuhal_queue_reserve(queue, op);
        gpuhal_mutex_unlock(&queue->mutex);
        status = space ? gpuhal_queue_hand_over(queue, op) : gpuhal_error_host_memory();
        gpuhal_queue_lock(queue);
        status = conclude(queue, op, status);
    } else if (status == GPUHAL_NOT_READY) {
        status = gpuhal_queue_hold(queue, op, false);
    }
    bool rest = queue->worker == GPUHAL_QUEUE_UNATTENDED && gpuhal_queue_has_rest(queue);
    bool due = !status && queue->submitted % GPUHAL_POINT_EVERY == 0 && queue->submitted != queue->marked &&
               !gpuhal_queue_has_deferred(queue);
    gpuhal_mutex_unlock(&queue->mutex);
    if (rest) {
        (void)gpuhal_queue_reap(queue);
    }
    gpuhal_point *point = NULL;
    if (due && gpuhal_queue_mark(queue, false, &point) == GPUHAL_OK) { /* without it the work goes on all the same */
        gpuhal_point_release(point);
    }
    return status;
}

gpuhal_status gpuhal_queue_enqueue(gpuhal_queue *queue, const gpuhal_op *op)
{
    const gpuhal_device *device = queue->device;
    if (!op->kept && !(op->to && op->to->device == device) && !(op->from && op->from->device == device)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the queue is of a device that has none of the buffers", device->id);
    }
    gpuhal_status status = gpuhal_queue_check(queue);
    if (status) {
        return status;
    }
    if (!gpuhal_queue_pass_gate(queue, op, &status)) {
        return enqueue_locked(queue, op);
    }
    if (__builtin_expect(status != GPUHAL_OK, 0)) {
        status = is_deferred(status) ? status : gpuhal_queue_refused(queue, status);
        gpuhal_queue_lock(queue);
        status = conclude(queue, op, status);
        gpuhal_mutex_unlock(&queue->mutex);
    }
    return status;
}

/* Looks how many of the oldest submitted points are done, so that buffers do not stay with a queue that nobody waits for. */
static void look_back(gpuhal_queue *queue)
{
    for (bool more = true; more;) {
        gpuhal_queue_lock(queue);
        gpuhal_point *oldest = queue->points && queue->points->next ? gpuhal_point_retain(queue->points) : NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        more = oldest && gpuhal_point_poll(oldest) == GPUHAL_OK;
        gpuhal_point_release(oldest);
    }
}

/* With the mutex held and the right to call. In a queue of the library's own nothing is under way when nothing is held. */
static gpuhal_status mark_now(gpuhal_queue *queue, gpuhal_point *point, gpuhal_watcher **told)
{
    if (!queue->vendor) {
        point->number = queue->submitted;
        gpuhal_point_finish(point, NULL, told);
        return GPUHAL_OK;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_status status = gpuhal_queue_hand_over_point(queue, point);
    gpuhal_queue_lock(queue);
    if (!status) {
        gpuhal_queue_note_point(queue, point, told);
    }
    return status;
}

/* The event shows whether that work goes on, when a driver whose ring is full waits in a later call. Such a driver
 * waits here already, for work of which nothing else tells: so the access lasts until it is back. Where there is no memory for it, or the
 * driver does not record now, the work goes on without it. Drivers that keep timeouts record nothing: they do not wait for room, and for
 * some an event is a submission. */
void gpuhal_queue_mark_access(gpuhal_queue *queue, gpuhal_watcher **told)
{
    if (gpuhal_device_honors_timeouts(queue->device)) {
        return;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    look_back(queue);
    gpuhal_point *point = gpuhal_point_create(queue, false);
    gpuhal_queue_lock(queue);
    if (point && !gpuhal_queue_has_failed(queue)) {
        atomic_fetch_add(&queue->device->native_accesses, 1);
        (void)mark_now(queue, point, told);
        atomic_fetch_sub(&queue->device->native_accesses, 1);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_point_release(point);
    gpuhal_queue_lock(queue);
}

/* With the mutex held, which is let go meanwhile. */
static gpuhal_status mark(gpuhal_queue *queue, gpuhal_point *point, uint64_t deadline_ns, gpuhal_watcher **told)
{
    gpuhal_status status = admit(queue, deadline_ns);
    if (status == GPUHAL_OK && gpuhal_queue_is_closed(queue)) { /* destroyed meanwhile: all its work has ended, and its vendor's queue goes */
        point->number = queue->submitted;
        gpuhal_point_finish(point, NULL, told);
        gpuhal_queue_end_call(queue);
    } else if (status == GPUHAL_OK) {
        status = mark_now(queue, point, told);
        gpuhal_queue_end_call(queue);
    }
    return status == GPUHAL_NOT_READY ? gpuhal_queue_hold(queue, &(gpuhal_op){.record = point}, false) : status;
}

/* With the mutex held, which is let go meanwhile. */
static gpuhal_status mark_to_wait(gpuhal_queue *queue, gpuhal_point *point, uint64_t deadline_ns, gpuhal_watcher **told)
{
    bool may_call = gpuhal_device_honors_timeouts(queue->device);
    if (!queue->adopted && !gpuhal_queue_has_failed(queue) && gpuhal_queue_is_idle(queue)) {
        point->number = queue->submitted;
        gpuhal_point_finish(point, NULL, told);
        return GPUHAL_OK;
    }
    if (!may_call && queue->vendor && queue->right != GPUHAL_QUEUE_NATIVE && !gpuhal_queue_has_failed(queue) &&
        gpuhal_queue_hold(queue, &(gpuhal_op){.record = point}, false) == GPUHAL_OK) {
        return GPUHAL_OK;
    }
    return mark(queue, point, deadline_ns, told);
}

/* `waits`: the thread does, until the deadline. */
static gpuhal_status make_mark(gpuhal_queue *queue, bool timed, bool waits, uint64_t deadline_ns, gpuhal_point **out_point)
{
    gpuhal_status status = gpuhal_queue_check(queue);
    status = !status && waits ? gpuhal_queue_own_call(queue) : status;
    if (status) {
        return status;
    }
    gpuhal_point *point = gpuhal_point_create(queue, timed);
    if (!point) {
        return gpuhal_error_host_memory();
    }
    gpuhal_watcher *told = NULL;
    gpuhal_queue_lock(queue);
    if (gpuhal_queue_is_closed(queue)) {
        point->number = queue->submitted;
        gpuhal_point_finish(point, NULL, &told);
    } else {
        status = waits ? mark_to_wait(queue, point, deadline_ns, &told) : mark(queue, point, deadline_ns, &told);
    }
    bool older = queue->points && queue->points->next;
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    if (status) {
        gpuhal_point_release(point);
        return status;
    }
    if (!waits && older) {
        look_back(queue);
    }
    *out_point = point;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_queue_mark(gpuhal_queue *queue, bool timed, gpuhal_point **out_point)
{
    return make_mark(queue, timed, false, UINT64_MAX, out_point);
}

gpuhal_status gpuhal_queue_mark_to_wait(gpuhal_queue *queue, uint64_t deadline_ns, gpuhal_point **out_point)
{
    return make_mark(queue, false, true, deadline_ns, out_point);
}

/* A queue waits natively only for what the same device has been given already: where a device waits for another one, drivers do not tell
 * that the other one's work failed. */
static bool may_wait_natively(const gpuhal_queue *queue, const gpuhal_point *point)
{
    return queue->vendor && point->queue && point->queue->vendor && queue->device->ops.queue_wait && queue->device == point->queue->device &&
           gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED;
}

/* With the right to call and without the mutex. NOT_SUPPORTED: the queue has to be held, also when the point turns out to have failed. */
static gpuhal_status wait_natively(gpuhal_queue *queue, gpuhal_point *point)
{
    gpuhal_error_detail detail;
    const gpuhal_call call = gpuhal_call_small(queue->device); /* as for recording */
    gpuhal_status status = gpuhal_device_result(queue->device, call, queue->device->ops.queue_wait(queue->vendor, point->event));
    if (!status || is_deferred(status)) {
        return status;
    }
    gpuhal_device_failed(queue->device, status, "waiting for an event");
    gpuhal_error_save(&detail);
    status = gpuhal_point_poll(point);
    if (status && status != GPUHAL_NOT_READY && gpuhal_device_is_reachable(queue->device)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return gpuhal_queue_refused(queue, gpuhal_error_restore(&detail));
}

gpuhal_status gpuhal_queue_await(gpuhal_queue *queue, gpuhal_point *point)
{
    const gpuhal_op op = {.await = point};
    gpuhal_status status = gpuhal_queue_check(queue);
    bool is_done = !point || gpuhal_point_now(point) == GPUHAL_POINT_DONE;
    bool has_failed = point && is_done && point->cause;
    bool is_behind = !has_failed && (is_done || point->queue == queue);
    if (status) {
        return status;
    }
    gpuhal_queue_lock(queue);
    if (is_behind) {
        status = gpuhal_queue_refusal(queue);
        gpuhal_mutex_unlock(&queue->mutex);
        return status;
    }
    status = admit(queue, UINT64_MAX);
    bool hold = status == GPUHAL_NOT_READY;
    if (status == GPUHAL_OK) {
        hold = !may_wait_natively(queue, point) || !gpuhal_queue_reserve(queue, &op);
        if (!hold) {
            gpuhal_mutex_unlock(&queue->mutex);
            status = wait_natively(queue, point);
            gpuhal_queue_lock(queue);
            hold = is_deferred(status);
        }
        if (status == GPUHAL_OK && !hold) {
            gpuhal_queue_note(queue, &op);
        }
        status = hold ? gpuhal_queue_hold(queue, &op, false) : status;
        gpuhal_queue_end_call(queue);
    } else if (hold) {
        status = gpuhal_queue_hold(queue, &op, false);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return status;
}
