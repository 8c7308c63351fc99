/* rows_replay.c: repeats recorded requests with a pool, and with the driver through gpuhal_buffer_create(). The file
 * does not contain the program's work on the memory, so the queues have no work.
 *
 * The time is measured with a pool that has already served the same requests, as in a program that has run for a while.
 * Numbers about memory are measured with a new pool. */
#include "bench.h"
#include "replay.h"
#include "watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIVE_EVERY = 4096, FEWEST_ROUNDS = 3 };

typedef struct player {
    gpuhal_device *device;
    const gpuhal_bench_replay *replay;
    gpuhal_queue *queues[GPUHAL_BENCH_QUEUES_MAX + 1]; /* the first entry is NULL */
    gpuhal_pool *pool;
    bool of_pool;                             /* allocate from the pool, not from the driver */
    gpuhal_buffer **buffers;                  /* each slot's buffer; NULL if there is no buffer, or if the request was
                                               * refused */
    uint64_t refused;                         /* number of refusals in the last pass */
    uint64_t live_bytes, peak_bytes, peak_at; /* bytes of successful requests; index of the request at the peak */
    gpuhal_pool_statistics at_peak, at_end;   /* statistics of a new pool */
} player;

/* Refusals are part of the result; any other failure ends the measurement. */
static bool take(player *p, gpuhal_bench_request request)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = request.bytes};
    gpuhal_buffer **buffer = &p->buffers[request.slot];
    const gpuhal_status status =
        p->of_pool ? gpuhal_pool_allocate(p->pool, p->queues[request.queue], request.bytes, 0, 0, buffer)
                   : gpuhal_buffer_create(p->device, &desc, buffer);
    const bool refused = status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_TOO_LARGE ||
                         (status == GPUHAL_ERROR_INVALID_ARGUMENT && request.bytes == 0);
    p->refused += refused;
    return status == GPUHAL_OK || refused ||
           gpuhal_bench_failed_call(p->of_pool ? "gpuhal_pool_allocate" : "gpuhal_buffer_create");
}

static bool use(player *p, gpuhal_bench_request request)
{
    gpuhal_buffer *buffer = p->buffers[request.slot];
    return !p->of_pool || buffer == NULL || gpuhal_buffer_use(buffer, p->queues[request.queue]) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_buffer_use");
}

static void give(player *p, uint32_t slot)
{
    gpuhal_buffer_release(p->buffers[slot]);
    p->buffers[slot] = NULL;
}

static void give_all(player *p)
{
    for (uint32_t slot = 0; slot < p->replay->slots; slot++) {
        give(p, slot);
    }
}

static bool play_one(player *p, gpuhal_bench_request request)
{
    switch (request.action) {
    case GPUHAL_BENCH_TAKE:
        return take(p, request);
    case GPUHAL_BENCH_USE:
        return use(p, request);
    default:
        give(p, request.slot);
        return true;
    }
}

/* Makes all requests, and then releases the memory that the program had not released at the end. */
static bool play(player *p)
{
    bool good = true;
    p->refused = 0;
    for (uint64_t i = 0; good && i < p->replay->count; i++) {
        good = play_one(p, p->replay->requests[i]);
        if (i % ALIVE_EVERY == 0) {
            gpuhal_bench_watch_alive();
        }
    }
    give_all(p);
    return good;
}

static bool run_times(player *p, bool of_pool, uint64_t count)
{
    bool good = true;
    p->of_pool = of_pool;
    for (uint64_t i = 0; good && i < count; i++) {
        good = play(p);
    }
    return good;
}

static bool run_pool(void *user, uint64_t count)
{
    return run_times(user, true, count);
}

static bool run_driver(void *user, uint64_t count)
{
    return run_times(user, false, count);
}

static bool begin_pool(player *p)
{
    p->of_pool = true;
    return gpuhal_pool_create(p->device, NULL, &p->pool) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_pool_create");
}

static void end_pool(player *p)
{
    gpuhal_pool_destroy(p->pool);
    p->pool = NULL;
}

/* Repeats the requests once. Finds the request after which the most memory is in use. If this request is @known, finds
 * the pool's state after the request. */
static bool look(player *p, bool known)
{
    bool good = begin_pool(p);
    p->refused = 0;
    p->live_bytes = 0;
    for (uint64_t i = 0; good && i < p->replay->count; i++) {
        const gpuhal_bench_request request = p->replay->requests[i];
        const gpuhal_buffer *had = p->buffers[request.slot];
        const uint64_t had_bytes = had != NULL ? gpuhal_buffer_bytes(had) : 0;
        good = play_one(p, request);
        p->live_bytes += request.action == GPUHAL_BENCH_TAKE && p->buffers[request.slot] != NULL ? request.bytes : 0;
        p->live_bytes -= request.action == GPUHAL_BENCH_GIVE ? had_bytes : 0;
        if (!known && p->live_bytes > p->peak_bytes) {
            p->peak_bytes = p->live_bytes;
            p->peak_at = i;
        }
        if (known && i == p->peak_at) {
            p->at_peak.size = sizeof p->at_peak;
            good = good && (gpuhal_pool_get_statistics(p->pool, &p->at_peak) == GPUHAL_OK ||
                            gpuhal_bench_failed_call("gpuhal_pool_get_statistics"));
        }
        if (i % ALIVE_EVERY == 0) {
            gpuhal_bench_watch_alive();
        }
    }
    p->at_end.size = sizeof p->at_end;
    good = good && (gpuhal_pool_get_statistics(p->pool, &p->at_end) == GPUHAL_OK ||
                    gpuhal_bench_failed_call("gpuhal_pool_get_statistics"));
    give_all(p);
    end_pool(p);
    return good;
}

static void amount(gpuhal_bench *bench, const player *p, const char *test, const char *unit, double value)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(p->device, test, GPUHAL_BENCH_AMOUNT);
    row.unit = unit;
    bench->times.rounds = 1;
    bench->times.ns[0][0] = value;
    gpuhal_bench_report(bench, row, 0, 0);
}

static double percent_more(uint64_t bytes, uint64_t than)
{
    return than > 0 ? 100 * ((double)bytes / (double)than - 1) : 0;
}

static void report_memory(gpuhal_bench *bench, const player *p)
{
    const gpuhal_pool_statistics *state = &p->at_peak;
    const double free_bytes = (double)state->free_bytes;
    const double fragmentation = free_bytes > 0 ? 100 * (1 - (double)state->largest_free_bytes / free_bytes) : 0;
    amount(bench, p, "replay_used", "KiB", (double)state->used.current / 1024);
    amount(bench, p, "replay_reserved", "KiB", (double)state->reserved.current / 1024);
    amount(bench, p, "replay_overhead", "%", percent_more(state->reserved.current, state->requested.current));
    amount(bench, p, "replay_fragments", "%", fragmentation);
    amount(bench, p, "replay_peak", "%", percent_more(p->at_end.reserved.peak, p->at_end.used.peak));
}

static bool measure_time(gpuhal_bench *bench, player *p)
{
    const gpuhal_bench_row row = gpuhal_bench_row_of(p->device, "replay", GPUHAL_BENCH_TIMES);
    gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, false);
    const gpuhal_bench_side sides[] = {{run_pool, p, NULL}, {run_driver, p, NULL}};
    const size_t side_count = bench->options->baseline ? 2 : 1;
    plan.min_rounds = bench->options->pairs_given ? plan.rounds : FEWEST_ROUNDS;
    gpuhal_bench_begin(bench->output, &row);
    const bool good = begin_pool(p) && gpuhal_bench_measure(sides, side_count, &plan, &bench->times);
    end_pool(p);
    for (size_t round = 0; good && round < bench->times.rounds; round++) {
        bench->times.ns[0][round] /= (double)p->replay->calls;
        bench->times.ns[1][round] /= (double)p->replay->calls;
    }
    if (good) {
        gpuhal_bench_report(bench, row, 0, side_count - 1);
    }
    return good;
}

/* Reports the refusals. At the beginning p->refused is the number for the new pool of look(). */
static bool count_refused(gpuhal_bench *bench, player *p)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(p->device, "replay_refused", GPUHAL_BENCH_AMOUNT);
    const uint64_t of_pool = p->refused;
    const bool compared = bench->options->baseline;
    if (compared && !run_driver(p, 1)) {
        return false;
    }
    row.unit = "count";
    bench->times.rounds = 1;
    bench->times.ns[0][0] = (double)of_pool;
    bench->times.ns[1][0] = (double)p->refused;
    gpuhal_bench_report(bench, row, 0, compared);
    return true;
}

static void note_what_is_missing(gpuhal_bench *bench, const player *p)
{
    char why[128];
    if (p->replay->unmatched > 0) {
        snprintf(why, sizeof why, "%" PRIu64 " lines about memory that was not allocated in the file, or not released",
                 p->replay->unmatched);
        gpuhal_bench_note(bench->output, gpuhal_device_id(p->device), "replay", why);
    }
    if (p->replay->lost > 0) {
        snprintf(why, sizeof why, "%" PRIu64 " operations that were overwritten before they were written",
                 p->replay->lost);
        gpuhal_bench_note(bench->output, gpuhal_device_id(p->device), "replay", why);
    }
}

static bool make_queues(player *p)
{
    for (uint32_t i = 1; i <= p->replay->queues; i++) {
        if (gpuhal_queue_create(p->device, NULL, &p->queues[i]) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_queue_create");
        }
    }
    return true;
}

void gpuhal_bench_rows_replay(gpuhal_bench *bench, gpuhal_device *device, const gpuhal_bench_replay *replay)
{
    static player p;
    p = (player){.device = device, .replay = replay};
    p.buffers = calloc(replay->slots, sizeof *p.buffers);
    bool good = p.buffers != NULL || gpuhal_bench_failed("no memory for a replay");
    good = good && gpuhal_bench_leave_memory(bench, device) && make_queues(&p) && measure_time(bench, &p) &&
           look(&p, false) && look(&p, true) && count_refused(bench, &p);
    if (good) {
        report_memory(bench, &p);
        note_what_is_missing(bench, &p);
    } else {
        gpuhal_bench_not_measured(bench);
    }
    for (uint32_t i = 1; i <= replay->queues; i++) {
        gpuhal_queue_destroy(p.queues[i]);
    }
    free(p.buffers);
}
