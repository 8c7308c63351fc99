/* rows_batch.c: 64 copies of 4 KiB handed over together, beside the same copies awaited one by one, and beside one submission
 * written by hand.
 *
 * The plugin's queue is driven through plugin.h. All sides use the same opening of the device and the same two allocations, and
 * the pieces do not touch each other, so nothing forbids to run them in any order. */
#include "baseline.h"
#include "bench.h"
#include "direct.h"

#include <math.h>
#include <string.h>

enum { PIECES = 64, PIECE_BYTES = 4096, ALL_BYTES = PIECES * PIECE_BYTES };

static const double awaited_budget = 10;
static const double awaited_threaded_budget = 3; /* PoCL's devices that wake a thread for each command anyway */
static const double direct_budget = 1 / 1.15;
static const uint64_t patience_ns = UINT64_C(10000000000);

typedef struct batch {
    gpuhal_bench_direct direct;
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    gpuhal_bench_baseline *baseline; /* NULL: nothing to compare one submission with. */
    gpuhal_native native_to;
    gpuhal_native native_from;
} batch;

static bool answered(const char *slot, gpuhal_status status)
{
    return status == GPUHAL_OK || gpuhal_bench_failed("the plugin's %s: %s", slot, gpuhal_status_name(status));
}

static bool enqueue(const batch *b, uint64_t piece)
{
    const gpuhal_bench_direct *d = &b->direct;
    const uint64_t at = piece * PIECE_BYTES;
    return answered("copy", d->as.ops.copy(d->device, b->queue, &d->to, at, &d->from, at, PIECE_BYTES));
}

/* What the core does to wait on a queue: an event, which flushes, and then the plugin's wait, or polling where it has none. */
static bool await(const batch *b)
{
    const gpuhal_ops *ops = &b->direct.as.ops;
    if (!answered("event_record", ops->event_record(b->queue, b->event))) {
        return false;
    }
    if (ops->event_block != NULL) {
        return answered("event_block", ops->event_block(b->event, patience_ns));
    }
    gpuhal_status status = GPUHAL_NOT_READY;
    for (const uint64_t end = gpuhal_bench_now_ns() + patience_ns; status == GPUHAL_NOT_READY && gpuhal_bench_now_ns() < end;) {
        status = ops->event_query(b->event);
    }
    return answered("event_query", status);
}

static bool run_batch(void *user, uint64_t count)
{
    const batch *b = user;
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t piece = 0; piece < PIECES; piece++) {
            if (!enqueue(b, piece)) {
                return false;
            }
        }
        if (!await(b)) {
            return false;
        }
    }
    return true;
}

static bool run_awaited(void *user, uint64_t count)
{
    const batch *b = user;
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t piece = 0; piece < PIECES; piece++) {
            if (!enqueue(b, piece) || !await(b)) {
                return false;
            }
        }
    }
    return true;
}

static bool run_direct(void *user, uint64_t count)
{
    const batch *b = user;
    return b->baseline->calls->batch(b->baseline, &b->native_to, &b->native_from, PIECE_BYTES, PIECES, count);
}

/* Host writes towards the device, or the other way round, where the memory is not coherent. */
static bool clean(const gpuhal_bench_direct *d, const gpuhal_memory *memory, int32_t invalidate)
{
    return (memory->flags & GPUHAL_MEMORY_HOST_COHERENT) != 0 || d->as.ops.clean == NULL ||
           answered("clean", d->as.ops.clean(d->device, memory, 0, ALL_BYTES, invalidate));
}

/* Runs @run once on a pattern and looks at every byte that it moved. */
static bool prove_with(batch *b, bool (*run)(void *user, uint64_t count), const gpuhal_memory *upload,
                       const gpuhal_memory *readback, uint64_t seed)
{
    const gpuhal_bench_direct *d = &b->direct;
    const gpuhal_ops *ops = &d->as.ops;
    memset(upload->host, 0x5a, ALL_BYTES);
    if (!clean(d, upload, 0) || !answered("copy", ops->copy(d->device, NULL, &d->to, 0, upload, 0, ALL_BYTES))) {
        return false;
    }
    gpuhal_bench_pattern(upload->host, ALL_BYTES, seed);
    if (!clean(d, upload, 0) || !answered("copy", ops->copy(d->device, NULL, &d->from, 0, upload, 0, ALL_BYTES)) || !run(b, 1) ||
        !answered("copy", ops->copy(d->device, NULL, readback, 0, &d->to, 0, ALL_BYTES)) || !clean(d, readback, 1)) {
        return false;
    }
    return gpuhal_bench_pattern_is(readback->host, ALL_BYTES, seed) ||
           gpuhal_bench_failed("the bytes that came back are others than went out");
}

static bool prove(batch *b)
{
    const gpuhal_bench_direct *d = &b->direct;
    gpuhal_memory upload;
    gpuhal_memory readback;
    if (!gpuhal_bench_direct_allocate(d, GPUHAL_MEMORY_UPLOAD, ALL_BYTES, &upload)) {
        return false;
    }
    bool good = gpuhal_bench_direct_allocate(d, GPUHAL_MEMORY_READBACK, ALL_BYTES, &readback);
    if (good) {
        good = prove_with(b, run_batch, &upload, &readback, 1) && prove_with(b, run_awaited, &upload, &readback, 2) &&
               (b->baseline == NULL || prove_with(b, run_direct, &upload, &readback, 3));
        d->as.ops.release(d->device, &readback);
    }
    d->as.ops.release(d->device, &upload);
    return good;
}

/* The hand-written side, on the objects of this opening. */
static bool open_baseline(const gpuhal *gpu, batch *b)
{
    const gpuhal_bench_direct *d = &b->direct;
    const gpuhal_ops *ops = &d->as.ops;
    gpuhal_native device = {.size = sizeof device};
    if (ops->native_device == NULL || ops->native_memory == NULL) {
        return true;
    }
    b->native_to = (gpuhal_native){.size = sizeof b->native_to};
    b->native_from = (gpuhal_native){.size = sizeof b->native_from};
    if (!answered("native_device", ops->native_device(d->device, &device)) ||
        !answered("native_memory", ops->native_memory(d->device, &d->to, &b->native_to)) ||
        !answered("native_memory", ops->native_memory(d->device, &d->from, &b->native_from))) {
        return false;
    }
    b->baseline = gpuhal_bench_baseline_create_native(gpu, &device);
    if (b->baseline != NULL && b->baseline->calls->batch == NULL) {
        gpuhal_bench_baseline_destroy(b->baseline);
        b->baseline = NULL;
        return true;
    }
    return b->baseline != NULL;
}

static void add_row(gpuhal_bench *bench, const gpuhal_device *device, const char *test, size_t side, double budget)
{
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_TIMES,
        .device = gpuhal_device_id(device),
        .test = test,
        .unit = "ns",
        .ours = gpuhal_bench_time(&bench->times, 0).median,
        .baseline = gpuhal_bench_time(&bench->times, side).median,
        .result = gpuhal_bench_ratio(&bench->times, side, 0),
        .budget = budget,
        .software = gpuhal_bench_is_software(device),
    };
    gpuhal_bench_row_add(bench->output, &row);
}

static bool measure(gpuhal_bench *bench, const gpuhal_device *device, batch *b)
{
    const bool compared = b->baseline != NULL;
    const gpuhal_bench_side sides[] = {{run_batch, b}, {compared ? run_direct : run_awaited, b}, {run_awaited, b}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench);
    gpuhal_bench_progress(bench->output, gpuhal_device_id(device), "batch", 0);
    if (!prove(b) || !gpuhal_bench_measure(sides, compared ? 3 : 2, &plan, &bench->times)) {
        return false;
    }
    if (compared) {
        add_row(bench, device, "batch_direct", 1, direct_budget);
    }
    const bool works_inline = gpuhal_bench_is_inline(device);
    const double budget = works_inline ? NAN : gpuhal_bench_is_threaded(device) ? awaited_threaded_budget : awaited_budget;
    add_row(bench, device, "batch_awaited", compared ? 2 : 1, budget);
    return true;
}

static bool with_queue(gpuhal_bench *bench, const gpuhal_device *device, batch *b)
{
    const gpuhal_ops *ops = &b->direct.as.ops;
    if (!answered("queue_create", ops->queue_create(b->direct.device, 0, 0, NULL, &b->queue))) {
        return false;
    }
    bool good = answered("event_create", ops->event_create(b->direct.device, 0, &b->event));
    if (good) {
        good = open_baseline(bench->gpu, b) && measure(bench, device, b);
        gpuhal_bench_baseline_destroy(b->baseline);
        ops->event_destroy(b->event);
    }
    ops->queue_destroy(b->queue);
    return good;
}

void gpuhal_bench_rows_batch(gpuhal_bench *bench)
{
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(bench->gpu, i);
        const char *id = gpuhal_device_id(device);
        batch b = {0};
        if (!gpuhal_bench_wants(bench, device)) {
            continue;
        }
        /* The library's own opening has started the plugin. */
        if (gpuhal_device_open(device) != GPUHAL_OK) {
            gpuhal_bench_failed_call("gpuhal_device_open");
            gpuhal_bench_failed_row(bench->output, id, "batch", gpuhal_bench_failure());
            continue;
        }
        if (!gpuhal_bench_direct_open(bench->gpu, device, ALL_BYTES, &b.direct)) {
            gpuhal_bench_failed_row(bench->output, id, "batch", gpuhal_bench_failure());
            continue;
        }
        if (b.direct.as.ops.queue_create == NULL) {
            gpuhal_bench_remark(bench->output, id, "batch", "its plugin offers no queues");
        } else if (!with_queue(bench, device, &b)) {
            gpuhal_bench_failed_row(bench->output, id, "batch", gpuhal_bench_failure());
        }
        gpuhal_bench_direct_close(&b.direct);
    }
}
