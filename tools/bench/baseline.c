/* baseline.c: which baseline belongs to a device, and the vendor's library behind it. */
#include "baseline.h"
#include "baseline_opencl.h"
#include "baseline_stream.h"
#include "baseline_vulkan.h"
#include "measure.h"

#include <gpuhal/native.h>

#include <dlfcn.h>
#include <string.h>

/* One API whose direct calls are known: those with streams share a shape, the others make a baseline of their own. */
typedef struct api {
    const char *backend;
    gpuhal_native_type device_type;
    const gpuhal_bench_stream_driver *driver;
    gpuhal_bench_baseline *(*create)(void *library, const gpuhal_native *device);
    bool (*list)(void *library, uint32_t *out_count);
} api;

/* A build without the headers of OpenCL or Vulkan does not know their calls. */
static const api apis[] = {
#if GPUHAL_BENCH_OPENCL
    {"opencl", GPUHAL_NATIVE_OPENCL_DEVICE, NULL, gpuhal_bench_opencl_create, gpuhal_bench_opencl_list},
#endif
#if GPUHAL_BENCH_VULKAN
    {"vulkan", GPUHAL_NATIVE_VULKAN_DEVICE, NULL, gpuhal_bench_vulkan_create, gpuhal_bench_vulkan_list},
#endif
    {"cuda", GPUHAL_NATIVE_CUDA_DEVICE, &gpuhal_bench_cuda_driver, NULL, NULL},
    {"rocm", GPUHAL_NATIVE_HIP_DEVICE, &gpuhal_bench_hip_driver, NULL, NULL},
};

static const api *api_of(const char *backend)
{
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        if (strcmp(apis[i].backend, backend) == 0) {
            return &apis[i];
        }
    }
    return NULL;
}

bool gpuhal_bench_baseline_is_known(const char *backend)
{
    return api_of(backend) != NULL;
}

const char *gpuhal_bench_vendor_library(const gpuhal *gpu, const char *backend)
{
    for (uint32_t i = 0; i < gpuhal_plugin_count(gpu); i++) {
        gpuhal_plugin_report report = {.size = sizeof report};
        if (gpuhal_plugin_report_get(gpu, i, &report) == GPUHAL_OK && strcmp(report.name, backend) == 0 &&
            *report.driver != '\0') {
            return report.driver;
        }
    }
    gpuhal_bench_failed("no report names the vendor's library of %s", backend);
    return NULL;
}

bool gpuhal_bench_find_symbols(const char *name, void *library, const gpuhal_bench_symbol *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, symbols[i].name);
        if (function == NULL) {
            return gpuhal_bench_failed("the library of %s has no %s", name, symbols[i].name);
        }
        memcpy(symbols[i].slot, &function, sizeof function);
    }
    return true;
}

static void *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        gpuhal_bench_failed("%s", dlerror());
    }
    return library;
}

bool gpuhal_bench_baseline_list(const char *backend, const char *library, uint32_t *out_count)
{
    const api *known = api_of(backend);
    if (known == NULL) {
        return gpuhal_bench_failed("no direct calls of %s are known", backend);
    }
    void *loaded = load(library);
    *out_count = 0;
    return loaded != NULL && (known->driver != NULL ? gpuhal_bench_stream_list(known->driver, loaded, out_count)
                                                    : known->list(loaded, out_count));
}

gpuhal_bench_baseline *gpuhal_bench_baseline_create(const gpuhal *gpu, gpuhal_device *device)
{
    const char *backend = gpuhal_device_backend(device);
    const api *known = api_of(backend);
    gpuhal_native native = {.size = sizeof native};
    if (gpuhal_device_native(device, &native) != GPUHAL_OK) {
        gpuhal_bench_failed_call("gpuhal_device_native");
        return NULL;
    }
    if (known == NULL || known->device_type != native.type) {
        gpuhal_bench_failed("no direct calls are known for native type %u of %s", (unsigned)native.type, backend);
        return NULL;
    }
    const char *path = gpuhal_bench_vendor_library(gpu, backend);
    void *library = path != NULL ? load(path) : NULL;
    if (library == NULL) {
        return NULL;
    }
    return known->driver != NULL ? gpuhal_bench_stream_create(known->driver, library, &native)
                                 : known->create(library, &native);
}

void gpuhal_bench_baseline_destroy(gpuhal_bench_baseline *baseline)
{
    if (baseline != NULL) {
        baseline->calls->destroy(baseline);
    }
}
