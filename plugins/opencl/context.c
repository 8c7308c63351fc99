/* opencl/context.c: an opened device: its internal streams, waiting, and device loss. */
#include "device.h"

#include <gpuhal/native.h>

#include <stdarg.h>
#include <stdio.h>

/* The queue is in-order and has no profiling. */
cl_command_queue gpuhal_opencl_create_stream(gpuhal_plugin_device *device, cl_int *out_code)
{
    return gpuhal_opencl_api.clCreateCommandQueue(device->context, device->entry->id, 0, out_code);
}

/* Called if all streams are in use. Creates another stream, or shares the last stream. Sharing is correct but slower.
 * Several threads may use one command queue, because each call waits for its own event. */
static gpuhal_opencl_stream grow(gpuhal_plugin_device *device)
{
    gpuhal_opencl_stream stream = {0};
    pthread_mutex_lock(&device->growing);
    const uint32_t count = atomic_load_explicit(&device->stream_count, memory_order_relaxed);
    if (count < GPUHAL_OPENCL_INTERNAL_STREAMS) {
        cl_int code;
        stream.queue = gpuhal_opencl_create_stream(device, &code);
    }
    if (stream.queue) {
        /* Mark the stream as taken before it becomes visible. The count is incremented last, with release order, so
         * that a thread that reads the count sees the queue and the flag. */
        stream.taken = &device->taken[count];
        atomic_store_explicit(stream.taken, true, memory_order_relaxed);
        device->streams[count] = stream.queue;
        atomic_store_explicit(&device->stream_count, count + 1, memory_order_release);
    } else {
        stream.queue = device->streams[count - 1];
        (void)gpuhal_opencl_api.clRetainCommandQueue(stream.queue); /* the stream's owner may replace the queue in the
                                                                     * meantime */
    }
    pthread_mutex_unlock(&device->growing);
    return stream;
}

/* Replaces the queue of a stream, because with some drivers (rusticl of Mesa 25) all commands after a failed one fail
 * as well. Keeps the old queue if creating one fails. The lock is not held while the driver creates and releases
 * queues. */
static void replace_queue(gpuhal_plugin_device *device, const gpuhal_opencl_stream *stream)
{
    cl_int code = CL_SUCCESS;
    const cl_command_queue fresh = gpuhal_opencl_create_stream(device, &code);
    if (fresh) {
        pthread_mutex_lock(&device->growing); /* protects the queue from threads that share the stream */
        device->streams[stream->taken - device->taken] = fresh;
        pthread_mutex_unlock(&device->growing);
        (void)gpuhal_opencl_api.clReleaseCommandQueue(stream->queue);
    }
}

/* Reads the flag before exchanging it, so that the cache line of a busy stream is not moved to this CPU. Acquire order
 * pairs with the release in gpuhal_opencl_give_stream(), because replace_queue() may have changed the queue. */
gpuhal_opencl_stream gpuhal_opencl_take_stream(gpuhal_plugin_device *device)
{
    const uint32_t count = atomic_load_explicit(&device->stream_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        _Atomic bool *taken = &device->taken[i];
        if (!atomic_load_explicit(taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(taken, true, memory_order_acquire)) {
            return (gpuhal_opencl_stream){.queue = device->streams[i], .taken = taken};
        }
    }
    return grow(device);
}

/* Replaces a failed queue while the flag is still set, so that no other thread can take the stream. */
void gpuhal_opencl_give_stream(gpuhal_plugin_device *device, gpuhal_opencl_stream stream, cl_int code)
{
    if (!stream.taken) {
        if (stream.queue) {
            (void)gpuhal_opencl_api.clReleaseCommandQueue(stream.queue);
        }
        return;
    }
    if (code != CL_SUCCESS) {
        replace_queue(device, &stream);
    }
    atomic_store_explicit(stream.taken, false, memory_order_release);
}

/* clFinish would also wait, but would not report failures. The event's error is more specific than the result of the
 * wait, which is the same for all errors (CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST). */
cl_int gpuhal_opencl_finish(cl_int code, cl_event event)
{
    if (code != CL_SUCCESS) {
        return code;
    }
    code = gpuhal_opencl_api.clWaitForEvents(1, &event);
    if (code != CL_SUCCESS) {
        cl_int execution = 0;
        cl_int asked = gpuhal_opencl_execution(event, &execution);
        code = asked == CL_SUCCESS && execution < 0 ? execution : code;
    }
    gpuhal_opencl_api.clReleaseEvent(event);
    return code;
}

/* Checks whether the device is available, because some drivers return a meaningless code after it was unplugged. */
static gpuhal_status failed(gpuhal_plugin_device *device, const char *call, cl_int code, gpuhal_status status)
{
    cl_bool available = CL_TRUE;
    bool gone = gpuhal_opencl_ask(device->entry->id, CL_DEVICE_AVAILABLE, &available, sizeof available) && !available;
    if (gone && status != GPUHAL_ERROR_DEVICE_LOST) {
        status = device->host->report(device->host, GPUHAL_ERROR_DEVICE_LOST, call, code,
                                      "the driver says that the device is gone");
    }
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        atomic_store(&device->lost, true);
    }
    return status;
}

gpuhal_status gpuhal_opencl_result(gpuhal_plugin_device *device, const char *call, cl_int code)
{
    return code == CL_SUCCESS ? GPUHAL_OK : failed(device, call, code, gpuhal_opencl_report(device->host, call, code));
}

/* Drivers also use CL_OUT_OF_RESOURCES for other execution failures: NVIDIA's driver for illegal accesses by kernels,
 * rusticl for a failed user event. */
gpuhal_status gpuhal_opencl_executed(gpuhal_plugin_device *device, const char *call, cl_int code)
{
    if (code != CL_OUT_OF_RESOURCES) {
        return gpuhal_opencl_result(device, call, code);
    }
    return failed(
        device, call, code,
        device->host->report(device->host, GPUHAL_ERROR_DRIVER, call, code,
                             "CL_OUT_OF_RESOURCES (of a command: it failed for lack of memory or another reason)"));
}

gpuhal_status gpuhal_opencl_refuse(const gpuhal_plugin_device *device, gpuhal_status status, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return device->host->report(device->host, status, NULL, 0, text);
}

/* Makes no OpenCL call, because a hung driver would also hang this function. */
static gpuhal_status opencl_query_health(gpuhal_plugin_device *device)
{
    return atomic_load(&device->lost) ? GPUHAL_ERROR_DEVICE_LOST : GPUHAL_OK;
}

gpuhal_status gpuhal_opencl_alive(gpuhal_plugin_device *device)
{
    return atomic_load(&device->lost)
               ? device->host->report(device->host, GPUHAL_ERROR_DEVICE_LOST, NULL, 0, "the device was lost before")
               : GPUHAL_OK;
}

gpuhal_status gpuhal_opencl_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_OPENCL_DEVICE;
    out_native->values[0] = (uintptr_t)device->entry->platform;
    out_native->values[1] = (uintptr_t)device->entry->id;
    out_native->values[2] = (uintptr_t)device->context;
    out_native->values[3] = (uintptr_t)device->lent;
    return GPUHAL_OK;
}

void gpuhal_opencl_describe_context(gpuhal_ops *ops)
{
    ops->query_health = opencl_query_health;
}
