/* transfer/point.c: see point.h. */
#include "transfer/point.h"

#include "transfer/async.h"
#include "transfer/queue.h"

#include <stdlib.h>

/* Stands for every cause that there was no memory to keep; counted like the others and never freed. */
static gpuhal_cause no_memory = {.references = 1, .detail.error.status = GPUHAL_ERROR_HOST_MEMORY};

gpuhal_cause *gpuhal_cause_create(void)
{
    gpuhal_cause *cause = malloc(sizeof *cause);
    if (!cause) {
        return &no_memory;
    }
    atomic_init(&cause->references, 1);
    gpuhal_error_save(&cause->detail);
    return cause;
}

gpuhal_cause *gpuhal_cause_retain(gpuhal_cause *cause)
{
    if (cause && cause != &no_memory) {
        atomic_fetch_add_explicit(&cause->references, 1, memory_order_relaxed);
    }
    return cause;
}

void gpuhal_cause_release(gpuhal_cause *cause)
{
    if (cause && cause != &no_memory && atomic_fetch_sub_explicit(&cause->references, 1, memory_order_acq_rel) == 1) {
        free(cause);
    }
}

gpuhal_status gpuhal_cause_status(const gpuhal_cause *cause)
{
    return cause == &no_memory ? gpuhal_error_host_memory() : gpuhal_error_restore(&cause->detail);
}

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

void gpuhal_point_release(gpuhal_point *point)
{
    if (!point || atomic_fetch_sub_explicit(&point->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (!point->queue) {
        gpuhal_host_point_free(point);
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
        gpuhal_host_point_lock(point);
    }
}

void gpuhal_point_unlock(gpuhal_point *point)
{
    if (point->queue) {
        gpuhal_mutex_unlock(&point->queue->mutex);
    } else {
        gpuhal_host_point_unlock(point);
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
        tell(watcher);
        return GPUHAL_OK;
    }
    const int error = point->queue ? gpuhal_queue_want(point) : 0;
    if (!error || !forget(point, watcher)) {
        return GPUHAL_OK;
    }
    gpuhal_watcher_free(watcher);
    return gpuhal_error_no_thread(error);
}
