/* queue/wait.c: noticing that points are done, and waiting for that. Whoever waits sleeps on the queue's condition. */
#include "core/error.h"
#include "memory/buffer.h"
#include "queue/async.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>

/* How often a point is asked for whose queue cannot have a thread. */
#define ALONE_NS UINT64_C(1000000)

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
    bool alone = queue->worker == GPUHAL_QUEUE_UNATTENDED && !point->armed;
    uint64_t soon = alone ? gpuhal_deadline(ALONE_NS) : UINT64_MAX;
    gpuhal_status status = gpuhal_queue_sleep(queue, GPUHAL_WAITS_TIMEPOINT, deadline_ns < soon ? deadline_ns : soon);
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
    gpuhal_point_settle_notified(point, status);
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

/* Takes a watcher back out. False when it is gone: its point has ended. */
static bool forget(gpuhal_point *point, const gpuhal_watcher *watcher)
{
    gpuhal_point_lock(point);
    gpuhal_watcher **link = &point->watchers;
    while (*link && *link != watcher) {
        link = &(*link)->next;
    }
    bool found = *link != NULL;
    if (found) {
        *link = watcher->next;
    }
    gpuhal_point_unlock(point);
    return found;
}

gpuhal_status gpuhal_point_watch(gpuhal_point *point, gpuhal_watcher *watcher)
{
    watcher->next = NULL;
    gpuhal_point_lock(point);
    bool ended = gpuhal_point_now(point) == GPUHAL_POINT_DONE;
    if (ended) {
        watcher->status = point->cause ? point->cause->detail.error.status : GPUHAL_OK;
    } else {
        gpuhal_watcher **link = &point->watchers;
        while (*link) {
            link = &(*link)->next;
        }
        *link = watcher;
    }
    gpuhal_point_unlock(point);
    if (ended) {
        gpuhal_watchers_tell(watcher);
        return GPUHAL_OK;
    }
    const int error = point->queue ? gpuhal_queue_want(point) : 0;
    if (!error || !forget(point, watcher)) {
        return GPUHAL_OK;
    }
    gpuhal_watcher_free(watcher);
    return gpuhal_error_no_thread(error);
}

void gpuhal_point_block(gpuhal_point *point)
{
    gpuhal_device *device = point->queue->device;
    gpuhal_status status = GPUHAL_NOT_READY;
    uint64_t pause_ns = 0;
    while (status == GPUHAL_NOT_READY && gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED) {
        if (device->ops.event_block) {
            status = gpuhal_plugin_event_block(device, point->event, GPUHAL_BLOCK_NS);
        } else if ((status = gpuhal_plugin_event_query(device, point->event)) == GPUHAL_NOT_READY) {
            pause_ns = gpuhal_poll_longer(pause_ns);
            gpuhal_os_sleep(pause_ns);
        }
    }
    if (status && status != GPUHAL_NOT_READY) {
        gpuhal_point_failed(point, status);
    } else if (!status) {
        gpuhal_point_settle(point, GPUHAL_OK);
    }
}
