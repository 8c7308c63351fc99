/* child_open.c: opening in a process that has done nothing before. */
#include "bench.h"
#include "child.h"

#include <stdlib.h>
#include <string.h>

static bool lists(const gpuhal *gpu, const char *backend)
{
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        if (strcmp(gpuhal_device_backend(gpuhal_device_at(gpu, i)), backend) == 0) {
            return true;
        }
    }
    return gpuhal_bench_failed("%s lists no device", backend);
}

bool gpuhal_bench_child_list(const char *const *words, double *out_ns)
{
    const char *backend = words[0];
    const uint32_t isolation = strcmp(words[1], "here") == 0 ? GPUHAL_ISOLATION_NEVER : GPUHAL_ISOLATION_ALWAYS;
    gpuhal *gpu;
    const uint64_t start = gpuhal_bench_now_ns();
    if (!gpuhal_bench_open_alone(backend, isolation, &gpu)) {
        return false;
    }
    *out_ns = (double)(gpuhal_bench_now_ns() - start);
    const bool good = lists(gpu, backend);
    gpuhal_close(gpu);
    return good;
}

bool gpuhal_bench_child_list_direct(const char *const *words, double *out_ns)
{
    uint32_t sum = 0;
    const uint64_t start = gpuhal_bench_now_ns();
    for (size_t i = 0; words[i] != NULL && words[i + 1] != NULL; i += 2) {
        uint32_t count;
        if (!gpuhal_bench_baseline_list(words[i], words[i + 1], &count)) {
            return false;
        }
        sum += count;
    }
    *out_ns = (double)(gpuhal_bench_now_ns() - start);
    return sum > 0 || gpuhal_bench_failed("the vendors' libraries list no device");
}

/* Opens all plugins chosen by the user, probed in subprocesses or cached in the registry. */
static bool open_all(const char *registry, gpuhal **out_gpu)
{
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_ONCE, .registry = registry};
    static const char *const others[] = {"GPUHAL_ISOLATION", "GPUHAL_DEVICES", "GPUHAL_LOG", "GPUHAL_REGISTRY"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        unsetenv(others[i]);
    }
    return gpuhal_open(&config, out_gpu) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_open");
}

bool gpuhal_bench_child_list_all(const char *const *words, double *out_ns)
{
    gpuhal *gpu;
    const uint64_t start = gpuhal_bench_now_ns();
    if (!open_all(words[0], &gpu)) {
        return false;
    }
    *out_ns = (double)(gpuhal_bench_now_ns() - start);
    const uint32_t count = gpuhal_device_count(gpu);
    gpuhal_close(gpu);
    return count > 0 || gpuhal_bench_failed("there is no device");
}

/* Probes the plugin in this process, which does not free the device memory until it exits. */
bool gpuhal_bench_child_device_memory(const char *const *words, double *out_kib)
{
    const char *backend = words[0];
    const char *pci = words[1];
    const gpuhal_bench_vendor *vendor = gpuhal_bench_vendor_of(backend);
    gpuhal *gpu;
    double before;
    double after;
    if (vendor == NULL || vendor->device_memory == NULL) {
        return gpuhal_bench_failed("the memory of devices of %s is not known", backend);
    }
    if (!vendor->device_memory(pci, &before) || !gpuhal_bench_open_alone(backend, GPUHAL_ISOLATION_NEVER, &gpu)) {
        return false;
    }
    const bool good = lists(gpu, backend) && vendor->device_memory(pci, &after);
    if (good) {
        *out_kib = after - before;
    }
    gpuhal_close(gpu);
    return good;
}
