/* baseline.c: finds the baseline of a device, and the vendor's library behind it. */
#include "baselines.h"
#include "failure.h"

#include <gpuhal/native.h>

#include <dlfcn.h>
#include <string.h>

const gpuhal_bench_vendor *gpuhal_bench_vendor_of(const char *backend)
{
    for (size_t i = 0; i < gpuhal_bench_baselines_here.vendor_count; i++) {
        if (strcmp(gpuhal_bench_baselines_here.vendors[i].backend, backend) == 0) {
            return &gpuhal_bench_baselines_here.vendors[i];
        }
    }
    return NULL;
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
    const gpuhal_bench_vendor *known = gpuhal_bench_vendor_of(backend);
    if (known == NULL) {
        return gpuhal_bench_failed("no direct calls of %s are known", backend);
    }
    void *loaded = load(library);
    *out_count = 0;
    return loaded != NULL && known->list(loaded, out_count);
}

gpuhal_bench_baseline *gpuhal_bench_baseline_create(const gpuhal *gpu, gpuhal_device *device)
{
    const char *backend = gpuhal_device_backend(device);
    const gpuhal_bench_vendor *known = gpuhal_bench_vendor_of(backend);
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
    return library != NULL ? known->create(library, &native) : NULL;
}

void gpuhal_bench_baseline_destroy(gpuhal_bench_baseline *baseline)
{
    if (baseline != NULL) {
        baseline->calls->destroy(baseline);
    }
}
