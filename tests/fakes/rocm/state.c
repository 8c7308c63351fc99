/* tests/fakes/rocm/state.c: the beginning and end of every call, initialization, the current device, and the last
 * error.
 *
 * Each thread has a current device, initially 0, and a last error. The last error remains until hipGetLastError()
 * clears it or another call replaces it. Before HIP 7 every call replaces it, even a successful one. Since HIP 7 only
 * a call that fails replaces it, and hipErrorNotReady is no failure. The first call that works on a device creates
 * the device's context. Only hipDeviceReset() destroys the context. The next call that works on the device creates a
 * new context. */
#include "fake.h"

#include <string.h>
#include <unistd.h>

static _Thread_local int current;
static _Thread_local hipError_t last;

bool fake_is_asynchronous(const char *function)
{
    return strstr(function, "Async") || strcmp(function, "hipModuleLaunchKernel") == 0 ||
           strcmp(function, "hipGraphLaunch") == 0;
}

unsigned fake_hip_major(void)
{
    return (unsigned)fake_script_get()->driver_version / 10000000;
}

/* The first call of any kind initializes the runtime; if this fails, every call returns the error. */
static hipError_t initialize(const char *function)
{
    const fake_script *script = fake_script_get();
    if (fake.initialized && fake.process != (long)getpid()) {
        fake_report_violation("%s: in the child of a fork", function);
        return hipErrorNotInitialized;
    }
    if (!fake.initialized) {
        fake_devices_find();
        fake.process = (long)getpid();
        fake.initialized = true;
    }
    if (script->init_code) {
        return (hipError_t)script->init_code;
    }
    bool early = strcmp(function, "hipGetDeviceCount") == 0 || strcmp(function, "hipRuntimeGetVersion") == 0;
    return fake.device_count || early ? hipSuccess : fake_hip_major() < 6 ? hipErrorInvalidDevice : hipErrorNoDevice;
}

hipError_t fake_end(hipError_t code)
{
    const bool kept = fake_hip_major() >= 7 && (code == hipSuccess || code == hipErrorNotReady);
    last = kept ? last : code;
    return fake_leave(code);
}

hipError_t fake_enter(const char *function)
{
    hipError_t fault;
    fake_begin(function, &fault);
    hipError_t code = initialize(function);
    code = fault ? fault : code ? code : fake_capture_check(function);
    return code ? fake_end(code) : hipSuccess;
}

hipError_t fake_enter_context(const char *function, fake_context **out_context)
{
    fake_device *device;
    hipError_t code = fake_enter_device(function, current, &device);
    if (code) {
        return code;
    }
    if (!device->primary) {
        device->primary = fake_context_new((unsigned)current, 0, true);
    }
    if (!device->primary || device->primary->error) {
        return fake_end(device->primary ? device->primary->error : hipErrorOutOfMemory);
    }
    *out_context = device->primary;
    return hipSuccess;
}

hipError_t fake_enter_current(const char *function)
{
    return fake_enter(function);
}

fake_context *fake_current(void)
{
    return NULL;
}

hipError_t hipInit(unsigned int flags)
{
    hipError_t code = fake_enter(__func__);
    return code ? code : fake_end(flags ? hipErrorInvalidValue : hipSuccess);
}

hipError_t hipRuntimeGetVersion(int *version)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *version = fake_script_get()->driver_version;
    return fake_end(hipSuccess);
}

hipError_t hipGetDevice(int *device)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *device = current;
    return fake_end(hipSuccess);
}

/* A lost device can still be made current. */
hipError_t hipSetDevice(int device)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    if (device < 0 || (unsigned)device >= fake.device_count) {
        fake_report_violation("%s: there is no device %d", __func__, device);
        return fake_end(hipErrorInvalidDevice);
    }
    current = device;
    return fake_end(hipSuccess);
}

/* These two functions execute no faults, because the real ones do no work in the runtime. */
hipError_t hipPeekAtLastError(void)
{
    return last;
}

hipError_t hipGetLastError(void)
{
    hipError_t code = last;
    last = hipSuccess;
    return code;
}

/* Destroys the device's streams and memory and invalidates their handles. Page-locked memory belongs to all devices:
 * a reset frees it only if the process sees one device (device.cpp, MemObjMap::Purge frees only memory that belongs to
 * this device alone). */
hipError_t hipDeviceReset(void)
{
    fake_context *context = NULL;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_context_drain(context);
    fake_streams_lost(context);
    for (fake_region *region = fake.regions; region && fake.device_count > 1; region = region->next) {
        region->context = fake_region_is_host(region) && region->context == context ? NULL : region->context;
    }
    context->error = hipErrorContextIsDestroyed; /* the remaining objects are not leaks of the caller */
    fake_context_free(context);
    fake.devices[current].primary = NULL;
    return fake_end(hipSuccess);
}
