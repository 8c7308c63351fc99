/* transfer/bytes.c: see bytes.h. The common case, an aligned piece and a slot for it, is one call; everything else is for devices that
 * offer less. Edge blocks use memory of their own instead of staging chunks, so that nobody who holds a chunk needs a second one. */
#include "transfer/bytes.h"

#include "core/error.h"
#include "transfer/ordinary.h"
#include "transfer/plugin_event.h"
#include "transfer/ranges.h"
#include "transfer/write_path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Between two questions to a plugin that is not ready. */
#define RETRY_LEAST_NS UINT64_C(20000)
#define RETRY_MOST_NS UINT64_C(1000000)

/* How much goes through host memory at once when a copy inside a device breaks its alignment. */
#define BOUNCE_BYTES (256u << 10)

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool is_aligned(const gpuhal_device *device, uint64_t offset, uint64_t bytes)
{
    return ((offset | bytes) & device->copy_mask) == 0;
}

/* A slot that is missing and one that refuses this memory are the same to all callers: NOT_SUPPORTED without a detail, and another way
 * is taken. */
static gpuhal_status write_slot(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from, uint64_t bytes)
{
    if (!device->ops.write) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = gpuhal_device_result(device, call, device->ops.write(device->handle, NULL, to, to_offset, from, bytes));
    bool failed = status != GPUHAL_OK && status != GPUHAL_ERROR_NOT_SUPPORTED;
    return failed ? gpuhal_device_failed(device, status, "writing %" PRIu64 " bytes", bytes) : status;
}

static gpuhal_status read_slot(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    if (!device->ops.read) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = gpuhal_device_result(device, call, device->ops.read(device->handle, NULL, to, from, from_offset, bytes));
    bool failed = status != GPUHAL_OK && status != GPUHAL_ERROR_NOT_SUPPORTED;
    return failed ? gpuhal_device_failed(device, status, "reading %" PRIu64 " bytes", bytes) : status;
}

/* The slots for whole transfers, which know a quicker way for large ones. It is no mistake to begin anew with the slot when there is no
 * staging memory, wherever that was found out. */
static gpuhal_status write_quickly(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from, uint64_t bytes)
{
    if (!gpuhal_ordinary_is_large(device, bytes) || !device->ops.write ||
        !gpuhal_ordinary_is_possible(device, GPUHAL_STAGING_TO_DEVICE, to, from, bytes)) {
        return write_slot(device, to, to_offset, from, bytes);
    }
    uint64_t done = 0; /* while the two paths were compared */
    bool staged = false;
    const gpuhal_path_move move = {device, to, to_offset, from, bytes};
    gpuhal_status status = gpuhal_write_path_find(&move, write_slot, &staged, &done);
    if (status || done == bytes) {
        return status;
    }
    const char *rest = (const char *)from + done;
    if (staged) {
        status = gpuhal_ordinary_write(device, to, to_offset + done, rest, bytes - done);
        if (status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_HOST_MEMORY) {
            return status;
        }
    }
    return write_slot(device, to, to_offset + done, rest, bytes - done);
}

static gpuhal_status read_quickly(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    if (gpuhal_ordinary_is_large(device, bytes) && device->ops.read && gpuhal_ordinary_is_quicker(device) &&
        gpuhal_ordinary_is_possible(device, GPUHAL_STAGING_FROM_DEVICE, from, to, bytes)) {
        gpuhal_status status = gpuhal_ordinary_read(device, to, from, from_offset, bytes);
        if (status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_HOST_MEMORY) {
            return status;
        }
    }
    return read_slot(device, to, from, from_offset, bytes);
}

gpuhal_status gpuhal_bytes_try_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from,
                                     uint64_t bytes)
{
    return is_aligned(device, to_offset, bytes) ? write_quickly(device, to, to_offset, from, bytes) : GPUHAL_NOT_READY;
}

gpuhal_status gpuhal_bytes_try_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    return is_aligned(device, from_offset, bytes) ? read_quickly(device, to, from, from_offset, bytes) : GPUHAL_NOT_READY;
}

/* One alignment block between host and device through memory made for it. */
static gpuhal_status block_through_memory(gpuhal_device *device, const gpuhal_memory *memory, uint64_t offset, void *block,
                                          gpuhal_staging_direction direction)
{
    bool to_device = direction == GPUHAL_STAGING_TO_DEVICE;
    const gpuhal_alloc alloc = {.size = sizeof alloc,
                                .kind = to_device ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_READBACK,
                                .bytes = device->copy_mask + 1};
    gpuhal_chunk chunk = {.memory = {.size = sizeof chunk.memory}};
    if (!(device->memory_kinds & 1u << alloc.kind)) {
        return gpuhal_ordinary_no_way(device, direction);
    }
    const gpuhal_call call = gpuhal_call_blocking(device, alloc.bytes);
    gpuhal_status status = gpuhal_device_result(device, call, device->ops.allocate(device->handle, &alloc, &chunk.memory));
    if (status) {
        return gpuhal_device_failed(device, status, "allocating memory for one block");
    }
    chunk.host = chunk.memory.host;
    chunk.bytes = alloc.bytes;
    if (!chunk.host || chunk.memory.bytes < chunk.bytes) {
        gpuhal_memory_release(device, &chunk.memory);
        return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER, "memory for one block has no host address, or too few bytes");
    }
    if (to_device) {
        memcpy(chunk.host, block, (size_t)alloc.bytes);
        status = gpuhal_chunk_empty(device, &chunk, memory, offset, alloc.bytes);
    } else {
        status = gpuhal_chunk_fill(device, &chunk, memory, offset, alloc.bytes);
        memcpy(block, chunk.host, (size_t)alloc.bytes);
    }
    gpuhal_memory_release(device, &chunk.memory);
    return status;
}

static gpuhal_status read_block(gpuhal_device *device, void *block, const gpuhal_memory *from, uint64_t offset)
{
    gpuhal_status status = read_slot(device, block, from, offset, device->copy_mask + 1);
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? block_through_memory(device, from, offset, block, GPUHAL_STAGING_FROM_DEVICE) : status;
}

static gpuhal_status write_block(gpuhal_device *device, const gpuhal_memory *to, uint64_t offset, void *block)
{
    gpuhal_status status = write_slot(device, to, offset, block, device->copy_mask + 1);
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? block_through_memory(device, to, offset, block, GPUHAL_STAGING_TO_DEVICE) : status;
}

/* The part of an alignment block that a range touches is changed (to_device) or taken out. */
static gpuhal_status edge(gpuhal_device *device, const gpuhal_memory *memory, uint64_t offset, void *host, uint64_t bytes, bool to_device)
{
    uint64_t lead = offset & device->copy_mask;
    unsigned char *block = malloc((size_t)device->copy_mask + 1);
    if (!block) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = read_block(device, block, memory, offset - lead);
    if (!status && to_device) {
        memcpy(block + lead, host, (size_t)bytes);
        status = write_block(device, memory, offset - lead, block);
    } else if (!status) {
        memcpy(host, block + lead, (size_t)bytes);
    }
    free(block);
    return status;
}

/* The bytes up to the next alignment boundary, at most all. */
static uint64_t head_bytes(const gpuhal_device *device, uint64_t offset, uint64_t bytes)
{
    return smaller(bytes, (0 - offset) & device->copy_mask);
}

gpuhal_status gpuhal_bytes_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from, uint64_t bytes)
{
    const bool aligned = is_aligned(device, to_offset, bytes);
    if (aligned) {
        gpuhal_status written = write_quickly(device, to, to_offset, from, bytes);
        if (written != GPUHAL_ERROR_NOT_SUPPORTED) {
            return written;
        }
    }
    if (gpuhal_host_writes(to)) {
        memcpy((char *)to->host + to_offset, from, (size_t)bytes);
        return GPUHAL_OK;
    }
    if (aligned) {
        return gpuhal_ordinary_write(device, to, to_offset, from, bytes);
    }
    const char *source = from;
    uint64_t head = head_bytes(device, to_offset, bytes);
    uint64_t middle = (bytes - head) & ~device->copy_mask;
    uint64_t tail = bytes - head - middle;
    gpuhal_status status = GPUHAL_OK;
    if (head > 0) {
        status = edge(device, to, to_offset, (void *)(uintptr_t)source, head, true);
    }
    if (!status && middle > 0) {
        status = write_quickly(device, to, to_offset + head, source + head, middle);
        if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
            status = gpuhal_ordinary_write(device, to, to_offset + head, source + head, middle);
        }
    }
    if (!status && tail > 0) {
        status = edge(device, to, to_offset + head + middle, (void *)(uintptr_t)(source + head + middle), tail, true);
    }
    return status;
}

gpuhal_status gpuhal_bytes_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    const bool aligned = is_aligned(device, from_offset, bytes);
    if (aligned) {
        gpuhal_status got = read_quickly(device, to, from, from_offset, bytes);
        if (got != GPUHAL_ERROR_NOT_SUPPORTED) {
            return got;
        }
    }
    if (gpuhal_host_writes(from)) {
        memcpy(to, (const char *)from->host + from_offset, (size_t)bytes);
        return GPUHAL_OK;
    }
    if (aligned || !device->ops.read) {
        return gpuhal_ordinary_read(device, to, from, from_offset, bytes);
    }
    char *target = to;
    uint64_t head = head_bytes(device, from_offset, bytes);
    uint64_t middle = (bytes - head) & ~device->copy_mask;
    uint64_t tail = bytes - head - middle;
    gpuhal_status status = head > 0 ? edge(device, from, from_offset, target, head, false) : GPUHAL_OK;
    if (!status && middle > 0) {
        status = read_quickly(device, target + head, from, from_offset + head, middle);
        if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
            status = gpuhal_ordinary_read(device, target + head, from, from_offset + head, middle);
        }
    }
    if (!status && tail > 0) {
        status = edge(device, from, from_offset + head + middle, target + head + middle, tail, false);
    }
    return status;
}

gpuhal_status gpuhal_bytes_copy_bounced(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const gpuhal_memory *from,
                                        uint64_t from_offset, uint64_t bytes)
{
    void *bounce = malloc((size_t)smaller(bytes, BOUNCE_BYTES));
    if (!bounce) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = GPUHAL_OK;
    for (uint64_t done = 0; done < bytes && !status;) {
        uint64_t piece = smaller(bytes - done, BOUNCE_BYTES);
        status = gpuhal_bytes_read(device, bounce, from, from_offset + done, piece);
        status = status ? status : gpuhal_bytes_write(device, to, to_offset + done, bounce, piece);
        done += piece;
    }
    free(bounce);
    return status;
}

gpuhal_status gpuhal_bytes_copy_large(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const gpuhal_memory *from,
                                      uint64_t from_offset, uint64_t bytes)
{
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = device->ops.copy(device->handle, NULL, to, to_offset, from, from_offset, bytes);
    gpuhal_call_end(call);
    return gpuhal_bytes_copy_failed(device, status, bytes);
}

gpuhal_status gpuhal_bytes_copy_failed(gpuhal_device *device, gpuhal_status status, uint64_t bytes)
{
    bool late = atomic_load_explicit(&device->lost, memory_order_relaxed) == GPUHAL_LOST_HUNG;
    status = late ? gpuhal_device_late() : status;
    return status ? gpuhal_device_failed(device, status, "copying %" PRIu64 " bytes", bytes) : GPUHAL_OK;
}

gpuhal_status gpuhal_event_record_blocking(gpuhal_device *device, gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    uint64_t pause = RETRY_LEAST_NS;
    while (status == GPUHAL_NOT_READY) {
        status = gpuhal_plugin_event_record(device, queue, event);
        if (status == GPUHAL_NOT_READY) {
            gpuhal_os_sleep(pause);
            pause = pause < RETRY_MOST_NS ? pause * 2 : RETRY_MOST_NS;
            status = gpuhal_device_check(device) ? GPUHAL_ERROR_DEVICE_LOST : status;
        }
    }
    return status;
}
