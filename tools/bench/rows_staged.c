/* rows_staged.c: copies between two devices beside their two halves, and the host memory that they take.
 *
 * The halves are what a program would do without the library: reading the source into host memory, and writing host memory to
 * the destination. A staged copy that overlaps them perfectly takes as long as the slower one, if the machine has a processor and
 * memory bandwidth to spare for the other. Whether it has is measured in the same rounds: the ceiling is both halves at once, by
 * pieces through small memory of their own, with nothing to hand over. Where the ceiling lies below the budget, there is no
 * verdict. */
#include "bench.h"
#include "child.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
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
    unsigned char *host; /* Room for the whole, and for a piece of each half. */
    uint64_t bytes;
    gpuhal_path path; /* Where it is not staged it is one pass, and there is nothing to overlap. */
} staged;

enum { WHOLE, READ_HALF, WRITE_HALF, CEILING, SIDES };

/* A piece of the ceiling: small enough for the caches, as the pieces of a ring are. */
static const uint64_t piece_bytes = UINT64_C(512) << 10;

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

static bool by_pieces(const staged *s, bool reads, unsigned char *piece)
{
    for (uint64_t at = 0; at < s->bytes; at += piece_bytes) {
        const uint64_t bytes = s->bytes - at < piece_bytes ? s->bytes - at : piece_bytes;
        const gpuhal_status status =
            reads ? gpuhal_read(NULL, piece, s->from, at, bytes) : gpuhal_write(NULL, s->to, at, piece, bytes);
        if (status != GPUHAL_OK) {
            return false;
        }
    }
    return true;
}

static void *reader(void *user)
{
    staged *s = user;
    return by_pieces(s, true, s->host) ? s : NULL;
}

static bool run_ceiling(void *user, uint64_t count)
{
    staged *s = user;
    for (uint64_t i = 0; i < count; i++) {
        pthread_t thread;
        void *read_well;
        if (pthread_create(&thread, NULL, reader, s) != 0) {
            return gpuhal_bench_failed("no second thread");
        }
        const bool wrote_well = by_pieces(s, false, s->host + piece_bytes);
        pthread_join(thread, &read_well);
        if (!wrote_well || read_well == NULL) {
            return gpuhal_bench_failed("reading and writing at once failed");
        }
    }
    return true;
}

static bool prepare(gpuhal_device *to, gpuhal_device *from, staged *s)
{
    const bool good = gpuhal_bench_buffer(from, s->bytes, &s->from) && gpuhal_bench_buffer(to, s->bytes, &s->to) &&
                      (s->host = gpuhal_bench_host_memory(s->bytes > 2 * piece_bytes ? s->bytes : 2 * piece_bytes)) != NULL &&
                      gpuhal_bench_prove(s->to, s->from, s->host, s->bytes);
    return good && (gpuhal_copy_path(s->to, s->from, &s->path) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_copy_path"));
}

static void add_row(gpuhal_bench *bench, const staged *s, size_t side, size_t slower, double budget)
{
    gpuhal_device *from = gpuhal_buffer_device(s->from);
    gpuhal_device *to = gpuhal_buffer_device(s->to);
    const gpuhal_bench_row row = {
        .kind = GPUHAL_BENCH_SLOWER_HALF,
        .device = gpuhal_device_id(from),
        .peer = gpuhal_device_id(to),
        .test = side == WHOLE ? "copy" : "ceiling",
        .path = side == CEILING ? NULL : gpuhal_bench_path_name(s->path),
        .bytes = s->bytes,
        .ours = gpuhal_bench_time(&bench->times, side).median,
        .baseline = gpuhal_bench_time(&bench->times, slower).median,
        .result = gpuhal_bench_ratio(&bench->times, slower, side),
        .budget = budget,
        .software = gpuhal_bench_is_software(from),
        .peer_software = gpuhal_bench_is_software(to),
    };
    gpuhal_bench_row_add(bench->output, &row);
}

static bool measure(gpuhal_bench *bench, staged *s)
{
    const gpuhal_bench_side sides[SIDES] = {{run_whole, s}, {run_read_half, s}, {run_write_half, s}, {run_ceiling, s}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench);
    const bool is_staged = s->path == GPUHAL_PATH_STAGED;
    gpuhal_bench_progress(bench->output, gpuhal_device_id(gpuhal_buffer_device(s->from)), "copy", s->bytes);
    if (!gpuhal_bench_measure(sides, is_staged ? SIDES : CEILING, &plan, &bench->times)) {
        return false;
    }
    /* Which half is the slower one is decided over all rounds: taking the larger of each round would flatter the copy by the
     * noise of two samples. */
    const bool read_is_slower =
        gpuhal_bench_time(&bench->times, READ_HALF).median > gpuhal_bench_time(&bench->times, WRITE_HALF).median;
    const size_t slower = read_is_slower ? READ_HALF : WRITE_HALF;
    const bool possible = !is_staged || gpuhal_bench_ratio(&bench->times, slower, CEILING).high >= half_budget;
    add_row(bench, s, WHOLE, slower, possible ? half_budget : NAN);
    if (is_staged) {
        add_row(bench, s, CEILING, slower, NAN);
    }
    return true;
}

static void bandwidth(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from)
{
    const uint64_t *sizes = bench->options->quick ? quick_sizes : usual_sizes;
    const size_t count = bench->options->sizes_given ? bench->options->size_count : SIZES;
    for (size_t i = 0; i < count; i++) {
        staged s = {.bytes = bench->options->sizes_given ? bench->options->sizes[i] : sizes[i]};
        if (!prepare(to, from, &s) || !measure(bench, &s)) {
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
        .software = gpuhal_bench_is_software(from),
        .peer_software = gpuhal_bench_is_software(to),
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
