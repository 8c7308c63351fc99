/* queue/event.c: application events. An event is a handle; its newest recording is a timepoint of some queue. */
#include "base/error.h"
#include "queue/completion_service.h"
#include "queue/queue.h"

#include <stdlib.h>

struct gpuhal_event {
    gpuhal *gpu; /* with a reference */
    uint32_t flags;
    gpuhal_mutex mutex;          /* protects the members below */
    gpuhal_timepoint *timepoint; /* NULL if never recorded, which counts as done; never NULL for a host event */
    gpuhal_waitable *waitable;   /* NULL if no descriptor was requested */
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
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    if (flags > GPUHAL_EVENT_HOST) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_event_create: flags is 0x%x, and can be 0, GPUHAL_EVENT_TIMED or "
                                "GPUHAL_EVENT_HOST",
                                (unsigned)flags);
    }
    gpuhal_event *event = calloc(1, sizeof *event);
    gpuhal_timepoint *timepoint = flags & GPUHAL_EVENT_HOST ? gpuhal_host_timepoint_create() : NULL;
    if (!event || ((flags & GPUHAL_EVENT_HOST) && !timepoint)) {
        free(event);
        gpuhal_timepoint_release(timepoint);
        return gpuhal_error_host_memory();
    }
    event->timepoint = timepoint;
    event->gpu = gpu;
    event->flags = flags;
    gpuhal_mutex_init(&event->mutex);
    atomic_fetch_add(&gpu->references, 1);
    *out_event = event;
    return GPUHAL_OK;
}

void gpuhal_event_destroy(gpuhal_event *event)
{
    if (event && !gpuhal_is_inherited(event->gpu)) {
        gpuhal *gpu = event->gpu;
        if ((event->flags & GPUHAL_EVENT_HOST) && gpuhal_timepoint_now(event->timepoint) != GPUHAL_TIMEPOINT_DONE) {
            (void)gpuhal_event_signal(event, GPUHAL_ERROR_CANCELLED);
        }
        gpuhal_timepoint_release(event->timepoint);
        gpuhal_waitable_release(event->waitable);
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
    gpuhal_status usable = gpuhal_check(event->gpu);
    if (usable) {
        return usable;
    }
    if (status && !gpuhal_error_is_cause(status)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_event_signal: \"%s\" is neither OK nor an error that work can fail with",
                                gpuhal_status_name(status));
    }
    gpuhal_failure *failure = NULL;
    if (status) {
        gpuhal_error_set(status, "a host event was %ssignalled with \"%s\"",
                         status == GPUHAL_ERROR_CANCELLED ? "destroyed before it was signalled, or " : "",
                         gpuhal_status_name(status));
        failure = gpuhal_failure_create();
    }
    bool first = gpuhal_host_timepoint_signal(event->timepoint, failure);
    gpuhal_failure_release(failure);
    return first
               ? GPUHAL_OK
               : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_signal: the event was signalled before");
}

/* Sets *out_point to the newest recording, with a reference, or to NULL if the event was never recorded. */
static gpuhal_status recording(gpuhal_event *event, const char *call, gpuhal_timepoint **out_point)
{
    gpuhal_status status = event ? gpuhal_check(event->gpu) : null_error(call);
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&event->mutex);
    *out_point = event->timepoint ? gpuhal_timepoint_retain(event->timepoint) : NULL;
    gpuhal_mutex_unlock(&event->mutex);
    return GPUHAL_OK;
}

/* Makes a completion for the event's descriptor. The caller must later arm the descriptor and set the completion's
 * `turn`. Returns NULL if out of memory. */
static gpuhal_completion *waitable_completion(gpuhal_waitable *waitable)
{
    gpuhal_completion *completion = calloc(1, sizeof *completion);
    if (completion) {
        atomic_fetch_add(&waitable->references, 1);
        completion->waitable = waitable;
    }
    return completion;
}

/* Makes a thread, or the plugin, notice the end of the timepoint. Done before the descriptor is armed, because an armed
 * descriptor must signal. `timepoint` may be NULL. */
static gpuhal_status request_notify(gpuhal_timepoint *timepoint)
{
    const int error = timepoint && timepoint->queue ? gpuhal_timepoint_request_notify(timepoint) : 0;
    return error ? gpuhal_error_no_thread(error) : GPUHAL_OK;
}

/* Makes the timepoint the event's current recording. From then on the descriptor signals the end of this timepoint. The
 * caller must add *out_completion to the timepoint, without the mutex. On failure the old recording stays current, so
 * that the descriptor still signals the old recording's end. Returns NOT_READY if the event has a descriptor and the
 * notification has not been requested. */
static gpuhal_status take_timepoint(gpuhal_event *event, gpuhal_timepoint *timepoint, bool requested,
                                    gpuhal_timepoint **out_old, gpuhal_completion **out_completion)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&event->mutex);
    if (event->waitable && !requested) {
        status = GPUHAL_NOT_READY;
    } else if (event->waitable && !(*out_completion = waitable_completion(event->waitable))) {
        status = gpuhal_error_host_memory();
    } else {
        if (*out_completion) {
            (*out_completion)->turn = gpuhal_waitable_arm(event->waitable);
        }
        *out_old = event->timepoint;
        event->timepoint = gpuhal_timepoint_retain(timepoint);
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
        return gpuhal_two_objects("gpuhal_event_record", "event and queue", event->gpu, queue->device->gpu);
    }
    if (timed && !(queue->flags & GPUHAL_QUEUE_TIMED)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_event_record: the event is timed and the queue is not");
    }
    gpuhal_timepoint *timepoint = NULL, *old = NULL;
    gpuhal_completion *completion = NULL;
    gpuhal_status status = gpuhal_queue_record_event(queue, timed, &timepoint);
    if (status) {
        return status;
    }
    status = take_timepoint(event, timepoint, false, &old, &completion);
    if (status == GPUHAL_NOT_READY) {
        status = request_notify(timepoint);
        status = status ? status : take_timepoint(event, timepoint, true, &old, &completion);
    }
    if (completion) {
        status = gpuhal_timepoint_add_completion(timepoint, completion);
    }
    gpuhal_timepoint_release(old);
    gpuhal_timepoint_release(timepoint);
    return status;
}

gpuhal_status gpuhal_event_poll(gpuhal_event *event)
{
    gpuhal_timepoint *timepoint = NULL;
    gpuhal_status status = recording(event, "gpuhal_event_poll", &timepoint);
    if (!status && timepoint) {
        status = gpuhal_timepoint_poll(timepoint);
        status = status ? status : gpuhal_timepoint_retire(timepoint, 0);
        gpuhal_timepoint_release(timepoint);
    }
    return status;
}

gpuhal_status gpuhal_event_wait(gpuhal_event *event, uint64_t timeout_ns)
{
    gpuhal_timepoint *timepoint = NULL;
    gpuhal_status status = recording(event, "gpuhal_event_wait", &timepoint);
    if (!status && timepoint) {
        status = gpuhal_timepoint_wait(timepoint, gpuhal_deadline(timeout_ns));
        gpuhal_timepoint_release(timepoint);
    }
    return status;
}

gpuhal_status gpuhal_queue_wait(gpuhal_queue *queue, gpuhal_event *event)
{
    if (!queue) {
        return null_error("gpuhal_queue_wait");
    }
    gpuhal_timepoint *timepoint = NULL;
    gpuhal_status status = recording(event, "gpuhal_queue_wait", &timepoint);
    if (!status && queue->device->gpu != event->gpu) {
        status = gpuhal_two_objects("gpuhal_queue_wait", "event and queue", event->gpu, queue->device->gpu);
    }
    status = status ? status : gpuhal_queue_wait_for_timepoint(queue, timepoint);
    if (!status && timepoint) {
        gpuhal_queue_note_awaited(queue, timepoint);
        queue->observer->waits(queue, timepoint);
    }
    gpuhal_timepoint_release(timepoint);
    return status;
}

/* An event that was never recorded counts as done without a failure. */
static gpuhal_status watch(gpuhal_timepoint *timepoint, gpuhal_completion *completion)
{
    if (timepoint) {
        return gpuhal_timepoint_add_completion(timepoint, completion);
    }
    completion->next = NULL;
    completion->status = GPUHAL_OK;
    gpuhal_completions_notify(completion);
    return GPUHAL_OK;
}

/* The caller holds the event's mutex. After unlocking it, the caller must add *out_completion to the event's
 * timepoint. */
static gpuhal_status make_waitable(gpuhal_event *event, gpuhal_completion **out_completion)
{
    gpuhal_waitable *waitable = NULL;
    gpuhal_status status = gpuhal_waitable_create(&waitable);
    if (status) {
        return status;
    }
    if (!(*out_completion = waitable_completion(waitable))) {
        gpuhal_waitable_release(waitable);
        return gpuhal_error_host_memory();
    }
    (*out_completion)->turn = gpuhal_waitable_arm(waitable);
    event->waitable = waitable;
    return GPUHAL_OK;
}

void gpuhal_os_handle_close(gpuhal_os_handle handle)
{
    if (handle != -1) {
        gpuhal_os_descriptor_close(handle);
    }
}

gpuhal_status gpuhal_event_descriptor(gpuhal_event *event, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    if (!event || !out_descriptor) {
        return null_error("gpuhal_event_descriptor");
    }
    gpuhal_status status = gpuhal_check(event->gpu);
    if (status) {
        return status;
    }
    gpuhal_completion *completion = NULL;
    gpuhal_timepoint *timepoint = NULL;
    intptr_t copy = -1;
    for (bool again = true; again && !status;) {
        gpuhal_timepoint_release(timepoint);
        timepoint = NULL;
        status = recording(event, "gpuhal_event_descriptor", &timepoint);
        status = status ? status : request_notify(timepoint);
        gpuhal_mutex_lock(&event->mutex);
        again = !event->waitable && event->timepoint != timepoint; /* recorded again in the meantime */
        if (!status && !again) {
            status = event->waitable ? GPUHAL_OK : make_waitable(event, &completion);
            copy = status ? -1 : gpuhal_os_descriptor_copy(event->waitable->notifier);
        }
        gpuhal_mutex_unlock(&event->mutex);
    }
    if (completion) {
        status = watch(timepoint, completion);
    }
    gpuhal_timepoint_release(timepoint);
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

static gpuhal_status add_watcher(gpuhal_event *event, const char *call, const gpuhal_completion *like)
{
    gpuhal_timepoint *timepoint = NULL;
    gpuhal_status status = recording(event, call, &timepoint);
    if (status) {
        return status;
    }
    gpuhal_completion *completion = malloc(sizeof *completion);
    const int error = gpuhal_service_serve(event->gpu);
    if (completion && (like->listed || !error)) {
        *completion = *like;
        completion->gpu = event->gpu;
        /* A pending callback keeps the gpuhal object alive. */
        if (!like->listed) {
            atomic_fetch_add(&event->gpu->references, 1);
        }
        status = watch(timepoint, completion);
    } else {
        status = completion ? gpuhal_error_no_thread(error) : gpuhal_error_host_memory();
        free(completion);
    }
    gpuhal_timepoint_release(timepoint);
    return status;
}

gpuhal_status gpuhal_event_on_completion(gpuhal_event *event, gpuhal_completion_fn *done, void *user)
{
    return done ? add_watcher(event, "gpuhal_event_on_completion", &(gpuhal_completion){.done = done, .user = user})
                : null_error("gpuhal_event_on_completion");
}

gpuhal_status gpuhal_event_watch(gpuhal_event *event, void *user)
{
    return add_watcher(event, "gpuhal_event_watch", &(gpuhal_completion){.listed = true, .user = user});
}

gpuhal_status gpuhal_event_elapsed(gpuhal_event *from, gpuhal_event *to, uint64_t *out_ns)
{
    if (!out_ns) {
        return null_error("gpuhal_event_elapsed");
    }
    *out_ns = 0;
    gpuhal_timepoint *first = NULL, *second = NULL;
    gpuhal_status status = recording(from, "gpuhal_event_elapsed", &first);
    status = status ? status : recording(to, "gpuhal_event_elapsed", &second);
    if (!status) {
        const char *wrong = !(from->flags & to->flags & GPUHAL_EVENT_TIMED)
                                ? "an event was created without GPUHAL_EVENT_TIMED"
                            : !first || !second                             ? "an event was never recorded"
                            : first->queue->device != second->queue->device ? "the events were recorded on two devices"
                                                                            : NULL;
        status = wrong ? gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_elapsed: %s", wrong) : GPUHAL_OK;
    }
    status = status ? status : gpuhal_timepoint_poll(first);
    status = status ? status : gpuhal_timepoint_poll(second);
    status = status ? status : gpuhal_timepoint_elapsed(first, second, out_ns);
    gpuhal_timepoint_release(first);
    gpuhal_timepoint_release(second);
    return status;
}
