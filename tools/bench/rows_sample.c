/* rows_sample.c: what reading the values of a device costs: a call that reads every value whose reading is quick, and a
 * sampler, in time of the processor for each of its samples, whichever threads take it.
 *
 * The budgets are for values that come from files of the system; a vendor's library takes its own time.
 */
#include "bench.h"

#include <gpuhal/sampler.h>
#include <gpuhal/telemetry.h>

#include <math.h>
#include <time.h>

enum { VALUES_MAX = 64, SAMPLES = 20, PERIOD_NS = 100000000, QUICK_PERIOD_NS = 10000000 };

static const double sample_budget_ns = 200e3;
static const double sampler_budget_ns = 250e3; /* eight devices once a second: 0.2 % of a core */

typedef struct sampled {
    gpuhal_device *device;
    gpuhal_value values[VALUES_MAX];
    uint32_t count;
} sampled;

static void take_keys(sampled *own)
{
    for (gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES; own->count < VALUES_MAX && gpuhal_key_name(key); key++) {
        if (key != GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND && key != GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND) {
            own->values[own->count++] = (gpuhal_value){.key = key};
        }
    }
}

static bool run_sample(void *user, uint64_t count)
{
    sampled *own = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_device_sample(own->device, 0, own->values, own->count, NULL) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_device_sample");
        }
    }
    return true;
}

static double processor_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void pause_for(uint64_t ns)
{
    const struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    nanosleep(&time, NULL);
}

/* Waits until the sampler has taken more than `least` samples; how many it has. */
static uint32_t wait_for_samples(gpuhal_sampler *sampler, const gpuhal_device *device, uint64_t period_ns,
                                 uint32_t least)
{
    gpuhal_point points[4 * SAMPLES];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 100 * SAMPLES && count <= least; i++) {
        pause_for(period_ns);
        (void)gpuhal_sampler_history(sampler, device, GPUHAL_VALUE_MEMORY_HELD_BYTES, points, 4 * SAMPLES, &count);
    }
    return count;
}

/* The first sample, which opens files and libraries, is not counted. */
static bool run_sampler(const gpuhal_bench *bench, gpuhal_device *device, double *out_ns)
{
    const bool quick = bench->options->quick;
    const gpuhal_sampler_desc desc = {
        .size = sizeof desc, .device_count = 1, .devices = &device, .period_ns = quick ? QUICK_PERIOD_NS : PERIOD_NS};
    gpuhal_sampler *sampler = NULL;
    if (gpuhal_sampler_create(bench->gpu, &desc, &sampler) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_sampler_create");
    }
    const uint32_t before = wait_for_samples(sampler, device, desc.period_ns, 0);
    const double begin_ns = processor_ns();
    const uint32_t after = wait_for_samples(sampler, device, desc.period_ns, before + (quick ? 0 : SAMPLES));
    const double taken_ns = processor_ns() - begin_ns;
    gpuhal_sampler_destroy(sampler);
    *out_ns = taken_ns / (double)(after - before);
    return after > before || gpuhal_bench_failed("the sampler took no sample");
}

void gpuhal_bench_rows_sample(gpuhal_bench *bench, gpuhal_device *device)
{
    sampled own = {.device = device};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "sample", GPUHAL_BENCH_AMOUNT);
    const gpuhal_bench_side side = {run_sample, &own, NULL};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    const bool judged =
        gpuhal_bench_is_cpu(device) || !(gpuhal_bench_is_software(device) || gpuhal_bench_is_streamed(device));
    take_keys(&own);
    row.budget = judged ? sample_budget_ns : NAN;
    if (!gpuhal_bench_measure_row(bench, row, &side, 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
    row.test = "sampler";
    row.budget = judged ? sampler_budget_ns : NAN;
    gpuhal_bench_begin(bench->output, &row);
    bench->times.rounds = 1;
    if (run_sampler(bench, device, &bench->times.ns[0][0])) {
        gpuhal_bench_report(bench, row, 0, 0);
    } else {
        gpuhal_bench_not_measured(bench);
    }
}
