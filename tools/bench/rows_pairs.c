/* rows_pairs.c: copies between two devices beside their two halves, and the host memory that they take.
 *
 * The halves are what a program would do without the library: reading the source into host memory, and writing host memory to
 * the destination. A staged copy that overlaps them perfectly takes as long as the slower one, if the machine has a processor and
 * memory bandwidth to spare for the other. Whether it has is measured in the same rounds: the ceiling is both halves at once, by
 * pieces through small memory of their own, with nothing to hand over. Where the ceiling lies below the budget, there is no
 * verdict. A copy in one pass over shared memory is held against the same halves. One over a
 * link has none: it is held against the vendor's own call for two devices. */
#include "baseline.h"
#include "bench.h"
#include "child.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const double half_budget = 0.85; /* from 64 MiB */
static const uint64_t judged_bytes = UINT64_C(64) << 20;
static const double peer_budget = 0.98; /* from 1 MiB */
static const uint64_t judged_peer_bytes = UINT64_C(1) << 20;
/* 16 MiB for each of the two devices, and room for what threads and the allocator take beside. */
static const double staging_budget_kib = 2 * 16 * 1024 + 4 * 1024;
static const uint64_t staging_bytes = UINT64_C(256) << 20;

static const uint64_t quick_staging_bytes = UINT64_C(1) << 20;

typedef struct pair {
    gpuhal_buffer *to;
    gpuhal_buffer *from;
    unsigned char *host; /* Room for the whole, and for a piece of each half. */
    uint64_t bytes;
    gpuhal_path path; /* Where it is not staged it is one pass, and there is nothing to overlap. */
    /* Of a copy over a link; NULL: no direct call is known. */
    gpuhal_bench_baseline *baseline;
    gpuhal_native from_device;
    gpuhal_native to_memory;
    gpuhal_native from_memory;
} pair;

enum { WHOLE, READ_HALF, WRITE_HALF, CEILING, SIDES };

/* A piece of the ceiling: small enough for the caches, as the pieces of a ring are. */
static const uint64_t piece_bytes = UINT64_C(512) << 10;

static bool run_whole(void *user, uint64_t count)
{
    const pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_copy(NULL, p->to, 0, p->from, 0, p->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_copy");
        }
    }
    return true;
}

static bool run_read_half(void *user, uint64_t count)
{
    const pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_read(NULL, p->host, p->from, 0, p->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_read");
        }
    }
    return true;
}

static bool run_write_half(void *user, uint64_t count)
{
    const pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_write(NULL, p->to, 0, p->host, p->bytes) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_write");
        }
    }
    return true;
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
    const bool good = gpuhal_bench_buffer(from, p->bytes, &p->from) && gpuhal_bench_buffer(to, p->bytes, &p->to) &&
                      (p->host = gpuhal_bench_host_memory(p->bytes > 2 * piece_bytes ? p->bytes : 2 * piece_bytes)) != NULL &&
                      gpuhal_bench_prove(p->to, p->from, p->host, p->bytes);
    return good && (gpuhal_copy_path(p->to, p->from, &p->path) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_copy_path"));
}

/* Finds the vendor's own call for a copy over a link. Where its API has none, the baseline stays NULL. */
static bool prepare_peer(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, pair *p)
{
    if (p->path != GPUHAL_PATH_PEER || !bench->options->baseline || !gpuhal_bench_baseline_is_known(to)) {
        return true;
    }
    p->from_device = p->to_memory = p->from_memory = (gpuhal_native){.size = sizeof p->from_device};
    p->baseline = gpuhal_bench_baseline_create(bench->gpu, to);
    if (p->baseline != NULL && p->baseline->calls->copy_peer == NULL) {
        gpuhal_bench_baseline_destroy(p->baseline);
        p->baseline = NULL;
        return true;
    }
    const bool known = gpuhal_device_native(from, &p->from_device) == GPUHAL_OK &&
                       gpuhal_buffer_native(p->to, &p->to_memory) == GPUHAL_OK &&
                       gpuhal_buffer_native(p->from, &p->from_memory) == GPUHAL_OK;
    return p->baseline != NULL && (known || gpuhal_bench_failed_call("asking for the vendor's objects"));
}

static void add_row(gpuhal_bench *bench, const pair *p, gpuhal_bench_kind kind, size_t side, size_t baseline, double budget)
{
    gpuhal_device *from = gpuhal_buffer_device(p->from);
    gpuhal_device *to = gpuhal_buffer_device(p->to);
    gpuhal_bench_row row = {
        .kind = kind,
        .device = gpuhal_device_id(from),
        .peer = gpuhal_device_id(to),
        .test = side == CEILING ? "ceiling" : "copy",
        .path = side == CEILING ? NULL : gpuhal_path_name(p->path),
        .bytes = p->bytes,
        .budget = budget,
        .software = gpuhal_bench_is_software(from),
        .peer_software = gpuhal_bench_is_software(to),
    };
    gpuhal_bench_row_take(bench, side, baseline, &row);
    gpuhal_bench_row_add(bench->output, &row);
}

static bool measure_peer(gpuhal_bench *bench, pair *p)
{
    const gpuhal_bench_side sides[] = {{run_whole, p, NULL}, {run_peer, p, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, p->bytes >= judged_peer_bytes);
    if (!gpuhal_bench_measure(sides, 2, &plan, &bench->times)) {
        return false;
    }
    add_row(bench, p, GPUHAL_BENCH_RATIO, 0, 1, p->bytes >= judged_peer_bytes ? peer_budget : NAN);
    return true;
}

static bool measure(gpuhal_bench *bench, pair *p)
{
    const gpuhal_bench_side sides[SIDES] = {
        {run_whole, p, NULL}, {run_read_half, p, NULL}, {run_write_half, p, NULL}, {run_ceiling, p, NULL}};
    const bool has_halves = p->path == GPUHAL_PATH_STAGED || p->path == GPUHAL_PATH_SHARED;
    const bool compared = bench->options->baseline && has_halves;
    const bool judged = compared && p->bytes >= judged_bytes;
    const bool with_ceiling = judged && p->path == GPUHAL_PATH_STAGED;
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, judged);
    if (!gpuhal_bench_measure(sides, with_ceiling ? SIDES : compared ? CEILING : READ_HALF, &plan, &bench->times)) {
        return false;
    }
    const size_t slower = compared ? gpuhal_bench_slower(bench, READ_HALF, WRITE_HALF) : WHOLE;
    const bool possible = !with_ceiling || gpuhal_bench_ratio(&bench->times, slower, CEILING).high >= half_budget;
    add_row(bench, p, GPUHAL_BENCH_SLOWER_HALF, WHOLE, slower, judged && possible ? half_budget : NAN);
    if (with_ceiling) {
        add_row(bench, p, GPUHAL_BENCH_SLOWER_HALF, CEILING, slower, NAN);
    }
    return true;
}

static void one_size(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, uint64_t bytes)
{
    pair p = {.bytes = bytes};
    char test[64];
    snprintf(test, sizeof test, "to %s", gpuhal_device_id(to));
    gpuhal_bench_progress(bench->output, gpuhal_device_id(from), test, bytes);
    if (!gpuhal_bench_fits(bench, to, from, test, bytes)) {
        return;
    }
    if (!prepare(to, from, &p) || !prepare_peer(bench, to, from, &p) ||
        !(p.baseline != NULL ? measure_peer(bench, &p) : measure(bench, &p))) {
        gpuhal_bench_not_measured(bench, gpuhal_device_id(from), test, p.to == NULL);
    }
    gpuhal_bench_baseline_destroy(p.baseline);
    free(p.host);
    gpuhal_buffer_release(p.to);
    gpuhal_buffer_release(p.from);
}

/* The staging memory is taken once and kept, so its growth shows in a fresh process only. */
static void memory(gpuhal_bench *bench, const gpuhal_device *to, const gpuhal_device *from)
{
    char bytes[24];
    snprintf(bytes, sizeof bytes, "%" PRIu64, bench->options->quick ? quick_staging_bytes : staging_bytes);
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

/* Without a wish: each device to the next, the last one to the first. With one: from that device to every other, and back. */
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
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t number = 0; number < count * count; number++) {
            gpuhal_device *from = gpuhal_device_at(bench->gpu, number / count);
            gpuhal_device *to = gpuhal_device_at(bench->gpu, number % count);
            if (!wants_pair(bench, number / count, number % count)) {
                continue;
            }
            for (size_t i = 0; pass == 0 && i < bench->options->size_count; i++) {
                one_size(bench, to, from, bench->options->sizes[i]);
            }
            if (pass == 1) {
                memory(bench, to, from);
            }
        }
    }
}
