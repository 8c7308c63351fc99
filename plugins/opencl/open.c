/* opencl/open.c: opens a device with a new or an adopted context, and closes it. */
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

/* Logs the driver's error messages. The driver may call this function on any thread. @p user is the host. The host
 * stays valid until the process exits, so a late call after close is harmless. Oclgrind 21.10 passes NULL instead of @p
 * user. */
static void CL_CALLBACK context_says(const char *text, const void *binary, size_t bytes, void *user)
{
    (void)binary;
    (void)bytes;
    const gpuhal_host *host = user;
    if (!host) {
        return;
    }
    host->log(host, GPUHAL_LOG_WARNING, text ? text : "the OpenCL context reports an error without a description");
}

static gpuhal_status create_context(gpuhal_plugin_device *device)
{
    const gpuhal_opencl_entry *entry = device->entry;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)entry->platform, 0};
    cl_int code = CL_SUCCESS;
    device->context = gpuhal_opencl_api.clCreateContext(properties, 1, &entry->id, context_says,
                                                        (void *)(uintptr_t)device->host, &code);
    return device->context ? GPUHAL_OK : gpuhal_opencl_report(device->host, "clCreateContext", code);
}

static gpuhal_status create_first_stream(gpuhal_plugin_device *device)
{
    cl_int code = CL_SUCCESS;
    device->streams[0] = gpuhal_opencl_create_stream(device, &code);
    if (!device->streams[0]) {
        gpuhal_opencl_api.clReleaseContext(device->context);
        return gpuhal_opencl_report(device->host, "clCreateCommandQueue", code);
    }
    (void)gpuhal_opencl_api.clRetainCommandQueue(device->streams[0]);
    /* Retain the queue once more, because native access returns it even after replace_queue() has replaced it in the
     * stream. */
    device->lent = device->streams[0];
    return GPUHAL_OK;
}

/* Returns the fault of the caller's objects, or NULL. Relies on the driver to detect an invalid context, but drivers do
 * not always check. */
static const char *adoption_fault(const gpuhal_opencl_entry *entry, const gpuhal_native *adopt)
{
    cl_device_id devices[64];
    size_t bytes = 0;
    cl_context context = (cl_context)(uintptr_t)adopt->values[2];
    if (adopt->type != GPUHAL_NATIVE_OPENCL_DEVICE) {
        return "only an OpenCL device with its context can be adopted";
    }
    if ((uintptr_t)entry->platform != adopt->values[0] || (uintptr_t)entry->id != adopt->values[1]) {
        return "the platform or the device is another one than this index names";
    }
    if (!context || gpuhal_opencl_api.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes) !=
                        CL_SUCCESS) {
        return "not a context, or one with more than 64 devices";
    }
    for (size_t i = 0; i < bytes / sizeof *devices; i++) {
        if (devices[i] == entry->id) {
            return NULL;
        }
    }
    return "the device is not in the context";
}

static gpuhal_status adopt_context(gpuhal_plugin_device *device, const gpuhal_native *adopt)
{
    const char *fault = adoption_fault(device->entry, adopt);
    if (fault) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, fault);
    }
    device->context = (cl_context)(uintptr_t)adopt->values[2];
    cl_int code = gpuhal_opencl_api.clRetainContext(device->context);
    return code == CL_SUCCESS ? GPUHAL_OK : gpuhal_opencl_report(device->host, "clRetainContext", code);
}

gpuhal_status gpuhal_opencl_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    (void)ops;
    *out_device = NULL;
    const gpuhal_opencl_entry *entry = gpuhal_opencl_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_plugin_device *device = calloc(1, sizeof *device);
    if (!device) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    device->host = host;
    device->entry = entry;
    gpuhal_status status = adopt ? adopt_context(device, adopt) : create_context(device);
    status = status ? status : create_first_stream(device);
    if (status != GPUHAL_OK) {
        free(device);
        return status;
    }
    pthread_mutex_init(&device->growing, NULL);
    atomic_store(&device->stream_count, 1u);
    *out_device = device;
    return GPUHAL_OK;
}

void gpuhal_opencl_close(gpuhal_plugin_device *device)
{
    gpuhal_opencl_end_turns(device);
    for (uint32_t i = 0; i < atomic_load(&device->stream_count); i++) {
        gpuhal_opencl_api.clReleaseCommandQueue(device->streams[i]);
    }
    gpuhal_opencl_api.clReleaseCommandQueue(device->lent);
    gpuhal_opencl_api.clReleaseContext(device->context);
    pthread_mutex_destroy(&device->growing);
    free(device);
}
