/* rows_call.c: the cost of a small blocking copy, compared with the underlying call.
 *
 * If the plugin works inside the call (on the CPU, and in page-locked memory with CUDA and HIP), the underlying call is
 * the plugin's own function on separate memory. The copy has 64 bytes, so that only the cost of the call matters. On
 * other devices the underlying call is the vendor's call with its wait, on the same buffers. PoCL's device `basic`
 * works inside the call, so the difference is the library's own cost. On other devices, waiting for a thread or for the
 * device hides much of this cost.
 */
#include "bench.h"
#include "direct.h"

#include <math.h>

enum { CALL_BYTES = 64, AWAITED_BYTES = 256, STREAMED_BYTES = 4, BUFFER_BYTES = 4096 };

static const double call_budget = 1 / 6.0;
static const double awaited_budget = 1 / 1.12;  /* if the work is done inside the call: 36 ns of 300 */
static const double streamed_budget = 1 / 1.25; /* CUDA and HIP: the context must be entered and left */

typedef struct call_pair {
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    uint64_t bytes;
    gpuhal_bench_direct direct;
    gpuhal_bench_baseline *baseline;
    gpuhal_native native_to;
    gpuhal_native native_from;
} call_pair;

static bool run_gpuhal(void *user, uint64_t count)
{
    const call_pair *pair = user;
    return gpuhal_bench_copies(pair->to, pair->from, pair->bytes, count);
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

static bool open_pair(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, call_pair *out_pair)
{
    unsigned char host[BUFFER_BYTES];
    *out_pair = (call_pair){.bytes = bytes};
    return gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &out_pair->to) &&
           gpuhal_bench_buffer_of(device, kind, BUFFER_BYTES, &out_pair->from) &&
           gpuhal_bench_prove(out_pair->to, out_pair->from, host, sizeof host);
}

/* @baseline is the other side if the run compares, or NULL. */
static bool measure(gpuhal_bench *bench, gpuhal_bench_row row, call_pair *pair, bool (*baseline)(void *, uint64_t))
{
    const gpuhal_bench_side sides[] = {{run_gpuhal, pair, NULL}, {baseline, pair, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    return gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline && baseline != NULL ? 2 : 1, &plan);
}

static bool call_overhead(gpuhal_bench *bench, gpuhal_device *device, call_pair *pair)
{
    const gpuhal_memory_kind kind = gpuhal_bench_call_kind(device);
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "call_overhead", GPUHAL_BENCH_TIMES);
    row.budget = call_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (!open_pair(device, kind, CALL_BYTES, pair) ||
        !gpuhal_bench_direct_open(bench->gpu, device, kind, BUFFER_BYTES, &pair->direct)) {
        return false;
    }
    const bool good = measure(bench, row, pair, run_direct);
    gpuhal_bench_direct_close(&pair->direct);
    return good;
}

static bool open_vendor(gpuhal_bench *bench, gpuhal_device *device, call_pair *pair)
{
    return gpuhal_bench_native_of(pair->to, &pair->native_to) &&
           gpuhal_bench_native_of(pair->from, &pair->native_from) &&
           (pair->baseline = gpuhal_bench_baseline_create(bench->gpu, device)) != NULL;
}

static bool awaited_copy(gpuhal_bench *bench, gpuhal_device *device, call_pair *pair)
{
    const bool streamed = gpuhal_bench_is_streamed(device);
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "awaited_copy", GPUHAL_BENCH_TIMES);
    row.budget = streamed ? streamed_budget : gpuhal_bench_is_inline(device) ? awaited_budget : NAN;
    const bool known = gpuhal_bench_vendor_of(gpuhal_device_backend(device)) != NULL;
    gpuhal_bench_begin(bench->output, &row);
    return open_pair(device, GPUHAL_MEMORY_DEVICE, streamed ? STREAMED_BYTES : AWAITED_BYTES, pair) &&
           (!known || open_vendor(bench, device, pair)) && measure(bench, row, pair, known ? run_vendor : NULL);
}

static void run_row(gpuhal_bench *bench, gpuhal_device *device,
                    bool (*row)(gpuhal_bench *bench, gpuhal_device *device, call_pair *pair))
{
    call_pair pair = {.to = NULL};
    if (!row(bench, device, &pair)) {
        gpuhal_bench_not_measured(bench);
    }
    gpuhal_bench_baseline_destroy(pair.baseline);
    gpuhal_buffer_release(pair.to);
    gpuhal_buffer_release(pair.from);
}

void gpuhal_bench_rows_call(gpuhal_bench *bench, gpuhal_device *device)
{
    if (gpuhal_bench_is_cpu(device) || gpuhal_bench_is_streamed(device)) {
        run_row(bench, device, call_overhead);
    }
    if (!gpuhal_bench_is_cpu(device)) {
        run_row(bench, device, awaited_copy);
    }
}
