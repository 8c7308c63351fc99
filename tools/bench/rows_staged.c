/* rows_staged.c: copies between two devices beside their two halves, and the host memory that they take.
 *
 * The halves are what a program would do without the library: reading the source into host memory, and writing host memory to
 * the destination. A staged copy that overlaps them perfectly takes as long as the slower one. */
#include "bench.h"
#include "child.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double half_budget = 0.85;
/* 16 MiB for each of the two devices, and room for what threads and the allocator take beside. */
static const double staging_budget_kib = 2 * 16 * 1024 + 4 * 1024;
static const uint64_t staging_bytes = UINT64_C(256) << 20;

enum { SIZES = 2 };
static const uint64_t usual_sizes[SIZES] = {UINT64_C(64) << 20, UINT64_C(256) << 20};
static const uint64_t quick_sizes[SIZES] = {UINT64_C(64) << 10, UINT64_C(1) << 20};

typedef struct staged {
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    void *host;
    uint64_t bytes;
} staged;

enum { WHOLE, READ_HALF, WRITE_HALF };

static bool run_whole(void *user, uint64_t count)
{
    const staged *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_copy(NULL, s->to, 0, s->from, 0, s->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_copy");
        }
    }
    return true;
}

static bool run_read_half(void *user, uint64_t count)
{
    const staged *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_read(NULL, s->host, s->from, 0, s->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_read");
        }
    }
    return true;
}

static bool run_write_half(void *user, uint64_t count)
{
    const staged *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_write(NULL, s->to, 0, s->host, s->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_write");
        }
    }
    return true;
}

static const char *path_name(const staged *s)
{
    gpuhal_path path;
    if (gpuhal_copy_path(s->to, s->from, &path) != GPUHAL_OK) {
        return NULL;
    }
    return path == GPUHAL_PATH_NATIVE ? "native" : path == GPUHAL_PATH_HOST ? "host" : "staged";
}

static bool prepare(gpuhal_device *to, gpuhal_device *from, staged *s)
{
    return gpuhal_bench_buffer(from, s->bytes, &s->from) && gpuhal_bench_buffer(to, s->bytes, &s->to) &&
           (s->host = gpuhal_bench_host_memory(s->bytes)) != NULL && gpuhal_bench_prove(s->to, s->from, s->host, s->bytes);
}

static bool measure(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, staged *s)
{
    const gpuhal_bench_side sides[] = {{run_whole, s}, {run_read_half, s}, {run_write_half, s}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench);
    gpuhal_bench_progress(bench->output, gpuhal_device_id(from), "copy", s->bytes);
    if (!gpuhal_bench_measure(sides, 3, &plan, &bench->times)) {
        return false;
    }
    /* Which half is the slower one is decided over all rounds: taking the larger of each round would flatter the copy by the
     * noise of two samples. */
    const double halves[] = {gpuhal_bench_time(&bench->times, READ_HALF).median, gpuhal_bench_time(&bench->times, WRITE_HALF).median};
    const size_t slower = halves[0] > halves[1] ? READ_HALF : WRITE_HALF;
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_SLOWER_HALF,
        .device = gpuhal_device_id(from),
        .peer = gpuhal_device_id(to),
        .test = "copy",
        .path = path_name(s),
        .bytes = s->bytes,
        .ours = gpuhal_bench_time(&bench->times, WHOLE).median,
        .baseline = fmax(halves[0], halves[1]),
        .result = gpuhal_bench_ratio(&bench->times, slower, WHOLE),
        .budget = half_budget,
        .software = gpuhal_bench_is_software(from) || gpuhal_bench_is_software(to),
    };
    gpuhal_bench_row_add(bench->output, &row);
    return true;
}

static void bandwidth(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from)
{
    const uint64_t *sizes = bench->options->quick ? quick_sizes : usual_sizes;
    const size_t count = bench->options->sizes_given ? bench->options->size_count : SIZES;
    for (size_t i = 0; i < count; i++) {
        staged s = {.bytes = bench->options->sizes_given ? bench->options->sizes[i] : sizes[i]};
        if (!prepare(to, from, &s) || !measure(bench, to, from, &s)) {
            gpuhal_bench_not_measured(bench, gpuhal_device_id(from), "copy", s.to == NULL);
        }
        free(s.host);
        gpuhal_buffer_release(s.to);
        gpuhal_buffer_release(s.from);
    }
}

/* The staging memory is taken once and kept, so its growth shows in a fresh process only. */
static void memory(gpuhal_bench *bench, const gpuhal_device *to, const gpuhal_device *from)
{
    char bytes[24];
    snprintf(bytes, sizeof bytes, "%" PRIu64, bench->options->quick ? quick_sizes[SIZES - 1] : staging_bytes);
    const char *const words[] = {"staging", gpuhal_device_id(from), gpuhal_device_id(to), bytes, NULL};
    gpuhal_bench_progress(bench->output, gpuhal_device_id(from), "staging_memory", 0);
    double kib;
    if (!gpuhal_bench_child_run(words, &kib)) {
        gpuhal_bench_failed_row(bench->output, gpuhal_device_id(from), "staging_memory", gpuhal_bench_failure());
        return;
    }
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_AMOUNT,
        .device = gpuhal_device_id(from),
        .peer = gpuhal_device_id(to),
        .test = "staging_memory",
        .unit = "KiB",
        .ours = kib,
        .baseline = NAN,
        .result = {kib, kib, kib},
        .budget = staging_budget_kib,
        .software = gpuhal_bench_is_software(from) || gpuhal_bench_is_software(to),
    };
    gpuhal_bench_row_add(bench->output, &row);
}

/* Without a wish: each device to the next, the CPU last of all to the first. With one: from that device to every other. */
static bool wants_pair(const gpuhal_bench *bench, uint32_t from, uint32_t to)
{
    if (from == to) {
        return false;
    }
    if (bench->only != NULL) {
        return gpuhal_device_at(bench->gpu, from) == bench->only;
    }
    return to == (from + 1) % gpuhal_device_count(bench->gpu);
}

void gpuhal_bench_rows_staged(gpuhal_bench *bench)
{
    const uint32_t count = gpuhal_device_count(bench->gpu);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t pair = 0; pair < count * count; pair++) {
            gpuhal_device *from = gpuhal_device_at(bench->gpu, pair / count);
            gpuhal_device *to = gpuhal_device_at(bench->gpu, pair % count);
            if (!wants_pair(bench, pair / count, pair % count)) {
                continue;
            }
            if (pass == 0) {
                bandwidth(bench, to, from);
            } else {
                memory(bench, to, from);
            }
        }
    }
}
