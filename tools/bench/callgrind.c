/* callgrind.c: a run that differs from another in nothing but the number of calls, so that the difference of two instruction
 * counts, divided by the difference of the calls, is what one call costs. */
#include "callgrind.h"
#include "bench.h"
#include "child.h"
#include "direct.h"

#include <stdio.h>
#include <string.h>

enum { CALL_BYTES = 64, BUFFER_BYTES = 4096 };

static bool ours(gpuhal_device *device, uint64_t count)
{
    gpuhal_buffer *to = NULL;
    gpuhal_buffer *from = NULL;
    const gpuhal_memory_kind kind = gpuhal_bench_call_kind(device);
    bool good =
        gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &to) && gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &from);
    for (uint64_t i = 0; good && i < count; i++) {
        good = gpuhal_copy(NULL, to, 0, from, 0, CALL_BYTES) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_copy");
    }
    gpuhal_buffer_release(to);
    gpuhal_buffer_release(from);
    return good;
}

static bool direct(gpuhal *gpu, gpuhal_device *device, uint64_t count)
{
    gpuhal_bench_direct direct;
    if (gpuhal_device_open(device) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_device_open");
    }
    if (!gpuhal_bench_direct_open(gpu, device, gpuhal_bench_call_kind(device), BUFFER_BYTES, &direct)) {
        return false;
    }
    const bool good = gpuhal_bench_direct_copy(&direct, CALL_BYTES, count);
    gpuhal_bench_direct_close(&direct);
    return good;
}

bool gpuhal_bench_callgrind_loop(const char *selector, uint64_t count, const char *kind)
{
    char backend[64];
    gpuhal *gpu;
    gpuhal_device *device;
    snprintf(backend, sizeof backend, "%.*s", (int)strcspn(selector, ":"), selector);
    if (!gpuhal_bench_open_alone(backend, GPUHAL_ISOLATION_NEVER, &gpu)) {
        return false;
    }
    bool good = gpuhal_select(gpu, selector, 0, &device, NULL) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_select");
    good = good && (strcmp(kind, "ours") == 0 ? ours(device, count) : direct(gpu, device, count));
    gpuhal_close(gpu);
    return good;
}
