/* rows_share.c: giving another device access to 1 GiB of cpu:0's memory without copying. Measures the time, including
 * the release of the device's view, and the memory used. Only a thousandth of the bytes could be copied within the
 * budget, so the budget requires that sharing touches no page. The time has no budget with CUDA and HIP, because they
 * page-lock the memory page by page. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double time_budget = 1;
static const double memory_budget_kib = 1024;
static const uint64_t usual_bytes = UINT64_C(1) << 30;
static const uint64_t quick_bytes = UINT64_C(16) << 20;

enum { COPIED_PART = 1024 };

typedef struct sharing {
    gpuhal_device *device;
    gpuhal_buffer *buffer; /* On another device. */
    char *memory;          /* Source and destination of a copy, one after the other. */
    uint64_t copied_bytes;
} sharing;

static bool run_share(void *user, uint64_t count)
{
    const sharing *s = user;
    for (uint64_t i = 0; i < count; i++) {
        gpuhal_buffer *shared;
        if (gpuhal_buffer_share(s->buffer, s->device, &shared) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_buffer_share");
        }
        gpuhal_buffer_release(shared);
    }
    return true;
}

static bool run_memcpy(void *user, uint64_t count)
{
    const sharing *s = user;
    return gpuhal_bench_memcpys(s->memory, s->memory + s->copied_bytes, s->copied_bytes, count);
}

static gpuhal_bench_row row_with(const gpuhal_device *device, const gpuhal_device *owner, const char *test,
                                 gpuhal_bench_kind kind)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(device, test, kind);
    row.peer = gpuhal_device_id(owner);
    row.peer_software = gpuhal_bench_is_software(owner);
    return row;
}

static bool exportable(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = bytes, .export_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER};
    return gpuhal_buffer_create(device, &desc, out_buffer) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_buffer_create");
}

static uint64_t bytes_of(const gpuhal_bench *bench)
{
    return bench->options->quick ? quick_bytes : usual_bytes;
}

static bool measure(gpuhal_bench *bench, gpuhal_bench_row row, gpuhal_device *owner, gpuhal_device *device)
{
    sharing s = {.device = device, .copied_bytes = bytes_of(bench) / COPIED_PART};
    const gpuhal_bench_side sides[] = {{run_share, &s, NULL}, {run_memcpy, &s, NULL}};
    const gpuhal_bench_plan plan =
        gpuhal_bench_is_streamed(device) ? gpuhal_bench_plan_copies(bench, false) : gpuhal_bench_plan_calls(bench);
    s.memory = gpuhal_bench_host_memory(2 * s.copied_bytes);
    const bool good = s.memory != NULL && exportable(owner, bytes_of(bench), &s.buffer) &&
                      gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline ? 2 : 1, &plan);
    gpuhal_buffer_release(s.buffer);
    free(s.memory);
    return good;
}

/* Measures in a fresh process, because no released memory is resident in it. */
static void memory(gpuhal_bench *bench, const gpuhal_device *owner, const gpuhal_device *device)
{
    gpuhal_bench_row row = row_with(device, owner, "share_memory", GPUHAL_BENCH_AMOUNT);
    char bytes[24];
    snprintf(bytes, sizeof bytes, "%" PRIu64, bytes_of(bench));
    row.unit = "KiB";
    row.budget = memory_budget_kib;
    gpuhal_bench_child_row(bench, row, (const char *const[]){"sharing", row.peer, row.device, bytes, NULL});
}

void gpuhal_bench_rows_share(gpuhal_bench *bench, gpuhal_device *device)
{
    gpuhal_device *cpu = gpuhal_bench_cpu(bench->gpu);
    const char *why = "there is no CPU device to share with";
    gpuhal_handle_kind handle;
    if (gpuhal_bench_is_cpu(device)) {
        return;
    }
    if (cpu == NULL || gpuhal_share_query(cpu, GPUHAL_MEMORY_DEVICE, device, &handle, &why) != GPUHAL_OK) {
        gpuhal_bench_note(bench->output, gpuhal_device_id(device), "share", why);
        return;
    }
    gpuhal_bench_row row = row_with(device, cpu, "share", GPUHAL_BENCH_TIMES);
    row.budget = gpuhal_bench_is_streamed(device) ? NAN : time_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (measure(bench, row, cpu, device)) {
        memory(bench, cpu, device);
    } else {
        gpuhal_bench_not_measured(bench);
    }
}
