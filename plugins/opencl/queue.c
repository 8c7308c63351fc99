/* opencl/queue.c: queues; each queue is an in-order OpenCL command queue.
 *
 * Any thread may use a command queue, so the caller's own submissions need no lock and are in order automatically. The
 * core ensures that only one of gpuhal's threads at a time uses a queue.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

/* Maximum time that destroying a queue waits for its work. The core has already waited for this work. */
#define PATIENCE_NS UINT64_C(5000000000)

/* Markers and barriers are from OpenCL 1.2, event callbacks from 1.1. */
bool gpuhal_opencl_has_queues(const gpuhal_opencl_entry *entry)
{
    const gpuhal_opencl_functions *api = &gpuhal_opencl_api;
    return entry->version >= 102 && api->clEnqueueMarkerWithWaitList && api->clEnqueueBarrierWithWaitList &&
           api->clSetEventCallback;
}

/* The priority is a hint (cl_khr_priority_hints) that drivers without the extension reject. */
static gpuhal_status make_commands(gpuhal_plugin_queue *queue, int32_t priority, uint32_t flags)
{
    gpuhal_plugin_device *device = queue->device;
    const cl_command_queue_properties bits = flags & GPUHAL_TIMED ? CL_QUEUE_PROFILING_ENABLE : 0;
    const cl_queue_properties wanted[] = {CL_QUEUE_PROPERTIES, bits, CL_QUEUE_PRIORITY_KHR,
                                          priority > 0 ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR, 0};
    cl_int code = CL_SUCCESS;
    if (priority != 0 && device->entry->version >= 200 && gpuhal_opencl_api.clCreateCommandQueueWithProperties) {
        queue->commands =
            gpuhal_opencl_api.clCreateCommandQueueWithProperties(device->context, device->entry->id, wanted, &code);
    }
    if (!queue->commands) {
        queue->commands = gpuhal_opencl_api.clCreateCommandQueue(device->context, device->entry->id, bits, &code);
    }
    return queue->commands ? GPUHAL_OK : gpuhal_opencl_result(device, "clCreateCommandQueue", code);
}

static const char *adoption_fault(const gpuhal_plugin_device *device, const gpuhal_native *adopt)
{
    const cl_command_queue commands = (cl_command_queue)(uintptr_t)adopt->values[0];
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_command_queue_properties bits = 0;
    if (adopt->type != GPUHAL_NATIVE_OPENCL_QUEUE || !commands ||
        gpuhal_opencl_api.clGetCommandQueueInfo(commands, CL_QUEUE_CONTEXT, sizeof context, &context, NULL) !=
            CL_SUCCESS ||
        gpuhal_opencl_api.clGetCommandQueueInfo(commands, CL_QUEUE_DEVICE, sizeof id, &id, NULL) != CL_SUCCESS ||
        gpuhal_opencl_api.clGetCommandQueueInfo(commands, CL_QUEUE_PROPERTIES, sizeof bits, &bits, NULL) !=
            CL_SUCCESS) {
        return "the object is not an OpenCL command queue";
    }
    if (context != device->context || id != device->entry->id) {
        return "the command queue is of another context or device than was opened: have the device adopt that context";
    }
    return bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE ? "the command queue does not keep the order of its commands"
                                                         : NULL;
}

/* Retains the command queue until the queue is destroyed. The caller may enqueue commands at any time, so recordings
 * need markers (`foreign`). */
static gpuhal_status adopt_commands(gpuhal_plugin_queue *queue, const gpuhal_native *adopt)
{
    gpuhal_plugin_device *device = queue->device;
    const char *fault = adoption_fault(device, adopt);
    if (fault) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, fault);
    }
    queue->commands = (cl_command_queue)(uintptr_t)adopt->values[0];
    queue->foreign = true;
    return gpuhal_opencl_result(device, "clRetainCommandQueue",
                                gpuhal_opencl_api.clRetainCommandQueue(queue->commands));
}

static gpuhal_status opencl_queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                         gpuhal_plugin_queue **out_queue)
{
    *out_queue = NULL;
    gpuhal_status status = gpuhal_opencl_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    if (!queue || !gpuhal_opencl_queue_grow(queue)) {
        free(queue);
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    queue->device = device;
    status = desc->adopt ? adopt_commands(queue, desc->adopt) : make_commands(queue, desc->priority, desc->flags);
    if (status != GPUHAL_OK) {
        free(queue->pending);
        free(queue);
        return status;
    }
    *out_queue = queue;
    return GPUHAL_OK;
}

/* If not even a marker can be enqueued, no work is known to be running. Does not wait if the device is lost, because
 * its unfinished work never ends. */
static bool has_ended(gpuhal_plugin_queue *queue)
{
    gpuhal_plugin_device *device = queue->device;
    const gpuhal_plugin_event_desc desc = {.size = sizeof desc};
    gpuhal_plugin_event *end = NULL;
    if (gpuhal_opencl_event_create(device, &desc, &end) != GPUHAL_OK) {
        return true;
    }
    bool ended = true;
    if (gpuhal_opencl_event_record(queue, end) == GPUHAL_OK) {
        (void)gpuhal_opencl_event_block(end, atomic_load(&device->lost) ? 0 : PATIENCE_NS);
        ended = gpuhal_opencl_event_has_ended(end);
    }
    gpuhal_opencl_event_destroy(end);
    return ended;
}

/* Releasing a command queue may not wait for its work, or may wait for an unknown time. If the work does not end, the
 * queue is leaked with all objects that the work may still use, because no thread could check later whether the work
 * has ended. */
static void opencl_queue_destroy(gpuhal_plugin_queue *queue)
{
    gpuhal_plugin_device *device = queue->device;
    if (!has_ended(queue)) {
        atomic_store(&device->lost, true);
        device->host->log(device->host, GPUHAL_LOG_ERROR,
                          "work of an OpenCL queue does not end; the device counts as lost");
        return;
    }
    for (uint32_t i = 0; i < queue->pending_count; i++) {
        gpuhal_opencl_api.clReleaseEvent(queue->pending[i]);
    }
    gpuhal_opencl_api.clReleaseCommandQueue(queue->commands);
    free(queue->pending);
    free(queue);
}

static gpuhal_status opencl_flush(gpuhal_plugin_queue *queue)
{
    return gpuhal_opencl_result(queue->device, "clFlush", gpuhal_opencl_api.clFlush(queue->commands));
}

/* An event that has ended needs no command. A failed event fails this queue immediately, because PoCL would ignore
 * the failure. Without this check PoCL's `basic` device could deadlock, because it runs commands inside the
 * enqueuing call. */
static gpuhal_status opencl_queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    const cl_event awaited = gpuhal_opencl_event_handle(event);
    cl_context context = NULL;
    gpuhal_status status = gpuhal_opencl_event_query(event);
    if (status != GPUHAL_NOT_READY) {
        return status;
    }
    /* A command cannot wait for an event of another context; the core waits instead. */
    if (gpuhal_opencl_api.clGetEventInfo(awaited, CL_EVENT_CONTEXT, sizeof context, &context, NULL) != CL_SUCCESS ||
        context != queue->device->context) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    cl_event barrier = NULL;
    const cl_int code = gpuhal_opencl_api.clEnqueueBarrierWithWaitList(queue->commands, 1, &awaited, &barrier);
    if (code == CL_SUCCESS) {
        gpuhal_opencl_queue_keep(queue, barrier);
    }
    return gpuhal_opencl_result(queue->device, "clEnqueueBarrierWithWaitList", code);
}

gpuhal_status gpuhal_opencl_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_OPENCL_QUEUE;
    out_native->values[0] = (uintptr_t)queue->commands;
    queue->foreign = true;
    return GPUHAL_OK;
}

void gpuhal_opencl_describe_queue(const gpuhal_opencl_entry *entry, gpuhal_ops *ops)
{
    static const gpuhal_queue_ops queues = {
        .size = sizeof queues,
        .version = GPUHAL_QUEUES_VERSION,
        .queue_create = opencl_queue_create,
        .queue_destroy = opencl_queue_destroy,
        .queue_flush = opencl_flush,
        .event_create = gpuhal_opencl_event_create,
        .event_destroy = gpuhal_opencl_event_destroy,
        .event_record = gpuhal_opencl_event_record,
        .event_query = gpuhal_opencl_event_query,
        .event_block = gpuhal_opencl_event_block,
        .queue_wait = opencl_queue_wait,
        .elapsed = gpuhal_opencl_elapsed,
    };
    ops->queues = gpuhal_opencl_has_queues(entry) ? &queues : NULL;
}
