/* rows_share.c: letting another device see 1 GiB of host memory without copying: the time, beside the calls written by hand, and
 * the memory that it takes.
 *
 * One buffer of cpu:0 is what all sides show to the device: the library as a buffer that is shared, the library as memory of the
 * caller's that is imported, and the vendor's own calls. Each time the device's view is released again. CUDA and HIP page-lock the
 * memory for it, page after page, so that there the time as such has no budget. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double time_budget_ns = 100e3;
static const double memory_budget_kib = 1024;
static const uint64_t usual_bytes = UINT64_C(1) << 30;
static const uint64_t quick_bytes = UINT64_C(16) << 20;

enum { SHARE, IMPORT, DIRECT, SIDES };

typedef struct sharing {
    gpuhal_device *device;
    gpuhal_buffer *buffer; /* Of another device. */
    gpuhal_bench_baseline *baseline;
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

static bool run_import(void *user, uint64_t count)
{
    const sharing *s = user;
    for (uint64_t i = 0; i < count; i++) {
        const gpuhal_host_import import = {
            .size = sizeof import, .memory = gpuhal_buffer_host(s->buffer), .bytes = gpuhal_buffer_bytes(s->buffer)};
        gpuhal_buffer *imported;
        uint64_t offset;
        if (gpuhal_buffer_import_host(s->device, &import, &imported, &offset) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_buffer_import_host");
        }
        gpuhal_buffer_release(imported);
    }
    return true;
}

static bool run_direct(void *user, uint64_t count)
{
    const sharing *s = user;
    return s->baseline->calls->import_host(s->baseline, gpuhal_buffer_host(s->buffer), gpuhal_buffer_bytes(s->buffer), count);
}

static gpuhal_bench_row row_with(const gpuhal_device *device, const gpuhal_device *owner, const char *test)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(device, test, GPUHAL_BENCH_AMOUNT);
    row.peer = gpuhal_device_id(owner);
    row.peer_software = gpuhal_bench_is_software(owner);
    return row;
}

/* The time as such has the budget; how much more it is than the vendor's calls stands beside it. */
static void add_rows(gpuhal_bench *bench, const sharing *s, size_t side, const char *test, const char *more)
{
    const gpuhal_device *owner = gpuhal_buffer_device(s->buffer);
    gpuhal_bench_row row = row_with(s->device, owner, test);
    row.budget = gpuhal_bench_is_streamed(s->device) ? NAN : time_budget_ns;
    gpuhal_bench_report(bench, row, side, side);
    if (bench->options->baseline) {
        gpuhal_bench_report(bench, row_with(s->device, owner, more), side, DIRECT);
    }
}

static bool exportable(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = bytes, .export_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER};
    return gpuhal_buffer_create(device, &desc, out_buffer) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_buffer_create");
}

static uint64_t bytes_of(const gpuhal_bench *bench)
{
    return bench->options->quick ? quick_bytes : usual_bytes;
}

static bool seen_from(gpuhal_bench *bench, gpuhal_device *owner, gpuhal_device *device)
{
    sharing s = {.device = device};
    const gpuhal_bench_side sides[SIDES] = {{run_share, &s, NULL}, {run_import, &s, NULL}, {run_direct, &s, NULL}};
    const gpuhal_bench_plan plan =
        gpuhal_bench_is_streamed(device) ? gpuhal_bench_plan_copies(bench, false) : gpuhal_bench_plan_calls(bench);
    bool good = exportable(owner, bytes_of(bench), &s.buffer);
    if (good && gpuhal_buffer_host(s.buffer) == NULL) {
        good = gpuhal_bench_failed("the host does not see memory of %s", gpuhal_device_id(owner));
    }
    good = good && (s.baseline = gpuhal_bench_baseline_create(bench->gpu, device)) != NULL &&
           gpuhal_bench_measure(sides, bench->options->baseline ? SIDES : DIRECT, &plan, &bench->times);
    if (good) {
        add_rows(bench, &s, SHARE, "share", "share_more");
        add_rows(bench, &s, IMPORT, "import_host", "import_more");
    }
    gpuhal_bench_baseline_destroy(s.baseline);
    gpuhal_buffer_release(s.buffer);
    return good;
}

/* Measured in a fresh process, where nothing that was released is still resident. */
static void memory(gpuhal_bench *bench, const gpuhal_device *owner, const gpuhal_device *device)
{
    gpuhal_bench_row row = row_with(device, owner, "share_memory");
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
    if (!gpuhal_bench_baseline_is_known(device)) {
        return;
    }
    if (cpu == NULL || gpuhal_share_query(cpu, GPUHAL_MEMORY_DEVICE, device, &handle, &why) != GPUHAL_OK) {
        gpuhal_bench_note(bench->output, gpuhal_device_id(device), "share", why);
        return;
    }
    const gpuhal_bench_row row = row_with(device, cpu, "share");
    gpuhal_bench_begin(bench->output, &row);
    if (seen_from(bench, cpu, device)) {
        memory(bench, cpu, device);
    } else {
        gpuhal_bench_not_measured(bench);
    }
}
