/* pool/lane.c: decides which queue can reuse a block, and which work must end first. All functions run with the pool's
 * mutex held and call no plugin. */
#include "pool/pool.h"

#include "queue/queue.h"

#include <stdlib.h>

/* A queue counts as idle after this many releases without new work. */
enum { IDLE_RELEASES = 256 };

/* Frees the lanes of FINISHED queues for reuse, except homes of parts. A FINISHED queue was destroyed, all its work has
 * ended, and it gets no more. */
static void free_finished_lanes(gpuhal_pool *pool)
{
    for (gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        gpuhal_queue *queue = lane->queue;
        if (!queue || !gpuhal_queue_has_finished(queue)) {
            continue;
        }
        if (gpuhal_lane_kept_count(lane) > 0) {
            gpuhal_pool_give_kept(pool);
        }
        if (lane->parts == 0) {
            gpuhal_blocks_move(&pool->blocks, lane->bins, pool->common);
            gpuhal_pool_changed(pool);
            lane->queue = NULL; /* cleared before the release, so that no thread mistakes a new queue at this address
                                 * for the old queue */
            gpuhal_queue_release(queue);
        }
    }
}

static gpuhal_lane *add_lane(gpuhal_pool *pool)
{
    _Atomic(gpuhal_lane *) *end = &pool->lanes;
    gpuhal_lane *lane = calloc(1, sizeof *lane);
    if (!lane || !(lane->bins = gpuhal_bins_create())) {
        free(lane);
        return NULL;
    }
    gpuhal_mutex_init(&lane->mutex);
    lane->closed = pool->destroyed;
    while (*end) {
        end = &(*end)->next;
    }
    *end = lane;
    return lane;
}

static void take_slot(gpuhal_pool *pool, gpuhal_lane *lane)
{
    if (lane->slot) {
        *lane->slot = NULL;
        lane->slot = NULL;
    }
    for (size_t i = 0; i < GPUHAL_LANE_PROBES && !lane->slot; i++) {
        _Atomic(gpuhal_lane *) *slot = &pool->slots[gpuhal_lane_slot(lane->queue, i)];
        lane->slot = *slot ? NULL : slot;
    }
    if (lane->slot) {
        *lane->slot = lane;
    }
}

gpuhal_lane *gpuhal_lane_get(gpuhal_pool *pool, gpuhal_queue *queue)
{
    gpuhal_lane *lane = gpuhal_lane_find(pool, queue);
    if (lane) {
        return lane;
    }
    free_finished_lanes(pool);
    lane = gpuhal_lane_find(pool, NULL);
    lane = lane ? lane : add_lane(pool);
    if (lane) {
        lane->queue = gpuhal_queue_retain(queue);
        gpuhal_sole_note_queue(pool);
        lane->submitted = atomic_load_explicit(&queue->submitted, memory_order_relaxed);
        lane->idle_releases = IDLE_RELEASES;
        take_slot(pool, lane);
    }
    return lane;
}

/* If every part has its own segment, finds a free segment of exactly `bytes` bytes. */
static gpuhal_block_id find(const gpuhal_pool *pool, const gpuhal_bins *bins, uint64_t bytes)
{
    if (!pool->desc.export_kinds) {
        return gpuhal_blocks_find(&pool->blocks, bins, bytes, pool->unit);
    }
    gpuhal_block_id id = 1;
    while (id < pool->blocks.touched && !(gpuhal_block_at(&pool->blocks, id)->bins == bins &&
                                          gpuhal_block_at(&pool->blocks, id)->bytes == bytes)) {
        id++;
    }
    return id < pool->blocks.touched ? id : 0;
}

/* Returns the smaller block; 0 means no block. */
static gpuhal_block_id better(const gpuhal_pool *pool, gpuhal_block_id one, gpuhal_block_id other)
{
    if (one == 0 || other == 0) {
        return one + other;
    }
    return gpuhal_block_at(&pool->blocks, other)->bytes < gpuhal_block_at(&pool->blocks, one)->bytes ? other : one;
}

gpuhal_block_id gpuhal_pool_search(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes)
{
    const gpuhal_lane *lane = queue ? gpuhal_lane_find(pool, queue) : NULL;
    if (pool->sole.bins && lane && gpuhal_blocks_reserve(&pool->sole.blocks)) {
        return gpuhal_sole_take(pool, lane, bytes);
    }
    if (pool->sole.bins) {
        gpuhal_sole_end(pool);
    }
    gpuhal_block_id block = find(pool, pool->common, bytes);
    block = lane ? better(pool, find(pool, lane->bins, bytes), block) : block;
    for (const gpuhal_pending *pending = queue ? pool->pending : NULL; pending; pending = pending->next) {
        if (pending->bins && (pending->owner == queue || pending->follower == queue)) {
            block = better(pool, block, find(pool, pending->bins, bytes));
        }
    }
    return block ? gpuhal_blocks_take_found(&pool->blocks, block, bytes, pool->unit) : 0;
}

/* Returns whether the block is free and the lane's queue may use it at once. Blocks of entries that the queue only
 * follows do not count. A table entry without bytes is not a block. */
static bool may_have(const gpuhal_pool *pool, const gpuhal_lane *lane, gpuhal_block_id id)
{
    const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
    const gpuhal_bins *bins = id != 0 && block->bytes > 0 ? block->bins : NULL;
    bool may = bins && (bins == lane->bins || bins == pool->common);
    for (const gpuhal_pending *pending = pool->pending; pending && bins && !may; pending = pending->next) {
        may = pending->bins == bins && pending->owner == lane->queue;
    }
    return may;
}

/* Returns the total size of consecutive blocks, beginning with `id`, that the queue can use. */
static uint64_t bytes_from(const gpuhal_pool *pool, const gpuhal_lane *lane, gpuhal_block_id id)
{
    uint64_t sum = 0;
    for (; may_have(pool, lane, id); id = gpuhal_block_at(&pool->blocks, id)->after) {
        sum += gpuhal_block_at(&pool->blocks, id)->bytes;
    }
    return sum;
}

/* Returns the first block of the smallest sufficient run of neighbours that the queue can use, or 0. */
static gpuhal_block_id smallest_row(const gpuhal_pool *pool, const gpuhal_lane *lane, uint64_t bytes)
{
    gpuhal_block_id best = 0;
    uint64_t least = UINT64_MAX;
    for (gpuhal_block_id id = 1; id < pool->blocks.touched; id++) {
        const gpuhal_block_id before = gpuhal_block_at(&pool->blocks, id)->before;
        const bool begins = may_have(pool, lane, id) && !may_have(pool, lane, before);
        const uint64_t row = begins ? bytes_from(pool, lane, id) : 0;
        if (row >= bytes && row < least) {
            best = id;
            least = row;
        }
    }
    return best;
}

bool gpuhal_lane_gather(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes)
{
    const bool may_help = queue && !pool->desc.export_kinds && !pool->sole.bins;
    const gpuhal_lane *lane = may_help ? gpuhal_lane_find(pool, queue) : NULL;
    const gpuhal_block_id first = lane ? smallest_row(pool, lane, bytes) : 0;
    if (first == 0) {
        return false;
    }
    gpuhal_block_id merged = gpuhal_blocks_move_one(&pool->blocks, lane->bins, first);
    while (gpuhal_block_at(&pool->blocks, merged)->bytes < bytes) {
        const gpuhal_block_id after = gpuhal_block_at(&pool->blocks, merged)->after;
        merged = gpuhal_blocks_move_one(&pool->blocks, lane->bins, after);
    }
    gpuhal_pool_changed(pool);
    return true;
}

static bool make_room(gpuhal_part *part)
{
    if (part->uses && part->uses->count < part->use_space) {
        return true;
    }
    size_t space = part->use_space ? 2 * part->use_space : 4;
    gpuhal_pending *grown = realloc(part->uses, sizeof *grown + space * sizeof *grown->waits);
    if (!grown) {
        return false;
    }
    if (!part->uses) {
        *grown = (gpuhal_pending){0};
    }
    part->uses = grown;
    part->use_space = space;
    return true;
}

bool gpuhal_part_add_use(gpuhal_part *part, gpuhal_queue *queue)
{
    gpuhal_lane *lane = gpuhal_lane_get(part->pool, queue);
    if (!lane) {
        return false;
    }
    if (!part->home && !part->pool->checks) {
        part->home = lane;
        part->made = gpuhal_lane_count(lane); /* prevents the lane from keeping the part, whose allocation it did not
                                               * count */
        lane->parts++;
    }
    if (part->home == lane) {
        return true;
    }
    size_t count = part->uses ? part->uses->count : 0;
    for (size_t i = 0; i < count; i++) {
        if (part->uses->waits[i].queue == queue) {
            return true;
        }
    }
    if (!make_room(part)) {
        return false;
    }
    part->uses->waits[part->uses->count++] = (gpuhal_pool_wait){.queue = gpuhal_queue_retain(queue)};
    return true;
}

bool gpuhal_part_begin_uses(gpuhal_part *part, gpuhal_queue *queue)
{
    return make_room(part) && (!queue || gpuhal_part_add_use(part, queue));
}

/* Number of structures of released parts that are not recycled yet, so that a second release is detected. */
enum { RELEASED_PARTS = 4096 };

gpuhal_part *gpuhal_part_take(gpuhal_pool *pool)
{
    gpuhal_part *part = pool->checks && pool->spare_count <= RELEASED_PARTS ? NULL : pool->spare;
    if (part) {
        pool->spare = part->next;
        pool->spare_count -= pool->checks;
        return part;
    }
    part = calloc(1, sizeof *part);
    if (part) {
        part->pool = pool;
        part->buffer.device = pool->device;
        part->buffer.is_part = true;
        part->buffer.kind = pool->desc.kind;
        part->buffer.alignment = pool->unit;
    }
    return part;
}

void gpuhal_part_put_back(gpuhal_part *part)
{
    gpuhal_pool *pool = part->pool;
    if (!pool->checks) {
        part->next = pool->spare;
        pool->spare = part;
        return;
    }
    if (pool->spare_count++ == 0) {
        pool->spare_end = &pool->spare;
    }
    part->next = NULL;
    *pool->spare_end = part;
    pool->spare_end = &part->next;
}

void gpuhal_pending_append(gpuhal_pool *pool, gpuhal_pending *pending)
{
    pending->number = ++pool->pending_number;
    pending->users = 1;
    pending->recording = true;
    *pool->pending_end = pending;
    pool->pending_end = &pending->next;
}

static void retire_part(gpuhal_part *part)
{
    gpuhal_pool *pool = part->pool;
    gpuhal_amount_remove(&pool->used, gpuhal_block_at(&pool->blocks, part->block)->bytes);
    gpuhal_amount_remove(&pool->requested, part->buffer.bytes);
    gpuhal_amount_remove(&pool->buffers, 1);
    pool->store_bytes -= part->of_store ? gpuhal_block_at(&pool->blocks, part->block)->bytes : 0;
    part->of_store = false;
    if (part->is_kept) {
        gpuhal_lane_forget(part->home, part);
        part->is_kept = false;
    }
    gpuhal_part_put_back(part);
}

/* Chooses the bins for a block that is only behind its home queue's work. While the home queue is idle, these are the
 * common bins. If the queue receives work now and then, all its blocks go to the lane and stay there until a search
 * fails, because blocks in different bins are not merged. */
static gpuhal_bins *bins_for_release(gpuhal_pool *pool, gpuhal_lane *home)
{
    const uint64_t submitted = atomic_load_explicit(&home->queue->submitted, memory_order_relaxed);
    home->idle_releases = submitted == home->submitted ? home->idle_releases + 1 : 0;
    home->submitted = submitted;
    if (home->idle_releases < IDLE_RELEASES || (pool->desc.flags & GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC) ||
        !gpuhal_queue_is_quiet(home->queue)) {
        gpuhal_sole_begin(pool, home);
        return home->bins;
    }
    pool->has_unused |= gpuhal_bins_free_count(home->bins) > 0;
    gpuhal_blocks_move(&pool->blocks, home->bins, pool->common);
    return pool->common;
}

/* Blocks in the home lane are only reused by the home queue, after its own earlier work. So if other queues have used
 * the part, the entry waits only for them. Afterwards the block is added to the lane, which keeps its queue until
 * then. */
gpuhal_pending *gpuhal_part_give(gpuhal_part *part)
{
    gpuhal_pool *pool = part->pool;
    gpuhal_pending *pending = part->uses;
    gpuhal_bins *bins = part->home ? part->home->bins : pool->common;
    part->uses = NULL;
    part->use_space = 0;
    gpuhal_block_at(&pool->blocks, part->block)->user = NULL;
    gpuhal_block_at(&pool->blocks, part->block)->stamp = part->is_kept ? part->stamp : gpuhal_timepoint_newest();
    gpuhal_pool_begin_change(pool);
    retire_part(part);
    if (!pending) {
        if (part->home) {
            part->home->parts--;
            bins = bins_for_release(pool, part->home);
        }
        const gpuhal_block_id twin = gpuhal_block_at(&pool->blocks, part->block)->twin;
        const gpuhal_block_id merged = gpuhal_blocks_give(&pool->blocks, bins, part->block);
        gpuhal_sole_give(pool, twin, merged);
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, merged);
        pool->has_unused |= (!block->before && !block->after) || gpuhal_pool_has_piece(pool, block);
        gpuhal_pool_end_change(pool);
        return NULL;
    }
    gpuhal_pool_end_change(pool);
    if (pool->checks) {
        pending->tag = atomic_load_explicit(&part->buffer.tag, memory_order_relaxed);
        pending->bytes = part->buffer.bytes;
    }
    pending->home = part->home;
    pending->block = part->block;
    gpuhal_pending_append(pool, pending);
    return pending;
}

/* ---- parts that lanes keep */

/* Returns the number of released parts. If it is 0 and `may_leave` is true, marks the lane as not listed; the caller
 * then removes it from the list. */
static uint64_t give_kept(gpuhal_pool *pool, gpuhal_lane *lane, bool may_leave)
{
    uint64_t given = 0;
    if (!may_leave && gpuhal_lane_kept_count(lane) == 0) {
        return 0;
    }
    gpuhal_mutex_lock(&lane->mutex);
    while (lane->kept) {
        gpuhal_part *part = lane->kept;
        lane->kept = part->next;
        (void)gpuhal_part_give(part); /* returns no entry, because no other queue has used a kept part */
        given++;
    }
    lane->listed &= given > 0 || !may_leave;
    gpuhal_mutex_unlock(&lane->mutex);
    pool->references -= given;
    return given;
}

void gpuhal_lane_give_kept(gpuhal_pool *pool, gpuhal_lane *lane)
{
    if (gpuhal_lane_kept_count(lane) > 0) {
        give_kept(pool, lane, false);
    }
}

uint64_t gpuhal_pool_give_kept(gpuhal_pool *pool)
{
    uint64_t given = 0;
    gpuhal_lane *lane = atomic_load_explicit(&pool->keeping, memory_order_acquire), *before = NULL;
    while (lane) {
        gpuhal_lane *next = lane->keeping; /* read before the removal, because another thread may add the lane again
                                            * afterwards */
        const uint64_t parts = give_kept(pool, lane, before != NULL); /* the first lane stays in the list, because other
                                                                       * threads add lanes before it */
        if (parts == 0 && before) {
            before->keeping = next;
        } else {
            before = lane;
        }
        given += parts;
        lane = next;
    }
    return given;
}

static bool is_peak(const gpuhal_amount *figure, uint64_t more)
{
    return gpuhal_amount_now(figure) + more > atomic_load_explicit(&figure->peak, memory_order_relaxed);
}

void gpuhal_pool_limit_kept(gpuhal_pool *pool, uint64_t block_bytes, uint64_t bytes)
{
    if (is_peak(&pool->used, block_bytes) || is_peak(&pool->requested, bytes) || is_peak(&pool->buffers, 1)) {
        gpuhal_pool_give_kept(pool);
    }
}

void gpuhal_pool_close_lanes(gpuhal_pool *pool)
{
    for (gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        gpuhal_mutex_lock(&lane->mutex);
        lane->closed = true;
        gpuhal_mutex_unlock(&lane->mutex);
    }
}
