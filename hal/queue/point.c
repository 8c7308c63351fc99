/* queue/point.c: see point.h. */
#include "queue/point.h"

#include "queue/async.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>

gpuhal_status gpuhal_beacon_create(gpuhal_beacon **out_beacon)
{
    gpuhal_beacon *beacon = calloc(1, sizeof *beacon);
    if (!beacon) {
        return gpuhal_error_host_memory();
    }
    int error = gpuhal_os_notifier_create(&beacon->notifier);
    if (error) {
        free(beacon);
        return gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor (errno %d)", error);
    }
    atomic_init(&beacon->references, 1);
    gpuhal_mutex_init(&beacon->mutex);
    *out_beacon = beacon;
    return GPUHAL_OK;
}

void gpuhal_beacon_release(gpuhal_beacon *beacon)
{
    if (beacon && atomic_fetch_sub_explicit(&beacon->references, 1, memory_order_acq_rel) == 1) {
        gpuhal_os_descriptor_close(beacon->notifier);
        gpuhal_mutex_finish(&beacon->mutex);
        free(beacon);
    }
}

uint64_t gpuhal_beacon_aim(gpuhal_beacon *beacon)
{
    gpuhal_mutex_lock(&beacon->mutex);
    uint64_t turn = ++beacon->turn;
    gpuhal_os_notifier_clear(beacon->notifier);
    gpuhal_mutex_unlock(&beacon->mutex);
    return turn;
}

static void light(gpuhal_beacon *beacon, uint64_t turn)
{
    gpuhal_mutex_lock(&beacon->mutex);
    if (beacon->turn == turn) {
        gpuhal_os_notifier_set(beacon->notifier);
    }
    gpuhal_mutex_unlock(&beacon->mutex);
}

/* ---- points of queues, with events of the plugin */

gpuhal_plugin_event *gpuhal_queue_take_event(gpuhal_queue *queue, bool timed)
{
    gpuhal_queue_lock(queue);
    uint32_t count = queue->spare_count[timed];
    gpuhal_plugin_event *event = count > 0 ? queue->spare[timed][--queue->spare_count[timed]] : NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    return event;
}

void gpuhal_queue_put_event(gpuhal_queue *queue, gpuhal_plugin_event *event, bool timed)
{
    gpuhal_queue_lock(queue);
    bool kept = !gpuhal_queue_is_closed(queue) && !gpuhal_queue_has_failed(queue) && queue->spare_count[timed] < GPUHAL_SPARE_EVENTS;
    if (kept) {
        queue->spare[timed][queue->spare_count[timed]++] = event;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    if (!kept && gpuhal_device_is_reachable(queue->device)) {
        gpuhal_plugin_event_destroy(queue->device, event);
    }
}

gpuhal_point *gpuhal_point_create(gpuhal_queue *queue, bool timed)
{
    gpuhal_point *point = calloc(1, sizeof *point);
    if (point) {
        atomic_init(&point->references, 1);
        atomic_init(&point->state, GPUHAL_POINT_HELD);
        point->queue = gpuhal_queue_retain(queue);
        point->timed = timed;
    }
    return point;
}

gpuhal_point *gpuhal_point_retain(gpuhal_point *point)
{
    atomic_fetch_add_explicit(&point->references, 1, memory_order_relaxed);
    return point;
}

/* ---- points that the host ends, of events with GPUHAL_EVENT_HOST. They belong to no queue and reach no driver: drivers with one queue, or
 * that work inside the call, would wait for themselves. */

typedef struct host_point {
    gpuhal_point point;         /* first: one is the other */
    gpuhal_mutex mutex;         /* protects the point */
    gpuhal_condition condition; /* it is done */
} host_point;

static host_point *of(gpuhal_point *point)
{
    return (host_point *)point;
}

gpuhal_point *gpuhal_host_point_create(void)
{
    host_point *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    atomic_init(&made->point.references, 1);
    atomic_init(&made->point.state, GPUHAL_POINT_HELD);
    atomic_init(&made->point.retired, true);
    gpuhal_mutex_init(&made->mutex);
    gpuhal_condition_init(&made->condition);
    return &made->point;
}

static void free_host_point(gpuhal_point *point)
{
    gpuhal_cause_release(point->cause);
    gpuhal_condition_finish(&of(point)->condition);
    gpuhal_mutex_finish(&of(point)->mutex);
    free(of(point));
}

/* ---- both */

void gpuhal_point_release(gpuhal_point *point)
{
    if (!point || atomic_fetch_sub_explicit(&point->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (!point->queue) {
        free_host_point(point);
        return;
    }
    if (point->event) {
        gpuhal_queue_put_event(point->queue, point->event, point->timed);
    }
    gpuhal_cause_release(point->cause);
    gpuhal_queue_release(point->queue);
    free(point);
}

void gpuhal_point_lock(gpuhal_point *point)
{
    if (point->queue) {
        gpuhal_queue_lock(point->queue);
    } else {
        gpuhal_mutex_lock(&of(point)->mutex);
    }
}

void gpuhal_point_unlock(gpuhal_point *point)
{
    if (point->queue) {
        gpuhal_mutex_unlock(&point->queue->mutex);
    } else {
        gpuhal_mutex_unlock(&of(point)->mutex);
    }
}

gpuhal_status gpuhal_point_result(const gpuhal_point *point)
{
    return point->cause ? gpuhal_cause_status(point->cause) : GPUHAL_OK;
}

void gpuhal_point_finish(gpuhal_point *point, gpuhal_cause *cause, gpuhal_watcher **list)
{
    if (gpuhal_point_now(point) == GPUHAL_POINT_DONE) {
        return;
    }
    point->cause = gpuhal_cause_retain(cause);
    point->done_ns = point->timed ? gpuhal_os_monotonic_ns() : 0;
    gpuhal_status status = cause ? cause->detail.error.status : GPUHAL_OK;
    atomic_store_explicit(&point->state, GPUHAL_POINT_DONE, memory_order_release);
    while (point->watchers) {
        gpuhal_watcher *watcher = point->watchers;
        point->watchers = watcher->next;
        watcher->status = status;
        watcher->next = *list;
        *list = watcher;
    }
}

void gpuhal_watcher_free(gpuhal_watcher *watcher)
{
    gpuhal *gpu = watcher->done ? watcher->gpu : NULL;
    if (watcher->queue) {
        gpuhal_queue_release(watcher->queue);
    }
    gpuhal_beacon_release(watcher->beacon);
    free(watcher);
    if (gpu) {
        gpuhal_unreference(gpu);
    }
}

static void tell(gpuhal_watcher *watcher)
{
    if (watcher->done || watcher->listed) {
        gpuhal_async_ended(watcher);
        return;
    }
    if (watcher->queue) {
        gpuhal_queue_wake(watcher->queue);
    } else {
        light(watcher->beacon, watcher->turn);
    }
    gpuhal_watcher_free(watcher);
}

void gpuhal_watchers_tell(gpuhal_watcher *list)
{
    gpuhal_watcher *in_order = NULL;
    while (list) {
        gpuhal_watcher *watcher = list;
        list = watcher->next;
        watcher->next = in_order;
        in_order = watcher;
    }
    while (in_order) {
        gpuhal_watcher *watcher = in_order;
        in_order = watcher->next;
        tell(watcher);
    }
}

bool gpuhal_host_point_signal(gpuhal_point *point, gpuhal_cause *cause)
{
    gpuhal_watcher *told = NULL;
    gpuhal_point_lock(point);
    bool first = gpuhal_point_now(point) != GPUHAL_POINT_DONE;
    gpuhal_point_finish(point, cause, &told);
    gpuhal_condition_signal_all(&of(point)->condition);
    gpuhal_point_unlock(point);
    gpuhal_watchers_tell(told);
    return first;
}

gpuhal_status gpuhal_host_point_wait(gpuhal_point *point, uint64_t deadline_ns)
{
    gpuhal_point_lock(point);
    while (gpuhal_point_now(point) != GPUHAL_POINT_DONE && gpuhal_os_monotonic_ns() < deadline_ns) {
        if (deadline_ns == UINT64_MAX) {
            gpuhal_condition_wait(&of(point)->condition, &of(point)->mutex);
        } else {
            gpuhal_condition_wait_until(&of(point)->condition, &of(point)->mutex, deadline_ns);
        }
    }
    gpuhal_point_unlock(point);
    return gpuhal_point_now(point) == GPUHAL_POINT_DONE
               ? gpuhal_point_result(point)
               : gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "the host has not signalled the event");
}
