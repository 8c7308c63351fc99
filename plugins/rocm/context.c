/* rocm/context.c: makes an opened device current, and detects its loss or reset. */
#include "device.h"

#include <gpuhal/native.h>

/* ---- in and out */

/* Relaxed is enough: only the code is read, and it publishes nothing. A thread that misses it makes one more call,
 * which returns the code itself. */
hipError_t gpuhal_rocm_lost_code(const gpuhal_plugin_device *device)
{
    const hipError_t lost = atomic_load_explicit(&device->entry->lost, memory_order_relaxed);
    return lost != hipSuccess ? lost : atomic_load_explicit(&device->gone, memory_order_relaxed);
}

/* Returns whether the code means an invalid stream: the stream was the caller's, or ours and destroyed by a reset. */
static bool is_of_no_stream(hipError_t code)
{
    return code == hipErrorContextIsDestroyed || code == hipErrorInvalidContext || code == hipErrorInvalidHandle;
}

/* Returns whether HIP no longer knows the marker's address, or has given it to other memory, which has another number.
 * Other codes say nothing of a reset. A stream's address says nothing: the engine's next stream gets the address of a
 * stream that the reset destroyed. */
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

/* Queries the current device first: inside an engine ours is nearly always current already, and the query costs next to
 * nothing.
 *
 * If an engine captures a graph on another thread, by default no thread may allocate or query events; such a call
 * spoils the graph. The calls of this plugin concern no stream that is captured, so the thread is relaxed during them.
 * HIP works on the thread's current device alone, and has no stack of devices: the scope keeps the former one. */
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

/* Checked before every call, since a reset leaves no code behind: HIP would follow streams and addresses that are gone,
 * or that have another owner by now. A reset between the check and the call cannot be noticed; the program must not
 * reset a device that other threads of it use. */
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

/* The code is not reported. A device with a sticky code is entered, but a device that was reset is not: its objects are
 * gone, and their addresses may have another owner by now. */
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

/* Keeps the first code, because later ones say less. The exchange keeps the first of several threads' codes. A reset is
 * checked first: its codes are those of an invalid stream, which alone would say nothing of the device. */
gpuhal_status gpuhal_rocm_result(gpuhal_plugin_device *device, const char *call, hipError_t code)
{
    if (code == hipSuccess) {
        return GPUHAL_OK;
    }
    if (is_of_no_stream(code) && gpuhal_rocm_is_gone(device)) {
        return gpuhal_rocm_report_as(
            device->host, GPUHAL_ERROR_DEVICE_LOST, call, code,
            "the device was reset (hipDeviceReset), and all that was on it is gone; open it again");
    }
    if (gpuhal_rocm_status(code) == GPUHAL_ERROR_DEVICE_LOST) {
        hipError_t none = hipSuccess;
        (void)atomic_compare_exchange_strong(&device->entry->lost, &none, code);
    }
    return gpuhal_rocm_report(device->host, call, code);
}

/* The code does not say which of the two was lost. A device whose calls still work was not lost, so it was the
 * other. */
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

/* A device is a number in HIP, not an object. Adopting it adopts the stream that our calls come after. */
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

/* A device is a number: there is nothing to release. */
void gpuhal_rocm_release_context(gpuhal_plugin_device *device)
{
    (void)device;
}

/* With the device current. Allocates memory that a reset takes, and reads its number, which HIP gives no other memory.
 * An opened device without the marker works too, but does not notice a reset; HIP 5.0 gives no numbers. */
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
