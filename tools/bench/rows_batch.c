/* rows_batch.c: 64 copies of 4 KiB on a queue of the library, submitted together, compared with the same copies awaited
 * one by one, and with one hand-written submission. */
#include "queued.h"

#include <math.h>
#include <string.h>

enum { PIECES = GPUHAL_BENCH_PIECES, PIECE_BYTES = 4096 };

/* Does not apply to PoCL's `basic`, which does not work asynchronously. */
static const double direct_budget = 1 / 1.15;
static const double synchronize_budget = 1 / 1.25;
static const double awaited_budget = 10;         /* on Vulkan */
static const double awaited_threaded_budget = 3; /* PoCL devices that wake a thread for each command anyway */

static bool run_batch(void *user, uint64_t count)
{
    const gpuhal_bench_queued *q = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_queued_enqueue(q, 0, PIECES) || !gpuhal_bench_queued_record(q) ||
            !gpuhal_bench_queued_await(q)) {
            return false;
        }
    }
    return true;
}

static bool run_synchronized(void *user, uint64_t count)
{
    const gpuhal_bench_queued *q = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_queued_enqueue(q, 0, PIECES) || !gpuhal_bench_queued_synchronize(q)) {
            return false;
        }
    }
    return true;
}

static bool run_awaited(void *user, uint64_t count)
{
    const gpuhal_bench_queued *q = user;
    for (uint64_t piece = 0; piece < count * PIECES; piece++) {
        if (!gpuhal_bench_queued_enqueue(q, piece % PIECES, 1) || !gpuhal_bench_queued_record(q) ||
            !gpuhal_bench_queued_await(q)) {
            return false;
        }
    }
    return true;
}

static bool run_direct(void *user, uint64_t count)
{
    const gpuhal_bench_queued *q = user;
    const gpuhal_bench_baseline_calls *calls = q->baseline->calls;
    for (uint64_t i = 0; i < count; i++) {
        if (!calls->enqueue(q->baseline, &q->native_to, &q->native_from, PIECE_BYTES, PIECES) ||
            !calls->submit(q->baseline) || !calls->await(q->baseline)) {
            return false;
        }
    }
    return true;
}

static void add_row(gpuhal_bench *bench, const gpuhal_device *device, const char *test, size_t side, double budget)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(device, test, GPUHAL_BENCH_TIMES);
    row.budget = budget;
    gpuhal_bench_report(bench, row, 0, side);
}

/* If a copy costs about as much as its submission, batching gains little. This applies if the copy is done inside the
 * call, and to CUDA and HIP. */
static double awaited_budget_of(const gpuhal_device *device)
{
    if (gpuhal_bench_is_threaded(device)) {
        return awaited_threaded_budget;
    }
    return strcmp(gpuhal_device_backend(device), "vulkan") == 0 ? awaited_budget : NAN;
}

static bool measure(gpuhal_bench *bench, const gpuhal_device *device, gpuhal_bench_queued *q)
{
    const gpuhal_bench_side batch = {run_batch, q, NULL};
    const gpuhal_bench_side awaited = {run_awaited, q, NULL};
    const gpuhal_bench_side direct = {run_direct, q, NULL};
    const bool has_direct = q->baseline != NULL;
    const gpuhal_bench_side sides[] = {batch, has_direct ? direct : awaited, awaited};
    const size_t side_count = !bench->options->baseline ? 1 : has_direct ? 3 : 2;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    for (size_t i = 0; i < side_count; i++) {
        if (!gpuhal_bench_queued_prove(q, &sides[i], 1, i + 1)) {
            return false;
        }
    }
    if (!gpuhal_bench_measure(sides, side_count, &plan, &bench->times)) {
        return false;
    }
    add_row(bench, device, "batch", has_direct ? 1 : 0, gpuhal_bench_is_inline(device) ? NAN : direct_budget);
    if (side_count > 1) {
        add_row(bench, device, "batch_awaited", side_count - 1, awaited_budget_of(device));
    }
    return true;
}

static bool measure_synchronized(gpuhal_bench *bench, const gpuhal_device *device, gpuhal_bench_queued *q)
{
    const gpuhal_bench_side sides[] = {{run_synchronized, q, NULL}, {run_direct, q, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    if (q->baseline == NULL) {
        return true;
    }
    if (!gpuhal_bench_queued_prove(q, &sides[0], 1, 4) || !gpuhal_bench_measure(sides, 2, &plan, &bench->times)) {
        return false;
    }
    add_row(bench, device, "batch_synchronize", 1, gpuhal_bench_is_inline(device) ? NAN : synchronize_budget);
    return true;
}

void gpuhal_bench_rows_batch(gpuhal_bench *bench, gpuhal_device *device)
{
    gpuhal_bench_queued q;
    const gpuhal_bench_row row = gpuhal_bench_row_of(device, "batch", GPUHAL_BENCH_TIMES);
    gpuhal_bench_begin(bench->output, &row);
    if (!gpuhal_bench_queued_open(bench, device, PIECE_BYTES, PIECES, &q) || !measure(bench, device, &q) ||
        !measure_synchronized(bench, device, &q)) {
        gpuhal_bench_not_measured(bench);
    }
    gpuhal_bench_queued_close(&q);
    const gpuhal_bench_vendor *vendor = gpuhal_bench_vendor_of(gpuhal_device_backend(device));
    if (vendor != NULL && vendor->rows_batch != NULL) {
        vendor->rows_batch(bench, device);
    }
}
