/* queue/complete.c: noticing that points are done, and what that means for the queue: it goes on, or has failed. */
#include "core/error.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

/* Takes points up to `last` out of the list and ends them. With the mutex held. */
static void end_points(gpuhal_queue *queue, const gpuhal_point *last, gpuhal_cause *cause, gpuhal_watcher **told)
{
    for (bool more = true; more && queue->points;) {
        gpuhal_point *point = queue->points;
        more = point != last;
        queue->points = point->next;
        queue->done = point->number > queue->done ? point->number : queue->done;
        gpuhal_point_finish(point, cause, told);
        point->next = queue->ended;
        queue->ended = point;
    }
    if (!queue->points) {
        queue->points_end = &queue->points;
    }
}

/* The piece that the queue's thread is at stays, for that thread to take out; who waits for its point is told all the same, since the
 * thread may be stuck. */
static void drop_held(gpuhal_queue *queue, gpuhal_watcher **told)
{
    gpuhal_held **rest = &queue->held;
    if (queue->held && queue->worker == GPUHAL_QUEUE_RUNNING) {
        rest = &queue->held->next;
        if (queue->held->op.record) {
            gpuhal_point_finish(queue->held->op.record, queue->cause, told);
        }
    }
    while (*rest) {
        gpuhal_held *held = *rest;
        *rest = held->next;
        if (held->op.record) {
            gpuhal_point_finish(held->op.record, queue->cause, told);
        }
        held->next = queue->dropped;
        queue->dropped = held;
    }
    queue->held_end = rest;
}

void gpuhal_queue_fail(gpuhal_queue *queue, gpuhal_cause *cause, bool submitted, gpuhal_watcher **told)
{
    if (!gpuhal_queue_has_failed(queue)) {
        gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_FAILED);
        queue->cause = gpuhal_cause_retain(cause);
    }
    if (submitted) {
        uint64_t done = queue->done;
        end_points(queue, NULL, cause, told);
        queue->done = atomic_load(&queue->device->lost) ? queue->submitted : done;
    }
    drop_held(queue, told);
    gpuhal_condition_signal_all(&queue->condition);
}

void gpuhal_queue_break(gpuhal_queue *queue, gpuhal_cause *cause, bool submitted)
{
    gpuhal_watcher *told = NULL;
    gpuhal_queue_lock(queue);
    gpuhal_queue_fail(queue, cause, submitted, &told);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
}

/* The first failed one of the points that the plugin's queue itself waited for, up to a submission; NULL: none that is known. With the
 * mutex held. */
static gpuhal_cause *cause_of_awaited(const gpuhal_queue *queue, uint64_t number)
{
    for (size_t i = 0; i < queue->flight_count; i++) {
        const gpuhal_flight *flight = &queue->flights[(queue->flight_first + i) % queue->flight_space];
        const gpuhal_point *awaited = flight->number <= number ? flight->awaited : NULL;
        if (awaited && gpuhal_point_now(awaited) == GPUHAL_POINT_DONE && awaited->cause) {
            return gpuhal_cause_retain(awaited->cause);
        }
    }
    return NULL;
}

/* Watchers are put in front of *told. `may_retire`: this is no callback of a driver's. */
static void settle(gpuhal_point *point, gpuhal_status status, bool may_retire, gpuhal_watcher **told)
{
    gpuhal_queue *queue = point->queue;
    gpuhal_cause *cause = status ? gpuhal_cause_create() : NULL;
    gpuhal_queue_lock(queue);
    if (gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED && status) {
        gpuhal_cause *original = cause_of_awaited(queue, point->number);
        queue->done = point->number > queue->done ? point->number : queue->done;
        gpuhal_queue_fail(queue, original ? original : cause, true, told);
        gpuhal_cause_release(original);
    } else if (gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED) {
        end_points(queue, point, NULL, told);
        if (gpuhal_queue_has_waiters(queue)) {
            gpuhal_condition_signal_all(&queue->condition);
        }
    }
    if (may_retire) {
        (void)gpuhal_queue_reap_locked(queue);
        atomic_store_explicit(&point->retired, !status && queue->retiring == 0, memory_order_release);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_cause_release(cause);
}

/* Memory is given back before anybody is notified. */
void gpuhal_point_settle(gpuhal_point *point, gpuhal_status status)
{
    gpuhal_watcher *told = NULL;
    settle(point, status, true, &told);
    gpuhal_watchers_tell(told);
}

void gpuhal_point_settle_notified(gpuhal_point *point, gpuhal_status status)
{
    gpuhal_watcher *told = NULL;
    settle(point, status, false, &told);
    gpuhal_watchers_tell(told);
}

/* What was awaited may have failed without anybody's having asked. A queue asks once at a time, so this goes no deeper than there are
 * queues. */
static void ask_awaited(gpuhal_queue *queue, uint64_t number)
{
    if (atomic_exchange(&queue->asking, true)) {
        return;
    }
    bool more = true;
    for (size_t i = 0; more; i++) {
        gpuhal_queue_lock(queue);
        const gpuhal_flight *flight =
            i < queue->flight_count ? &queue->flights[(queue->flight_first + i) % queue->flight_space] : NULL;
        more = flight && flight->number <= number;
        gpuhal_point *awaited = more && flight->awaited ? gpuhal_point_retain(flight->awaited) : NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        if (awaited) {
            (void)gpuhal_point_poll(awaited);
            gpuhal_point_release(awaited);
        }
    }
    atomic_store(&queue->asking, false);
}

void gpuhal_point_failed(gpuhal_point *point, gpuhal_status status)
{
    gpuhal_error_detail detail;
    status = gpuhal_device_failed(point->queue->device, status, "the work before an event");
    gpuhal_error_save(&detail);
    ask_awaited(point->queue, point->number);
    (void)gpuhal_error_restore(&detail);
    gpuhal_point_settle(point, status);
}

gpuhal_status gpuhal_point_poll(gpuhal_point *point)
{
    gpuhal_point_state state = gpuhal_point_now(point);
    if (state == GPUHAL_POINT_DONE) {
        return gpuhal_point_result(point);
    }
    if (!point->queue) {
        return GPUHAL_NOT_READY;
    }
    gpuhal_device *device = point->queue->device;
    gpuhal_status status = gpuhal_queue_check(point->queue);
    status = !status && state == GPUHAL_POINT_HELD ? GPUHAL_NOT_READY : status;
    if (status) {
        return status;
    }
    status = gpuhal_plugin_event_query(device, point->event);
    if (status == GPUHAL_NOT_READY) {
        return status;
    }
    if (status) {
        gpuhal_point_failed(point, status);
    } else {
        gpuhal_point_settle(point, GPUHAL_OK);
    }
    return gpuhal_point_now(point) == GPUHAL_POINT_DONE ? gpuhal_point_result(point) : status;
}
