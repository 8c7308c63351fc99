/* pool/pending.c: memory that becomes free when work ends. Records events behind the work, polls them, and waits for
 * them. Entries with users stay in the list. */
#include "pool/pool.h"

#include "base/error.h"
#include "queue/queue.h"

#include <stdlib.h>

/* SLICE_NS is how long to wait for the oldest entry before all entries are polled again, so that a hung queue does not
 * hide other entries. REFUSING_QUEUE_POLL_NS is how often to poll queues that refuse to record. */
enum { SLICE_NS = 10000000, REFUSING_QUEUE_POLL_NS = 100000 };

/* ---- one queue */

static void record(gpuhal_pool_wait *wait)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    /* If the queue refuses (after a failure or during native access), the next poll tries again. */
    (void)gpuhal_queue_record(wait->queue, false, &wait->timepoint);
    gpuhal_error_restore(&before);
}

/* After a failure the driver may still execute work until the queue is reset or finished. */
static bool is_over(const gpuhal_pool_wait *wait)
{
    if (!wait->timepoint) {
        return gpuhal_queue_has_finished(wait->queue) || gpuhal_queue_is_quiet(wait->queue);
    }
    if (gpuhal_timepoint_now(wait->timepoint) != GPUHAL_TIMEPOINT_DONE) {
        (void)gpuhal_timepoint_poll(wait->timepoint);
    }
    if (gpuhal_timepoint_now(wait->timepoint) != GPUHAL_TIMEPOINT_DONE) {
        return false;
    }
    return !wait->timepoint->failure || gpuhal_queue_has_finished(wait->queue) ||
           gpuhal_queue_is_quiet(wait->queue);
}

static bool are_over(const gpuhal_pending *pending)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    bool over = true;
    for (size_t i = 0; i < pending->count && over; i++) {
        over = is_over(&pending->waits[i]);
    }
    gpuhal_error_restore(&before);
    return over;
}

/* ---- the list, with the mutex held */

static void free_pending(gpuhal_pending *pending)
{
    for (size_t i = 0; i < pending->count; i++) {
        gpuhal_timepoint_release(pending->waits[i].timepoint);
        gpuhal_queue_release(pending->waits[i].queue);
    }
    gpuhal_bins_destroy(pending->bins);
    free(pending);
}

/* Call without the mutex, because releasing a timepoint may call the plugin. */
static void free_list(gpuhal_pending *list)
{
    while (list) {
        gpuhal_pending *pending = list;
        list = pending->next;
        free_pending(pending);
    }
}

/* Returns the number of freed bytes. A single block is placed behind its home queue's work, because the entry did not
 * wait for the home queue. */
static uint64_t make_free(gpuhal_pool *pool, gpuhal_pending *pending)
{
    pool->has_unused = true;
    if (pending->bins) {
        const uint64_t bytes = gpuhal_bins_free_bytes(pending->bins);
        gpuhal_blocks_move(&pool->blocks, pending->bins, pool->common);
        gpuhal_pool_changed(pool);
        return bytes;
    }
    const uint64_t bytes = gpuhal_block_at(&pool->blocks, pending->block)->bytes;
    if (pending->home) {
        pending->home->parts--;
    }
    gpuhal_blocks_give(&pool->blocks, pending->home ? pending->home->bins : pool->common, pending->block);
    gpuhal_pool_changed(pool);
    return bytes;
}

/* Finished entries to free, and the number of bytes that became free. */
typedef struct ending {
    gpuhal_pending *list;
    uint64_t bytes;
} ending;

static void unlink_pending(gpuhal_pool *pool, gpuhal_pending *pending)
{
    gpuhal_pending **link = &pool->pending;
    while (*link != pending) {
        link = &(*link)->next;
    }
    *link = pending->next;
    if (pool->pending_end == &pending->next) {
        pool->pending_end = link;
    }
}

static void enter(gpuhal_pending *pending)
{
    pending->users++;
}

/* Ends this thread's use of the entry. `over` is true if the entry's work has ended; then the entry is removed, unless
 * it has other users. Returns the next entry. */
static gpuhal_pending *leave(gpuhal_pool *pool, gpuhal_pending *pending, bool over, ending *ended)
{
    gpuhal_pending *next = pending->next;
    if (--pending->users == 0 && over) {
        ended->bytes += make_free(pool, pending);
        unlink_pending(pool, pending);
        pending->next = ended->list;
        ended->list = pending;
    }
    return next;
}

/* ---- for the ladder */

void gpuhal_pending_record(gpuhal_pool *pool, gpuhal_pending *pending)
{
    for (size_t i = 0; i < pending->count; i++) {
        if (!pending->waits[i].timepoint) {
            record(&pending->waits[i]);
        }
    }
    gpuhal_mutex_lock(&pool->mutex);
    pending->recording = false;
    (void)leave(pool, pending, false, NULL);
    gpuhal_mutex_unlock(&pool->mutex);
}

static uint64_t poll_pending(gpuhal_pool *pool)
{
    ending ended = {0};
    gpuhal_mutex_lock(&pool->mutex);
    for (gpuhal_pending *pending = pool->pending; pending;) {
        enter(pending);
        const bool alone = pending->users == 1;
        pending->recording |= alone;
        gpuhal_mutex_unlock(&pool->mutex);
        for (size_t i = 0; i < pending->count && alone; i++) {
            if (!pending->waits[i].timepoint) {
                record(&pending->waits[i]);
            }
        }
        const bool over = alone && are_over(pending);
        if (over) {
            gpuhal_check_end(pool, pending);
        }
        gpuhal_mutex_lock(&pool->mutex);
        pending->recording &= !alone;
        pending = leave(pool, pending, over, &ended);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    free_list(ended.list);
    return ended.bytes;
}

/* If the lane has any block, returns its queue with a new reference; otherwise NULL. The caller holds the mutex. */
static gpuhal_queue *queue_of(const gpuhal_lane *lane)
{
    gpuhal_queue *queue = lane->queue;
    return queue && gpuhal_bins_free_count(lane->bins) > 0 ? gpuhal_queue_retain(queue) : NULL;
}

/* Makes lanes of idle queues common without an event. Queries each queue with the mutex held, so that no thread can
 * release memory behind newer work between the query and the change. The query calls no driver. */
static uint64_t poll_lanes(gpuhal_pool *pool)
{
    uint64_t bytes = 0;
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_pool_give_kept(pool);
    for (gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        gpuhal_queue *queue = queue_of(lane);
        if (!queue) {
            continue;
        }
        gpuhal_mutex_unlock(&pool->mutex);
        gpuhal_queue_look_through(queue);
        gpuhal_mutex_lock(&pool->mutex);
        if (lane->queue == queue && (gpuhal_queue_has_finished(queue) || gpuhal_queue_is_quiet(queue))) {
            bytes += gpuhal_bins_free_bytes(lane->bins);
            gpuhal_blocks_move(&pool->blocks, lane->bins, pool->common);
            gpuhal_pool_changed(pool);
        }
        gpuhal_queue_release(queue);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    return bytes;
}

uint64_t gpuhal_pool_poll(gpuhal_pool *pool)
{
    const uint64_t bytes = poll_pending(pool);
    return bytes + poll_lanes(pool);
}

/* Moves the bins as a whole, so the cost does not depend on the number of blocks. */
static gpuhal_pending *part_lane(gpuhal_pool *pool, gpuhal_lane *lane)
{
    gpuhal_pending *pending = calloc(1, sizeof *pending + sizeof *pending->waits);
    gpuhal_bins *empty = pending ? gpuhal_bins_create() : NULL;
    if (!empty) {
        free(pending);
        return NULL;
    }
    pending->bins = lane->bins;
    lane->bins = empty;
    pending->owner = lane->queue;
    pending->count = 1;
    pending->waits[0].queue = gpuhal_queue_retain(lane->queue);
    gpuhal_pending_append(pool, pending);
    return pending;
}

uint64_t gpuhal_pool_part_lanes(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_mutex_lock(&pool->mutex);
    for (gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        bool any = lane->queue && lane->queue != queue && gpuhal_bins_largest(&pool->blocks, lane->bins) >= bytes;
        gpuhal_pending *pending = any ? part_lane(pool, lane) : NULL;
        if (pending) {
            gpuhal_mutex_unlock(&pool->mutex);
            gpuhal_pending_record(pool, pending);
            gpuhal_mutex_lock(&pool->mutex);
        }
    }
    const uint64_t newest = pool->pending_number;
    gpuhal_mutex_unlock(&pool->mutex);
    return newest;
}

static bool wait_in_queue(gpuhal_queue *queue, const gpuhal_pending *pending)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    bool waits = true;
    for (size_t i = 0; i < pending->count && waits; i++) {
        gpuhal_timepoint *timepoint = pending->waits[i].timepoint;
        waits = timepoint && gpuhal_queue_follow(queue, timepoint) == GPUHAL_OK;
    }
    gpuhal_error_restore(&before);
    return waits;
}

/* Returns whether the queue may wait for the entry. An entry with a failed queue is skipped, because a wait for a
 * failed timepoint would fail the waiting queue. */
static bool suits(const gpuhal_pool *pool, const gpuhal_pending *pending, const gpuhal_queue *queue, uint64_t bytes)
{
    return pending->bins && pending->owner != queue && !pending->follower && pending->users == 0 &&
           pending->waits[0].timepoint && !gpuhal_queue_is_broken(pending->waits[0].queue) &&
           gpuhal_bins_largest(&pool->blocks, pending->bins) >= bytes;
}

bool gpuhal_pool_follow(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes)
{
    bool follows = false;
    *out_bytes = 0;
    gpuhal_mutex_lock(&pool->mutex);
    for (gpuhal_pending *pending = pool->pending; pending && !follows;) {
        if (!suits(pool, pending, queue, bytes)) {
            pending = pending->next;
            continue;
        }
        enter(pending);
        gpuhal_mutex_unlock(&pool->mutex);
        follows = wait_in_queue(queue, pending);
        gpuhal_mutex_lock(&pool->mutex);
        pending->follower = follows ? queue : NULL;
        *out_bytes = follows ? gpuhal_bins_free_bytes(pending->bins) : 0;
        pending = leave(pool, pending, false, NULL);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    return follows;
}

static bool is_before(const gpuhal_block *block, const gpuhal_lane *lane, const gpuhal_timepoint *timepoint)
{
    return block->bytes > 0 && block->bins == lane->bins && block->stamp < timepoint->ordinal;
}

/* Creates an entry that waits for the timepoint, from all blocks of the lane that were released before it. The entry
 * takes the caller's reference to it. Returns NULL if none of the blocks is large enough or host memory is short. The
 * caller holds the mutex. */
static gpuhal_pending *part_before(gpuhal_pool *pool, gpuhal_lane *lane, gpuhal_timepoint *timepoint, uint64_t bytes)
{
    gpuhal_block_id id = 1;
    while (id < pool->blocks.touched && !(is_before(gpuhal_block_at(&pool->blocks, id), lane, timepoint) &&
                                          gpuhal_block_at(&pool->blocks, id)->bytes >= bytes)) {
        id++;
    }
    gpuhal_pending *pending = id < pool->blocks.touched ? part_lane(pool, lane) : NULL;
    for (id = 1; pending && id < pool->blocks.touched; id++) {
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
        if (block->bytes > 0 && block->bins == pending->bins && block->stamp >= timepoint->ordinal) {
            (void)gpuhal_blocks_move_one(&pool->blocks, lane->bins, id);
        }
    }
    if (pending) {
        pending->waits[0].timepoint = timepoint;
    }
    return pending;
}

static gpuhal_pending *part_before_event(gpuhal_pool *pool, gpuhal_lane *lane, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_mutex_lock(&pool->mutex);
    const bool any = lane->queue && lane->queue != queue && gpuhal_bins_largest(&pool->blocks, lane->bins) >= bytes;
    gpuhal_timepoint *timepoint = any ? gpuhal_queue_get_awaited(queue, lane->queue) : NULL;
    gpuhal_pending *pending = timepoint ? part_before(pool, lane, timepoint, bytes) : NULL;
    gpuhal_mutex_unlock(&pool->mutex);
    if (!pending) {
        gpuhal_timepoint_release(timepoint);
    }
    return pending;
}

bool gpuhal_pool_follow_event(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes)
{
    bool follows = false;
    for (gpuhal_lane *lane = pool->lanes; lane && !follows; lane = lane->next) {
        gpuhal_pending *pending = part_before_event(pool, lane, queue, bytes);
        if (!pending) {
            continue;
        }
        follows = !gpuhal_queue_is_broken(pending->waits[0].queue) && wait_in_queue(queue, pending);
        gpuhal_mutex_lock(&pool->mutex);
        *out_bytes = gpuhal_bins_free_bytes(pending->bins);
        pending->follower = follows ? queue : NULL;
        pending->recording = false;
        (void)leave(pool, pending, false, NULL);
        gpuhal_mutex_unlock(&pool->mutex);
    }
    return follows;
}

static void wait_for(const gpuhal_pending *pending, uint64_t deadline_ns)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    for (size_t i = 0; i < pending->count; i++) {
        const gpuhal_pool_wait *wait = &pending->waits[i];
        bool waited = wait->timepoint && !is_over(wait) &&
                      gpuhal_timepoint_wait(wait->timepoint, deadline_ns) == GPUHAL_OK;
        if (!waited && !is_over(wait)) {
            gpuhal_os_sleep(REFUSING_QUEUE_POLL_NS);
        }
    }
    gpuhal_error_restore(&before);
}

bool gpuhal_pool_wait_oldest(gpuhal_pool *pool, uint64_t newest, uint64_t deadline_ns)
{
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_pending *pending = pool->pending && pool->pending->number <= newest ? pool->pending : NULL;
    const bool readable = pending && !pending->recording;
    if (readable) {
        enter(pending);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    if (readable) {
        const uint64_t slice_ns = gpuhal_deadline(SLICE_NS);
        wait_for(pending, slice_ns < deadline_ns ? slice_ns : deadline_ns);
        gpuhal_mutex_lock(&pool->mutex);
        (void)leave(pool, pending, false, NULL);
        gpuhal_mutex_unlock(&pool->mutex);
    } else if (pending) {
        gpuhal_os_sleep(REFUSING_QUEUE_POLL_NS);
    }
    return pending && gpuhal_os_monotonic_ns() < deadline_ns;
}

/* Makes the queue keep the segments alive until all its work has ended, including native work that may use a released
 * part. If host memory is short, waits for the work instead, but no longer than a working driver may take. */
static void hold_segments(const gpuhal_pool *pool, gpuhal_queue *queue)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_queue_look_through(queue);
    bool over = gpuhal_queue_has_finished(queue) || gpuhal_queue_is_quiet(queue);
    for (uint32_t i = 0; i < pool->segment_space && !over && !status; i++) {
        status = pool->segments[i].buffer ? gpuhal_queue_hold(queue, pool->segments[i].buffer) : GPUHAL_OK;
    }
    const uint64_t deadline_ns = gpuhal_deadline(pool->device->gpu->settings.hang_ns);
    while (status == GPUHAL_ERROR_HOST_MEMORY && !over && gpuhal_os_monotonic_ns() < deadline_ns) {
        gpuhal_os_sleep(REFUSING_QUEUE_POLL_NS);
        gpuhal_queue_look_through(queue);
        over = gpuhal_queue_has_finished(queue) || gpuhal_queue_is_quiet(queue);
    }
}

void gpuhal_pool_hold_segments(gpuhal_pool *pool)
{
    for (const gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        if (lane->queue && gpuhal_bins_free_count(lane->bins) > 0) {
            hold_segments(pool, lane->queue);
        }
    }
    for (const gpuhal_pending *pending = pool->pending; pending; pending = pending->next) {
        for (size_t i = 0; i < pending->count; i++) {
            hold_segments(pool, pending->waits[i].queue);
        }
    }
}

void gpuhal_pending_free_all(gpuhal_pool *pool)
{
    while (pool->pending) {
        gpuhal_pending *pending = pool->pending;
        if (pending->bytes > 0 && are_over(pending)) {
            gpuhal_check_end(pool, pending);
        }
        (void)make_free(pool, pending);
        unlink_pending(pool, pending);
        free_pending(pending);
    }
}
