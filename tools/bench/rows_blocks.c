/* rows_blocks.c: the block allocator alone, on three traces: nanoseconds per operation, and how much larger the arena
 * must be than the bytes in use.
 *
 * The library's allocator is not public, so a copy of it is compiled into this program. No device and no lock are
 * involved. */
#include "../../hal/core/memory/blocks.h"
#include "bench.h"
#include "traces.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS = 1000000, QUICK_STEPS = 20000 };

static const double mean_budget = 1 / 1.1;

/* Time is measured with a large arena, as in a program that is not about to run out of memory. */
enum { AMPLE = 4 };

/* The size of the smallest arena is determined to one part in this number. */
enum { PRECISION = 10000 };

static const struct {
    const char *time, *memory;
    double memory_budget; /* in percent */
} rows[GPUHAL_BENCH_TRACES] = {
    [GPUHAL_BENCH_TRACE_FULL] = {"blocks_full", "arena_full", 34},
    [GPUHAL_BENCH_TRACE_SERVING] = {"blocks_serving", "arena_serving", 0.5},
    [GPUHAL_BENCH_TRACE_TRAINING] = {"blocks_training", "arena_training", 0.1},
};

typedef struct replay {
    gpuhal_bench_trace trace;
    gpuhal_block_id *ids; /* the block of each slot */
    uint64_t *handles;    /* the baseline's handle for each slot */
} replay;

static volatile uint64_t sum_of_offsets; /* volatile, so that the compiler does not remove the offsets */

/* Makes all requests in a new arena of @arena_bytes. Returns false if a request was refused. */
static bool fits(const replay *r, uint64_t arena_bytes)
{
    uint64_t sum = 0;
    gpuhal_blocks blocks;
    gpuhal_blocks_init(&blocks);
    gpuhal_bins *bins = gpuhal_bins_create();
    bool good = bins != NULL && gpuhal_blocks_add(&blocks, bins, 0, arena_bytes) != 0;
    for (uint64_t i = 0; good && i < r->trace.count; i++) {
        const gpuhal_bench_step step = r->trace.steps[i];
        if (step.units > 0) {
            const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins, (uint64_t)step.units * GPUHAL_BENCH_TRACE_UNIT,
                                                          GPUHAL_BENCH_TRACE_UNIT);
            good = id != 0;
            r->ids[step.slot] = id;
            sum += gpuhal_block_at(&blocks, id)->offset;
        } else {
            (void)gpuhal_blocks_give(&blocks, bins, r->ids[step.slot]);
        }
    }
    gpuhal_blocks_finish(&blocks);
    gpuhal_bins_destroy(bins);
    sum_of_offsets = sum;
    return good;
}

static bool run_gpuhal(void *user, uint64_t count)
{
    const replay *r = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!fits(r, AMPLE * r->trace.peak_bytes)) {
            return gpuhal_bench_failed("the blocks refuse a request although there is room");
        }
    }
    return true;
}

static bool run_other(void *user, uint64_t count)
{
    const replay *r = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_baselines_here.blocks_replay(&r->trace, AMPLE * r->trace.peak_bytes, r->handles)) {
            return gpuhal_bench_failed("the other allocator refuses a request although there is room");
        }
    }
    return true;
}

static gpuhal_bench_row row_of(gpuhal_bench_kind kind, const char *test, const char *unit, double budget)
{
    return (gpuhal_bench_row){.kind = kind, .device = "host", .test = test, .unit = unit, .budget = budget};
}

/* Finds the smallest arena for the whole trace, in percent above the peak of the bytes in use. */
static void memory(gpuhal_bench *bench, const replay *r, gpuhal_bench_row row)
{
    const double peak = (double)r->trace.peak_bytes;
    uint64_t low = r->trace.peak_bytes / GPUHAL_BENCH_TRACE_UNIT - 1, high = AMPLE * (low + 1);
    gpuhal_bench_begin(bench->output, &row);
    while (high - low > 1 + high / PRECISION) {
        const uint64_t middle = low + (high - low) / 2;
        *(fits(r, middle * GPUHAL_BENCH_TRACE_UNIT) ? &high : &low) = middle;
        gpuhal_bench_watch_alive();
    }
    bench->times.rounds = 1;
    bench->times.ns[0][0] = 100 * ((double)high * GPUHAL_BENCH_TRACE_UNIT - peak) / peak;
    gpuhal_bench_report(bench, row, 0, 0);
}

/* Scales a replay's times to one operation. In each round, multiplies the product over all traces by the scaled
 * time. */
static void scale(gpuhal_bench_times *times, uint64_t steps, gpuhal_bench_times *product)
{
    product->rounds = times->rounds < product->rounds ? times->rounds : product->rounds;
    for (size_t side = 0; side < 2; side++) {
        for (size_t round = 0; round < times->rounds; round++) {
            times->ns[side][round] /= (double)steps;
            product->ns[side][round] *= times->ns[side][round];
        }
    }
}

static bool one_trace(gpuhal_bench *bench, gpuhal_bench_trace_kind kind, bool compared, gpuhal_bench_times *product)
{
    const gpuhal_bench_row row = row_of(GPUHAL_BENCH_TIMES, rows[kind].time, "ns", NAN);
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, false);
    replay r = {.ids = NULL};
    const gpuhal_bench_side sides[] = {{run_gpuhal, &r, NULL}, {run_other, &r, NULL}};
    gpuhal_bench_begin(bench->output, &row);
    bool good = gpuhal_bench_trace_make(kind, bench->options->quick ? QUICK_STEPS : STEPS, &r.trace);
    if (good) {
        r.ids = calloc(r.trace.slots, sizeof *r.ids);
        r.handles = calloc(r.trace.slots, sizeof *r.handles);
        good = (r.ids != NULL && r.handles != NULL) || gpuhal_bench_failed("no memory for a trace");
    }
    good = good && gpuhal_bench_measure(sides, compared ? 2 : 1, &plan, &bench->times);
    if (good) {
        scale(&bench->times, r.trace.count, product);
        gpuhal_bench_report(bench, row, 0, compared ? 1 : 0);
        memory(bench, &r, row_of(GPUHAL_BENCH_AMOUNT, rows[kind].memory, "%", rows[kind].memory_budget));
    }
    free(r.ids);
    free(r.handles);
    gpuhal_bench_trace_free(&r.trace);
    return good;
}

void gpuhal_bench_rows_blocks(gpuhal_bench *bench)
{
    static gpuhal_bench_times product;
    const bool compared = bench->options->baseline && gpuhal_bench_baselines_here.blocks_replay != NULL;
    bool good = true;
    product.rounds = GPUHAL_BENCH_SAMPLES_MAX;
    for (size_t round = 0; round < GPUHAL_BENCH_SAMPLES_MAX; round++) {
        product.ns[0][round] = product.ns[1][round] = 1;
    }
    for (gpuhal_bench_trace_kind kind = 0; good && kind < GPUHAL_BENCH_TRACES; kind++) {
        good = one_trace(bench, kind, compared, &product);
    }
    if (!good) {
        gpuhal_bench_not_measured(bench);
        return;
    }
    for (size_t round = 0; round < product.rounds; round++) {
        bench->times.ns[0][round] = cbrt(product.ns[0][round]);
        bench->times.ns[1][round] = cbrt(product.ns[1][round]);
    }
    bench->times.rounds = product.rounds;
    gpuhal_bench_report(bench, row_of(GPUHAL_BENCH_TIMES, "blocks_mean", "ns", mean_budget), 0, compared ? 1 : 0);
}
