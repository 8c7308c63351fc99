/* queue/event.c: events of the application: a handle whose latest recording is a point of some queue. */
#include "core/error.h"
#include "queue/async.h"
#include "queue/queue.h"

#include <stdlib.h>

struct gpuhal_event {
    gpuhal *gpu; /* with a reference */
    uint32_t flags;
    gpuhal_mutex mutex;   /* protects what follows */
    gpuhal_point *point;  /* NULL: never recorded, which counts as done; of a host event from the beginning */
    gpuhal_beacon *beacon; /* NULL: no descriptor was asked for */
};

static gpuhal_status null_error(const char *call)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", call);
}

gpuhal_status gpuhal_event_create(gpuhal *gpu, uint32_t flags, gpuhal_event **out_event)
{
    if (out_event) {
        *out_event = NULL;
    }
    if (!gpu || !out_event) {
        return null_error("gpuhal_event_create");
    }
    if ((flags & ~(uint32_t)(GPUHAL_EVENT_TIMED | GPUHAL_EVENT_HOST)) || flags == (GPUHAL_EVENT_TIMED | GPUHAL_EVENT_HOST)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_create: unknown flags 0x%x, or TIMED with HOST",
                                (unsigned)flags);
    }
    gpuhal_event *event = calloc(1, sizeof *event);
    gpuhal_point *point = flags & GPUHAL_EVENT_HOST ? gpuhal_host_point_create() : NULL;
    if (!event || ((flags & GPUHAL_EVENT_HOST) && !point)) {
        free(event);
        gpuhal_point_release(point);
        return gpuhal_error_host_memory();
    }
    event->point = point;
    event->gpu = gpu;
    event->flags = flags;
    gpuhal_mutex_init(&event->mutex);
    atomic_fetch_add(&gpu->references, 1);
    *out_event = event;
    return GPUHAL_OK;
}

void gpuhal_event_destroy(gpuhal_event *event)
{
    if (event) {
        gpuhal *gpu = event->gpu;
        if ((event->flags & GPUHAL_EVENT_HOST) && gpuhal_point_now(event->point) != GPUHAL_POINT_DONE) {
            (void)gpuhal_event_signal(event, GPUHAL_ERROR_CANCELLED);
        }
        gpuhal_point_release(event->point);
        gpuhal_beacon_release(event->beacon);
        gpuhal_mutex_finish(&event->mutex);
        free(event);
        gpuhal_unreference(gpu);
    }
}

gpuhal_status gpuhal_event_signal(gpuhal_event *event, gpuhal_status status)
{
    if (!event || !(event->flags & GPUHAL_EVENT_HOST)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_signal: %s",
                                event ? "the event was not created with GPUHAL_EVENT_HOST" : "event is NULL");
    }
    if (status && !gpuhal_error_is_cause(status)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_event_signal: \"%s\" is neither OK nor an error that work can fail with", gpuhal_status_name(status));
    }
    gpuhal_cause *cause = NULL;
    if (status) {
        gpuhal_error_set(status, "an event of the host was signalled with \"%s\"%s", gpuhal_status_name(status),
                         status == GPUHAL_ERROR_CANCELLED ? ", or destroyed before" : "");
        cause = gpuhal_cause_create();
    }
    bool first = gpuhal_host_point_signal(event->point, cause);
    gpuhal_cause_release(cause);
    return first ? GPUHAL_OK
                 : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_signal: the event was signalled before");
}

/* The recording, with a reference; NULL: there is none, and the event counts as done. */
static gpuhal_status recording(gpuhal_event *event, const char *call, gpuhal_point **out_point)
{
    if (!event) {
        return null_error(call);
    }
    gpuhal_mutex_lock(&event->mutex);
    *out_point = event->point ? gpuhal_point_retain(event->point) : NULL;
    gpuhal_mutex_unlock(&event->mutex);
    return GPUHAL_OK;
}

/* For the beacon of a recording that is still to be aimed at. */
static gpuhal_watcher *beacon_watcher(gpuhal_beacon *beacon)
{
    gpuhal_watcher *watcher = calloc(1, sizeof *watcher);
    if (watcher) {
        atomic_fetch_add(&beacon->references, 1);
        watcher->beacon = beacon;
    }
    return watcher;
}

/* The point is the event's recording from now on, which its beacon shows. *out_watcher: to be set on the point, without the mutex. On
 * failure the old recording stays, so that whoever waits for the descriptor misses no end. */
static gpuhal_status take_point(gpuhal_event *event, gpuhal_point *point, gpuhal_point **out_old, gpuhal_watcher **out_watcher)
{
    gpuhal_status status = GPUHAL_OK;
    *out_watcher = NULL;
    gpuhal_mutex_lock(&event->mutex);
    if (event->beacon && !(*out_watcher = beacon_watcher(event->beacon))) {
        status = gpuhal_error_host_memory();
        *out_old = point;
    } else {
        if (*out_watcher) {
            (*out_watcher)->turn = gpuhal_beacon_aim(event->beacon);
        }
        *out_old = event->point;
        event->point = gpuhal_point_retain(point);
    }
    gpuhal_mutex_unlock(&event->mutex);
    return status;
}

gpuhal_status gpuhal_event_record(gpuhal_event *event, gpuhal_queue *queue)
{
    if (!event || !queue) {
        return null_error("gpuhal_event_record");
    }
    bool timed = event->flags & GPUHAL_EVENT_TIMED;
    if (event->flags & GPUHAL_EVENT_HOST) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_record: the host signals this event");
    }
    if (queue->device->gpu != event->gpu) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_record: event and queue belong to two gpuhal objects");
    }
    if (timed && !(queue->flags & GPUHAL_QUEUE_TIMED)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_record: the event is timed and the queue is not");
    }
    gpuhal_point *point = NULL, *old = NULL;
    gpuhal_watcher *watcher = NULL;
    gpuhal_status status = gpuhal_queue_mark(queue, timed, &point);
    if (status) {
        return status;
    }
    status = take_point(event, point, &old, &watcher);
    if (watcher) {
        status = gpuhal_point_watch(point, watcher);
    }
    gpuhal_point_release(old);
    if (old != point) {
        gpuhal_point_release(point);
    }
    return status;
}

gpuhal_status gpuhal_event_poll(gpuhal_event *event)
{
    gpuhal_point *point = NULL;
    gpuhal_status status = recording(event, "gpuhal_event_poll", &point);
    if (!status && point) {
        status = gpuhal_point_poll(point);
        status = status ? status : gpuhal_point_retire(point, 0);
        gpuhal_point_release(point);
    }
    return status;
}

gpuhal_status gpuhal_event_wait(gpuhal_event *event, uint64_t timeout_ns)
{
    gpuhal_point *point = NULL;
    gpuhal_status status = recording(event, "gpuhal_event_wait", &point);
    if (!status && point) {
        status = gpuhal_point_wait(point, gpuhal_deadline(timeout_ns));
        gpuhal_point_release(point);
    }
    return status;
}

gpuhal_status gpuhal_queue_wait(gpuhal_queue *queue, gpuhal_event *event)
{
    if (!queue) {
        return null_error("gpuhal_queue_wait");
    }
    gpuhal_point *point = NULL;
    gpuhal_status status = recording(event, "gpuhal_queue_wait", &point);
    if (!status && queue->device->gpu != event->gpu) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_queue_wait: event and queue belong to two gpuhal objects");
    }
    status = status ? status : gpuhal_queue_await(queue, point);
    gpuhal_point_release(point);
    return status;
}

/* What was never recorded has ended well. */
static gpuhal_status watch(gpuhal_point *point, gpuhal_watcher *watcher)
{
    if (point) {
        return gpuhal_point_watch(point, watcher);
    }
    watcher->next = NULL;
    watcher->status = GPUHAL_OK;
    gpuhal_watchers_tell(watcher);
    return GPUHAL_OK;
}

/* With the event's mutex held. *out_watcher: to be set on the event's point, without the mutex. */
static gpuhal_status make_beacon(gpuhal_event *event, gpuhal_watcher **out_watcher)
{
    gpuhal_beacon *beacon = NULL;
    gpuhal_status status = gpuhal_beacon_create(&beacon);
    if (status) {
        return status;
    }
    if (!(*out_watcher = beacon_watcher(beacon))) {
        gpuhal_beacon_release(beacon);
        return gpuhal_error_host_memory();
    }
    (*out_watcher)->turn = gpuhal_beacon_aim(beacon);
    event->beacon = beacon;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_event_descriptor(gpuhal_event *event, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    if (!event || !out_descriptor) {
        return null_error("gpuhal_event_descriptor");
    }
    gpuhal_watcher *watcher = NULL;
    gpuhal_mutex_lock(&event->mutex);
    gpuhal_status status = event->beacon ? GPUHAL_OK : make_beacon(event, &watcher);
    gpuhal_point *point = watcher && event->point ? gpuhal_point_retain(event->point) : NULL;
    intptr_t copy = status ? -1 : gpuhal_os_descriptor_copy(event->beacon->notifier);
    gpuhal_mutex_unlock(&event->mutex);
    if (watcher) {
        status = watch(point, watcher);
        gpuhal_point_release(point);
    }
    if (!status && copy < 0) {
        status = gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
    }
    if (status && copy >= 0) {
        gpuhal_os_descriptor_close(copy);
        copy = -1;
    }
    *out_descriptor = copy;
    return status;
}

static gpuhal_status add_watcher(gpuhal_event *event, const char *call, const gpuhal_watcher *like)
{
    gpuhal_point *point = NULL;
    gpuhal_status status = recording(event, call, &point);
    if (status) {
        return status;
    }
    gpuhal_watcher *watcher = malloc(sizeof *watcher);
    const int error = gpuhal_async_serve(event->gpu);
    if (watcher && (like->listed || !error)) {
        *watcher = *like;
        watcher->gpu = event->gpu;
        /* A callback that is still to come keeps the object. */
        if (!like->listed) {
            atomic_fetch_add(&event->gpu->references, 1);
        }
        status = watch(point, watcher);
    } else {
        status = watcher ? gpuhal_error_no_thread(error) : gpuhal_error_host_memory();
        free(watcher);
    }
    gpuhal_point_release(point);
    return status;
}

gpuhal_status gpuhal_event_on_done(gpuhal_event *event, gpuhal_done_fn *done, void *user)
{
    return done ? add_watcher(event, "gpuhal_event_on_done", &(gpuhal_watcher){.done = done, .user = user})
                : null_error("gpuhal_event_on_done");
}

gpuhal_status gpuhal_event_watch(gpuhal_event *event, void *user)
{
    return add_watcher(event, "gpuhal_event_watch", &(gpuhal_watcher){.listed = true, .user = user});
}

static gpuhal_status order_error(void)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_elapsed: the second event was recorded before the first");
}

/* Between two points that are done. Clocks of devices turn over, so within one queue its own count of the work tells the order. */
static gpuhal_status time_between(const gpuhal_point *from, const gpuhal_point *to, uint64_t *out_ns)
{
    gpuhal_device *device = from->queue->device;
    if ((from->event == NULL) != (to->event == NULL)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_elapsed: the two have no clock in common");
    }
    if (from->queue == to->queue && from->number > to->number) {
        return order_error();
    }
    if (!from->event) {
        *out_ns = to->done_ns - from->done_ns;
        return to->done_ns >= from->done_ns ? GPUHAL_OK : order_error();
    }
    gpuhal_status status = gpuhal_device_check(device);
    if (status) {
        return status;
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    status = device->ops.elapsed ? device->ops.elapsed(from->event, to->event, out_ns) : GPUHAL_ERROR_NOT_SUPPORTED;
    status = gpuhal_device_result(device, call, status);
    return status && status != GPUHAL_NOT_READY ? gpuhal_device_failed(device, status, "asking for the time between two events") : status;
}

gpuhal_status gpuhal_event_elapsed(gpuhal_event *from, gpuhal_event *to, uint64_t *out_ns)
{
    if (!out_ns) {
        return null_error("gpuhal_event_elapsed");
    }
    *out_ns = 0;
    gpuhal_point *first = NULL, *second = NULL;
    gpuhal_status status = recording(from, "gpuhal_event_elapsed", &first);
    status = status ? status : recording(to, "gpuhal_event_elapsed", &second);
    if (!status && (!first || !second || !first->timed || !second->timed || first->queue->device != second->queue->device)) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_elapsed: the events are not timed, never recorded, or of two devices");
    }
    status = status ? status : gpuhal_point_poll(first);
    status = status ? status : gpuhal_point_poll(second);
    status = status ? status : time_between(first, second, out_ns);
    gpuhal_point_release(first);
    gpuhal_point_release(second);
    return status;
}
