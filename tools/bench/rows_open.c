/* rows_open.c: what opening the library with the CPU plugin alone costs: time to the list of devices, and resident memory.
 *
 * Each sample is a process of its own, ours and the empty one in turn. */
#include "bench.h"
#include "child.h"

#include <math.h>

static const double enumerate_budget_ns = 2e6;
static const double resident_budget_kib = 4 * 1024;

static bool sample(gpuhal_bench *bench, const char *ours, const char *baseline)
{
    const size_t rounds = bench->options->pairs;
    for (size_t round = 0; round < rounds; round++) {
        if (!gpuhal_bench_child_run((const char *const[]){ours, NULL}, &bench->times.ns[0][round])) {
            return false;
        }
        if (baseline != NULL && !gpuhal_bench_child_run((const char *const[]){baseline, NULL}, &bench->times.ns[1][round])) {
            return false;
        }
    }
    bench->times.rounds = rounds;
    return true;
}

static void enumerate(gpuhal_bench *bench)
{
    gpuhal_bench_progress(bench->output, "cpu:0", "enumerate", 0);
    if (!sample(bench, "enumerate", NULL)) {
        gpuhal_bench_failed_row(bench->output, "cpu:0", "enumerate", gpuhal_bench_failure());
        return;
    }
    const gpuhal_bench_interval time = gpuhal_bench_time(&bench->times, 0);
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT,
        .device = "cpu:0",
        .test = "enumerate",
        .unit = "ns",
        .ours = time.median,
        .baseline = NAN,
        .result = time,
        .budget = enumerate_budget_ns,
    };
    gpuhal_bench_row_add(bench->output, &row);
}

static void resident(gpuhal_bench *bench)
{
    gpuhal_bench_progress(bench->output, "cpu:0", "resident_memory", 0);
    if (!sample(bench, "opened", "empty")) {
        gpuhal_bench_failed_row(bench->output, "cpu:0", "resident_memory", gpuhal_bench_failure());
        return;
    }
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT,
        .device = "cpu:0",
        .test = "resident_memory",
        .unit = "KiB",
        .ours = gpuhal_bench_time(&bench->times, 0).median,
        .baseline = gpuhal_bench_time(&bench->times, 1).median,
        .result = gpuhal_bench_difference(&bench->times, 0, 1),
        .budget = resident_budget_kib,
    };
    gpuhal_bench_row_add(bench->output, &row);
}

void gpuhal_bench_rows_open(gpuhal_bench *bench)
{
    if (bench->only != NULL && !gpuhal_bench_is_cpu(bench->only)) {
        return;
    }
    enumerate(bench);
    resident(bench);
}
