/* pool/compact.c: vacates a stretch of a segment. The owners move the stretch's parts.
 *
 * The stretch's free memory is in separate bins, the fence, which no search uses. Statistics count the fence's memory
 * as waiting for work. A pool has at most one stretch at a time. */
#include "pool/pool.h"

/* Adjacent blocks that are free or can move. */
typedef struct stretch {
    gpuhal_block_id first;
    uint64_t bytes, moved_bytes;
} stretch;

static const gpuhal_block *block_of(const gpuhal_pool *pool, gpuhal_block_id id)
{
    return gpuhal_block_at(&pool->blocks, id);
}

static bool is_free(const gpuhal_pool *pool, const gpuhal_block *block)
{
    return block->bins == pool->common;
}

/* A part's mark is valid for one search. */
static bool is_movable(const gpuhal_pool *pool, const gpuhal_block *block)
{
    const gpuhal_part *part = block->user;
    return !block->bins && part && part->mark == pool->marks;
}

/* Returns how many bytes the pool may still allocate from the driver, as far as the pool knows. */
static uint64_t room_to_grow(const gpuhal_pool *pool)
{
    const uint64_t limit = atomic_load(&pool->limit_bytes), reserved = gpuhal_amount_now(&pool->reserved);
    return limit == 0 ? UINT64_MAX / 2 : limit > reserved ? limit - reserved : 0;
}

/* Memory behind work counts as free, because the work may end in time. */
bool gpuhal_compact_may_help(gpuhal_pool *pool, uint64_t bytes)
{
    gpuhal_mutex_lock(&pool->mutex);
    const uint64_t unused = gpuhal_amount_now(&pool->reserved) - gpuhal_pool_used_now(pool);
    /* If the pool has no limit, the driver or another limit refused, so the pool cannot grow. */
    const uint64_t room = atomic_load(&pool->limit_bytes) == 0 ? 0 : room_to_grow(pool);
    gpuhal_mutex_unlock(&pool->mutex);
    return unused > 0 && unused + room >= bytes;
}

/* Returns whether the stretch contains parts to move, and there is room for them elsewhere. If `grows` is true, the
 * pool may grow to make room. */
static bool has_room(const gpuhal_pool *pool, const stretch *s, bool grows)
{
    const uint64_t inside = s->bytes - s->moved_bytes;
    const uint64_t outside = gpuhal_bins_free_bytes(pool->common) - inside;
    return s->moved_bytes > 0 && s->moved_bytes <= outside + (grows ? room_to_grow(pool) : 0);
}

/* Appends the block to the stretch. If the block is neither free nor movable, starts a new stretch after it instead. */
static void extend(const gpuhal_pool *pool, stretch *s, gpuhal_block_id id)
{
    const gpuhal_block *block = block_of(pool, id);
    if (!is_free(pool, block) && !is_movable(pool, block)) {
        *s = (stretch){.first = block->after};
        return;
    }
    s->bytes += block->bytes;
    s->moved_bytes += is_free(pool, block) ? 0 : block->bytes;
}

/* Removes blocks from the beginning of the stretch while at least `bytes` remain. */
static void shorten(const gpuhal_pool *pool, stretch *s, uint64_t bytes)
{
    const gpuhal_block *first = block_of(pool, s->first);
    while (s->bytes >= bytes && s->bytes - bytes >= first->bytes) {
        s->bytes -= first->bytes;
        s->moved_bytes -= is_free(pool, first) ? 0 : first->bytes;
        s->first = first->after;
        first = block_of(pool, s->first);
    }
}

/* Returns the stretch without surplus free memory at its end, so that moved parts can use the surplus. */
static stretch cut(const gpuhal_pool *pool, stretch s, gpuhal_block_id last, uint64_t bytes)
{
    const gpuhal_block *block = block_of(pool, last);
    const uint64_t surplus = s.bytes - bytes;
    s.bytes -= !is_free(pool, block) ? 0 : surplus < block->bytes ? surplus : block->bytes;
    return s;
}

/* Searches the segment whose first block is `head` for a stretch. Replaces *best by a stretch with fewer bytes to
 * move. */
static void choose_in(const gpuhal_pool *pool, gpuhal_block_id head, uint64_t bytes, stretch *best)
{
    const uint32_t region = block_of(pool, head)->region;
    const uint64_t need = bytes ? bytes : pool->segments[region].bytes;
    stretch s = {.first = head};
    for (gpuhal_block_id id = head; id; id = block_of(pool, id)->after) {
        extend(pool, &s, id);
        shorten(pool, &s, need);
        if (s.bytes < need) {
            continue;
        }
        const stretch found = cut(pool, s, id, need);
        if (found.moved_bytes < best->moved_bytes && has_room(pool, &found, bytes > 0)) {
            *best = found;
        }
    }
}

/* Finds the stretch with the fewest bytes to move. If `bytes` is 0, the stretch is a whole segment, the pool does not
 * grow to make room for its parts, and virtual memory is skipped. */
static bool choose(const gpuhal_pool *pool, uint64_t bytes, stretch *out)
{
    *out = (stretch){.moved_bytes = UINT64_MAX};
    for (gpuhal_block_id id = 1; id < pool->blocks.touched; id++) {
        const gpuhal_block *block = block_of(pool, id);
        const bool in_range = pool->range.buffer && block->region == pool->range.region;
        if (block->bytes > 0 && !block->before && (bytes > 0 || !in_range)) {
            choose_in(pool, id, bytes, out);
        }
    }
    return out->bytes > 0;
}

static void mark(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count)
{
    pool->marks++;
    for (size_t i = 0; i < count; i++) {
        ((gpuhal_part *)movable[i])->mark = pool->marks;
    }
}

/* Moves the stretch's free memory behind the fence. The caller holds the mutex. */
static void sweep(gpuhal_pool *pool)
{
    const gpuhal_fence *fence = &pool->fence;
    const uint64_t end = fence->begin + fence->bytes;
    for (gpuhal_block_id id = 1; id < pool->blocks.touched; id++) {
        const gpuhal_block block = *block_of(pool, id);
        const uint64_t from = block.offset > fence->begin ? block.offset : fence->begin;
        const uint64_t block_end = block.offset + block.bytes, to = block_end < end ? block_end : end;
        if (block.bytes > 0 && is_free(pool, &block) && block.region == fence->region && from < to &&
            gpuhal_blocks_reserve(&pool->blocks)) {
            const gpuhal_block_id inside = gpuhal_blocks_take_at(&pool->blocks, id, from, to - from);
            (void)gpuhal_blocks_give(&pool->blocks, fence->bins, inside);
        }
    }
    gpuhal_pool_changed(pool);
}

static void wait_for_work(gpuhal_pool *pool, uint64_t deadline_ns)
{
    const uint64_t newest = gpuhal_pool_part_lanes(pool, NULL, 1);
    while (gpuhal_pool_wait_oldest(pool, newest, deadline_ns)) {
        gpuhal_pool_poll(pool);
    }
}

/* On failure returns false, and the caller still owns the bins. */
static bool try_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes, gpuhal_bins *bins)
{
    stretch s = {0};
    gpuhal_pool_poll(pool);
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_pool_give_kept(pool);
    mark(pool, movable, count);
    const bool begins = !pool->fence.bins && choose(pool, bytes, &s);
    if (begins) {
        gpuhal_sole_end(pool);
        const gpuhal_block *first = block_of(pool, s.first);
        pool->fence = (gpuhal_fence){.bins = bins, .region = first->region, .begin = first->offset, .bytes = s.bytes};
        sweep(pool);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    return begins;
}

/* In a pool with exportable memory each part is a whole segment, so no part has to move. */
uint64_t gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                              uint64_t deadline_ns)
{
    gpuhal_bins *bins = pool->desc.export_kinds ? NULL : gpuhal_bins_create();
    bool begins = bins && try_begin(pool, movable, count, bytes, bins);
    if (bins && !begins && deadline_ns > 0) {
        wait_for_work(pool, deadline_ns);
        begins = try_begin(pool, movable, count, bytes, bins);
    }
    if (!begins) {
        gpuhal_bins_destroy(bins);
    }
    return begins ? pool->fence.bytes : 0;
}

bool gpuhal_compact_has(gpuhal_pool *pool, const gpuhal_buffer *buffer)
{
    const gpuhal_part *part = (const gpuhal_part *)buffer;
    const gpuhal_fence *fence = &pool->fence;
    gpuhal_mutex_lock(&pool->mutex);
    const gpuhal_block *block = block_of(pool, part->block);
    const bool inside =
        block->region == fence->region && block->offset >= fence->begin && block->offset < fence->begin + fence->bytes;
    gpuhal_mutex_unlock(&pool->mutex);
    return inside;
}

void gpuhal_compact_release(gpuhal_pool *pool, gpuhal_buffer *const *moved, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gpuhal_buffer_release(moved[i]);
    }
    gpuhal_pool_poll(pool);
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_pool_give_kept(pool);
    sweep(pool);
    gpuhal_mutex_unlock(&pool->mutex);
}

static bool is_swept(gpuhal_pool *pool)
{
    gpuhal_mutex_lock(&pool->mutex);
    sweep(pool);
    const bool swept = gpuhal_bins_free_bytes(pool->fence.bins) == pool->fence.bytes;
    gpuhal_mutex_unlock(&pool->mutex);
    return swept;
}

bool gpuhal_compact_end(gpuhal_pool *pool, uint64_t deadline_ns)
{
    bool is_free_now = is_swept(pool);
    if (!is_free_now && deadline_ns > 0) {
        wait_for_work(pool, deadline_ns);
        is_free_now = is_swept(pool);
    }
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_bins *bins = pool->fence.bins;
    gpuhal_blocks_move(&pool->blocks, bins, pool->common);
    pool->fence = (gpuhal_fence){0};
    pool->has_unused = true;
    gpuhal_pool_changed(pool);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_bins_destroy(bins);
    return is_free_now;
}

uint64_t gpuhal_compact_trim(gpuhal_pool *pool, uint64_t bytes)
{
    uint64_t freed = 0;
    gpuhal_pool_poll(pool);
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_buffer *list = gpuhal_pool_take_unused(pool, 0, bytes, &freed);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_segments_release(list);
    return freed;
}
