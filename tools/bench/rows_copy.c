/* rows_copy.c: writing, reading and copying on one device, by size.
 *
 * Devices are compared with the vendor's own calls on the same native buffer and the same host pages. If the device has
 * no vendor API (like the CPU), or the API has no such call (like Vulkan for host memory), the baseline is memcpy on
 * the buffers' host addresses. Memory without a host address then has no baseline. Applications use page-locked buffers
 * of the kinds UPLOAD and READBACK for fast transfers. The vendor's calls access these buffers by address or, on
 * Vulkan, as buffers. A single warm pair of buffers of the largest size would hide the cost of small sizes, so each
 * size has separate buffers. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

static const double vendor_budget = 0.98; /* from 1 MiB, on devices with a vendor API */
static const double pageable_budget = 1;  /* from 1 MiB, between pageable host memory and CUDA or HIP */
static const double ring_budget = 1.3;    /* from 64 MiB, like pageable_budget, if the device has its own memory */
static const double memcpy_budget = 0.95; /* from 16 MiB, on the CPU */

typedef struct transfer {
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    void *host;
    uint64_t bytes;
    gpuhal_bench_baseline *baseline; /* NULL if the device has no vendor API, or the API's calls are unknown. */
    gpuhal_native native_to;
    gpuhal_native native_from;
    void *host_to; /* NULL if the host cannot access the buffers. */
    void *host_from;
} transfer;

static bool write_by_gpuhal(void *user, uint64_t count)
{
    const transfer *t = user;
    return gpuhal_bench_writes(t->to, t->host, t->bytes, count);
}

static bool read_by_gpuhal(void *user, uint64_t count)
{
    const transfer *t = user;
    return gpuhal_bench_reads(t->host, t->to, t->bytes, count);
}

static bool copy_by_gpuhal(void *user, uint64_t count)
{
    const transfer *t = user;
    return gpuhal_bench_copies(t->to, t->from, t->bytes, count);
}

static bool direct_write(void *user, uint64_t count)
{
    const transfer *t = user;
    return t->baseline != NULL && t->baseline->calls->write != NULL
               ? t->baseline->calls->write(t->baseline, &t->native_to, t->host, t->bytes, count)
               : gpuhal_bench_memcpys(t->host_to, t->host, t->bytes, count);
}

static bool direct_read(void *user, uint64_t count)
{
    const transfer *t = user;
    return t->baseline != NULL && t->baseline->calls->read != NULL
               ? t->baseline->calls->read(t->baseline, t->host, &t->native_to, t->bytes, count)
               : gpuhal_bench_memcpys(t->host, t->host_to, t->bytes, count);
}

static bool direct_copy(void *user, uint64_t count)
{
    const transfer *t = user;
    return t->baseline != NULL ? t->baseline->calls->copy(t->baseline, &t->native_to, &t->native_from, t->bytes, count)
                               : gpuhal_bench_memcpys(t->host_to, t->host_from, t->bytes, count);
}

static bool takes_addresses(const transfer *t)
{
    return t->baseline != NULL && t->baseline->calls->write != NULL;
}

static bool direct_upload(void *user, uint64_t count)
{
    const transfer *t = user;
    return takes_addresses(t) ? t->baseline->calls->write(t->baseline, &t->native_to, t->host_from, t->bytes, count)
                              : direct_copy(user, count);
}

static bool direct_readback(void *user, uint64_t count)
{
    const transfer *t = user;
    return takes_addresses(t) ? t->baseline->calls->read(t->baseline, t->host_to, &t->native_from, t->bytes, count)
                              : direct_copy(user, count);
}

enum { WRITE, READ, COPY, UPLOAD, READBACK, DIRECTIONS };

static const struct {
    const char *test;
    bool (*gpuhal)(void *user, uint64_t count);
    bool (*direct)(void *user, uint64_t count);
} directions[DIRECTIONS] = {
    [WRITE] = {"write", write_by_gpuhal, direct_write},
    [READ] = {"read", read_by_gpuhal, direct_read},
    [COPY] = {"copy", copy_by_gpuhal, direct_copy},
    [UPLOAD] = {"upload", copy_by_gpuhal, direct_upload},
    [READBACK] = {"readback", copy_by_gpuhal, direct_readback},
};

static const struct {
    gpuhal_memory_kind to, from;
    size_t first, last;
} pairs[] = {
    {GPUHAL_MEMORY_DEVICE, GPUHAL_MEMORY_DEVICE, WRITE, COPY},
    {GPUHAL_MEMORY_DEVICE, GPUHAL_MEMORY_UPLOAD, UPLOAD, UPLOAD},
    {GPUHAL_MEMORY_READBACK, GPUHAL_MEMORY_DEVICE, READBACK, READBACK},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static bool is_compared(const transfer *t, size_t direction)
{
    if (t->baseline == NULL && !gpuhal_bench_is_cpu(gpuhal_buffer_device(t->to))) {
        return false; /* this program does not know the calls of the device's API */
    }
    const bool has_call = t->baseline != NULL && (direction >= COPY || t->baseline->calls->write != NULL);
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
    if (gpuhal_bench_is_streamed(device) && direction < COPY && t->bytes >= UINT64_C(1) << 20) {
        return t->bytes >= UINT64_C(64) << 20 && has_own_memory(device) ? ring_budget : pageable_budget;
    }
    if (t->baseline != NULL) {
        return t->bytes >= UINT64_C(1) << 20 ? vendor_budget : NAN;
    }
    return t->bytes >= UINT64_C(16) << 20 ? memcpy_budget : NAN;
}

static void measure(gpuhal_bench *bench, gpuhal_device *device, transfer *t, size_t direction)
{
    const gpuhal_bench_side sides[] = {{directions[direction].gpuhal, t, NULL},
                                       {directions[direction].direct, t, NULL}};
    const bool compared = bench->options->baseline && is_compared(t, direction);
    gpuhal_bench_row row = gpuhal_bench_row_of(device, directions[direction].test, GPUHAL_BENCH_RATIO);
    row.bytes = t->bytes;
    row.budget = budget_of(device, t, direction);
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, !isnan(row.budget));
    if (!gpuhal_bench_measure_row(bench, row, sides, compared ? 2 : 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
}

/* Finds a buffer's handle for the vendor's calls, unless the calls use the buffer's address. */
static bool find_native(const transfer *t, gpuhal_buffer *buffer, gpuhal_memory_kind kind, gpuhal_native *out_native)
{
    const bool needed = t->baseline != NULL && (kind == GPUHAL_MEMORY_DEVICE || !takes_addresses(t));
    return !needed || gpuhal_bench_native_of(buffer, out_native);
}

static bool prepare(gpuhal_device *device, size_t pair, transfer *t)
{
    if (!gpuhal_bench_buffer_of(device, pairs[pair].to, t->bytes, &t->to) ||
        !gpuhal_bench_buffer_of(device, pairs[pair].from, t->bytes, &t->from) ||
        (t->host = gpuhal_bench_host_memory(t->bytes)) == NULL) {
        return false;
    }
    t->host_to = gpuhal_buffer_host(t->to);
    t->host_from = gpuhal_buffer_host(t->from);
    return find_native(t, t->to, pairs[pair].to, &t->native_to) &&
           find_native(t, t->from, pairs[pair].from, &t->native_from) &&
           gpuhal_bench_prove(t->to, t->from, t->host, t->bytes);
}

static void one_pair(gpuhal_bench *bench, gpuhal_device *device, size_t pair, transfer t)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(device, directions[pairs[pair].last].test, GPUHAL_BENCH_RATIO);
    row.bytes = t.bytes;
    gpuhal_bench_begin(bench->output, &row);
    if (prepare(device, pair, &t)) {
        for (size_t i = pairs[pair].first; i <= pairs[pair].last; i++) {
            measure(bench, device, &t, i);
        }
    } else {
        gpuhal_bench_not_measured(bench);
    }
    free(t.host);
    gpuhal_buffer_release(t.to);
    gpuhal_buffer_release(t.from);
}

static void one_size(gpuhal_bench *bench, gpuhal_device *device, gpuhal_bench_baseline *baseline, uint64_t bytes)
{
    uint64_t kinds = 1u << GPUHAL_MEMORY_DEVICE;
    (void)gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_KINDS, &kinds);
    for (size_t pair = 0; pair < PAIRS && gpuhal_bench_fits(bench, device, device, "copy", bytes); pair++) {
        if ((kinds >> pairs[pair].to & kinds >> pairs[pair].from & 1) != 0) {
            one_pair(bench, device, pair, (transfer){.bytes = bytes, .baseline = baseline});
        }
    }
}

void gpuhal_bench_rows_copy(gpuhal_bench *bench, gpuhal_device *device)
{
    gpuhal_bench_baseline *baseline = NULL;
    const gpuhal_bench_row row = gpuhal_bench_row_of(device, "copy", GPUHAL_BENCH_RATIO);
    gpuhal_bench_begin(bench->output, &row);
    if (gpuhal_bench_vendor_of(gpuhal_device_backend(device)) != NULL &&
        (baseline = gpuhal_bench_baseline_create(bench->gpu, device)) == NULL) {
        gpuhal_bench_not_measured(bench);
        return;
    }
    for (size_t s = 0; s < bench->options->size_count; s++) {
        one_size(bench, device, baseline, bench->options->sizes[s]);
    }
    gpuhal_bench_baseline_destroy(baseline);
}
