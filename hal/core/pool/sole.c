/* pool/sole.c: a second view of the blocks while only one queue uses the pool. In the pool's own view, common blocks
 * and blocks behind the queue's work are in different bins, so neighbours of different kinds are not merged, although
 * the queue can use both. The second view has both in one set of bins and merges them. All functions run with the
 * pool's mutex held and call no plugin. */
#include "pool/pool.h"

#include <stdlib.h>

static bool has_one_queue(const gpuhal_pool *pool)
{
    uint32_t queues = 0;
    for (const gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        queues += lane->queue != NULL;
    }
    return queues == 1;
}

/* All free blocks are still common, so the view begins as a copy of the pool's blocks. */
void gpuhal_sole_begin(gpuhal_pool *pool, const gpuhal_lane *lane)
{
    gpuhal_sole *sole = &pool->sole;
    if (sole->bins || sole->ended || pool->desc.export_kinds || pool->range.buffer || pool->fence.bins ||
        pool->pending || gpuhal_bins_free_count(lane->bins) > 0) {
        return;
    }
    sole->bins = gpuhal_blocks_copy(&sole->blocks, &pool->blocks, pool->common);
    for (gpuhal_block_id id = 1; sole->bins && id < pool->blocks.touched; id++) {
        gpuhal_block_at(&pool->blocks, id)->twin = id;
        gpuhal_block_at(&sole->blocks, id)->twin = id;
    }
}

/* To begin the view again, all blocks would have to be copied, which would cost more than the view saves. */
void gpuhal_sole_end(gpuhal_pool *pool)
{
    gpuhal_sole *sole = &pool->sole;
    gpuhal_bins_destroy(sole->bins);
    gpuhal_blocks_finish(&sole->blocks);
    *sole = (gpuhal_sole){.ended = true};
}

void gpuhal_sole_note_queue(gpuhal_pool *pool)
{
    if (!pool->sole.ended && !has_one_queue(pool)) {
        gpuhal_sole_end(pool);
    }
}

/* ---- searching */

static bool begins_region(const gpuhal_pool *pool, gpuhal_block_id id, uint32_t region)
{
    const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
    return id != 0 && block->bytes > 0 && block->region == region && block->before == 0;
}

/* Finds the first block of the region of `merged`, because the cached first block may have been merged. */
static gpuhal_block_id find_first(const gpuhal_pool *pool, const gpuhal_block *merged)
{
    gpuhal_block_id id = 1;
    if (merged->after != 0) {
        id = gpuhal_block_at(&pool->sole.blocks, merged->after)->twin;
        while (gpuhal_block_at(&pool->blocks, id)->before != 0) {
            id = gpuhal_block_at(&pool->blocks, id)->before;
        }
    }
    while (!begins_region(pool, id, merged->region)) {
        id++;
    }
    return id;
}

/* Returns the first of the pool's blocks that correspond to one free block in the view. */
static gpuhal_block_id first_piece(gpuhal_pool *pool, gpuhal_block_id merged)
{
    const gpuhal_block *block = gpuhal_block_at(&pool->sole.blocks, merged);
    if (block->before != 0) { /* the block before is in use, because free neighbours would have been merged */
        const gpuhal_block_id before = gpuhal_block_at(&pool->sole.blocks, block->before)->twin;
        return gpuhal_block_at(&pool->blocks, before)->after;
    }
    gpuhal_segment *segment = &pool->segments[block->region];
    if (!begins_region(pool, segment->first, block->region)) {
        segment->first = find_first(pool, block);
    }
    return segment->first;
}

/* Takes the block and as many of the following blocks as `bytes` requires, merged into one block. */
static gpuhal_block_id take_from(gpuhal_pool *pool, const gpuhal_lane *lane, gpuhal_block_id id, uint64_t bytes)
{
    gpuhal_blocks *blocks = &pool->blocks;
    if (gpuhal_block_at(blocks, id)->bytes < bytes) {
        id = gpuhal_blocks_move_one(blocks, lane->bins, id);
    }
    while (gpuhal_block_at(blocks, id)->bytes < bytes) {
        const gpuhal_block_id next = gpuhal_block_at(blocks, id)->after;
        const gpuhal_block *after = gpuhal_block_at(blocks, next);
        const uint64_t lacking = bytes - gpuhal_block_at(blocks, id)->bytes;
        if (after->bytes > lacking) { /* the rest of the block stays in its bins */
            const gpuhal_block_id part = gpuhal_blocks_take_at(blocks, next, after->offset, lacking);
            id = gpuhal_blocks_give(blocks, lane->bins, part);
        } else {
            id = gpuhal_blocks_move_one(blocks, lane->bins, next);
        }
    }
    return gpuhal_blocks_take_at(blocks, id, gpuhal_block_at(blocks, id)->offset, bytes);
}

/* If the block is at the beginning of its segment, caches it for the next search. */
static void note_first(gpuhal_pool *pool, gpuhal_block_id id)
{
    const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
    if (block->before == 0) {
        pool->segments[block->region].first = id;
    }
}

gpuhal_block_id gpuhal_sole_take(gpuhal_pool *pool, const gpuhal_lane *lane, uint64_t bytes)
{
    gpuhal_blocks *own = &pool->sole.blocks;
    const gpuhal_block_id found = gpuhal_blocks_find(own, pool->sole.bins, bytes, pool->unit);
    if (found == 0) {
        return 0;
    }
    const gpuhal_block_id id = take_from(pool, lane, first_piece(pool, found), bytes);
    const gpuhal_block_id twin = gpuhal_blocks_take_found(own, found, bytes, pool->unit);
    gpuhal_block_at(&pool->blocks, id)->twin = twin;
    gpuhal_block_at(own, twin)->twin = id;
    note_first(pool, id);
    return id;
}

/* ---- other changes */

void gpuhal_sole_give(gpuhal_pool *pool, gpuhal_block_id twin, gpuhal_block_id merged)
{
    if (pool->sole.bins) {
        (void)gpuhal_blocks_give(&pool->sole.blocks, pool->sole.bins, twin);
        note_first(pool, merged);
    }
}

void gpuhal_sole_add(gpuhal_pool *pool, uint32_t region, uint64_t bytes)
{
    if (pool->sole.bins && !gpuhal_blocks_add(&pool->sole.blocks, pool->sole.bins, region, bytes)) {
        gpuhal_sole_end(pool);
    }
}

void gpuhal_sole_remove(gpuhal_pool *pool, uint32_t region)
{
    gpuhal_blocks *own = &pool->sole.blocks;
    gpuhal_block_id id = 1;
    while (id < own->touched && (gpuhal_block_at(own, id)->bytes == 0 || gpuhal_block_at(own, id)->region != region)) {
        id++;
    }
    if (id < own->touched) {
        gpuhal_blocks_remove(own, id);
    }
}
