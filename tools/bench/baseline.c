/* baseline.c: which baseline belongs to a device. */
#include "baseline.h"
#include "baseline_opencl.h"
#include "baseline_vulkan.h"
#include "measure.h"

#include <gpuhal/native.h>

#include <string.h>

bool gpuhal_bench_baseline_is_known(gpuhal_device *device)
{
    const char *backend = gpuhal_device_backend(device);
    return strcmp(backend, "opencl") == 0 || strcmp(backend, "vulkan") == 0;
}

gpuhal_bench_baseline *gpuhal_bench_baseline_create(const gpuhal *gpu, gpuhal_device *device)
{
    gpuhal_native native = {.size = sizeof native};
    if (gpuhal_device_native(device, &native) != GPUHAL_OK) {
        gpuhal_bench_failed_call("gpuhal_device_native");
        return NULL;
    }
    return gpuhal_bench_baseline_create_native(gpu, &native);
}

gpuhal_bench_baseline *gpuhal_bench_baseline_create_native(const gpuhal *gpu, const gpuhal_native *device)
{
    switch (device->type) {
    case GPUHAL_NATIVE_OPENCL_DEVICE:
        return gpuhal_bench_opencl_create(gpu, device);
    case GPUHAL_NATIVE_VULKAN_DEVICE:
        return gpuhal_bench_vulkan_create(device);
    default:
        gpuhal_bench_failed("no direct calls are known for native type %u", (unsigned)device->type);
        return NULL;
    }
}

void gpuhal_bench_baseline_destroy(gpuhal_bench_baseline *baseline)
{
    if (baseline != NULL) {
        baseline->calls->destroy(baseline);
    }
}
