/* pool/ladder.c: the steps that a pool tries if no free block fits. The pool searches again after every step, so no
 * request is refused while there is room for it. */
#include "pool/pool.h"

#include "base/error.h"
#include "base/job.h"
#include "device/fault_log.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct climb {
    const gpuhal_request *request;
    uint64_t deadline_ns;  /* 0 if the request must not wait */
    gpuhal_block_id block; /* the result; 0 if no block was found yet */
    gpuhal_memory_report report;
    bool refused;
    gpuhal_error_detail refusal; /* why the pool could not grow; the message names the limit or the driver's call */
} climb;

static bool search(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    gpuhal_mutex_lock(&pool->mutex);
    bool space = gpuhal_blocks_reserve(&pool->blocks);
    gpuhal_pool_give_kept(pool);
    c->block = space ? gpuhal_pool_search(pool, c->request->queue, c->request->block_bytes) : 0;
    gpuhal_mutex_unlock(&pool->mutex);
    return c->block != 0;
}

static bool poll(climb *c)
{
    if (!(c->request->pool->desc.flags & GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC)) {
        gpuhal_report_count(&c->report, GPUHAL_RUNG_POLL, gpuhal_pool_poll(c->request->pool));
    }
    return search(c);
}

static bool follow_events(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    gpuhal_queue *queue = c->request->queue;
    const bool follows = queue && !(pool->desc.flags & GPUHAL_POOL_NO_REUSE_FOLLOW_EVENT_DEPENDENCIES);
    uint64_t bytes = 0;
    while (follows && gpuhal_pool_follow_event(pool, queue, c->request->block_bytes, &bytes)) {
        gpuhal_report_count(&c->report, GPUHAL_RUNG_TAKE, bytes);
        if (search(c)) {
            return true;
        }
    }
    return false;
}

/* Merges blocks that the queue can use now, even if other queues can use them. The pool grows only if these blocks are
 * not enough. */
static bool gather(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    gpuhal_mutex_lock(&pool->mutex);
    const bool merged = gpuhal_lane_gather(pool, c->request->queue, c->request->block_bytes);
    gpuhal_mutex_unlock(&pool->mutex);
    return merged && search(c);
}

/* ---- growing */

/* How often to check for a hang during another thread's driver call. */
enum { LOST_POLL_NS = 20000000 };

/* Ensures that only one thread at a time grows the pool. Otherwise a second thread would request a segment although the
 * first thread's segment may have room for both. The second request might even exceed the limit only because of the
 * first, which may fail later. Returns DEVICE_LOST if the first thread is stuck. */
static gpuhal_status begin_growing(gpuhal_pool *pool)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&pool->mutex);
    while (pool->growing && !(status = gpuhal_device_check(pool->device))) {
        gpuhal_condition_wait_until(&pool->condition, &pool->mutex, gpuhal_deadline(LOST_POLL_NS));
    }
    pool->growing = pool->growing || !status;
    gpuhal_mutex_unlock(&pool->mutex);
    return status;
}

static void end_growing(gpuhal_pool *pool)
{
    gpuhal_mutex_lock(&pool->mutex);
    pool->growing = false;
    gpuhal_condition_signal_all(&pool->condition);
    gpuhal_mutex_unlock(&pool->mutex);
}

static gpuhal_status note_refusal(climb *c, gpuhal_status status)
{
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
        c->refused = true;
        gpuhal_error_save(&c->refusal);
    }
    return status;
}

/* Returns as many unused segments to the driver as needed. Returns false if all are in use. */
static bool trim(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    uint64_t freed = 0;
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_buffer *list = gpuhal_pool_take_unused(pool, 0, c->request->block_bytes, &freed);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_segments_release(list);
    gpuhal_report_count(&c->report, GPUHAL_RUNG_TRIM, freed);
    return freed > 0;
}

static bool may_grow(const climb *c)
{
    return !(c->request->flags & GPUHAL_ALLOCATE_WITHIN_POOL);
}

/* If the driver or a limit refuses the segment, releases unused segments to make room. Searches first, because another
 * thread may have made room while this thread waited for its turn. */
static gpuhal_status grow(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    gpuhal_status status = may_grow(c) ? begin_growing(pool) : GPUHAL_ERROR_OUT_OF_MEMORY;
    if (status) {
        return status;
    }
    pool->report = &c->report;
    while (!search(c) && !status) {
        const uint64_t before = atomic_load(&pool->reserved.in);
        status = gpuhal_pool_grow(pool, c->request->block_bytes);
        gpuhal_report_count(&c->report, GPUHAL_RUNG_GROW, atomic_load(&pool->reserved.in) - before);
        if (note_refusal(c, status) == GPUHAL_ERROR_OUT_OF_MEMORY) {
            status = trim(c) ? GPUHAL_OK : status;
        }
    }
    end_growing(pool);
    return c->block ? GPUHAL_OK : status;
}

/* ---- memory behind queued work */

static bool take(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    gpuhal_queue *queue = c->request->queue;
    const bool follows = queue && !(pool->desc.flags & GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES);
    uint64_t bytes = 0;
    if (follows) {
        gpuhal_report_count(&c->report, GPUHAL_RUNG_TAKE, 0);
        gpuhal_pool_part_lanes(pool, queue, c->request->block_bytes);
    }
    while (follows && gpuhal_pool_follow(pool, queue, c->request->block_bytes, &bytes)) {
        c->report.rungs[GPUHAL_RUNG_TAKE].bytes += bytes;
        if (search(c)) {
            return true;
        }
    }
    return false;
}

/* Waits in the calling thread for all entries that are pending now, oldest first. The queue's own lane also becomes
 * pending, because memory that becomes common is merged with its neighbours. */
static bool wait(climb *c, uint64_t deadline_ns)
{
    gpuhal_pool *pool = c->request->pool;
    if (deadline_ns == 0) {
        return false;
    }
    gpuhal_report_count(&c->report, GPUHAL_RUNG_WAIT, 0);
    const uint64_t newest = gpuhal_pool_part_lanes(pool, NULL, 1);
    while (gpuhal_pool_wait_oldest(pool, newest, deadline_ns)) {
        c->report.rungs[GPUHAL_RUNG_WAIT].bytes += gpuhal_pool_poll(pool);
        if (search(c)) {
            return true;
        }
    }
    return false;
}

/* Another thread may have taken the freed memory, or released its own memory behind newer work. Waiting is useful only
 * if the memory behind newer work and the free memory would be enough; otherwise the request is refused, however long
 * work continues. If there are sources to call, the thread stops waiting early, because sources may release memory
 * immediately. */
bool gpuhal_ladder_waits_on(const gpuhal_shortage *shortage, uint64_t deadline_ns, uint64_t callers_deadline_ns)
{
    /* If enough memory is left, the refusal had another reason, and more free memory does not help. */
    const uint64_t left_bytes = shortage->left_bytes < shortage->bytes ? shortage->left_bytes : 0;
    return deadline_ns == callers_deadline_ns && gpuhal_os_monotonic_ns() < deadline_ns &&
           shortage->ordered_bytes > 0 &&
           shortage->ordered_bytes + shortage->free_bytes + left_bytes >= shortage->bytes;
}

/* Minimum interval between two climbs of a thread that keeps waiting. */
enum { ROUND_NS = 100000 };

static bool waits_on(const climb *c, uint64_t deadline_ns)
{
    gpuhal_pool *pool = c->request->pool;
    gpuhal_shortage shortage = {.bytes = c->request->block_bytes,
                                .left_bytes = c->refused ? c->refusal.error.bytes_free : 0};
    gpuhal_mutex_lock(&pool->mutex);
    shortage.free_bytes = gpuhal_bins_free_bytes(pool->common);
    shortage.ordered_bytes = gpuhal_amount_now(&pool->reserved) - gpuhal_pool_used_now(pool) - shortage.free_bytes;
    gpuhal_mutex_unlock(&pool->mutex);
    const bool on = gpuhal_ladder_waits_on(&shortage, deadline_ns, c->deadline_ns);
    if (on) {
        gpuhal_os_sleep(ROUND_NS);
    }
    return on;
}

/* ---- the order of the steps */

/* Tries the steps that call no source. */
static gpuhal_status climb_alone(climb *c, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    do {
        status = follow_events(c) || poll(c) || gather(c) ? GPUHAL_OK : grow(c);
        status = status == GPUHAL_ERROR_OUT_OF_MEMORY && (take(c) || wait(c, deadline_ns)) ? GPUHAL_OK : status;
    } while (status == GPUHAL_ERROR_OUT_OF_MEMORY && waits_on(c, deadline_ns));
    return status;
}

uint64_t gpuhal_ladder_patience(uint64_t deadline_ns)
{
    const uint64_t most_ns = 1000000000, now_ns = gpuhal_os_monotonic_ns();
    if (deadline_ns <= now_ns) {
        return deadline_ns;
    }
    const uint64_t half_ns = (deadline_ns - now_ns) / 2;
    return now_ns + (half_ns < most_ns ? half_ns : most_ns);
}

/* Released memory may be behind work, so the whole climb is repeated after each call. */
static gpuhal_status ask(climb *c, gpuhal_pressure_rung rung, gpuhal_pool *pool)
{
    const gpuhal_request *request = c->request;
    const gpuhal_rung number = GPUHAL_RUNG_EVICT + rung;
    gpuhal_pressure_attempt attempt = {.device = request->pool->device,
                                       .pool = pool,
                                       .rung = rung,
                                       .bytes = request->block_bytes,
                                       .deadline_ns = c->deadline_ns};
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    uint64_t given = 0;
    while (status == GPUHAL_ERROR_OUT_OF_MEMORY && gpuhal_pressure_ask(&attempt, &given)) {
        gpuhal_report_add(&c->report, number, given);
        status = climb_alone(c, gpuhal_ladder_patience(c->deadline_ns));
    }
    c->report.rungs[number].tries += attempt.times;
    /* If a callback has forked, this may be the child process, which must stop here. */
    return gpuhal_is_inherited(attempt.device->gpu) ? gpuhal_error_forked() : status;
}

/* Returns whether the pool may grow by the request within its limit. If so, the device is short of memory, and memory
 * released elsewhere on it helps too. */
static bool may_grow_elsewhere(const climb *c)
{
    const gpuhal_pool *pool = c->request->pool;
    const uint64_t limit = atomic_load(&pool->limit_bytes), reserved = gpuhal_amount_now(&pool->reserved);
    return may_grow(c) && (limit == 0 || (reserved < limit && limit - reserved >= c->request->block_bytes));
}

static bool others_gave(const climb *c)
{
    bool gave = false;
    for (int rung = GPUHAL_RUNG_EVICT; rung <= GPUHAL_RUNG_CALL; rung++) {
        gave = gave || c->report.rungs[rung].bytes > 0;
    }
    return gave;
}

/* Moves obstructing parts if the scattered free memory is large enough. */
static gpuhal_status compact(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    return may_grow(c) && gpuhal_compact_may_help(pool, c->request->block_bytes)
               ? ask(c, GPUHAL_PRESSURE_COMPACT, pool)
               : GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Compaction takes no memory from other owners, so it is tried first if it may be enough, and again at the end if
 * sources have released memory, which may be scattered. In between, the sources of each rung first release memory of
 * this pool, and then any memory of the device. The callbacks' rung is tried once. */
static gpuhal_status ask_all(climb *c)
{
    gpuhal_status status = compact(c);
    for (gpuhal_pressure_rung rung = GPUHAL_PRESSURE_EVICT; rung <= GPUHAL_PRESSURE_CALL; rung++) {
        status = status == GPUHAL_ERROR_OUT_OF_MEMORY ? ask(c, rung, c->request->pool) : status;
        if (status == GPUHAL_ERROR_OUT_OF_MEMORY && rung < GPUHAL_PRESSURE_CALL && may_grow_elsewhere(c)) {
            status = ask(c, rung, NULL);
        }
    }
    status = status == GPUHAL_ERROR_OUT_OF_MEMORY && others_gave(c) ? compact(c) : status;
    return status == GPUHAL_ERROR_OUT_OF_MEMORY ? climb_alone(c, c->deadline_ns) : status;
}

static gpuhal_status out_of_memory(climb *c)
{
    gpuhal_pool *pool = c->request->pool;
    gpuhal_memory_report *report = &c->report;
    gpuhal_mutex_lock(&pool->mutex);
    report->reserved_bytes = gpuhal_amount_now(&pool->reserved);
    report->used_bytes = gpuhal_pool_used_now(pool);
    report->free_bytes = gpuhal_bins_free_bytes(pool->common);
    report->largest_free_bytes = gpuhal_bins_largest(&pool->blocks, pool->common);
    const gpuhal_lane *lane = c->request->queue ? gpuhal_lane_find(pool, c->request->queue) : NULL;
    const uint64_t own_bytes = !lane ? 0
                               : pool->sole.bins ? gpuhal_bins_largest(&pool->sole.blocks, pool->sole.bins)
                                                 : gpuhal_bins_largest(&pool->blocks, lane->bins);
    gpuhal_mutex_unlock(&pool->mutex);
    char own[64] = "";
    if (own_bytes > report->largest_free_bytes) { /* bytes behind the queue's own work, which it can use now */
        snprintf(own, sizeof own, " (%" PRIu64 " for this queue)", own_bytes);
    }
    report->asked_bytes = c->request->bytes;
    report->limit_bytes = atomic_load(&pool->limit_bytes);
    report->limit_bytes = report->limit_bytes ? report->limit_bytes : gpuhal_device_limit(pool->device);
    report->ordered_bytes = report->reserved_bytes - report->used_bytes - report->free_bytes;
    report->driver_free_bytes = c->refused ? c->refusal.memory.driver_free_bytes : UINT64_MAX;
    atomic_fetch_add(&pool->out_of_memory, 1);
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: %" PRIu64 " bytes requested of a pool of %" PRIu64 " bytes: %" PRIu64 " in use, %" PRIu64
                     " behind work of queues, %" PRIu64 " free, %" PRIu64 " of them in one piece%s%s%s",
                     pool->device->id, report->asked_bytes, report->reserved_bytes, report->used_bytes,
                     report->ordered_bytes, report->free_bytes, report->largest_free_bytes, own, c->refused ? "; " : "",
                     c->refused ? c->refusal.sentence : "");
    gpuhal_error_add_device(pool->device->candidate->name, pool->device->id);
    gpuhal_error_add_bytes(report->asked_bytes, report->free_bytes,
                           report->limit_bytes ? report->limit_bytes : report->reserved_bytes);
    gpuhal_error_add_pending(report->ordered_bytes + (c->refused ? c->refusal.error.bytes_pending : 0));
    gpuhal_pressure_report(pool->device, pool, report);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

gpuhal_status gpuhal_pool_check_request(const gpuhal_request *request)
{
    climb c = {.request = request};
    const gpuhal_status status = gpuhal_pool_check_limits(request->pool, request->block_bytes, true);
    return note_refusal(&c, status) ? out_of_memory(&c) : GPUHAL_OK;
}

/* Returns whether a limit would refuse the request even if stores released all memory that they can. */
static bool is_in_vain(climb *c)
{
    return note_refusal(c, gpuhal_pool_check_limits(c->request->pool, c->request->block_bytes, true)) != GPUHAL_OK;
}

/* Refuses a request that alone exceeds a limit before trying any rung. Before stores and callbacks are asked, also
 * refuses a request that exceeds a limit whatever the stores release, so that they release nothing for it. */
static gpuhal_status climb_all(climb *c)
{
    const gpuhal_request *request = c->request;
    gpuhal_pool *pool = request->pool;
    const bool asks = !(request->flags & GPUHAL_ALLOCATE_NO_EVICT) && gpuhal_pressure_has_source(pool->device);
    gpuhal_status status = note_refusal(c, gpuhal_pool_check_limits(pool, request->block_bytes, false));
    if (status) {
        return status;
    }
    status = climb_alone(c, asks ? gpuhal_ladder_patience(c->deadline_ns) : c->deadline_ns);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && asks && is_in_vain(c)) {
        status = climb_alone(c, c->deadline_ns);
    }
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && asks) {
        if (is_in_vain(c)) {
            return status;
        }
        status = ask_all(c);
    }
    /* Whole segments may have become free, and a new segment in their place may fit. */
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY) {
        status = may_grow(c) ? grow(c) : search(c) ? GPUHAL_OK : status;
    }
    return status;
}

gpuhal_status gpuhal_pool_climb(const gpuhal_request *request, gpuhal_block_id *out_block)
{
    climb c = {.request = request,
               .deadline_ns = request->flags & GPUHAL_ALLOCATE_NO_WAIT ? 0 : request->deadline_ns};
    atomic_fetch_add(&request->pool->searches_failed, 1);
    const gpuhal_status status = climb_all(&c);
    *out_block = c.block;
    return status == GPUHAL_ERROR_OUT_OF_MEMORY ? out_of_memory(&c) : status;
}
