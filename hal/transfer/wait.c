/* transfer/wait.c: noticing that points are done, and waiting for that. Whoever waits sleeps on the queue's condition. */
#include "core/error.h"
#include "memory/buffer.h"
#include "transfer/async.h"
#include "transfer/plugin_event.h"
#include "transfer/queue.h"

#include <stdlib.h>

/* How often a point is asked for whose queue cannot have a thread. */
#define ALONE_NS UINT64_C(1000000)

bool gpuhal_device_honors_timeouts(const gpuhal_device *device)
{
    return device->plugin->flags & GPUHAL_PLUGIN_HONORS_TIMEOUTS;
}

void gpuhal_queue_wake(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
}

uint64_t gpuhal_deadline(uint64_t timeout_ns)
{
    uint64_t now = timeout_ns == UINT64_MAX ? 0 : gpuhal_os_monotonic_ns();
    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

gpuhal_status gpuhal_queue_sleep(gpuhal_queue *queue, uint64_t deadline_ns)
{
    uint64_t now = gpuhal_os_monotonic_ns();
    if (now >= deadline_ns) {
        return gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "%s: the time ran out", queue->device->id);
    }
    gpuhal_queue_doze(queue, deadline_ns);
    return GPUHAL_OK;
}

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
    if (queue->held && queue->running) {
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
    if (!queue->failed) {
        queue->failed = true;
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
        if (queue->dozing > (queue->at_rest ? 1u : 0u)) {
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

gpuhal_status gpuhal_point_retire(gpuhal_point *point, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_OK;
    if (point->cause) {
        return gpuhal_point_result(point);
    }
    if (!atomic_load_explicit(&point->retired, memory_order_acquire)) {
        status = gpuhal_queue_retire(point->queue, point->number, deadline_ns);
        atomic_store_explicit(&point->retired, status == GPUHAL_OK, memory_order_release);
    }
    return status;
}

/* With the mutex held, which is let go meanwhile. */
static gpuhal_status sleep_once(gpuhal_point *point, uint64_t deadline_ns)
{
    gpuhal_queue *queue = point->queue;
    bool alone = !queue->has_thread && !point->armed;
    uint64_t soon = alone ? gpuhal_deadline(ALONE_NS) : UINT64_MAX;
    gpuhal_status status = gpuhal_queue_sleep(queue, deadline_ns < soon ? deadline_ns : soon);
    if (status || !alone) {
        return status ? status : gpuhal_queue_check(queue);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    status = gpuhal_point_poll(point);
    gpuhal_queue_lock(queue);
    return status == GPUHAL_NOT_READY ? GPUHAL_OK : status;
}

/* In the plugin, from this thread: for one thread at a time. NOT_READY when somebody else does it or the plugin may not keep its time, and at
 * the deadline. The queue's thread goes on where this one stops. */
static gpuhal_status wait_in_plugin(gpuhal_point *point, uint64_t deadline_ns)
{
    gpuhal_queue *queue = point->queue;
    gpuhal_device *device = queue->device;
    if (!gpuhal_device_honors_timeouts(device) || !device->ops.event_block) {
        return GPUHAL_NOT_READY;
    }
    gpuhal_status status = gpuhal_point_poll(point);
    if (status != GPUHAL_NOT_READY) {
        return status;
    }
    gpuhal_queue_lock(queue);
    bool mine = gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED && !point->blocked_on && !point->wanted;
    point->blocked_on = point->blocked_on || mine;
    gpuhal_mutex_unlock(&queue->mutex);
    if (!mine) {
        return status;
    }
    int cancel = gpuhal_os_cancel_defer();
    for (uint64_t now = gpuhal_os_monotonic_ns(); status == GPUHAL_NOT_READY && now < deadline_ns; now = gpuhal_os_monotonic_ns()) {
        status = gpuhal_plugin_event_block(device, point->event, deadline_ns - now < GPUHAL_BLOCK_NS ? deadline_ns - now : GPUHAL_BLOCK_NS);
        if (status == GPUHAL_NOT_READY) {
            status = gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED ? GPUHAL_NOT_READY : GPUHAL_OK;
        } else if (status) {
            gpuhal_point_failed(point, status);
        } else {
            gpuhal_point_settle(point, GPUHAL_OK);
        }
    }
    gpuhal_os_cancel_restore(cancel);
    gpuhal_queue_lock(queue);
    point->blocked_on = false;
    if (gpuhal_point_now(point) != GPUHAL_POINT_DONE) {
        gpuhal_condition_signal_all(&queue->condition);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return gpuhal_point_now(point) == GPUHAL_POINT_DONE ? gpuhal_point_result(point) : GPUHAL_NOT_READY;
}

static gpuhal_status wait_for(gpuhal_point *point, uint64_t deadline_ns)
{
    gpuhal_queue *queue = point->queue;
    gpuhal_status status = gpuhal_point_now(point) == GPUHAL_POINT_DONE ? GPUHAL_OK : gpuhal_queue_check(queue);
    if (!status && deadline_ns != UINT64_MAX && gpuhal_os_monotonic_ns() >= deadline_ns) {
        status = gpuhal_point_poll(point);
        return status == GPUHAL_NOT_READY ? gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "%s: the work before an event is not done",
                                                             queue->device->id)
                                          : status;
    }
    if (!status && (status = wait_in_plugin(point, deadline_ns)) != GPUHAL_NOT_READY) {
        return status;
    }
    status = status == GPUHAL_NOT_READY ? GPUHAL_OK : status;
    if (!status) {
        (void)gpuhal_queue_want(point);
    }
    gpuhal_queue_lock(queue);
    while (!status && gpuhal_point_now(point) != GPUHAL_POINT_DONE) {
        status = sleep_once(point, deadline_ns);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return gpuhal_point_now(point) == GPUHAL_POINT_DONE ? gpuhal_point_result(point) : status;
}

gpuhal_status gpuhal_point_wait(gpuhal_point *point, uint64_t deadline_ns)
{
    if (!point->queue) {
        return gpuhal_host_point_wait(point, deadline_ns);
    }
    gpuhal_status status = gpuhal_point_now(point) == GPUHAL_POINT_DONE ? GPUHAL_OK : gpuhal_queue_own_call(point->queue);
    status = status ? status : wait_for(point, deadline_ns);
    return status ? status : gpuhal_point_retire(point, deadline_ns);
}

/* Called by the plugin, on any thread, also inside event_notify. No call of the plugin may be made here, so nothing is let go of: the
 * point stays with its queue until `noticed` says so. */
static void notified(void *user, gpuhal_status status)
{
    gpuhal_point *point = user;
    gpuhal_queue *queue = gpuhal_queue_retain(point->queue);
    if (status) {
        status = gpuhal_device_failed(queue->device, status, "the work before an event");
    }
    gpuhal_watcher *told = NULL;
    settle(point, status, false, &told);
    gpuhal_watchers_tell(told);
    gpuhal_queue_lock(queue);
    point->noticed = true;
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_queue_release(queue);
}

int gpuhal_queue_want(gpuhal_point *point)
{
    gpuhal_queue *queue = point->queue;
    gpuhal_device *device = queue->device;
    int error = 0;
    /* What is done already needs no change of threads. */
    if (gpuhal_device_honors_timeouts(device) && gpuhal_point_poll(point) != GPUHAL_NOT_READY && gpuhal_point_now(point) == GPUHAL_POINT_DONE) {
        return 0;
    }
    gpuhal_queue_lock(queue);
    point->wanted = true;
    bool arm = gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED && !point->armed && device->ops.event_notify;
    if (arm) {
        point->armed = true;
    } else if (gpuhal_point_now(point) != GPUHAL_POINT_DONE && !point->armed) {
        error = gpuhal_queue_need_thread(queue);
        gpuhal_condition_signal_all(&queue->condition);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    if (!arm) {
        return error;
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    if (gpuhal_device_result(device, call, device->ops.event_notify(point->event, notified, point))) {
        gpuhal_queue_lock(queue);
        point->armed = false;
        error = gpuhal_queue_need_thread(queue);
        gpuhal_condition_signal_all(&queue->condition);
        gpuhal_mutex_unlock(&queue->mutex);
    }
    return error;
}
