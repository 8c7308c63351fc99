/* rows_file.c: reading a file in the page cache into device memory, compared with its two steps: reading the file into
 * host memory, and writing host memory to the device. If the two steps overlap perfectly, the whole takes as long as
 * the slower step. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const double file_budget = 0.9;
static const uint64_t usual_bytes = UINT64_C(256) << 20;
static const uint64_t quick_bytes = UINT64_C(1) << 20;

/* The usual read size of programs; larger reads are not faster. */
static const uint64_t piece_bytes = UINT64_C(2) << 20;

typedef struct file_to_device {
    gpuhal_buffer *buffer;
    FILE *file;
    unsigned char *host;
    uint64_t bytes;
} file_to_device;

enum { WHOLE, READ_SIDE, WRITE_SIDE, SIDES };

static bool run_whole(void *user, uint64_t count)
{
    const file_to_device *f = user;
    const gpuhal_file file = {.size = sizeof file, .descriptor = fileno(f->file)};
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_read_file(NULL, f->buffer, 0, &file, f->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_read_file");
        }
    }
    return true;
}

static bool run_read_side(void *user, uint64_t count)
{
    const file_to_device *f = user;
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t at = 0; at < f->bytes;) {
            const uint64_t most = f->bytes - at < piece_bytes ? f->bytes - at : piece_bytes;
            const ssize_t got = pread(fileno(f->file), f->host + at, (size_t)most, (off_t)at);
            if (got <= 0) {
                return gpuhal_bench_failed("reading the file by pread failed");
            }
            at += (uint64_t)got;
        }
    }
    return true;
}

static bool run_write_side(void *user, uint64_t count)
{
    const file_to_device *f = user;
    return gpuhal_bench_writes(f->buffer, f->host, f->bytes, count);
}

/* Creates an unnamed temporary file with a pattern. Writing the file puts it into the page cache. */
static bool prepare(gpuhal_device *device, file_to_device *f)
{
    if (!gpuhal_bench_buffer(device, f->bytes, &f->buffer) || (f->host = gpuhal_bench_host_memory(f->bytes)) == NULL) {
        return false;
    }
    f->file = tmpfile();
    if (f->file == NULL || fwrite(f->host, 1, (size_t)f->bytes, f->file) != f->bytes || fflush(f->file) != 0) {
        return gpuhal_bench_failed("no room for a temporary file");
    }
    if (!run_whole(f, 1)) {
        return false;
    }
    gpuhal_bench_pattern(f->host, f->bytes, 2);
    return gpuhal_bench_reads(f->host, f->buffer, f->bytes, 1) && gpuhal_bench_pattern_is(f->host, f->bytes, 1);
}

static bool measure(gpuhal_bench *bench, gpuhal_bench_row row, file_to_device *f)
{
    const gpuhal_bench_side sides[SIDES] = {
        {.run = run_whole, .user = f}, {.run = run_read_side, .user = f}, {.run = run_write_side, .user = f}};
    const bool compared = bench->options->baseline;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, compared);
    if (!gpuhal_bench_measure(sides, compared ? SIDES : READ_SIDE, &plan, &bench->times)) {
        return false;
    }
    gpuhal_bench_report(bench, row, WHOLE, compared ? gpuhal_bench_slower(bench, READ_SIDE, WRITE_SIDE) : WHOLE);
    return true;
}

void gpuhal_bench_rows_file(gpuhal_bench *bench, gpuhal_device *device)
{
    file_to_device f = {.bytes = bench->options->quick ? quick_bytes : usual_bytes};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "file_to_device", GPUHAL_BENCH_SLOWER_SIDE);
    row.bytes = f.bytes;
    row.budget = file_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (!gpuhal_bench_fits(bench, device, device, row.test, f.bytes)) {
        return;
    }
    if (!prepare(device, &f) || !measure(bench, row, &f)) {
        gpuhal_bench_not_measured(bench);
    }
    if (f.file != NULL) {
        fclose(f.file);
    }
    free(f.host);
    gpuhal_buffer_release(f.buffer);
}
