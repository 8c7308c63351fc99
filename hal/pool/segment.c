/* pool/segment.c: what the pool has of the driver's memory: how large the next segment is, limits, and giving back what
 * is not used. */
#include "pool/pool.h"

#include "core/error.h"

#include <inttypes.h>
#include <stdlib.h>

/* What the pool may still take. */
static uint64_t room_of(const gpuhal_pool *pool)
{
    uint64_t limit = atomic_load(&pool->limit_bytes), reserved = gpuhal_amount_now(&pool->reserved);
    return limit == 0 ? UINT64_MAX : reserved < limit ? limit - reserved : 0;
}

/* An eighth of the preferred size at first, then a quarter, a half and the whole: small programs take little. */
static uint64_t next_bytes(const gpuhal_pool *pool, uint64_t bytes)
{
    const uint64_t preferred = pool->desc.segment_bytes;
    if (bytes > preferred / 2) {
        return bytes;
    }
    uint32_t shift = pool->segment_count < 3 ? 3 - pool->segment_count : 0;
    while (preferred >> shift < bytes) {
        shift--;
    }
    return (preferred >> shift) & ~(pool->unit - 1);
}

static gpuhal_status over_limit(const gpuhal_pool *pool, uint64_t bytes, uint64_t left, uint64_t limit,
                                const char *what)
{
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: a pool's segment of %" PRIu64 " bytes requested, %" PRIu64 " left of %s %" PRIu64 " bytes",
                     pool->device->id, bytes, left, what, limit);
    gpuhal_error_add_device(pool->device->candidate->name, pool->device->id);
    gpuhal_error_add_bytes(bytes, left, limit);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

/* Where the driver does not state what is free, nothing is refused. */
static gpuhal_status check_headroom(const gpuhal_pool *pool, uint64_t bytes)
{
    const uint64_t headroom = pool->desc.headroom_bytes;
    uint64_t left = headroom ? gpuhal_memory_free_bytes(pool->device) : UINT64_MAX;
    return left == UINT64_MAX || (left >= headroom && left - headroom >= bytes)
               ? GPUHAL_OK
               : over_limit(pool, bytes, left > headroom ? left - headroom : 0, headroom, "what is to stay free,");
}

/* The size that was meant, at most what the limit leaves and at least what is needed; half of it where the driver
 * refuses, until it is no more than that. */
static gpuhal_status allocate(gpuhal_pool *pool, uint64_t bytes, uint64_t need, gpuhal_buffer **out_buffer)
{
    gpuhal_status status = GPUHAL_ERROR_OUT_OF_MEMORY;
    for (; status == GPUHAL_ERROR_OUT_OF_MEMORY; bytes = bytes / 2 > need ? bytes / 2 : need) {
        bytes = (bytes + pool->unit - 1) & ~(pool->unit - 1);
        const gpuhal_buffer_desc desc = {.size = sizeof desc,
                                         .kind = pool->desc.kind,
                                         .bytes = bytes,
                                         .alignment = pool->desc.alignment};
        status = check_headroom(pool, bytes);
        status = status ? status : gpuhal_buffer_create_segment(pool->device, &desc, pool, out_buffer);
        if (bytes <= need) {
            break;
        }
    }
    return status;
}

/* Room in the table, before the driver is asked. With the mutex held. */
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

/* With the mutex held. */
static gpuhal_status add(gpuhal_pool *pool, gpuhal_buffer *buffer)
{
    uint32_t number = 0;
    if (!make_number(pool, &number) || !gpuhal_blocks_add(&pool->blocks, pool->common, number, buffer->bytes)) {
        return gpuhal_error_host_memory();
    }
    pool->segments[number] = (gpuhal_segment){.buffer = buffer, .bytes = buffer->bytes};
    pool->segment_count++;
    gpuhal_amount_add(&pool->reserved, buffer->bytes);
    gpuhal_trace_pool(pool, GPUHAL_TRACE_GROW, number, buffer->bytes);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_pool_grow(gpuhal_pool *pool, uint64_t need)
{
    gpuhal_mutex_lock(&pool->mutex);
    uint64_t bytes = next_bytes(pool, need), room = room_of(pool);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_buffer *buffer = NULL;
    gpuhal_status status;
    if (room < need) {
        status = over_limit(pool, need, room, atomic_load(&pool->limit_bytes), "the pool's limit of");
    } else {
        room &= ~(pool->unit - 1);
        status = allocate(pool, bytes < room ? bytes : room < need ? need : room, need, &buffer);
    }
    gpuhal_mutex_lock(&pool->mutex);
    status = status ? status : add(pool, buffer);
    if (status) {
        gpuhal_trace_refusal(pool, GPUHAL_TRACE_GROW, NULL, need, status);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    if (status) {
        gpuhal_buffer_release(buffer);
    }
    return status;
}

/* Whether it is a whole segment, free for everybody. */
static bool is_unused(const gpuhal_pool *pool, const gpuhal_block *block)
{
    return block->bytes > 0 && block->bins == pool->common && !block->before && !block->after;
}

uint64_t gpuhal_pool_unused_bytes(const gpuhal_pool *pool)
{
    uint64_t bytes = 0;
    for (gpuhal_block_id id = 1; id < pool->blocks.touched; id++) {
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
        bytes += is_unused(pool, block) ? block->bytes : 0;
    }
    return bytes;
}

gpuhal_buffer *gpuhal_pool_take_unused(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t want_bytes,
                                       uint64_t *out_bytes)
{
    gpuhal_buffer *list = NULL;
    uint64_t left = gpuhal_pool_unused_bytes(pool);
    *out_bytes = 0;
    for (gpuhal_block_id id = 1; id < pool->blocks.touched && left > keep_bytes && *out_bytes < want_bytes; id++) {
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
        if (!is_unused(pool, block)) {
            continue;
        }
        gpuhal_segment *segment = &pool->segments[block->region];
        gpuhal_amount_remove(&pool->reserved, segment->bytes);
        const uint32_t number = block->region;
        gpuhal_blocks_remove(&pool->blocks, id);
        gpuhal_trace_pool(pool, GPUHAL_TRACE_TRIM, number, segment->bytes);
        left -= segment->bytes;
        *out_bytes += segment->bytes;
        segment->buffer->next_released = list;
        list = segment->buffer;
        *segment = (gpuhal_segment){0};
        pool->segment_count--;
    }
    return list;
}

void gpuhal_segments_release(gpuhal_buffer *list)
{
    while (list) {
        gpuhal_buffer *buffer = list;
        list = buffer->next_released;
        gpuhal_buffer_release(buffer);
    }
}
