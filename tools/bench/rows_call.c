/* rows_call.c: what a small blocking copy costs more than the call beneath it.
 *
 * Where the plugin works inside the call, on the CPU and in the page-locked memory of CUDA and HIP, that call is the plugin's own
 * function, on memory of its own: 64 bytes, so that the cost of the call is all there is. Elsewhere it is the vendor's call with
 * its wait, on the very same buffers. PoCL's device `basic` does the work inside the call, so that the difference there is the
 * library's own; elsewhere a wait for another thread or the device hides much of it. */
#include "baseline.h"
#include "bench.h"
#include "direct.h"

#include <math.h>

enum { CALL_BYTES = 64, AWAITED_BYTES = 256, STREAMED_BYTES = 4, BUFFER_BYTES = 4096 };

static const double call_budget_ns = 40;
static const double awaited_budget_ns = 50;    /* where the work is done inside the call */
static const double streamed_budget_ns = 1500; /* CUDA and HIP, whose context has to be entered and left */

typedef struct call_pair {
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    uint64_t bytes;
    gpuhal_bench_direct direct;
    gpuhal_bench_baseline *baseline;
    gpuhal_native native_to;
    gpuhal_native native_from;
} call_pair;

static bool run_ours(void *user, uint64_t count)
{
    const call_pair *pair = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_copy(NULL, pair->to, 0, pair->from, 0, pair->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_copy");
        }
    }
    return true;
}

static bool run_direct(void *user, uint64_t count)
{
    call_pair *pair = user;
    return gpuhal_bench_direct_copy(&pair->direct, pair->bytes, count);
}

static bool run_vendor(void *user, uint64_t count)
{
    const call_pair *pair = user;
    return pair->baseline->calls->copy(pair->baseline, &pair->native_to, &pair->native_from, pair->bytes, count);
}

/* Two buffers whose copies were seen to work. */
static bool open_pair(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, call_pair *out_pair)
{
    unsigned char host[BUFFER_BYTES];
    *out_pair = (call_pair){.bytes = bytes};
    return gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &out_pair->to) &&
           gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &out_pair->from) &&
           gpuhal_bench_prove(out_pair->to, out_pair->from, host, sizeof host);
}

static void close_pair(call_pair *pair)
{
    gpuhal_buffer_release(pair->to);
    gpuhal_buffer_release(pair->from);
}

static bool measure(gpuhal_bench *bench, gpuhal_device *device, const char *test, call_pair *pair,
                    bool (*baseline)(void *user, uint64_t count), double budget)
{
    const gpuhal_bench_side sides[] = {{run_ours, pair, NULL}, {baseline, pair, NULL}};
    const bool compared = bench->options->baseline;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    gpuhal_bench_progress(bench->output, gpuhal_device_id(device), test, pair->bytes);
    if (!gpuhal_bench_measure(sides, compared ? 2 : 1, &plan, &bench->times)) {
        return false;
    }
    gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT,
        .device = gpuhal_device_id(device),
        .test = test,
        .unit = "ns",
        .budget = compared ? budget : NAN,
        .software = gpuhal_bench_is_software(device),
    };
    gpuhal_bench_row_take(bench, 0, compared ? 1 : 0, &row);
    gpuhal_bench_row_add(bench->output, &row);
    return true;
}

static bool call_overhead(gpuhal_bench *bench, gpuhal_device *device)
{
    call_pair pair;
    const gpuhal_memory_kind kind = gpuhal_bench_call_kind(device);
    bool good = open_pair(device, kind, CALL_BYTES, &pair) &&
                gpuhal_bench_direct_open(bench->gpu, device, kind, BUFFER_BYTES, &pair.direct);
    if (good) {
        good = measure(bench, device, "call_overhead", &pair, run_direct, call_budget_ns);
        gpuhal_bench_direct_close(&pair.direct);
    }
    close_pair(&pair);
    return good;
}

static bool natives(call_pair *pair)
{
    pair->native_to = (gpuhal_native){.size = sizeof pair->native_to};
    pair->native_from = (gpuhal_native){.size = sizeof pair->native_from};
    return (gpuhal_buffer_native(pair->to, &pair->native_to) == GPUHAL_OK &&
            gpuhal_buffer_native(pair->from, &pair->native_from) == GPUHAL_OK) ||
           gpuhal_bench_failed_call("gpuhal_buffer_native");
}

/* The same where the thread has the device current already: what is less than before is what entering and leaving it cost. */
static bool awaited_copy_of_an_engine(gpuhal_bench *bench, gpuhal_device *device, call_pair *pair)
{
    const gpuhal_bench_baseline_calls *calls = pair->baseline->calls;
    if (calls->hold == NULL) {
        return true;
    }
    if (!calls->hold(pair->baseline)) {
        return false;
    }
    const bool good = measure(bench, device, "awaited_current", pair, run_vendor, NAN);
    calls->let_go(pair->baseline);
    return good;
}

static bool awaited_copy(gpuhal_bench *bench, gpuhal_device *device)
{
    call_pair pair;
    const bool streamed = gpuhal_bench_is_streamed(device);
    const double budget = streamed ? streamed_budget_ns : gpuhal_bench_is_inline(device) ? awaited_budget_ns : NAN;
    bool good = open_pair(device, GPUHAL_MEMORY_DEVICE, streamed ? STREAMED_BYTES : AWAITED_BYTES, &pair) && natives(&pair) &&
                (pair.baseline = gpuhal_bench_baseline_create(bench->gpu, device)) != NULL;
    if (good) {
        good =
            measure(bench, device, "awaited_copy", &pair, run_vendor, budget) && awaited_copy_of_an_engine(bench, device, &pair);
        gpuhal_bench_baseline_destroy(pair.baseline);
    }
    close_pair(&pair);
    return good;
}

void gpuhal_bench_rows_call(gpuhal_bench *bench)
{
    for (uint32_t i = 0; i < gpuhal_device_count(bench->gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(bench->gpu, i);
        if (!gpuhal_bench_wants(bench, device)) {
            continue;
        }
        const bool works_inside = gpuhal_bench_is_cpu(device) || gpuhal_bench_is_streamed(device);
        if (works_inside && !call_overhead(bench, device)) {
            gpuhal_bench_failed_row(bench->output, gpuhal_device_id(device), "call_overhead", gpuhal_bench_failure());
        }
        if (gpuhal_bench_baseline_is_known(device) && !awaited_copy(bench, device)) {
            gpuhal_bench_failed_row(bench->output, gpuhal_device_id(device), "awaited_copy", gpuhal_bench_failure());
        }
    }
}
