/* rows_copy.c: writing, reading and copying on one device over sizes.
 *
 * Devices are measured beside the vendor's own calls on the same native buffer and the same host pages. Where the API has no such
 * call, as Vulkan has none for host memory, or is none, as on the CPU, the baseline is memcpy on the addresses at which the host
 * sees the buffers; memory without an address is then measured alone. Page-locked memory follows for each size (rows_locked.c).
 * One warm buffer pair of the largest size would hide what small sizes cost, so each size has buffers of its own. */
#include "baseline.h"
#include "bench.h"
#include "rows_locked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double vendor_budget = 0.98; /* from 1 MiB, on devices with an API of their own */
static const double ordinary_budget = 1;  /* from 1 MiB, between ordinary host memory and CUDA or HIP */
static const double ring_budget = 1.3;    /* from 64 MiB, the same where the device has memory of its own */
static const double memcpy_budget = 0.95; /* from 16 MiB, on the CPU */

typedef struct transfer {
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    void *host;
    uint64_t bytes;
    gpuhal_bench_baseline *baseline; /* NULL: the device has no API beneath it. */
    gpuhal_native native_to;
    gpuhal_native native_from;
    void *host_to; /* NULL: the host does not see the buffers. */
    void *host_from;
} transfer;

static bool ours_write(void *user, uint64_t count)
{
    const transfer *t = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_write(NULL, t->to, 0, t->host, t->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_write");
        }
    }
    return true;
}

static bool ours_read(void *user, uint64_t count)
{
    const transfer *t = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_read(NULL, t->host, t->to, 0, t->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_read");
        }
    }
    return true;
}

static bool ours_copy(void *user, uint64_t count)
{
    const transfer *t = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_copy(NULL, t->to, 0, t->from, 0, t->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_copy");
        }
    }
    return true;
}

static bool memory_copy(void *to, const void *from, uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        memcpy(to, from, bytes);
        /* Without it the compiler may see that copying once is the same as copying often. */
        __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
    }
    return true;
}

static bool direct_write(void *user, uint64_t count)
{
    const transfer *t = user;
    return t->baseline != NULL && t->baseline->calls->write != NULL
               ? t->baseline->calls->write(t->baseline, &t->native_to, t->host, t->bytes, count)
               : memory_copy(t->host_to, t->host, t->bytes, count);
}

static bool direct_read(void *user, uint64_t count)
{
    const transfer *t = user;
    return t->baseline != NULL && t->baseline->calls->read != NULL
               ? t->baseline->calls->read(t->baseline, t->host, &t->native_to, t->bytes, count)
               : memory_copy(t->host, t->host_to, t->bytes, count);
}

static bool direct_copy(void *user, uint64_t count)
{
    const transfer *t = user;
    return t->baseline != NULL ? t->baseline->calls->copy(t->baseline, &t->native_to, &t->native_from, t->bytes, count)
                               : memory_copy(t->host_to, t->host_from, t->bytes, count);
}

enum { WRITE, READ, COPY, DIRECTIONS };

static const struct {
    const char *test;
    bool (*ours)(void *user, uint64_t count);
    bool (*direct)(void *user, uint64_t count);
} directions[DIRECTIONS] = {
    [WRITE] = {"write", ours_write, direct_write},
    [READ] = {"read", ours_read, direct_read},
    [COPY] = {"copy", ours_copy, direct_copy},
};

static bool is_compared(const transfer *t, size_t direction)
{
    const bool has_call = t->baseline != NULL && (direction == COPY || t->baseline->calls->write != NULL);
    return has_call || (t->host_to != NULL && t->host_from != NULL);
}

static bool has_own_memory(const gpuhal_device *device)
{
    uint64_t type;
    return gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type) == GPUHAL_OK && type == GPUHAL_DEVICE_GPU;
}

static double budget_of(const gpuhal_device *device, const transfer *t, size_t direction)
{
    if (!is_compared(t, direction)) {
        return NAN;
    }
    if (gpuhal_bench_is_streamed(device) && direction != COPY && t->bytes >= UINT64_C(1) << 20) {
        return t->bytes >= UINT64_C(64) << 20 && has_own_memory(device) ? ring_budget : ordinary_budget;
    }
    if (t->baseline != NULL) {
        return t->bytes >= UINT64_C(1) << 20 ? vendor_budget : NAN;
    }
    return t->bytes >= UINT64_C(16) << 20 ? memcpy_budget : NAN;
}

static void measure(gpuhal_bench *bench, gpuhal_device *device, transfer *t, size_t direction)
{
    const char *test = directions[direction].test;
    const gpuhal_bench_side sides[] = {{directions[direction].ours, t, NULL}, {directions[direction].direct, t, NULL}};
    const bool compared = bench->options->baseline && is_compared(t, direction);
    const double budget = budget_of(device, t, direction);
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, !isnan(budget));
    gpuhal_bench_progress(bench->output, gpuhal_device_id(device), test, t->bytes);
    if (!gpuhal_bench_measure(sides, compared ? 2 : 1, &plan, &bench->times)) {
        gpuhal_bench_failed_row(bench->output, gpuhal_device_id(device), test, gpuhal_bench_failure());
        return;
    }
    gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_RATIO,
        .device = gpuhal_device_id(device),
        .test = test,
        .bytes = t->bytes,
        .budget = budget,
        .software = gpuhal_bench_is_software(device),
    };
    gpuhal_bench_row_take(bench, 0, compared ? 1 : 0, &row);
    gpuhal_bench_row_add(bench->output, &row);
}

static bool prepare(gpuhal_device *device, transfer *t)
{
    if (!gpuhal_bench_buffer(device, t->bytes, &t->to) || !gpuhal_bench_buffer(device, t->bytes, &t->from) ||
        (t->host = gpuhal_bench_host_memory(t->bytes)) == NULL) {
        return false;
    }
    t->host_to = gpuhal_buffer_host(t->to);
    t->host_from = gpuhal_buffer_host(t->from);
    t->native_to = (gpuhal_native){.size = sizeof t->native_to};
    t->native_from = (gpuhal_native){.size = sizeof t->native_from};
    if (t->baseline != NULL && (gpuhal_buffer_native(t->to, &t->native_to) != GPUHAL_OK ||
                                gpuhal_buffer_native(t->from, &t->native_from) != GPUHAL_OK)) {
        return gpuhal_bench_failed_call("gpuhal_buffer_native");
    }
    return gpuhal_bench_prove(t->to, t->from, t->host, t->bytes);
}

static void one_size(gpuhal_bench *bench, gpuhal_device *device, gpuhal_bench_baseline *baseline, uint64_t bytes)
{
    transfer t = {.bytes = bytes, .baseline = baseline};
    if (!gpuhal_bench_fits(bench, device, device, "copy", bytes)) {
        return;
    }
    if (prepare(device, &t)) {
        for (size_t i = 0; i < DIRECTIONS; i++) {
            measure(bench, device, &t, i);
        }
    } else {
        gpuhal_bench_not_measured(bench, gpuhal_device_id(device), "copy", t.from == NULL);
    }
    free(t.host);
    gpuhal_buffer_release(t.to);
    gpuhal_buffer_release(t.from);
    gpuhal_bench_rows_locked(bench, device, baseline, bytes);
}

void gpuhal_bench_rows_copy(gpuhal_bench *bench)
{
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(bench->gpu, i);
        if (!gpuhal_bench_wants(bench, device)) {
            continue;
        }
        gpuhal_bench_baseline *baseline = NULL;
        if (gpuhal_bench_baseline_is_known(device) && (baseline = gpuhal_bench_baseline_create(bench->gpu, device)) == NULL) {
            gpuhal_bench_failed_row(bench->output, gpuhal_device_id(device), "copy", gpuhal_bench_failure());
            continue;
        }
        for (size_t s = 0; s < bench->options->size_count; s++) {
            one_size(bench, device, baseline, bench->options->sizes[s]);
        }
        gpuhal_bench_baseline_destroy(baseline);
    }
}
