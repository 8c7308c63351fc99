/* rows_pairs.c: copies between two devices, compared with their two sides, and the host memory that the copies use.
 *
 * The sides are the work of a program without the library: reading the source into host memory, and writing host memory
 * to the destination. A staged copy that overlaps both sides perfectly takes as long as the slower side, if the machine
 * has enough CPU time and memory bandwidth. To determine this, the same rounds measure a ceiling: both sides run
 * concurrently, piece by piece through separate small buffers, without passing bytes from one side to the other. If the
 * ceiling is below the budget, the budget is not applied. A copy in one pass over shared memory is compared with the
 * same sides. A copy over a link has no sides, so it is compared with the vendor's own call for two devices. */
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const double side_budget = 0.85; /* from 64 MiB */
static const uint64_t judged_bytes = UINT64_C(64) << 20;
static const double peer_budget = 0.98; /* from 1 MiB */
static const uint64_t judged_peer_bytes = UINT64_C(1) << 20;
/* 16 MiB for each of the two devices, plus memory for threads and the allocator. */
static const double staging_budget_kib = 2 * 16 * 1024 + 4 * 1024;
static const uint64_t staging_bytes = UINT64_C(256) << 20;

static const uint64_t quick_staging_bytes = UINT64_C(1) << 20;

typedef struct pair {
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    unsigned char *host; /* Large enough for the whole copy, and for one piece of each side. */
    uint64_t bytes;
    gpuhal_path path; /* A copy that is not staged is a single pass without overlap. */
    /* For a copy over a link; NULL if no direct call is known. */
    gpuhal_bench_baseline *baseline;
    gpuhal_native from_device;
    gpuhal_native to_memory;
    gpuhal_native from_memory;
} pair;

enum { WHOLE, READ_SIDE, WRITE_SIDE, CEILING, SIDES };

/* A piece of the ceiling is small enough for the caches, like the pieces of a staging ring. */
static const uint64_t piece_bytes = UINT64_C(512) << 10;

static bool run_whole(void *user, uint64_t count)
{
    const pair *p = user;
    return gpuhal_bench_copies(p->to, p->from, p->bytes, count);
}

static bool run_read_side(void *user, uint64_t count)
{
    const pair *p = user;
    return gpuhal_bench_reads(p->host, p->from, p->bytes, count);
}

static bool run_write_side(void *user, uint64_t count)
{
    const pair *p = user;
    return gpuhal_bench_writes(p->to, p->host, p->bytes, count);
}

static bool by_pieces(const pair *p, bool reads, unsigned char *piece)
{
    for (uint64_t at = 0; at < p->bytes; at += piece_bytes) {
        const uint64_t bytes = p->bytes - at < piece_bytes ? p->bytes - at : piece_bytes;
        const gpuhal_status status =
            reads ? gpuhal_read(NULL, piece, p->from, at, bytes) : gpuhal_write(NULL, p->to, at, piece, bytes);
        if (status != GPUHAL_OK) {
            return false;
        }
    }
    return true;
}

static void *reader(void *user)
{
    pair *p = user;
    return by_pieces(p, true, p->host) ? p : NULL;
}

static bool run_ceiling(void *user, uint64_t count)
{
    pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        pthread_t thread;
        void *read_well;
        if (pthread_create(&thread, NULL, reader, p) != 0) {
            return gpuhal_bench_failed("no second thread");
        }
        const bool wrote_well = by_pieces(p, false, p->host + piece_bytes);
        pthread_join(thread, &read_well);
        if (!wrote_well || read_well == NULL) {
            return gpuhal_bench_failed("reading and writing at once failed");
        }
    }
    return true;
}

static bool run_peer(void *user, uint64_t count)
{
    const pair *p = user;
    return p->baseline->calls->copy_peer(p->baseline, &p->to_memory, &p->from_device, &p->from_memory, p->bytes, count);
}

static bool prepare(gpuhal_device *to, gpuhal_device *from, pair *p)
{
    const bool good =
        gpuhal_bench_buffer(from, p->bytes, &p->from) && gpuhal_bench_buffer(to, p->bytes, &p->to) &&
        (p->host = gpuhal_bench_host_memory(p->bytes > 2 * piece_bytes ? p->bytes : 2 * piece_bytes)) != NULL &&
        gpuhal_bench_prove(p->to, p->from, p->host, p->bytes);
    return good &&
           (gpuhal_copy_path(p->to, p->from, &p->path) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_copy_path"));
}

/* If the API has no call for two devices, the baseline stays NULL. */
static bool prepare_peer(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, pair *p)
{
    if (p->path != GPUHAL_PATH_PEER || !bench->options->baseline ||
        gpuhal_bench_vendor_of(gpuhal_device_backend(to)) == NULL) {
        return true;
    }
    p->from_device = (gpuhal_native){.size = sizeof p->from_device};
    p->baseline = gpuhal_bench_baseline_create(bench->gpu, to);
    if (p->baseline != NULL && p->baseline->calls->copy_peer == NULL) {
        gpuhal_bench_baseline_destroy(p->baseline);
        p->baseline = NULL;
        return true;
    }
    if (gpuhal_device_native(from, &p->from_device) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_device_native");
    }
    return p->baseline != NULL && gpuhal_bench_native_of(p->to, &p->to_memory) &&
           gpuhal_bench_native_of(p->from, &p->from_memory);
}

static gpuhal_bench_row row_between(const gpuhal_device *to, const gpuhal_device *from, const char *test,
                                    gpuhal_bench_kind kind)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(from, test, kind);
    row.peer = gpuhal_device_id(to);
    row.peer_software = gpuhal_bench_is_software(to);
    return row;
}

static gpuhal_bench_row copy_row(const pair *p, const char *test, gpuhal_bench_kind kind, double budget)
{
    gpuhal_bench_row row = row_between(gpuhal_buffer_device(p->to), gpuhal_buffer_device(p->from), test, kind);
    row.path = gpuhal_path_name(p->path);
    row.bytes = p->bytes;
    row.budget = budget;
    return row;
}

static bool measure_peer(gpuhal_bench *bench, pair *p)
{
    const gpuhal_bench_side sides[] = {{run_whole, p, NULL}, {run_peer, p, NULL}};
    const bool judged = p->bytes >= judged_peer_bytes;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, judged);
    return gpuhal_bench_measure_row(bench, copy_row(p, "copy", GPUHAL_BENCH_RATIO, judged ? peer_budget : NAN), sides,
                                    2, &plan);
}

static bool measure(gpuhal_bench *bench, pair *p)
{
    const gpuhal_bench_side sides[SIDES] = {
        {run_whole, p, NULL}, {run_read_side, p, NULL}, {run_write_side, p, NULL}, {run_ceiling, p, NULL}};
    const bool has_sides = p->path == GPUHAL_PATH_STAGED || p->path == GPUHAL_PATH_SHARED;
    const bool compared = bench->options->baseline && has_sides;
    const bool judged = compared && p->bytes >= judged_bytes;
    const bool with_ceiling = judged && p->path == GPUHAL_PATH_STAGED;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, judged);
    if (!gpuhal_bench_measure(sides, with_ceiling ? SIDES : compared ? CEILING : READ_SIDE, &plan, &bench->times)) {
        return false;
    }
    const size_t slower = compared ? gpuhal_bench_slower(bench, READ_SIDE, WRITE_SIDE) : WHOLE;
    const bool possible = !with_ceiling || gpuhal_bench_ratio(&bench->times, slower, CEILING).high >= side_budget;
    const double budget = judged && possible ? side_budget : NAN;
    gpuhal_bench_report(bench, copy_row(p, "copy", GPUHAL_BENCH_SLOWER_SIDE, budget), WHOLE, slower);
    if (with_ceiling) {
        gpuhal_bench_row ceiling = copy_row(p, "ceiling", GPUHAL_BENCH_SLOWER_SIDE, NAN);
        ceiling.path = NULL;
        gpuhal_bench_report(bench, ceiling, CEILING, slower);
    }
    return true;
}

static void one_size(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, uint64_t bytes)
{
    pair p = {.bytes = bytes};
    gpuhal_bench_row row = row_between(to, from, "copy", GPUHAL_BENCH_SLOWER_SIDE);
    char test[64];
    row.bytes = bytes;
    gpuhal_bench_begin(bench->output, &row);
    snprintf(test, sizeof test, "to %s", row.peer);
    if (!gpuhal_bench_fits(bench, to, from, test, bytes)) {
        return;
    }
    if (!prepare(to, from, &p) || !prepare_peer(bench, to, from, &p) ||
        !(p.baseline != NULL ? measure_peer(bench, &p) : measure(bench, &p))) {
        gpuhal_bench_not_measured(bench);
    }
    gpuhal_bench_baseline_destroy(p.baseline);
    free(p.host);
    gpuhal_buffer_release(p.to);
    gpuhal_buffer_release(p.from);
}

/* The staging memory is allocated once and kept, so the growth of resident memory is visible only in a fresh
 * process. */
static void memory(gpuhal_bench *bench, const gpuhal_device *to, const gpuhal_device *from)
{
    gpuhal_bench_row row = row_between(to, from, "staging_memory", GPUHAL_BENCH_AMOUNT);
    char bytes[24];
    snprintf(bytes, sizeof bytes, "%" PRIu64, bench->options->quick ? quick_staging_bytes : staging_bytes);
    row.unit = "KiB";
    row.budget = staging_budget_kib;
    gpuhal_bench_child_row(bench, row, (const char *const[]){"staging", row.device, row.peer, bytes, NULL});
}

/* Selects copies from each device to the next, and from the last device to the first. With --device, selects copies
 * between that device and every other device, in both directions. */
static bool wants_pair(const gpuhal_bench *bench, uint32_t from, uint32_t to)
{
    if (from == to) {
        return false;
    }
    if (bench->only != NULL) {
        return gpuhal_device_at(bench->gpu, from) == bench->only || gpuhal_device_at(bench->gpu, to) == bench->only;
    }
    return to == (from + 1) % gpuhal_device_count(bench->gpu);
}

void gpuhal_bench_rows_pairs(gpuhal_bench *bench)
{
    const uint32_t count = gpuhal_device_count(bench->gpu);
    for (uint32_t number = 0; number < count * count; number++) {
        gpuhal_device *from = gpuhal_device_at(bench->gpu, number / count);
        gpuhal_device *to = gpuhal_device_at(bench->gpu, number % count);
        if (!wants_pair(bench, number / count, number % count)) {
            continue;
        }
        for (size_t i = 0; i < bench->options->size_count; i++) {
            one_size(bench, to, from, bench->options->sizes[i]);
        }
        memory(bench, to, from);
    }
}
