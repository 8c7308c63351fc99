/* transfer/chunk.c: see chunk.h. After any failure nothing is in flight in a chunk: destroying its queue waits for the
 * device. */
#include "transfer/chunk.h"

#include "core/error.h"
#include "device/link.h"
#include "memory/buffer.h"
#include "transfer/plugin_event.h"
#include "transfer/ranges.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static gpuhal_memory_kind kind_of(gpuhal_staging_direction direction)
{
    return direction == GPUHAL_STAGING_TO_DEVICE ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_READBACK;
}

bool gpuhal_chunk_has_memory(const gpuhal_device *device, gpuhal_staging_direction direction)
{
    return device->memory_kinds & 1u << kind_of(direction);
}

/* Without event_block waiting would be polling, and a software device copies with the processors that are to be kept
 * free: there a thread that blocks in the copy itself is better (docs/measurements). */
bool gpuhal_chunk_has_engine(const gpuhal_device *device)
{
    return device->ops.queue_create && device->ops.event_block &&
           gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_SOFTWARE, 0) == 0;
}

gpuhal_status gpuhal_chunk_create(gpuhal_device *device, gpuhal_staging_direction direction, uint64_t bytes,
                                  gpuhal_chunk **out_chunk)
{
    gpuhal_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk) {
        return gpuhal_error_host_memory();
    }
    chunk->bytes = bytes;
    chunk->memory.size = sizeof chunk->memory;
    if (gpuhal_chunk_has_memory(device, direction)) {
        const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = kind_of(direction), .bytes = bytes};
        const gpuhal_call call = gpuhal_call_blocking(device, bytes);
        gpuhal_status status =
            gpuhal_device_result(device, call, device->ops.allocate(device->handle, &alloc, &chunk->memory));
        if (!status && (!chunk->memory.host || chunk->memory.bytes < bytes)) {
            gpuhal_memory_release(device, &chunk->memory);
            status = GPUHAL_ERROR_DRIVER;
        }
        if (status) {
            free(chunk);
            return gpuhal_device_failed(device, status, "allocating %" PRIu64 " KiB for staging", bytes >> 10);
        }
        chunk->host = chunk->memory.host;
        chunk->can_begin = gpuhal_chunk_has_engine(device);
    } else {
        uint32_t node = 0;
        chunk->plain = true;
        chunk->host =
            gpuhal_device_node(device, &node) ? gpuhal_os_pages_map_on(bytes, node) : gpuhal_os_pages_map(bytes);
    }
    if (!chunk->host) {
        free(chunk);
        return gpuhal_error_host_memory();
    }
    *out_chunk = chunk;
    return GPUHAL_OK;
}

/* Destroys the queue last, which waits for what is in flight: no plugin is asked about an event of a queue that is
 * gone. What a driver that hangs still has is left to it. */
static void drop_queue(gpuhal_device *device, gpuhal_chunk *chunk)
{
    bool reachable = gpuhal_device_is_reachable(device);
    if (chunk->event && reachable) {
        gpuhal_plugin_event_destroy(device, chunk->event);
    }
    if (chunk->queue && reachable) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->ops.queue_destroy(chunk->queue);
        gpuhal_call_end(call);
    }
    chunk->queue = NULL;
    chunk->event = NULL;
    chunk->under_way = false;
}

void gpuhal_chunk_destroy(gpuhal_device *device, gpuhal_chunk *chunk)
{
    drop_queue(device, chunk);
    if (chunk->plain) {
        gpuhal_os_pages_unmap(chunk->host, chunk->bytes);
    } else {
        gpuhal_memory_release(device, &chunk->memory);
    }
    free(chunk);
}

/* ---- the copies, with a queue or blocking */

/* Where the device has no memory for this direction it has a slot, or the host sees its memory. Towards a device there
 * is no plain chunk that is emptied: gpuhal_pageable_write() needs memory of the device, and files write from the
 * chunk. */
static gpuhal_status plain_fill(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *from,
                                uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status = GPUHAL_ERROR_NOT_SUPPORTED;
    if (gpuhal_is_aligned(device, from_offset, bytes) || !gpuhal_host_writes(from)) {
        status = gpuhal_blocks_read(device, chunk->host, from, from_offset, bytes, gpuhal_slot_read);
    }
    if (status == GPUHAL_ERROR_NOT_SUPPORTED && gpuhal_host_writes(from)) {
        memcpy(chunk->host, (const char *)from->host + from_offset, (size_t)bytes);
        return GPUHAL_OK;
    }
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? gpuhal_slot_no_way(device, GPUHAL_STAGING_FROM_DEVICE) : status;
}

/* The device copies whole alignment blocks: up to one more at each end, for which the payload leaves room
 * (gpuhal_staging_payload_bytes()). What comes in front stays in `lead` until end_fill() has moved it away. */
static gpuhal_status start_fill(gpuhal_device *device, gpuhal_plugin_queue *queue, gpuhal_chunk *chunk,
                                const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    chunk->lead = from_offset & device->copy_mask;
    chunk->arriving = bytes;
    uint64_t whole = (chunk->lead + bytes + device->copy_mask) & ~device->copy_mask;
    const gpuhal_call call = gpuhal_call_blocking(device, whole);
    gpuhal_status status = gpuhal_device_result(
        device, call,
        device->ops.copy(device->handle, queue, &chunk->memory, 0, from, from_offset - chunk->lead, whole));
    return status ? gpuhal_device_failed(device, status, "copying to staging memory") : GPUHAL_OK;
}

/* Once the device is done: the bytes become visible, and stand at the beginning. Does nothing after an empty. The
 * members are cleared first, so that a failure here does not end the same fill a second time. */
static gpuhal_status end_fill(gpuhal_device *device, gpuhal_chunk *chunk)
{
    uint64_t bytes = chunk->arriving, lead = chunk->lead;
    chunk->arriving = chunk->lead = 0;
    gpuhal_status status = bytes > 0 ? gpuhal_slot_clean(device, &chunk->memory,
                                                         (lead + bytes + device->copy_mask) & ~device->copy_mask, true)
                                     : GPUHAL_OK;
    if (!status && lead > 0) {
        memmove(chunk->host, (char *)chunk->host + lead, (size_t)bytes);
    }
    return status;
}

gpuhal_status gpuhal_chunk_fill(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *from,
                                uint64_t from_offset, uint64_t bytes)
{
    if (chunk->plain) {
        return plain_fill(device, chunk, from, from_offset, bytes);
    }
    gpuhal_status status = start_fill(device, NULL, chunk, from, from_offset, bytes);
    return status ? status : end_fill(device, chunk);
}

static gpuhal_status start_empty(gpuhal_device *device, gpuhal_plugin_queue *queue, gpuhal_chunk *chunk,
                                 const gpuhal_memory *to, uint64_t to_offset, uint64_t bytes)
{
    chunk->arriving = chunk->lead = 0;
    gpuhal_status status = gpuhal_slot_clean(device, &chunk->memory, bytes, false);
    if (status) {
        return status;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    status = gpuhal_device_result(device, call,
                                  device->ops.copy(device->handle, queue, to, to_offset, &chunk->memory, 0, bytes));
    return status ? gpuhal_device_failed(device, status, "copying from staging memory") : GPUHAL_OK;
}

gpuhal_status gpuhal_chunk_empty(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *to,
                                 uint64_t to_offset, uint64_t bytes)
{
    return start_empty(device, NULL, chunk, to, to_offset, bytes);
}

/* ---- begun here, awaited later */

static gpuhal_status make_queue(gpuhal_device *device, gpuhal_chunk *chunk)
{
    if (chunk->queue) {
        return GPUHAL_OK;
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    gpuhal_status status =
        gpuhal_device_result(device, call, device->ops.queue_create(device->handle, 0, 0, NULL, &chunk->queue));
    status = status ? status : gpuhal_plugin_event_create(device, 0, &chunk->event);
    if (status) {
        status = gpuhal_device_failed(device, status, "creating a queue for staging");
        drop_queue(device, chunk);
    }
    return status;
}

/* After `started` on the chunk's queue. Where the event could not be recorded behind the copy, no thread could await
 * the copy later: destroying the queue does that now, and the next use makes another. */
static gpuhal_status mark(gpuhal_device *device, gpuhal_chunk *chunk, gpuhal_status started)
{
    gpuhal_status status = started;
    if (!status) {
        status = gpuhal_event_record_blocking(device, chunk->queue, chunk->event);
        status = status ? gpuhal_device_failed(device, status, "submitting a copy with staging memory") : GPUHAL_OK;
    }
    chunk->under_way = !status;
    if (status) {
        drop_queue(device, chunk);
    }
    return status;
}

gpuhal_status gpuhal_chunk_begin_fill(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *from,
                                      uint64_t from_offset, uint64_t bytes)
{
    if (!chunk->can_begin) {
        return gpuhal_chunk_fill(device, chunk, from, from_offset, bytes);
    }
    gpuhal_status status = make_queue(device, chunk);
    return status ? status : mark(device, chunk, start_fill(device, chunk->queue, chunk, from, from_offset, bytes));
}

gpuhal_status gpuhal_chunk_begin_empty(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *to,
                                       uint64_t to_offset, uint64_t bytes)
{
    if (!chunk->can_begin) {
        return gpuhal_chunk_empty(device, chunk, to, to_offset, bytes);
    }
    gpuhal_status status = make_queue(device, chunk);
    return status ? status : mark(device, chunk, start_empty(device, chunk->queue, chunk, to, to_offset, bytes));
}

bool gpuhal_chunk_has_ended(gpuhal_device *device, const gpuhal_chunk *chunk)
{
    return !chunk->under_way || gpuhal_plugin_event_query(device, chunk->event) != GPUHAL_NOT_READY;
}

gpuhal_status gpuhal_chunk_wait(gpuhal_device *device, gpuhal_chunk *chunk)
{
    if (!chunk->under_way) {
        return GPUHAL_OK;
    }
    gpuhal_status status = GPUHAL_NOT_READY;
    while (status == GPUHAL_NOT_READY) {
        status = gpuhal_plugin_event_block(device, chunk->event, GPUHAL_BLOCK_NS);
    }
    chunk->under_way = false;
    if (status) {
        status = gpuhal_device_failed(device, status, "copying through staging memory");
        drop_queue(device, chunk);
        return status;
    }
    return end_fill(device, chunk);
}
