/* rocm/context.c: makes an opened device current, and detects the loss or reset of a device. */
#include "device.h"

#include <gpuhal/native.h>

/* ---- entering and leaving */

/* Relaxed order is enough, because only the code is read, and no other data depends on it. A thread that reads an old
 * value makes one more HIP call, and this call returns the code. */
hipError_t gpuhal_rocm_lost_code(const gpuhal_plugin_device *device)
{
    const hipError_t lost = atomic_load_explicit(&device->entry->lost, memory_order_relaxed);
    return lost != hipSuccess ? lost : atomic_load_explicit(&device->gone, memory_order_relaxed);
}

/* Returns whether the code means an invalid stream, either the caller's or a stream that a reset destroyed. */
static bool is_of_no_stream(hipError_t code)
{
    return code == hipErrorContextIsDestroyed || code == hipErrorInvalidContext || code == hipErrorInvalidHandle;
}

/* Returns whether HIP no longer knows the marker's address, or has reused the address for memory with another id. Other
 * codes do not indicate a reset. A stream's address would not reveal a reset, because the application's next stream may
 * get the address of a stream that the reset destroyed. */
static bool is_reset(const gpuhal_plugin_device *device)
{
    uint32_t id = 0;
    if (device->marker_id == 0) {
        return false;
    }
    const hipError_t code =
        gpuhal_rocm_api.hipPointerGetAttribute(&id, HIP_POINTER_ATTRIBUTE_BUFFER_ID, device->marker);
    gpuhal_rocm_ignore(code);
    return code == hipErrorInvalidValue || (code == hipSuccess && id != device->marker_id);
}

bool gpuhal_rocm_is_gone(gpuhal_plugin_device *device)
{
    if (atomic_load_explicit(&device->gone, memory_order_relaxed) == hipSuccess && is_reset(device)) {
        atomic_store_explicit(&device->gone, hipErrorContextIsDestroyed, memory_order_relaxed);
    }
    return atomic_load_explicit(&device->gone, memory_order_relaxed) != hipSuccess;
}

/* In an application the plugin's device is nearly always current already, and the query is very cheap. While an
 * application captures a graph on another thread, by default no thread may allocate memory or query events; such a call
 * invalidates the graph. The plugin's calls do not involve captured streams, so the thread's capture mode is relaxed
 * during the calls. HIP has a current device per thread but no stack of devices, so the scope stores the previous
 * device. */
static hipError_t enter_device(const gpuhal_plugin_device *device, gpuhal_rocm_scope *out_scope)
{
    out_scope->failed = "hipGetDevice";
    hipError_t code = gpuhal_rocm_api.hipGetDevice(&out_scope->device);
    if (code == hipSuccess && out_scope->device != device->entry->device) {
        out_scope->failed = "hipSetDevice";
        code = gpuhal_rocm_api.hipSetDevice(device->entry->device);
        out_scope->moved = code == hipSuccess;
    }
    if (code == hipSuccess && gpuhal_rocm_api.hipThreadExchangeStreamCaptureMode) {
        out_scope->mode = hipStreamCaptureModeRelaxed;
        const hipError_t relaxed = gpuhal_rocm_api.hipThreadExchangeStreamCaptureMode(&out_scope->mode);
        out_scope->relaxed = relaxed == hipSuccess;
        gpuhal_rocm_ignore(relaxed);
    }
    return code;
}

/* Called whenever a call enters the device, because no error code shows that the device was reset. A reset between the
 * check and a HIP call cannot be detected; the application must not reset a device that its other threads use. */
hipError_t gpuhal_rocm_check_reset(gpuhal_plugin_device *device)
{
    if (gpuhal_rocm_lost_code(device) == hipSuccess) {
        (void)gpuhal_rocm_is_gone(device);
    }
    return gpuhal_rocm_lost_code(device);
}

hipError_t gpuhal_rocm_enter(gpuhal_plugin_device *device, gpuhal_rocm_scope *out_scope)
{
    *out_scope = (gpuhal_rocm_scope){.device = -1};
    const hipError_t lost = gpuhal_rocm_check_reset(device);
    return lost != hipSuccess ? lost : enter_device(device, out_scope);
}

/* Does not report the code. Enters a device with a sticky error, but not a device that was reset. After a reset the
 * plugin's objects no longer exist, and their addresses may already have another owner. */
hipError_t gpuhal_rocm_enter_to_release(gpuhal_plugin_device *device, gpuhal_rocm_scope *out_scope)
{
    *out_scope = (gpuhal_rocm_scope){.device = -1};
    const hipError_t code = gpuhal_rocm_is_gone(device) ? hipErrorContextIsDestroyed : enter_device(device, out_scope);
    gpuhal_rocm_ignore(code);
    return code;
}

void gpuhal_rocm_leave(const gpuhal_rocm_scope *scope)
{
    hipStreamCaptureMode mode = scope->mode;
    if (scope->relaxed) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipThreadExchangeStreamCaptureMode(&mode));
    }
    if (scope->moved) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipSetDevice(scope->device));
    }
}

hipError_t gpuhal_rocm_may_record(hipStream_t stream, const char **out_call)
{
    *out_call = NULL;
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    if (!gpuhal_rocm_api.hipStreamIsCapturing) {
        return hipSuccess;
    }
    const hipError_t code = gpuhal_rocm_may_lack(gpuhal_rocm_api.hipStreamIsCapturing(stream, &status));
    *out_call = code == hipSuccess ? NULL : "hipStreamIsCapturing";
    return code == hipSuccess && status != hipStreamCaptureStatusNone ? hipErrorStreamCaptureUnsupported : code;
}

/* Records the first code, because later codes are less specific. If several threads fail, the exchange keeps the first
 * thread's code. Checks for a reset first, because a reset causes the same codes as an invalid stream. */
gpuhal_status gpuhal_rocm_result(gpuhal_plugin_device *device, const char *call, hipError_t code)
{
    if (code == hipSuccess) {
        return GPUHAL_OK;
    }
    if (is_of_no_stream(code) && gpuhal_rocm_is_gone(device)) {
        return gpuhal_rocm_report_as(
            device->host, GPUHAL_ERROR_DEVICE_LOST, call, code,
            "the device was reset (hipDeviceReset), and lost its memory and work; open it again");
    }
    if (gpuhal_rocm_status(code) == GPUHAL_ERROR_DEVICE_LOST) {
        hipError_t none = hipSuccess;
        (void)atomic_compare_exchange_strong(&device->entry->lost, &none, code);
    }
    return gpuhal_rocm_report(device->host, call, code);
}

/* The code does not show which device was lost. If calls on @p device still work, @p other was lost. */
gpuhal_status gpuhal_rocm_result_of_two(gpuhal_plugin_device *device, gpuhal_plugin_device *other, const char *call,
                                        hipError_t code)
{
    const bool is_others = other->entry != device->entry && gpuhal_rocm_status(code) == GPUHAL_ERROR_DEVICE_LOST &&
                           gpuhal_rocm_probe(device) == hipSuccess;
    return gpuhal_rocm_result(is_others ? other : device, call, code);
}

/* ---- opening */

static gpuhal_status check_device(gpuhal_plugin_device *device)
{
    const hipError_t lost = gpuhal_rocm_lost_code(device);
    if (lost != hipSuccess) {
        return gpuhal_rocm_report_as(
            device->host, GPUHAL_ERROR_DEVICE_LOST, "hipSetDevice", lost,
            "the device failed earlier in this process, and only a new process can use it again");
    }
    const int mode =
        gpuhal_rocm_attribute(device->entry->device, hipDeviceAttributeComputeMode, hipComputeModeDefault);
    if (mode == hipComputeModeProhibited) {
        return device->host->report(device->host, GPUHAL_ERROR_NO_PERMISSION, "hipDeviceGetAttribute", 0,
                                    "the device's compute mode is prohibited: no process may use it");
    }
    return GPUHAL_OK;
}

int gpuhal_rocm_stream_device(hipStream_t stream)
{
    hipDevice_t device = -1;
    if (gpuhal_rocm_api.hipStreamGetDevice) {
        const hipError_t code = gpuhal_rocm_may_lack(gpuhal_rocm_api.hipStreamGetDevice(stream, &device));
        return code == hipSuccess ? device : (int)(gpuhal_rocm_forget(code), -2);
    }
    if (gpuhal_rocm_api.hipGetStreamDeviceId) {
        device = gpuhal_rocm_api.hipGetStreamDeviceId(stream);
        return device >= 0 ? device : -2;
    }
    return -1;
}

/* A HIP device is a number rather than an object. Adopting a device means adopting the stream that the plugin's
 * blocking calls wait for. */
static gpuhal_status adopt_device(gpuhal_plugin_device *device, const gpuhal_native *adopt)
{
    const gpuhal_host *host = device->host;
    if (adopt->size < sizeof *adopt || adopt->type != GPUHAL_NATIVE_HIP_DEVICE) {
        return host->report(
            host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
            "the rocm plugin adopts a GPUHAL_NATIVE_HIP_DEVICE with HIP's number of the device in values[0]");
    }
    if (adopt->values[2] == GPUHAL_ROCM_PER_THREAD || adopt->values[2] == GPUHAL_ROCM_LEGACY) {
        return host->report(
            host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
            "values[2] must not be hipStreamPerThread or hipStreamLegacy: they mean other streams elsewhere");
    }
    if (adopt->values[0] != device->entry->ordinal) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "values[0] is the number of another device");
    }
    device->foreign = (hipStream_t)(uintptr_t)adopt->values[2];
    const int owner = device->foreign ? gpuhal_rocm_stream_device(device->foreign) : -1;
    if (owner == -1 || owner == device->entry->device) {
        return GPUHAL_OK;
    }
    return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, "hipStreamGetDevice", 0,
                        owner == -2 ? "values[2] must be a hipStream_t of the device, or 0"
                                    : "the stream is one of another device");
}

gpuhal_status gpuhal_rocm_acquire(gpuhal_plugin_device *device, const gpuhal_native *adopt)
{
    const gpuhal_status status = check_device(device);
    return status == GPUHAL_OK && adopt ? adopt_device(device, adopt) : status;
}

/* A HIP device is a number, so there is nothing to release. */
void gpuhal_rocm_release_context(gpuhal_plugin_device *device)
{
    (void)device;
}

/* Allocates memory that a reset frees, and reads its id. HIP never assigns this id to other memory. Without the marker
 * an opened device still works, but does not detect a reset. HIP 5.0 has no ids. */
void gpuhal_rocm_make_marker(gpuhal_plugin_device *device)
{
    hipError_t code = gpuhal_rocm_api.hipMalloc(&device->marker, 1);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipPointerGetAttribute(&device->marker_id, HIP_POINTER_ATTRIBUTE_BUFFER_ID,
                                                      device->marker);
    }
    gpuhal_rocm_ignore(code);
}

gpuhal_status gpuhal_rocm_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_HIP_DEVICE;
    out_native->values[0] = device->entry->ordinal;
    out_native->values[1] = 0;
    out_native->values[2] = (uintptr_t)device->foreign;
    out_native->values[3] = 0;
    return GPUHAL_OK;
}
