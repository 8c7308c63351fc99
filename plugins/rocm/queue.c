/* rocm/queue.c: queues are streams, events are events.
 *
 * While a thread sleeps in hipEventSynchronize, HIP holds a lock of the event (hip_event.cpp, Event::synchronize), and every other
 * call with the event waits for that lock. So each event has a twin, recorded right behind it in the same stream, and only the
 * twin is slept for. Sleeping must not put a wait into any stream: HIP maps all streams of one priority on at most four hardware
 * queues, and a wait in one of them holds up the streams that share it.
 *
 * Streams do not wait for the default stream. Nothing is held back, so flush has nothing to do. hipLaunchHostFunc is not used to
 * notify: it stalls its stream while the function runs, and after an error it is never called; a thread in event_block gets
 * both.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    hipEvent_t event;
    hipEvent_t twin;               /* slept for, and never handed out */
    gpuhal_plugin_queue *recorded; /* in which both were recorded last, or NULL */
};

/* A higher number of ours is more urgent, a lower one of HIP's; what the device does not have is cut to what it has. */
static int stream_priority(int32_t priority)
{
    int least = 0, greatest = 0;
    const hipError_t code = gpuhal_rocm_api.hipDeviceGetStreamPriorityRange(&least, &greatest);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(code);
        return 0;
    }
    const int64_t wanted = -(int64_t)priority;
    return wanted > least ? least : wanted < greatest ? greatest : (int)wanted;
}

static gpuhal_status take_stream(gpuhal_plugin_queue *queue, const gpuhal_native *adopt)
{
    gpuhal_plugin_device *device = queue->device;
    queue->stream = (hipStream_t)(uintptr_t)adopt->values[0];
    queue->adopted = true;
    const int owner = gpuhal_rocm_stream_device(queue->stream);
    if (owner != -1 && owner != device->entry->device) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "hipStreamGetDevice", 0,
                                    "values[0] is not a hipStream_t of this device");
    }
    return GPUHAL_OK;
}

static gpuhal_status make_stream(gpuhal_plugin_queue *queue, int32_t priority, const gpuhal_native *adopt)
{
    gpuhal_plugin_device *device = queue->device;
    gpuhal_rocm_scope scope;
    gpuhal_status status = gpuhal_rocm_result(device, "hipSetDevice", gpuhal_rocm_enter(device, &scope));
    if (status != GPUHAL_OK) {
        return status;
    }
    if (adopt) {
        status = take_stream(queue, adopt);
    } else {
        const hipError_t code =
            gpuhal_rocm_api.hipStreamCreateWithPriority(&queue->stream, hipStreamNonBlocking, stream_priority(priority));
        status = gpuhal_rocm_result(device, "hipStreamCreateWithPriority", code);
    }
    gpuhal_rocm_leave(&scope);
    return status;
}

static gpuhal_status rocm_queue_create(gpuhal_plugin_device *device, int32_t priority, uint32_t flags, const gpuhal_native *adopt,
                                       gpuhal_plugin_queue **out_queue)
{
    (void)flags; /* every stream can be timed */
    *out_queue = NULL;
    if (adopt && (adopt->type != GPUHAL_NATIVE_HIP_STREAM || adopt->values[0] == 0 || adopt->values[0] == GPUHAL_ROCM_LEGACY)) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "a queue adopts a GPUHAL_NATIVE_HIP_STREAM; 0 and 1 stand for the default stream, which cannot be adopted");
    }
    if (adopt && adopt->values[0] == GPUHAL_ROCM_PER_THREAD) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "a queue is used by several threads, and hipStreamPerThread is another stream on each");
    }
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    queue->device = device;
    atomic_init(&queue->users, 1u);
    gpuhal_status status = make_stream(queue, priority, adopt);
    if (status != GPUHAL_OK) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return GPUHAL_OK;
}

/* NULL: nothing to release. */
static void drop(gpuhal_plugin_queue *queue)
{
    gpuhal_rocm_scope scope;
    if (!queue || atomic_fetch_sub(&queue->users, 1u) > 1) {
        return;
    }
    if (!queue->adopted && gpuhal_rocm_enter_to_release(queue->device, &scope) == hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipStreamDestroy(queue->stream));
        gpuhal_rocm_leave(&scope);
    }
    free(queue);
}

static void rocm_queue_destroy(gpuhal_plugin_queue *queue)
{
    gpuhal_rocm_scope scope;
    if (!queue->adopted && gpuhal_rocm_enter_to_release(queue->device, &scope) == hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipStreamSynchronize(queue->stream));
        gpuhal_rocm_leave(&scope);
    }
    drop(queue);
}

static gpuhal_status rocm_flush(gpuhal_plugin_queue *queue)
{
    return gpuhal_rocm_result(queue->device, "flush", gpuhal_rocm_lost_code(queue->device));
}

/* Timing makes recording slower, so it is asked for. HIP 7 sleeps for an event only where hipEventBlockingSync is its one flag:
 * with hipEventDisableTiming beside it, it spins. */
static hipError_t create_events(gpuhal_plugin_event *event, bool timed)
{
    const unsigned flags = hipEventBlockingSync | (timed ? 0 : hipEventDisableTiming);
    hipError_t code = gpuhal_rocm_api.hipEventCreateWithFlags(&event->event, flags);
    if (code != hipSuccess) {
        return code;
    }
    code = gpuhal_rocm_api.hipEventCreateWithFlags(&event->twin, hipEventBlockingSync);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipEventDestroy(event->event));
    }
    return code;
}

static gpuhal_status rocm_event_create(gpuhal_plugin_device *device, uint32_t flags, gpuhal_plugin_event **out_event)
{
    *out_event = NULL;
    gpuhal_plugin_event *event = calloc(1, sizeof *event);
    if (!event) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    event->device = device;
    gpuhal_rocm_scope scope;
    hipError_t code = gpuhal_rocm_enter(device, &scope);
    if (code == hipSuccess) {
        code = create_events(event, flags & GPUHAL_TIMED);
        gpuhal_rocm_leave(&scope);
    }
    if (code != hipSuccess) {
        free(event);
        return gpuhal_rocm_result(device, "hipEventCreateWithFlags", code);
    }
    *out_event = event;
    return GPUHAL_OK;
}

static void rocm_event_destroy(gpuhal_plugin_event *event)
{
    gpuhal_rocm_scope scope;
    if (gpuhal_rocm_enter_to_release(event->device, &scope) == hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipEventDestroy(event->twin));
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipEventDestroy(event->event));
        gpuhal_rocm_leave(&scope);
    }
    drop(event->recorded);
    free(event);
}

/* HIP keeps the stream even when it refuses. */
static hipError_t record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_plugin_queue *before = event->recorded;
    atomic_fetch_add(&queue->users, 1u);
    event->recorded = queue;
    hipError_t code = gpuhal_rocm_api.hipEventRecord(event->event, queue->stream);
    code = code == hipSuccess ? gpuhal_rocm_api.hipEventRecord(event->twin, queue->stream) : code;
    drop(before);
    return code;
}

static gpuhal_status rocm_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_rocm_scope scope;
    hipError_t code = gpuhal_rocm_enter(queue->device, &scope);
    if (code == hipSuccess) {
        /* An engine may capture a graph in one of ours, by native access. */
        code = gpuhal_rocm_may_record(queue->stream);
        code = code == hipSuccess ? record(queue, event) : code;
        gpuhal_rocm_leave(&scope);
    }
    return gpuhal_rocm_result(queue->device, "hipEventRecord", code);
}

/* Not ready is no error: nothing is reported. */
static gpuhal_status rocm_event_query(gpuhal_plugin_event *event)
{
    gpuhal_rocm_scope scope;
    hipError_t code = gpuhal_rocm_enter(event->device, &scope);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipEventQuery(event->event);
        gpuhal_rocm_leave(&scope);
    }
    if (code == hipErrorNotReady) {
        (void)gpuhal_rocm_forget(code);
        return GPUHAL_NOT_READY;
    }
    return gpuhal_rocm_result(event->device, "hipEventQuery", code);
}

/* HIP knows no timeout, and plugin.h allows a wait that takes longer: the core calls this on a thread of its own and abandons
 * that when the device hangs. Sleeping in the driver wakes at once and takes no processor, which no polling does. */
static gpuhal_status rocm_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    if (timeout_ns == 0) {
        return rocm_event_query(event);
    }
    gpuhal_rocm_scope scope;
    hipError_t code = gpuhal_rocm_enter(event->device, &scope);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipEventSynchronize(event->twin);
        gpuhal_rocm_leave(&scope);
    }
    return gpuhal_rocm_result(event->device, "hipEventSynchronize", code);
}

/* Also between devices: the driver makes the one wait for the other. */
static gpuhal_status rocm_queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_rocm_scope scope;
    hipError_t code = event->device == queue->device ? hipSuccess : gpuhal_rocm_check_reset(event->device);
    if (code != hipSuccess) {
        return gpuhal_rocm_result(event->device, "hipStreamWaitEvent", code);
    }
    code = gpuhal_rocm_enter(queue->device, &scope);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipStreamWaitEvent(queue->stream, event->event, 0);
        gpuhal_rocm_leave(&scope);
    }
    return gpuhal_rocm_result_of_two(queue->device, event->device, "hipStreamWaitEvent", code);
}

/* The driver gives milliseconds with a resolution of about half a microsecond. */
static gpuhal_status rocm_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    float milliseconds = 0;
    gpuhal_rocm_scope scope;
    hipError_t code = gpuhal_rocm_enter(from->device, &scope);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipEventElapsedTime(&milliseconds, from->event, to->event);
        gpuhal_rocm_leave(&scope);
    }
    if (code == hipErrorNotReady) {
        (void)gpuhal_rocm_forget(code);
        return GPUHAL_NOT_READY;
    }
    if (code == hipSuccess && !(milliseconds >= 0)) {
        return from->device->host->report(from->device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "hipEventElapsedTime", 0,
                                          "the second event was recorded before the first");
    }
    *out_ns = (uint64_t)((double)milliseconds * 1e6);
    return gpuhal_rocm_result(from->device, "hipEventElapsedTime", code);
}

static gpuhal_status rocm_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_HIP_STREAM;
    out_native->values[0] = (uintptr_t)queue->stream;
    return GPUHAL_OK;
}

static gpuhal_status rocm_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_HIP_EVENT;
    out_native->values[0] = (uintptr_t)event->event;
    return GPUHAL_OK;
}

void gpuhal_rocm_describe_queue(gpuhal_ops *ops)
{
    ops->queue_create = rocm_queue_create;
    ops->queue_destroy = rocm_queue_destroy;
    ops->queue_flush = rocm_flush;
    ops->event_create = rocm_event_create;
    ops->event_destroy = rocm_event_destroy;
    ops->event_record = rocm_event_record;
    ops->event_query = rocm_event_query;
    ops->event_block = rocm_event_block;
    ops->queue_wait = rocm_queue_wait;
    ops->elapsed = rocm_elapsed;
    ops->native_queue = rocm_native_queue;
    ops->native_event = rocm_native_event;
}
