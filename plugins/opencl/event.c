/* opencl/event.c: events. Each recording is a cl_event that replaces the previous recording. It is the cl_event of the
 * queue's last command or of a marker. A marker is needed if no command is pending, if the caller may have enqueued
 * later commands, or if the event is timed, since the last command may have ended long before the recording.
 *
 * A command queue is in-order, so its last command ends after all others and fails if an earlier one failed.
 *
 * clWaitForEvents has no timeout and busy-waits in several drivers. So event_block sleeps until a callback of the
 * cl_event wakes it. It also polls periodically, because drivers omit the callback for failed work (PoCL #1430; the
 * conformance test dates from 2024). The slot event_notify is not offered, because its notification must arrive on
 * failure as well. The callback may run late, after event, queue and device were destroyed, so it uses only the
 * condition. Some drivers do not allow it to release a cl_event (ROCm/rocm-systems #1345).
 */
#include "../common/clock.h"
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

#define LOOK_NS UINT64_C(50000000)

/* Signalled when a recording has ended. A signal may be late and belong to an earlier recording. */
typedef struct condition {
    atomic_int references; /* one for the event, and one for each registered callback */
    pthread_mutex_t mutex; /* protects signals */
    pthread_cond_t condition;
    uint64_t signals;
} condition;

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    bool timed;
    cl_event event; /* NULL if never recorded */
    cl_int error;   /* error of work that failed before the recording, or CL_SUCCESS */
    condition *ended;
    _Atomic bool armed; /* a thread has requested the callback for the end of this recording */
};

static condition *condition_create(void)
{
    condition *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    atomic_init(&made->references, 1);
    pthread_mutex_init(&made->mutex, NULL);
    gpuhal_plugin_condition_init(&made->condition);
    return made;
}

/* The last reference is the event's or, if the event was destroyed earlier, a callback's. */
static void condition_release(condition *b)
{
    if (atomic_fetch_sub(&b->references, 1) == 1) {
        pthread_cond_destroy(&b->condition);
        pthread_mutex_destroy(&b->mutex);
        free(b);
    }
}

/* The status argument is not reliable: PoCL passes the status that was requested at registration. */
static void CL_CALLBACK signal_end(cl_event event, cl_int status, void *user)
{
    (void)event;
    (void)status;
    condition *b = user;
    pthread_mutex_lock(&b->mutex);
    b->signals++;
    pthread_cond_broadcast(&b->condition);
    pthread_mutex_unlock(&b->mutex);
    condition_release(b);
}

/* Returns a count rather than a flag. A waiter compares the count with an earlier count, so nothing has to be reset. A
 * late signal of an earlier recording only causes one more query. */
static uint64_t condition_signals(condition *b)
{
    pthread_mutex_lock(&b->mutex);
    const uint64_t signals = b->signals;
    pthread_mutex_unlock(&b->mutex);
    return signals;
}

/* Waits until there have been more than @p seen signals, or until @p until_ns. Several threads may wait. Returns the
 * number of signals. */
static uint64_t condition_wait(condition *b, uint64_t seen, uint64_t until_ns)
{
    const struct timespec until = gpuhal_plugin_time(until_ns);
    pthread_mutex_lock(&b->mutex);
    int waited = 0;
    while (b->signals == seen && waited == 0) {
        waited = pthread_cond_timedwait(&b->condition, &b->mutex, &until);
    }
    const uint64_t signals = b->signals;
    pthread_mutex_unlock(&b->mutex);
    return signals;
}

gpuhal_status gpuhal_opencl_event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                         gpuhal_plugin_event **out_event)
{
    *out_event = NULL;
    gpuhal_plugin_event *event = calloc(1, sizeof *event);
    if (!event || !(event->ended = condition_create())) {
        free(event);
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    event->device = device;
    event->timed = (desc->flags & GPUHAL_TIMED) != 0;
    *out_event = event;
    return GPUHAL_OK;
}

void gpuhal_opencl_event_destroy(gpuhal_plugin_event *event)
{
    if (event->event) {
        gpuhal_opencl_api.clReleaseEvent(event->event);
    }
    condition_release(event->ended);
    free(event);
}

/* Enqueues a marker only if necessary, because waiting for a small copy takes 1.5 times as long with a marker on
 * PoCL. */
static gpuhal_status end_of(gpuhal_plugin_queue *queue, bool timed, cl_event *out_event)
{
    if (queue->pending_count == 0 || queue->foreign || timed) {
        cl_event marker = NULL;
        const cl_int code = gpuhal_opencl_api.clEnqueueMarkerWithWaitList(queue->commands, 0, NULL, &marker);
        if (code != CL_SUCCESS) {
            return gpuhal_opencl_result(queue->device, "clEnqueueMarkerWithWaitList", code);
        }
        gpuhal_opencl_queue_keep(queue, marker);
    }
    *out_event = queue->pending[queue->pending_count - 1];
    return gpuhal_opencl_result(queue->device, "clRetainEvent", gpuhal_opencl_api.clRetainEvent(*out_event));
}

/* Flushes before anything changes, so that the previous recording is kept on failure. The error of failed work moves
 * from the queue to the event, and only the event reports it afterwards. `armed` is cleared after the recording was
 * replaced, so that the next wait requests a new callback. */
gpuhal_status gpuhal_opencl_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_plugin_device *device = queue->device;
    cl_event end = NULL;
    gpuhal_status status = end_of(queue, event->timed, &end);
    if (status != GPUHAL_OK) {
        return status;
    }
    const cl_int code = gpuhal_opencl_api.clFlush(queue->commands);
    if (code != CL_SUCCESS) {
        gpuhal_opencl_api.clReleaseEvent(end);
        return gpuhal_opencl_result(device, "clFlush", code);
    }
    if (event->event) {
        gpuhal_opencl_api.clReleaseEvent(event->event);
    }
    event->event = end;
    atomic_store(&event->armed, false);
    gpuhal_opencl_queue_retire(queue);
    event->error = queue->error;
    queue->error = CL_SUCCESS;
    queue->recorded = queue->pending_count;
    return GPUHAL_OK;
}

bool gpuhal_opencl_event_has_ended(const gpuhal_plugin_event *event)
{
    cl_int execution = CL_COMPLETE;
    return !event->event || gpuhal_opencl_execution(event->event, &execution) != CL_SUCCESS || execution <= CL_COMPLETE;
}

/* Unfinished work of a lost device never ends. */
gpuhal_status gpuhal_opencl_event_query(gpuhal_plugin_event *event)
{
    cl_int execution = CL_QUEUED;
    if (!event->event) {
        return gpuhal_opencl_alive(event->device);
    }
    const cl_int code = gpuhal_opencl_execution(event->event, &execution);
    if (code != CL_SUCCESS) {
        return gpuhal_opencl_result(event->device, "clGetEventInfo", code);
    }
    if (execution > CL_COMPLETE) {
        const gpuhal_status status = gpuhal_opencl_alive(event->device);
        return status == GPUHAL_OK ? GPUHAL_NOT_READY : status;
    }
    const cl_int ended = event->error != CL_SUCCESS ? event->error : execution;
    return gpuhal_opencl_executed(event->device, "work before an event", ended);
}

/* Requests one callback per recording, for any number of waiters. Takes the callback's reference before the driver can
 * call it. */
static void arm(gpuhal_plugin_event *event)
{
    if (atomic_exchange(&event->armed, true)) {
        return;
    }
    atomic_fetch_add(&event->ended->references, 1);
    if (gpuhal_opencl_api.clSetEventCallback(event->event, CL_COMPLETE, signal_end, event->ended) != CL_SUCCESS) {
        condition_release(event->ended);
    }
}

gpuhal_status gpuhal_opencl_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    /* Read the count before the query, so that a signal after the query ends the wait immediately. */
    uint64_t seen = condition_signals(event->ended);
    gpuhal_status status = gpuhal_opencl_event_query(event);
    if (status != GPUHAL_NOT_READY || timeout_ns == 0) {
        return status;
    }
    uint64_t now = gpuhal_plugin_now_ns();
    const uint64_t deadline = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
    arm(event);
    while (status == GPUHAL_NOT_READY && now < deadline) {
        seen = condition_wait(event->ended, seen, deadline - now < LOOK_NS ? deadline : now + LOOK_NS);
        status = gpuhal_opencl_event_query(event);
        now = gpuhal_plugin_now_ns();
    }
    return status;
}

/* Returns OK with time 0 if the driver does not time markers. */
static gpuhal_status read_time(gpuhal_plugin_event *event, cl_ulong *out_ns)
{
    const gpuhal_status status = gpuhal_opencl_event_query(event);
    if (status != GPUHAL_OK) {
        return status;
    }
    const cl_int code =
        gpuhal_opencl_api.clGetEventProfilingInfo(event->event, CL_PROFILING_COMMAND_END, sizeof *out_ns, out_ns, NULL);
    return gpuhal_opencl_result(event->device, "clGetEventProfilingInfo", code);
}

gpuhal_status gpuhal_opencl_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    const gpuhal_host *host = from->device->host;
    cl_ulong began = 0, ended = 0;
    *out_ns = 0;
    if (!from->event || !to->event) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "an event was never recorded");
    }
    gpuhal_status status = read_time(from, &began);
    status = status == GPUHAL_OK ? read_time(to, &ended) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    if (began == 0 || ended == 0) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "the driver takes no time of markers");
    }
    if (ended < began) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the second event was recorded before the first");
    }
    *out_ns = ended - began;
    return GPUHAL_OK;
}

cl_event gpuhal_opencl_event_handle(const gpuhal_plugin_event *event)
{
    return event->event;
}

/* No public function calls this slot yet. */
gpuhal_status gpuhal_opencl_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native)
{
    if (!event->event) {
        return event->device->host->report(event->device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                           "the event was never recorded, so no cl_event stands for it");
    }
    out_native->type = GPUHAL_NATIVE_OPENCL_EVENT;
    out_native->values[0] = (uintptr_t)event->event;
    return GPUHAL_OK;
}
