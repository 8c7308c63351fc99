/* pool/piece.c: virtual memory. A pool reserves one address range larger than the device's memory, and the driver backs
 * it with memory piece by piece. Buffers can span neighbouring pieces, so free memory is not fragmented into segments.
 * Each piece can be returned to the driver individually, at any position, if no buffer uses a byte of it.
 *
 * The range is one region of the table. Addresses without memory are free blocks in separate bins, `holes`, which no
 * search uses. `changing` is set while one thread calls the driver without the mutex; only this thread may then remove
 * holes or add pieces. */
#include "pool/pool.h"

#include "base/error.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

/* How often to check for a hang during another thread's driver call. */
enum { LOST_POLL_NS = 20000000 };

/* ---- growing */

static uint64_t round_up(uint64_t bytes, uint64_t page)
{
    return (bytes + page - 1) & ~(page - 1);
}

static uint64_t free_bytes_of(const gpuhal_pool *pool, gpuhal_block_id id)
{
    const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
    return id != 0 && block->bins == pool->common ? block->bytes : 0;
}

/* Returns how many bytes to commit at the beginning of a hole so that, together with the free memory before the hole
 * (and after it, if the hole is filled), `need` bytes are free in one block. Returns UINT64_MAX if the hole is too
 * small. */
static uint64_t least_in(const gpuhal_pool *pool, const gpuhal_block *hole, uint64_t need)
{
    const uint64_t before = free_bytes_of(pool, hole->before), after = free_bytes_of(pool, hole->after);
    const uint64_t least = need > before ? round_up(need - before, pool->range.page_bytes) : pool->range.page_bytes;
    if (least <= hole->bytes) {
        return least;
    }
    return need - before <= hole->bytes + after ? hole->bytes : UINT64_MAX;
}

/* Finds the hole that needs the least memory, and among several the lowest. The caller holds the mutex. */
static bool choose_hole(const gpuhal_pool *pool, uint64_t need, gpuhal_hole *out)
{
    *out = (gpuhal_hole){.least = UINT64_MAX};
    for (gpuhal_block_id id = 1; id < pool->blocks.touched; id++) {
        const gpuhal_block *hole = gpuhal_block_at(&pool->blocks, id);
        if (hole->bytes == 0 || hole->bins != pool->range.holes) {
            continue;
        }
        const uint64_t least = least_in(pool, hole, need);
        if (least < out->least || (least == out->least && out->hole != 0 && hole->offset < out->offset)) {
            *out = (gpuhal_hole){.hole = id, .offset = hole->offset, .least = least};
        }
    }
    return out->hole != 0;
}

bool gpuhal_pool_begin_piece(gpuhal_pool *pool, uint64_t bytes, uint64_t need, uint64_t room, gpuhal_hole *out_place)
{
    gpuhal_pool_range *range = &pool->range;
    const uint64_t max = pool->device->allocation_max_bytes, page = range->page_bytes;
    if (!range->buffer || range->changing || !choose_hole(pool, need, out_place)) {
        return false;
    }
    const gpuhal_block *hole = gpuhal_block_at(&pool->blocks, out_place->hole);
    const uint64_t before = free_bytes_of(pool, hole->before), bounds[] = {hole->bytes, room, max};
    uint64_t most = bytes > before ? bytes - before : 0;
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        most = most < bounds[i] ? most : bounds[i];
    }
    most &= ~(page - 1);
    out_place->most = most > out_place->least ? most : out_place->least;
    range->changing = out_place->least <= room && out_place->least <= max;
    return range->changing;
}

void gpuhal_pool_await_pieces_unlocks(gpuhal_pool *pool)
{
    while (pool->range.changing && gpuhal_device_is_reachable(pool->device)) {
        gpuhal_condition_wait_until(&pool->condition, &pool->mutex, gpuhal_deadline(LOST_POLL_NS));
    }
}

static bool make_space(gpuhal_pool_range *range)
{
    if (range->piece_count < range->piece_space) {
        return true;
    }
    const size_t space = range->piece_space ? 2 * range->piece_space : 8;
    gpuhal_piece *grown = realloc(range->pieces, space * sizeof *grown);
    if (grown) {
        range->pieces = grown;
        range->piece_space = space;
    }
    return grown != NULL;
}

/* The caller holds the mutex. */
static bool add_piece(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t bytes)
{
    gpuhal_pool_range *range = &pool->range;
    if (!make_space(range) || !gpuhal_blocks_reserve(&pool->blocks)) {
        return false;
    }
    const gpuhal_block_id block = gpuhal_blocks_take_at(&pool->blocks, place->hole, place->offset, bytes);
    (void)gpuhal_blocks_give(&pool->blocks, pool->common, block);
    size_t at = range->piece_count++;
    for (; at > 0 && range->pieces[at - 1].offset > place->offset; at--) {
        range->pieces[at] = range->pieces[at - 1];
    }
    range->pieces[at] = (gpuhal_piece){.offset = place->offset, .bytes = bytes};
    gpuhal_pool_begin_change(pool);
    pool->segment_count++;
    gpuhal_amount_add(&pool->reserved, bytes);
    gpuhal_pool_end_change(pool);
    gpuhal_trace_pool(pool, GPUHAL_TRACE_GROW, range->region, bytes);
    return true;
}

static void end_change(gpuhal_pool *pool)
{
    pool->range.changing = false;
    gpuhal_condition_signal_all(&pool->condition);
    gpuhal_mutex_unlock(&pool->mutex);
}

gpuhal_status gpuhal_pool_end_piece(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t bytes)
{
    gpuhal_mutex_lock(&pool->mutex);
    const bool added = bytes == 0 || add_piece(pool, place, bytes);
    if (!added) {
        gpuhal_mutex_unlock(&pool->mutex);
        (void)gpuhal_range_decommit(pool->range.buffer, place->offset, bytes);
        gpuhal_mutex_lock(&pool->mutex);
    }
    end_change(pool);
    return added ? GPUHAL_OK : gpuhal_error_host_memory();
}

/* ---- returning memory, highest address first */

/* Returns the block that contains the byte at `offset`: `id` or an earlier block. */
static gpuhal_block_id down_to(const gpuhal_pool *pool, gpuhal_block_id id, uint64_t offset)
{
    while (gpuhal_block_at(&pool->blocks, id)->offset > offset) {
        id = gpuhal_block_at(&pool->blocks, id)->before;
    }
    return id;
}

static gpuhal_block_id last_block(const gpuhal_pool *pool)
{
    gpuhal_block_id last = 0;
    for (gpuhal_block_id id = 1; id < pool->blocks.touched && last == 0; id++) {
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
        last = block->bytes > 0 && block->region == pool->range.region && block->after == 0 ? id : 0;
    }
    return last;
}

static bool is_unused(const gpuhal_pool *pool, gpuhal_block_id id, const gpuhal_piece *piece)
{
    const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
    return block->bins == pool->common && block->offset + block->bytes >= piece->offset + piece->bytes;
}

uint64_t gpuhal_pool_unused_piece_bytes(const gpuhal_pool *pool)
{
    const gpuhal_pool_range *range = &pool->range;
    uint64_t bytes = 0;
    gpuhal_block_id id = range->piece_count > 0 ? last_block(pool) : 0;
    for (size_t i = range->piece_count; i-- > 0;) {
        id = down_to(pool, id, range->pieces[i].offset);
        bytes += is_unused(pool, id, &range->pieces[i]) ? range->pieces[i].bytes : 0;
    }
    return bytes;
}

bool gpuhal_pool_has_piece(const gpuhal_pool *pool, const gpuhal_block *block)
{
    const gpuhal_pool_range *range = &pool->range;
    size_t first = 0, end = range->buffer && block->region == range->region ? range->piece_count : 0;
    const size_t count = end;
    while (first < end) { /* binary search for the first piece that begins in or after the block */
        const size_t middle = first + (end - first) / 2;
        if (range->pieces[middle].offset < block->offset) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < count &&
           range->pieces[first].offset + range->pieces[first].bytes <= block->offset + block->bytes;
}

uint64_t gpuhal_pool_take_pieces(gpuhal_pool *pool, uint64_t want_bytes)
{
    gpuhal_pool_range *range = &pool->range;
    uint64_t bytes = 0;
    gpuhal_block_id id = range->piece_count > 0 && !range->changing ? last_block(pool) : 0;
    for (size_t i = range->piece_count; i-- > 0 && id != 0 && bytes < want_bytes;) {
        gpuhal_piece *piece = &range->pieces[i];
        id = down_to(pool, id, piece->offset);
        if (is_unused(pool, id, piece) && gpuhal_blocks_reserve(&pool->blocks)) {
            id = piece->leaving = gpuhal_blocks_take_at(&pool->blocks, id, piece->offset, piece->bytes);
            gpuhal_amount_remove(&pool->reserved, piece->bytes);
            pool->segment_count--;
            gpuhal_trace_pool(pool, GPUHAL_TRACE_TRIM, range->region, piece->bytes);
            bytes += piece->bytes;
        }
    }
    range->changing |= bytes > 0;
    return bytes;
}

/* Called after the driver call that returns a piece. If the driver refused, the piece belongs to the pool again. The
 * caller holds the mutex. */
static void end_leaving(gpuhal_pool *pool, size_t index, bool left)
{
    gpuhal_pool_range *range = &pool->range;
    gpuhal_piece *piece = &range->pieces[index];
    (void)gpuhal_blocks_give(&pool->blocks, left ? range->holes : pool->common, piece->leaving);
    if (left) {
        memmove(piece, piece + 1, (--range->piece_count - index) * sizeof *piece);
        return;
    }
    piece->leaving = 0;
    gpuhal_pool_begin_change(pool);
    gpuhal_amount_add(&pool->reserved, piece->bytes);
    pool->segment_count++;
    gpuhal_pool_end_change(pool);
    gpuhal_trace_pool(pool, GPUHAL_TRACE_GROW, range->region, piece->bytes);
}

void gpuhal_pool_give_pieces(gpuhal_pool *pool)
{
    gpuhal_pool_range *range = &pool->range;
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_mutex_lock(&pool->mutex);
    for (size_t i = range->piece_count; i-- > 0;) {
        const gpuhal_piece piece = range->pieces[i];
        if (piece.leaving == 0) {
            continue;
        }
        gpuhal_mutex_unlock(&pool->mutex);
        const bool left = gpuhal_range_decommit(range->buffer, piece.offset, piece.bytes) == GPUHAL_OK;
        if (!left) {
            gpuhal_log_line(pool->device->gpu->log, GPUHAL_LEVEL_WARNING, "%s", gpuhal_last_error()->sentence);
        }
        gpuhal_mutex_lock(&pool->mutex);
        end_leaving(pool, i, left);
    }
    end_change(pool);
    gpuhal_error_restore(&before);
}

void gpuhal_pool_free_range(gpuhal_pool *pool)
{
    gpuhal_bins_destroy(pool->range.holes);
    free(pool->range.pieces);
}
