/* tests/fakes/cuda/state.c: the beginning of every call, initialization, and contexts.
 *
 * Each thread has a stack of contexts, initially empty. If the stack is empty, calls that require a context return
 * INVALID_CONTEXT. */
#include "fake.h"

#include <string.h>
#include <unistd.h>

enum { STACK = 32 };

static _Thread_local CUcontext stack[STACK]; /* the top is current; may contain destroyed contexts */
static _Thread_local unsigned depth;

/* Calls that enqueue work succeed, and their work reports the failure. */
bool fake_is_asynchronous(const char *function)
{
    return strstr(function, "Async") || strcmp(function, "cuLaunchKernel") == 0 ||
           strcmp(function, "cuGraphLaunch") == 0;
}

/* Returns success if the thread's current context is valid, otherwise the error for calls that require one. */
static CUresult check_current(const char *function)
{
    const fake_context *top = fake_current();
    if (!top) {
        fake_report_violation("%s: this thread has no current context", function);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!fake_context_alive(top)) {
        fake_report_violation("%s: the current context is destroyed", function);
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return top->error;
}

static CUresult begin(const char *function, CUresult fault, bool needs_context)
{
    if (fake_script_get()->init_code == CUDA_ERROR_STUB_LIBRARY) {
        return CUDA_ERROR_STUB_LIBRARY; /* as for every call of a stub library */
    }
    bool early = strcmp(function, "cuInit") == 0 || strcmp(function, "cuDriverGetVersion") == 0 ||
                 strstr(function, "cuGetError");
    if (!early && (!fake.initialized || fake.process != (long)getpid())) {
        fake_report_violation("%s: %s", function, fake.initialized ? "in the child of a fork" : "before cuInit");
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (fault) {
        return fault;
    }
    CUresult code = needs_context ? check_current(function) : CUDA_SUCCESS;
    return code ? code : fake_capture_check(function);
}

static CUresult enter(const char *function, bool needs_context)
{
    CUresult fault;
    fake_begin(function, &fault);
    CUresult code = begin(function, fault, needs_context);
    return code ? fake_leave(code) : CUDA_SUCCESS;
}

CUresult fake_enter(const char *function)
{
    return enter(function, false);
}

CUresult fake_enter_current(const char *function)
{
    return enter(function, true);
}

CUresult fake_enter_context(const char *function, CUcontext *out_context)
{
    CUresult code = enter(function, true);
    *out_context = code ? NULL : fake_current();
    return code;
}

CUresult fake_end(CUresult code)
{
    return fake_leave(code);
}

CUcontext fake_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult cuInit(unsigned int flags)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    const fake_script *script = fake_script_get();
    if (script->init_code || flags) {
        return fake_end(flags ? CUDA_ERROR_INVALID_VALUE : (CUresult)script->init_code);
    }
    if (fake.initialized && fake.process != (long)getpid()) {
        return fake_end(CUDA_ERROR_NOT_INITIALIZED);
    }
    if (!fake.initialized) {
        fake_devices_find();
        fake.process = (long)getpid();
        fake.initialized = fake.device_count > 0;
    }
    return fake_end(fake.initialized ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *version = fake_script_get()->driver_version;
    return fake_end(CUDA_SUCCESS);
}

/* In exclusive mode another process may already use the device. */
static CUresult may_have_context(const fake_device *device)
{
    bool refused = device->plan->compute_mode == CU_COMPUTEMODE_PROHIBITED ||
                   (device->plan->compute_mode == CU_COMPUTEMODE_EXCLUSIVE_PROCESS && device->plan->taken);
    return refused ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out_context, CUdevice ordinal)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    fake_device *device = fake_device_at(ordinal, &code);
    code = device ? may_have_context(device) : code;
    if (code) {
        return fake_end(code);
    }
    unsigned retains = 0; /* a reset context is recreated for all callers that retained it */
    if (device->primary && device->primary->error == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
        retains = device->primary->retains;
        fake_context_free(device->primary);
        device->primary = NULL;
    }
    if (!device->primary) {
        device->primary = fake_context_new((unsigned)ordinal, device->primary_flags, true);
    }
    if (!device->primary) {
        return fake_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    device->primary->retains += retains + 1;
    fake_report_get()->primary_retains++;
    *out_context = device->primary;
    return fake_end(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (ordinal < 0 || (unsigned)ordinal >= fake.device_count || !fake.devices[ordinal].primary) {
        fake_report_violation("%s: the primary context is not retained", __func__);
        return fake_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    fake_device *device = &fake.devices[ordinal];
    fake_report_get()->primary_retains--;
    if (--device->primary->retains == 0) {
        fake_context_free(device->primary);
        device->primary = NULL;
    }
    return fake_end(CUDA_SUCCESS);
}

/* All memory of the context is freed immediately, including host memory. Callers that retained the context must still
 * release it. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    fake_device *device = fake_device_at(ordinal, &code);
    if (device && device->primary) {
        fake_context_drain(device->primary);
        device->primary->error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        for (fake_region *region = fake.regions, *next; region; region = next) {
            next = region->next;
            if (region->context == device->primary) {
                fake_region_free(region);
            }
        }
    }
    return fake_end(code);
}

CUresult cuCtxCreate_v2(CUcontext *out_context, unsigned int flags, CUdevice ordinal)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    fake_device *device = fake_device_at(ordinal, &code);
    code = device ? may_have_context(device) : code;
    if (code || depth == STACK) {
        return fake_end(code ? code : CUDA_ERROR_OUT_OF_MEMORY);
    }
    CUcontext context = fake_context_new((unsigned)ordinal, flags, false);
    if (!context) {
        return fake_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    stack[depth++] = *out_context = context;
    return fake_end(CUDA_SUCCESS);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (!fake_context_alive(context) || context->primary) {
        fake_report_violation("%s: no context, or a primary one", __func__);
        return fake_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (depth && stack[depth - 1] == context) {
        depth--;
    }
    fake_context_free(context);
    return fake_end(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *out_context)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *out_context = fake_current();
    return fake_end(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (!fake_context_alive(context) || depth == STACK) {
        fake_report_violation("%s: no context, a destroyed one, or too many", __func__);
        return fake_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    stack[depth++] = context;
    return fake_end(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out_context)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (!depth) {
        fake_report_violation("%s: the stack is empty", __func__);
        return fake_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    depth--;
    if (out_context) {
        *out_context = stack[depth];
    }
    return fake_end(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (context && !fake_context_alive(context)) {
        return fake_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    depth -= depth > 0;
    if (context) {
        stack[depth++] = context;
    }
    return fake_end(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice(CUdevice *out_device)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    *out_device = (CUdevice)context->device;
    return fake_end(CUDA_SUCCESS);
}
