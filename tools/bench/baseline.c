/* baseline.c: finds a device's baseline, and the vendor's library that the plugin uses. */
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

bool gpuhal_bench_find_report(const gpuhal *gpu, const char *backend, gpuhal_plugin_report *out_report)
{
    gpuhal_view *view = NULL;
    bool found = false;
    *out_report = (gpuhal_plugin_report){.size = sizeof *out_report};
    if (gpuhal_view_of(gpu, 0, &view) != GPUHAL_OK) {
        return gpuhal_bench_failed("%s", gpuhal_last_error()->sentence);
    }
    for (uint32_t i = 0; !found && gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, out_report) == GPUHAL_OK; i++) {
        found = out_report->state == GPUHAL_PLUGIN_OK && strcmp(out_report->name, backend) == 0;
    }
    gpuhal_view_release(view);
    return found || gpuhal_bench_failed("the library uses no plugin %s", backend);
}

const char *gpuhal_bench_vendor_library(const gpuhal *gpu, const char *backend)
{
    gpuhal_plugin_report report;
    if (!gpuhal_bench_find_report(gpu, backend, &report)) {
        return NULL;
    }
    if (*report.driver == '\0') {
        gpuhal_bench_failed("no report names the vendor's library of %s", backend);
        return NULL;
    }
    return report.driver;
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
