/* pool/segment.c: chooses segment sizes within the limits, allocates segments from the driver, and returns unused
 * memory. */
#include "pool/pool.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Number of bytes that the pool may still allocate, and the limit that determines it. */
typedef struct room {
    uint64_t bytes, limit;
    const char *what;
} room;

/* Reads files to find the room under the control group's limit. Above this limit drivers move memory to the host
 * without an error. */
static room room_of_groups(const gpuhal_pool *pool)
{
    room out = {.bytes = UINT64_MAX, .what = "left of the control group's limit of"};
    if (pool->desc.kind == GPUHAL_MEMORY_DEVICE) {
        out.bytes = gpuhal_device_group_left(pool->device, &out.limit);
    }
    return out;
}

static room room_of(const gpuhal_pool *pool, room groups)
{
    const uint64_t limit = atomic_load(&pool->limit_bytes), reserved = gpuhal_amount_now(&pool->reserved);
    const uint64_t bytes = limit == 0 ? UINT64_MAX : reserved < limit ? limit - reserved : 0;
    return bytes <= groups.bytes ? (room){.bytes = bytes, .limit = limit, .what = "left of the pool's limit of"}
                                 : groups;
}

/* Returns how many bytes will be free once queued work has ended. */
static uint64_t ordered_bytes(const gpuhal_pool *pool)
{
    return gpuhal_amount_now(&pool->reserved) - gpuhal_pool_used_now(pool) - gpuhal_bins_free_bytes(pool->common);
}

/* Returns the size of the next segment. The first segments have an eighth, a quarter and a half of the preferred size,
 * because small programs need little, or more if the request needs it; later segments have the full size. Any segment
 * has only an eighth if this is enough for the request, and enough other bytes become free when queued work ends. */
static uint64_t next_bytes(const gpuhal_pool *pool, uint64_t bytes)
{
    const uint64_t preferred = pool->desc.segment_bytes;
    if (bytes > preferred / 2 || pool->desc.export_kinds) {
        return bytes;
    }
    const bool waits = !pool->sole.bins && bytes <= preferred >> 3 && ordered_bytes(pool) >= bytes;
    uint32_t shift = waits ? 3 : pool->segment_count < 3 ? 3 - pool->segment_count : 0;
    while (preferred >> shift < bytes) {
        shift--;
    }
    return (preferred >> shift) & ~(pool->unit - 1);
}

/* Sets OUT_OF_MEMORY. `fixed` is the number of allocated bytes that could not be released, for the message, or 0. */
static gpuhal_status over_limit(const gpuhal_pool *pool, uint64_t bytes, room limit, uint64_t fixed)
{
    char beside[80] = "";
    if (fixed > 0) {
        snprintf(beside, sizeof beside, ", %" PRIu64 " of them in buffers that cannot leave now", fixed);
    }
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: %" PRIu64 " bytes requested for a pool, %" PRIu64 " %s %" PRIu64 " bytes%s", pool->device->id,
                     bytes, limit.bytes, limit.what, limit.limit, beside);
    gpuhal_error_add_device(pool->device->candidate->name, pool->device->id);
    gpuhal_error_add_bytes(bytes, limit.bytes, limit.limit);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Returns the room under one limit if `taken` bytes are in use. */
static room whole(uint64_t limit, uint64_t taken, const char *what)
{
    return (room){.bytes = taken < limit ? limit - taken : 0, .limit = limit ? limit : UINT64_MAX, .what = what};
}

static uint64_t fixed_bytes(gpuhal_pool *pool)
{
    gpuhal_mutex_lock(&pool->mutex);
    const uint64_t bytes = gpuhal_pool_fixed_now(pool);
    gpuhal_mutex_unlock(&pool->mutex);
    return bytes;
}

uint64_t gpuhal_device_fixed_bytes(const gpuhal_device *device)
{
    gpuhal_pools *pools = device->gpu->layers.pools;
    uint64_t fixed = 0;
    gpuhal_mutex_lock(&pools->mutex);
    for (gpuhal_pool *pool = pools->first; pool; pool = pool->next) {
        fixed += pool->device == device ? fixed_bytes(pool) : 0;
    }
    gpuhal_mutex_unlock(&pools->mutex);
    return fixed;
}

static gpuhal_status check_limit(const gpuhal_pool *pool, uint64_t need, room limit, uint64_t fixed)
{
    return limit.limit >= fixed && limit.limit - fixed >= need
               ? GPUHAL_OK
               : over_limit(pool, need, limit, need <= limit.limit ? fixed : 0);
}

gpuhal_status gpuhal_pool_check_limits(gpuhal_pool *pool, uint64_t need, bool all)
{
    const gpuhal_device *device = pool->device;
    const uint64_t reserved = gpuhal_amount_now(&pool->reserved), held = atomic_load(&device->allocated_bytes);
    const bool counts = all && gpuhal_pressure_source_count(device, GPUHAL_PRESSURE_CALL) == 0;
    const uint64_t own = counts ? fixed_bytes(pool) : 0;
    if (own <= reserved && need <= reserved - own) {
        return GPUHAL_OK; /* the pool has already reserved the memory, so no limit applies */
    }
    const room limit = whole(atomic_load(&pool->limit_bytes), reserved, "left of the pool's limit of");
    const room of_device = whole(gpuhal_device_limit(device), held, "left of the device's limit or lease of");
    const bool looks = counts && of_device.limit < UINT64_MAX;
    gpuhal_status status = check_limit(pool, need, limit, own);
    status = status ? status : check_limit(pool, need, of_device, looks ? gpuhal_device_fixed_bytes(device) : 0);
    const room groups = all && !status ? room_of_groups(pool) : (room){.bytes = UINT64_MAX};
    return status || groups.bytes == UINT64_MAX ? status : check_limit(pool, need, groups, 0);
}

/* Checks nothing if the driver does not report its free memory. */
static gpuhal_status check_headroom(const gpuhal_pool *pool, uint64_t bytes)
{
    const uint64_t headroom = pool->desc.headroom_bytes;
    uint64_t left = headroom ? gpuhal_memory_free_bytes(pool->device) : UINT64_MAX;
    return left == UINT64_MAX || (left >= headroom && left - headroom >= bytes)
               ? GPUHAL_OK
               : over_limit(pool, bytes,
                            (room){.bytes = left > headroom ? left - headroom : 0,
                                   .limit = headroom,
                                   .what = "free beside the headroom of"},
                            0);
}

/* Allocates a segment or, if `place` is not NULL, commits memory to the place. */
static gpuhal_status ask(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc,
                                     .kind = pool->desc.kind,
                                     .bytes = bytes,
                                     .alignment = pool->desc.alignment,
                                     .export_kinds = pool->desc.export_kinds};
    const gpuhal_status status = check_headroom(pool, bytes);
    if (status) {
        return status;
    }
    return place ? gpuhal_range_commit(pool->range.buffer, place->offset, bytes)
                 : gpuhal_buffer_create_segment(pool->device, &desc, pool, out_buffer);
}

/* Tries the intended size, which is at most the room and at least `need`. After each refusal, halves the size, but not
 * below `need`. */
static gpuhal_status allocate(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t *bytes, uint64_t need,
                              gpuhal_buffer **out_buffer)
{
    const uint64_t mask = (place ? pool->range.page_bytes : pool->unit) - 1;
    gpuhal_status status;
    *bytes = (*bytes + mask) & ~mask;
    pool->insists = *bytes <= need;
    while ((status = ask(pool, place, *bytes, out_buffer)) == GPUHAL_ERROR_OUT_OF_MEMORY && *bytes > need) {
        *bytes = ((*bytes / 2 > need ? *bytes / 2 : need) + mask) & ~mask;
        pool->insists = *bytes <= need;
    }
    return status;
}

/* Finds an unused segment number, and enlarges the table if necessary. The caller holds the mutex. */
static bool make_number(gpuhal_pool *pool, uint32_t *out_number)
{
    for (*out_number = 0; *out_number < pool->segment_space; (*out_number)++) {
        if (!pool->segments[*out_number].buffer) {
            return true;
        }
    }
    uint32_t space = pool->segment_space ? 2 * pool->segment_space : 8;
    gpuhal_segment *grown = realloc(pool->segments, space * sizeof *grown);
    if (!grown) {
        return false;
    }
    for (uint32_t i = pool->segment_space; i < space; i++) {
        grown[i] = (gpuhal_segment){0};
    }
    pool->segments = grown;
    pool->segment_space = space;
    return true;
}

/* The caller holds the mutex. */
static gpuhal_status add(gpuhal_pool *pool, gpuhal_buffer *buffer)
{
    uint32_t number = 0;
    if (!make_number(pool, &number) || !gpuhal_blocks_add(&pool->blocks, pool->common, number, buffer->bytes)) {
        return gpuhal_error_host_memory();
    }
    gpuhal_sole_add(pool, number, buffer->bytes);
    pool->segments[number] = (gpuhal_segment){.buffer = buffer, .bytes = buffer->bytes};
    gpuhal_pool_begin_change(pool);
    pool->segment_count++;
    gpuhal_amount_add(&pool->reserved, buffer->bytes);
    gpuhal_pool_end_change(pool);
    gpuhal_trace_pool(pool, GPUHAL_TRACE_GROW, number, buffer->bytes);
    return GPUHAL_OK;
}

/* ---- virtual memory */

/* Returns the device's memory size plus an eighth, because holes between pieces occupy addresses. */
static uint64_t range_bytes(const gpuhal_pool *pool)
{
    const uint64_t total = gpuhal_facts_u64(&pool->device->listed->facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    return total < UINT64_MAX / 4 ? total + total / 8 : 0;
}

/* Drivers let peers access allocations, but not memory behind reserved addresses, so copies between peers would use
 * host memory. */
static bool has_peers(const gpuhal_device *device)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(device->gpu); i++) {
        const gpuhal_device *other = gpuhal_device_at(device->gpu, i);
        others += other != device && other->candidate == device->candidate;
    }
    return others > 0 && device->peers.peer_copy;
}

/* The caller holds the mutex. */
static bool add_range(gpuhal_pool *pool, gpuhal_buffer *buffer, uint64_t page)
{
    gpuhal_pool_range *range = &pool->range;
    range->holes = gpuhal_bins_create();
    if (!range->holes || !make_number(pool, &range->region) ||
        !gpuhal_blocks_add(&pool->blocks, range->holes, range->region, buffer->bytes)) {
        return false;
    }
    pool->segments[range->region] = (gpuhal_segment){.buffer = buffer, .bytes = buffer->bytes};
    range->page_bytes = page;
    range->buffer = buffer;
    return true;
}

/* Creates the range once, in the first thread that grows the pool. The pool uses segments instead if pieces would be
 * larger or less aligned than requested, if peers or importers could not access the memory, or if creating the range
 * fails. */
static void make_range(gpuhal_pool *pool)
{
    gpuhal_error_detail before;
    gpuhal_buffer *buffer = NULL;
    pool->range.tried = true;
    const bool suits =
        pool->desc.kind == GPUHAL_MEMORY_DEVICE && !pool->desc.export_kinds && !has_peers(pool->device);
    uint64_t bytes = suits ? range_bytes(pool) : 0;
    const uint64_t page = bytes ? gpuhal_memory_page_bytes(pool->device, &bytes) : 0;
    if (page < pool->unit || page > pool->desc.segment_bytes) {
        return;
    }
    gpuhal_error_save(&before);
    if (gpuhal_range_create(pool->device, bytes, pool, &buffer) == GPUHAL_OK) {
        gpuhal_mutex_lock(&pool->mutex);
        const bool added = add_range(pool, buffer, page);
        gpuhal_mutex_unlock(&pool->mutex);
        if (!added) {
            gpuhal_buffer_release(buffer);
        }
    }
    gpuhal_error_restore(&before);
}

/* ---- growing */

static gpuhal_status grow_by_segment(gpuhal_pool *pool, uint64_t bytes, uint64_t need, room left)
{
    gpuhal_buffer *buffer = NULL;
    if (left.bytes < need) {
        return over_limit(pool, need, left, 0);
    }
    const uint64_t most = left.bytes & ~(pool->unit - 1);
    bytes = bytes < most ? bytes : most < need ? need : most;
    gpuhal_status status = allocate(pool, NULL, &bytes, need, &buffer);
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&pool->mutex);
    status = add(pool, buffer);
    gpuhal_mutex_unlock(&pool->mutex);
    if (status) {
        gpuhal_buffer_release(buffer);
    }
    return status;
}

static gpuhal_status grow_by_piece(gpuhal_pool *pool, gpuhal_hole *place)
{
    const gpuhal_status status = allocate(pool, place, &place->most, place->least, NULL);
    const gpuhal_status ended = gpuhal_pool_end_piece(pool, place, status ? 0 : place->most);
    return status ? status : ended;
}

gpuhal_status gpuhal_pool_grow(gpuhal_pool *pool, uint64_t need)
{
    gpuhal_hole place;
    if (!pool->range.tried) {
        make_range(pool);
    }
    const room groups = room_of_groups(pool);
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_pool_await_pieces_unlocks(pool);
    const uint64_t bytes = next_bytes(pool, need);
    const room left = room_of(pool, groups);
    const bool in_range = gpuhal_pool_begin_piece(pool, bytes, need, left.bytes, &place);
    gpuhal_mutex_unlock(&pool->mutex);
    const gpuhal_status status = in_range ? grow_by_piece(pool, &place) : grow_by_segment(pool, bytes, need, left);
    if (status) {
        gpuhal_mutex_lock(&pool->mutex);
        gpuhal_trace_refusal(pool, GPUHAL_TRACE_GROW, NULL, need, status);
        gpuhal_mutex_unlock(&pool->mutex);
    }
    return status;
}

/* ---- returning memory */

/* Returns whether the block is a whole segment that is free for all queues. */
static bool is_unused(const gpuhal_pool *pool, const gpuhal_block *block)
{
    const bool is_range = pool->range.buffer && block->region == pool->range.region;
    return block->bytes > 0 && block->bins == pool->common && !block->before && !block->after && !is_range;
}

uint64_t gpuhal_pool_unused_bytes(const gpuhal_pool *pool)
{
    return gpuhal_bins_whole_bytes(pool->common) + gpuhal_pool_unused_piece_bytes(pool);
}

uint64_t gpuhal_pool_unused_now(gpuhal_pool *pool)
{
    if (!pool->device->ranges.range_reserve) {
        return atomic_load_explicit(&pool->unused_bytes, memory_order_relaxed);
    }
    gpuhal_mutex_lock(&pool->mutex);
    const uint64_t bytes = gpuhal_pool_unused_bytes(pool);
    gpuhal_mutex_unlock(&pool->mutex);
    return bytes;
}

gpuhal_buffer *gpuhal_pool_take_unused(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t want_bytes,
                                       uint64_t *out_bytes)
{
    gpuhal_buffer *list = NULL;
    uint64_t left = gpuhal_pool_unused_bytes(pool);
    *out_bytes = 0;
    gpuhal_pool_begin_change(pool);
    for (gpuhal_block_id id = 1; id < pool->blocks.touched && left > keep_bytes && *out_bytes < want_bytes; id++) {
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
        if (!is_unused(pool, block)) {
            continue;
        }
        gpuhal_segment *segment = &pool->segments[block->region];
        gpuhal_amount_remove(&pool->reserved, segment->bytes);
        const uint32_t number = block->region;
        gpuhal_blocks_remove(&pool->blocks, id);
        gpuhal_sole_remove(pool, number);
        gpuhal_trace_pool(pool, GPUHAL_TRACE_TRIM, number, segment->bytes);
        left -= segment->bytes;
        *out_bytes += segment->bytes;
        segment->buffer->next_released = list;
        list = segment->buffer;
        *segment = (gpuhal_segment){0};
        pool->segment_count--;
    }
    left = left > keep_bytes ? left - keep_bytes : 0;
    want_bytes -= *out_bytes < want_bytes ? *out_bytes : want_bytes;
    const uint64_t pieces = gpuhal_pool_take_pieces(pool, left < want_bytes ? left : want_bytes);
    if (pieces > 0) {
        gpuhal_buffer *range = gpuhal_buffer_retain(pool->range.buffer);
        range->next_released = list;
        list = range;
        *out_bytes += pieces;
    }
    gpuhal_pool_end_change(pool);
    return list;
}

void gpuhal_segments_release(gpuhal_buffer *list)
{
    while (list) {
        gpuhal_buffer *buffer = list;
        list = buffer->next_released;
        if (buffer->range) {
            gpuhal_pool_give_pieces(buffer->pool);
        }
        gpuhal_buffer_release(buffer);
    }
}
