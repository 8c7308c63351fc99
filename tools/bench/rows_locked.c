/* rows_locked.c: writing and reading with the host's side in page-locked memory, which is what an application takes for transfers
 * that shall be fast: buffers of kind UPLOAD and READBACK, filled and read at the address at which the host sees them.
 *
 * The application passes the buffer (upload, readback). CUDA, HIP and OpenCL know page-locked memory by its address, so that
 * there it may pass that (locked_write, locked_read). The vendor's own calls get the same memory: by its address, or on
 * Vulkan as the buffer that it is; on the CPU it is memcpy. */
#include "bench.h"

#include <math.h>
#include <string.h>

static const double vendor_budget = 0.98; /* from 1 MiB, on devices with an API of their own */
static const double memcpy_budget = 0.95; /* from 16 MiB, on the CPU */

typedef struct locked {
    gpuhal_buffer *memory; /* On the device. */
    gpuhal_buffer *upload;
    gpuhal_buffer *readback;
    uint64_t bytes;
    gpuhal_bench_baseline *baseline; /* NULL: the CPU. */
    bool by_address;                 /* The API's calls take page-locked memory by its address. */
    gpuhal_native native;
    gpuhal_native native_upload;
    gpuhal_native native_readback;
} locked;

static bool upload_by_gpuhal(void *user, uint64_t count)
{
    const locked *l = user;
    return gpuhal_bench_copies(l->memory, l->upload, l->bytes, count);
}

static bool readback_by_gpuhal(void *user, uint64_t count)
{
    const locked *l = user;
    return gpuhal_bench_copies(l->readback, l->memory, l->bytes, count);
}

static bool write_by_gpuhal(void *user, uint64_t count)
{
    const locked *l = user;
    return gpuhal_bench_writes(l->memory, gpuhal_buffer_host(l->upload), l->bytes, count);
}

static bool read_by_gpuhal(void *user, uint64_t count)
{
    const locked *l = user;
    return gpuhal_bench_reads(gpuhal_buffer_host(l->readback), l->memory, l->bytes, count);
}

static bool direct_write(void *user, uint64_t count)
{
    const locked *l = user;
    void *upload = gpuhal_buffer_host(l->upload);
    if (l->baseline == NULL) {
        return gpuhal_bench_memcpys(gpuhal_buffer_host(l->memory), upload, l->bytes, count);
    }
    return l->by_address ? l->baseline->calls->write(l->baseline, &l->native, upload, l->bytes, count)
                         : l->baseline->calls->copy(l->baseline, &l->native, &l->native_upload, l->bytes, count);
}

static bool direct_read(void *user, uint64_t count)
{
    const locked *l = user;
    void *readback = gpuhal_buffer_host(l->readback);
    if (l->baseline == NULL) {
        return gpuhal_bench_memcpys(readback, gpuhal_buffer_host(l->memory), l->bytes, count);
    }
    return l->by_address ? l->baseline->calls->read(l->baseline, readback, &l->native, l->bytes, count)
                         : l->baseline->calls->copy(l->baseline, &l->native_readback, &l->native, l->bytes, count);
}

static const struct {
    const char *test;
    bool (*gpuhal)(void *user, uint64_t count);
    bool (*direct)(void *user, uint64_t count);
    bool by_address; /* Only where the API takes page-locked memory by its address. */
} directions[] = {
    {"upload", upload_by_gpuhal, direct_write, false},
    {"readback", readback_by_gpuhal, direct_read, false},
    {"locked_write", write_by_gpuhal, direct_write, true},
    {"locked_read", read_by_gpuhal, direct_read, true},
};

/* All sides move bytes there and back before they are timed. Without a baseline the last one is left out. */
static bool prove(locked *l, bool compared)
{
    bool (*const writes[])(void *user, uint64_t count) = {upload_by_gpuhal, write_by_gpuhal, direct_write};
    bool (*const reads[])(void *user, uint64_t count) = {readback_by_gpuhal, read_by_gpuhal, direct_read};
    const size_t side_count = compared ? 3 : l->by_address ? 2 : 1;
    for (uint64_t side = 0; side < side_count; side++) {
        gpuhal_bench_pattern(gpuhal_buffer_host(l->upload), l->bytes, side + 1);
        memset(gpuhal_buffer_host(l->readback), 0x5a, l->bytes);
        if (!writes[side](l, 1) || !reads[side](l, 1) ||
            !gpuhal_bench_pattern_is(gpuhal_buffer_host(l->readback), l->bytes, side + 1)) {
            return false;
        }
    }
    return true;
}

static bool prepare(gpuhal_device *device, locked *l, bool compared)
{
    const struct {
        gpuhal_memory_kind kind;
        gpuhal_buffer **buffer;
        gpuhal_native *native;
    } parts[] = {
        {GPUHAL_MEMORY_UPLOAD, &l->upload, &l->native_upload},
        {GPUHAL_MEMORY_READBACK, &l->readback, &l->native_readback},
        {GPUHAL_MEMORY_DEVICE, &l->memory, &l->native},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!gpuhal_bench_buffer_of(device, parts[i].kind, l->bytes, parts[i].buffer)) {
            return false;
        }
        const bool wanted = l->baseline != NULL && (!l->by_address || parts[i].kind == GPUHAL_MEMORY_DEVICE);
        if (wanted && !gpuhal_bench_native_of(*parts[i].buffer, parts[i].native)) {
            return false;
        }
    }
    return prove(l, compared);
}

static double budget_of(const locked *l)
{
    const uint64_t from = UINT64_C(1) << (l->baseline != NULL ? 20 : 24);
    return l->bytes < from ? NAN : l->baseline != NULL ? vendor_budget : memcpy_budget;
}

static bool measure(gpuhal_bench *bench, gpuhal_device *device, locked *l, size_t direction, bool compared)
{
    const gpuhal_bench_side sides[] = {{directions[direction].gpuhal, l, NULL}, {directions[direction].direct, l, NULL}};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, directions[direction].test, GPUHAL_BENCH_RATIO);
    row.bytes = l->bytes;
    row.budget = budget_of(l);
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, !isnan(row.budget));
    return gpuhal_bench_measure_row(bench, row, sides, compared ? 2 : 1, &plan);
}

void gpuhal_bench_rows_locked(gpuhal_bench *bench, gpuhal_device *device, gpuhal_bench_baseline *baseline, uint64_t bytes)
{
    const uint64_t wanted = 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK;
    uint64_t kinds;
    if (gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_KINDS, &kinds) != GPUHAL_OK || (kinds & wanted) != wanted) {
        return;
    }
    locked l = {.bytes = bytes, .baseline = baseline, .by_address = baseline != NULL && baseline->calls->write != NULL};
    const bool compared = bench->options->baseline && (baseline != NULL || gpuhal_bench_is_cpu(device));
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "upload", GPUHAL_BENCH_RATIO);
    row.bytes = bytes;
    gpuhal_bench_begin(bench->output, &row);
    bool good = prepare(device, &l, compared);
    for (size_t i = 0; good && i < sizeof directions / sizeof *directions; i++) {
        if (l.by_address || !directions[i].by_address) {
            good = measure(bench, device, &l, i, compared);
        }
    }
    if (!good) {
        gpuhal_bench_not_measured(bench);
    }
    gpuhal_buffer_release(l.memory);
    gpuhal_buffer_release(l.readback);
    gpuhal_buffer_release(l.upload);
}
