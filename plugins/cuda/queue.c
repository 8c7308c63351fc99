/* cuda/queue.c: queues are streams, events are events.
 *
 * Streams do not wait for the default stream. Nothing is held back, so flush has nothing to do. cuLaunchHostFunc is not used to
 * notify: it stalls its stream while the function runs, and after an error it is never called; a thread in event_block gets
 * both.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

struct gpuhal_plugin_event {
    gpuhal_plugin_device *device;
    CUevent event;
};

/* A higher number of ours is more urgent, a lower one of CUDA's; what the device does not have is cut to what it has. */
static int stream_priority(int32_t priority)
{
    int least = 0, greatest = 0;
    if (gpuhal_cuda_api.cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS) {
        return 0;
    }
    const int64_t wanted = -(int64_t)priority;
    return wanted > least ? least : wanted < greatest ? greatest : (int)wanted;
}

/* Inside the context. */
static gpuhal_status take_stream(gpuhal_plugin_queue *queue, const gpuhal_native *adopt)
{
    gpuhal_plugin_device *device = queue->device;
    CUcontext context = NULL;
    queue->stream = (CUstream)(uintptr_t)adopt->values[0];
    queue->adopted = true;
    const CUresult code = gpuhal_cuda_api.cuStreamGetCtx(queue->stream, &context);
    if (code != CUDA_SUCCESS || context != device->context) {
        return gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "cuStreamGetCtx", code,
                                     "values[0] is not a CUstream of the context that this device works in");
    }
    return GPUHAL_OK;
}

static gpuhal_status make_stream(gpuhal_plugin_queue *queue, int32_t priority, const gpuhal_native *adopt)
{
    gpuhal_plugin_device *device = queue->device;
    gpuhal_cuda_scope scope;
    gpuhal_status status = gpuhal_cuda_result(device, "cuCtxPushCurrent", gpuhal_cuda_enter(device, &scope));
    if (status != GPUHAL_OK) {
        return status;
    }
    if (adopt) {
        status = take_stream(queue, adopt);
    } else {
        const CUresult code =
            gpuhal_cuda_api.cuStreamCreateWithPriority(&queue->stream, CU_STREAM_NON_BLOCKING, stream_priority(priority));
        status = gpuhal_cuda_result(device, "cuStreamCreateWithPriority", code);
    }
    gpuhal_cuda_leave(&scope);
    return status;
}

static gpuhal_status cuda_queue_create(gpuhal_plugin_device *device, int32_t priority, uint32_t flags, const gpuhal_native *adopt,
                                       gpuhal_plugin_queue **out_queue)
{
    (void)flags; /* every stream can be timed */
    *out_queue = NULL;
    if (adopt && (adopt->type != GPUHAL_NATIVE_CUDA_STREAM || adopt->values[0] == 0)) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "a queue adopts a GPUHAL_NATIVE_CUDA_STREAM; the default stream is CU_STREAM_LEGACY, 1");
    }
    if (adopt && adopt->values[0] == GPUHAL_CUDA_PER_THREAD) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "a queue is used by several threads, and CU_STREAM_PER_THREAD is another stream on each");
    }
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    queue->device = device;
    gpuhal_status status = make_stream(queue, priority, adopt);
    if (status != GPUHAL_OK) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return GPUHAL_OK;
}

static void cuda_queue_destroy(gpuhal_plugin_queue *queue)
{
    gpuhal_cuda_scope scope;
    if (!queue->adopted && gpuhal_cuda_enter_to_release(queue->device, &scope) == CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuStreamDestroy_v2(queue->stream);
        gpuhal_cuda_leave(&scope);
    }
    free(queue);
}

static gpuhal_status cuda_flush(gpuhal_plugin_queue *queue)
{
    return gpuhal_cuda_result(queue->device, "flush", gpuhal_cuda_lost_code(queue->device));
}

/* Waiting for an event made like this sleeps until the device interrupts. Timing makes recording slower, so it is asked for. */
static gpuhal_status cuda_event_create(gpuhal_plugin_device *device, uint32_t flags, gpuhal_plugin_event **out_event)
{
    *out_event = NULL;
    gpuhal_plugin_event *event = calloc(1, sizeof *event);
    if (!event) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    event->device = device;
    gpuhal_cuda_scope scope;
    CUresult code = gpuhal_cuda_enter(device, &scope);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuEventCreate(&event->event,
                                             CU_EVENT_BLOCKING_SYNC | (flags & GPUHAL_TIMED ? 0 : CU_EVENT_DISABLE_TIMING));
        gpuhal_cuda_leave(&scope);
    }
    if (code != CUDA_SUCCESS) {
        free(event);
        return gpuhal_cuda_result(device, "cuEventCreate", code);
    }
    *out_event = event;
    return GPUHAL_OK;
}

static void cuda_event_destroy(gpuhal_plugin_event *event)
{
    gpuhal_cuda_scope scope;
    if (gpuhal_cuda_enter_to_release(event->device, &scope) == CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuEventDestroy_v2(event->event);
        gpuhal_cuda_leave(&scope);
    }
    free(event);
}

static gpuhal_status cuda_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_cuda_scope scope;
    CUresult code = gpuhal_cuda_enter(queue->device, &scope);
    if (code == CUDA_SUCCESS) {
        /* An engine may capture a graph in one of ours, by native access. */
        code = gpuhal_cuda_may_record(queue->stream);
        code = code == CUDA_SUCCESS ? gpuhal_cuda_api.cuEventRecord(event->event, queue->stream) : code;
        gpuhal_cuda_leave(&scope);
    }
    return gpuhal_cuda_result(queue->device, "cuEventRecord", code);
}

/* Not ready is no error: nothing is reported. */
static gpuhal_status cuda_event_query(gpuhal_plugin_event *event)
{
    gpuhal_cuda_scope scope;
    CUresult code = gpuhal_cuda_enter(event->device, &scope);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuEventQuery(event->event);
        gpuhal_cuda_leave(&scope);
    }
    return code == CUDA_ERROR_NOT_READY ? GPUHAL_NOT_READY : gpuhal_cuda_result(event->device, "cuEventQuery", code);
}

/* CUDA knows no timeout, and plugin.h allows a wait that takes longer: the core calls this on a thread of its own and abandons
 * that when the device hangs. Sleeping in the driver wakes at once and takes no processor, which no polling does. */
static gpuhal_status cuda_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    if (timeout_ns == 0) {
        return cuda_event_query(event);
    }
    gpuhal_cuda_scope scope;
    CUresult code = gpuhal_cuda_enter(event->device, &scope);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuEventSynchronize(event->event);
        gpuhal_cuda_leave(&scope);
    }
    return gpuhal_cuda_result(event->device, "cuEventSynchronize", code);
}

/* Also between devices: the driver makes the one wait for the other. */
static gpuhal_status cuda_queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_cuda_scope scope;
    CUresult code = gpuhal_cuda_enter(queue->device, &scope);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuStreamWaitEvent(queue->stream, event->event, 0);
        gpuhal_cuda_leave(&scope);
    }
    return gpuhal_cuda_result_of_two(queue->device, event->device, "cuStreamWaitEvent", code);
}

/* The driver gives milliseconds with a resolution of about half a microsecond. */
static gpuhal_status cuda_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    float milliseconds = 0;
    gpuhal_cuda_scope scope;
    CUresult code = gpuhal_cuda_enter(from->device, &scope);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuEventElapsedTime(&milliseconds, from->event, to->event);
        gpuhal_cuda_leave(&scope);
    }
    if (code == CUDA_ERROR_NOT_READY) {
        return GPUHAL_NOT_READY;
    }
    if (code == CUDA_SUCCESS && !(milliseconds >= 0)) {
        return from->device->host->report(from->device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "cuEventElapsedTime", 0,
                                          "the second event was recorded before the first");
    }
    *out_ns = (uint64_t)((double)milliseconds * 1e6);
    return gpuhal_cuda_result(from->device, "cuEventElapsedTime", code);
}

static gpuhal_status cuda_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_CUDA_STREAM;
    out_native->values[0] = (uintptr_t)queue->stream;
    return GPUHAL_OK;
}

static gpuhal_status cuda_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_CUDA_EVENT;
    out_native->values[0] = (uintptr_t)event->event;
    return GPUHAL_OK;
}

void gpuhal_cuda_describe_queue(gpuhal_ops *ops)
{
    ops->queue_create = cuda_queue_create;
    ops->queue_destroy = cuda_queue_destroy;
    ops->queue_flush = cuda_flush;
    ops->event_create = cuda_event_create;
    ops->event_destroy = cuda_event_destroy;
    ops->event_record = cuda_event_record;
    ops->event_query = cuda_event_query;
    ops->event_block = cuda_event_block;
    ops->queue_wait = cuda_queue_wait;
    ops->elapsed = cuda_elapsed;
    ops->native_queue = cuda_native_queue;
    ops->native_event = cuda_native_event;
}
