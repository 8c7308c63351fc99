/* cuda/context.c: enters and leaves an opened device's context, detects the loss of the context, retains or adopts
 * it. */
#include "device.h"

#include <gpuhal/native.h>

/* ---- entering and leaving */

/* Returns whether the application destroyed the context or reset the primary context. */
static bool is_of_gone(CUresult code)
{
    return code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* Relaxed order is enough, because only the code is read, and no other data depends on it. A thread that reads an old
 * value makes one more driver call, and this call returns the code. */
CUresult gpuhal_cuda_lost_code(gpuhal_plugin_device *device)
{
    const CUresult lost = atomic_load_explicit(device->lost, memory_order_relaxed);
    return lost != CUDA_SUCCESS ? lost : atomic_load_explicit(&device->own_lost, memory_order_relaxed);
}

/* Returns whether CUDA no longer knows the marker's address, or has reused it for other memory with another ID. Other
 * codes do not indicate a reset. */
static bool is_reset(const gpuhal_plugin_device *device)
{
    unsigned long long id = 0;
    if (device->marker_id == 0) {
        return false;
    }
    const CUresult code = gpuhal_cuda_api.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, device->marker);
    return code == CUDA_ERROR_INVALID_VALUE || (code == CUDA_SUCCESS && id != device->marker_id);
}

bool gpuhal_cuda_is_gone(gpuhal_plugin_device *device)
{
    CUresult none = CUDA_SUCCESS;
    if (atomic_load_explicit(&device->own_lost, memory_order_relaxed) == CUDA_SUCCESS && is_reset(device)) {
        (void)atomic_compare_exchange_strong(&device->own_lost, &none, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    return is_of_gone(atomic_load_explicit(&device->own_lost, memory_order_relaxed));
}

/* In an application the plugin's context is nearly always current already, and the query is very cheap. While an
 * application captures a graph on any thread, by default no thread may allocate memory or query events; such a call
 * invalidates the graph. This plugin's calls do not involve streams that are being captured, so the thread's capture
 * mode is relaxed during the calls. If the mode cannot be changed, the call continues, because the mode matters only
 * during a capture. */
CUresult gpuhal_cuda_enter_context(CUcontext context, gpuhal_cuda_scope *out_scope)
{
    CUcontext current = NULL;
    *out_scope = (gpuhal_cuda_scope){0};
    out_scope->failed = "cuCtxGetCurrent";
    CUresult code = gpuhal_cuda_api.cuCtxGetCurrent(&current);
    if (code == CUDA_SUCCESS && current != context) {
        out_scope->failed = "cuCtxPushCurrent";
        code = gpuhal_cuda_api.cuCtxPushCurrent_v2(context);
        out_scope->pushed = code == CUDA_SUCCESS;
    }
    if (code == CUDA_SUCCESS) {
        out_scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        out_scope->relaxed = gpuhal_cuda_api.cuThreadExchangeStreamCaptureMode(&out_scope->mode) == CUDA_SUCCESS;
    }
    return code;
}

/* A destroyed context is not pushed, because its address may have been reused for another context. A context with a
 * sticky error is pushed, because the driver itself refuses to free objects that it cannot free. */
CUresult gpuhal_cuda_enter_to_release(gpuhal_plugin_device *device, gpuhal_cuda_scope *out_scope)
{
    *out_scope = (gpuhal_cuda_scope){0};
    const CUresult own = atomic_load_explicit(&device->own_lost, memory_order_relaxed);
    return is_of_gone(own) ? own : gpuhal_cuda_enter_context(device->context, out_scope);
}

CUresult gpuhal_cuda_enter(gpuhal_plugin_device *device, gpuhal_cuda_scope *out_scope)
{
    *out_scope = (gpuhal_cuda_scope){0};
    const CUresult lost = gpuhal_cuda_lost_code(device);
    return lost != CUDA_SUCCESS ? lost : gpuhal_cuda_enter_context(device->context, out_scope);
}

/* Undoes the steps of entering in the opposite order. The capture mode belongs to the thread. It is restored while the
 * same context is current as when the mode was changed. Popping removes the context that enter() pushed, since the
 * calls in between leave the stack unchanged. */
void gpuhal_cuda_leave(const gpuhal_cuda_scope *scope)
{
    CUcontext ours = NULL;
    CUstreamCaptureMode mode = scope->mode;
    if (scope->relaxed) {
        (void)gpuhal_cuda_api.cuThreadExchangeStreamCaptureMode(&mode);
    }
    if (scope->pushed) {
        (void)gpuhal_cuda_api.cuCtxPopCurrent_v2(&ours);
    }
}

CUresult gpuhal_cuda_may_record(CUstream stream, const char **out_call)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult code = gpuhal_cuda_may_lack(gpuhal_cuda_api.cuStreamIsCapturing(stream, &status));
    *out_call = code == CUDA_SUCCESS ? NULL : "cuStreamIsCapturing";
    return code == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
                                                                           : code;
}

/* Keeps the first code, because later codes are less specific. If several threads fail, the exchange keeps the first
 * thread's code. The code of a destroyed or reset context is stored in the opened device, because the next opened
 * device has a new context. A primary context's sticky code is stored in the entry, so that later attempts to open the
 * device are also refused; see retain(). */
gpuhal_status gpuhal_cuda_result(gpuhal_plugin_device *device, const char *call, CUresult code)
{
    if (code == CUDA_SUCCESS) {
        return GPUHAL_OK;
    }
    /* If a GPU has fallen off the bus, the driver returns UNKNOWN from every call. */
    const bool fell = code == CUDA_ERROR_UNKNOWN && gpuhal_cuda_probe(device) == CUDA_ERROR_UNKNOWN;
    if (fell || gpuhal_cuda_status(code) == GPUHAL_ERROR_DEVICE_LOST) {
        CUresult none = CUDA_SUCCESS;
        (void)atomic_compare_exchange_strong(is_of_gone(code) ? &device->own_lost : device->lost, &none, code);
    }
    return fell ? gpuhal_cuda_report_as(
                      device->host, GPUHAL_ERROR_DEVICE_LOST, call, code,
                      "all later calls of the driver return this error: see the kernel's log for lines with NVRM")
                : gpuhal_cuda_report(device->host, call, code);
}

/* The code does not show which of the two devices was lost. If calls on @p device still work, @p other was lost. If
 * both devices have the same context, @p device counts as lost. */
gpuhal_status gpuhal_cuda_result_of_two(gpuhal_plugin_device *device, gpuhal_plugin_device *other, const char *call,
                                        CUresult code)
{
    const bool may_be_lost = code == CUDA_ERROR_UNKNOWN || gpuhal_cuda_status(code) == GPUHAL_ERROR_DEVICE_LOST;
    const bool is_others =
        may_be_lost && other->context != device->context && gpuhal_cuda_probe(device) == CUDA_SUCCESS;
    return gpuhal_cuda_result(is_others ? other : device, call, code);
}

/* ---- opening */

/* The codes for a device in use do not show which process uses it. */
static gpuhal_status retain_failed(const gpuhal_host *host, const gpuhal_cuda_entry *entry, CUresult code)
{
    const char *call = "cuDevicePrimaryCtxRetain";
    const int mode = gpuhal_cuda_attribute(entry->device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT);
    /* The documentation says UNKNOWN; drivers return DEVICE_UNAVAILABLE. */
    if ((code == CUDA_ERROR_DEVICE_UNAVAILABLE || code == CUDA_ERROR_UNKNOWN) && mode == CU_COMPUTEMODE_PROHIBITED) {
        return gpuhal_cuda_report_as(
            host, GPUHAL_ERROR_NO_PERMISSION, call, code,
            "the device's compute mode is prohibited: no process may use it (nvidia-smi -c sets the mode)");
    }
    if (code == CUDA_ERROR_DEVICE_UNAVAILABLE) {
        return gpuhal_cuda_report_as(
            host, GPUHAL_ERROR_BUSY, call, code,
            mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS
                ? "the device's compute mode is exclusive, and another process has it (nvidia-smi -c)"
                : "the device is taken, or failed and waits for a reset");
    }
    return code == CUDA_ERROR_UNKNOWN
               ? gpuhal_cuda_report_as(host, GPUHAL_ERROR_DRIVER, call, code, gpuhal_cuda_explain_unknown())
               : gpuhal_cuda_report(host, call, code);
}

static gpuhal_status retain(gpuhal_plugin_device *device)
{
    gpuhal_cuda_entry *entry = device->entry;
    const CUresult lost = atomic_load(&entry->lost);
    if (lost != CUDA_SUCCESS) {
        return gpuhal_cuda_report_as(
            device->host, GPUHAL_ERROR_DEVICE_LOST, "cuDevicePrimaryCtxRetain", lost,
            "the device failed earlier in this process, and only a new process can use it again");
    }
    const CUresult code = gpuhal_cuda_api.cuDevicePrimaryCtxRetain(&device->context, entry->device);
    device->lost = &entry->lost;
    return code == CUDA_SUCCESS ? GPUHAL_OK : retain_failed(device->host, entry, code);
}

/* Inside the adopted context: checks the context. Also checks the stream, if the driver can determine the stream's
 * context. */
static CUresult check_adopted(const gpuhal_plugin_device *device, const char **out_fault, const char **out_call)
{
    CUdevice owner = -1;
    CUcontext of_stream = device->context;
    *out_call = "cuCtxGetDevice";
    CUresult code = gpuhal_cuda_api.cuCtxGetDevice(&owner);
    if (code == CUDA_SUCCESS && device->foreign) {
        *out_call = "cuStreamGetCtx";
        code = gpuhal_cuda_may_lack(gpuhal_cuda_api.cuStreamGetCtx(device->foreign, &of_stream));
    }
    *out_fault = code != CUDA_SUCCESS             ? "values[0] and [2] must be a CUcontext and a CUstream of it, or 0"
                 : owner != device->entry->device ? "the context is one of another device"
                 : of_stream != device->context   ? "the stream is one of another context"
                                                  : NULL;
    return code;
}

static gpuhal_status adopt_context(gpuhal_plugin_device *device, const gpuhal_native *adopt)
{
    const gpuhal_host *host = device->host;
    if (adopt->size < sizeof *adopt || adopt->type != GPUHAL_NATIVE_CUDA_DEVICE || adopt->values[0] == 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the cuda plugin adopts a GPUHAL_NATIVE_CUDA_DEVICE with a CUcontext in values[0]");
    }
    if (adopt->values[2] == GPUHAL_CUDA_PER_THREAD) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "values[2] must not be CU_STREAM_PER_THREAD: it means another stream on each thread");
    }
    device->context = (CUcontext)(uintptr_t)adopt->values[0];
    device->foreign = (CUstream)(uintptr_t)adopt->values[2];
    device->adopted = true;
    /* Set `lost` before any call in the context can fail, since gpuhal_cuda_enter() below reads it. An error in the
     * caller's context does not affect the primary context. */
    device->lost = &device->own_lost;
    gpuhal_cuda_scope scope;
    const char *fault = "values[0] is not a CUcontext";
    CUresult code = gpuhal_cuda_enter(device, &scope);
    const char *call = scope.failed;
    if (code == CUDA_SUCCESS) {
        code = check_adopted(device, &fault, &call);
        gpuhal_cuda_leave(&scope);
    }
    return fault ? gpuhal_cuda_report_as(host, GPUHAL_ERROR_INVALID_ARGUMENT, call, code, fault) : GPUHAL_OK;
}

gpuhal_status gpuhal_cuda_acquire(gpuhal_plugin_device *device, const gpuhal_native *adopt)
{
    return adopt ? adopt_context(device, adopt) : retain(device);
}

/* Also releases a context that was reset, because a reset does not release it (cuDevicePrimaryCtxReset in the CUDA
 * manual). */
void gpuhal_cuda_release_context(gpuhal_plugin_device *device)
{
    if (!device->adopted) {
        (void)gpuhal_cuda_api.cuDevicePrimaryCtxRelease_v2(device->entry->device);
    }
}

/* Allocates memory that is freed with the context, and reads its buffer ID, which CUDA never reuses. Must be called
 * inside the context. An opened device without the marker also works, but detects a reset only by the codes of its
 * calls. */
void gpuhal_cuda_make_marker(gpuhal_plugin_device *device)
{
    unsigned long long id = 0;
    if (gpuhal_cuda_api.cuMemAlloc_v2(&device->marker, 1) == CUDA_SUCCESS &&
        gpuhal_cuda_api.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, device->marker) == CUDA_SUCCESS) {
        device->marker_id = id;
    }
}

gpuhal_status gpuhal_cuda_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_CUDA_DEVICE;
    out_native->values[0] = (uintptr_t)device->context;
    out_native->values[1] = (uint64_t)device->entry->device;
    out_native->values[2] = (uintptr_t)device->foreign;
    out_native->values[3] = 0;
    return GPUHAL_OK;
}
