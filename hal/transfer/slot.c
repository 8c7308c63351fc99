/* transfer/slot.c: see slot.h. */
#include "transfer/slot.h"

#include "core/error.h"
#include "memory/buffer.h"
#include "transfer/plugin_event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

gpuhal_status gpuhal_slot_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from,
                                uint64_t bytes)
{
    if (!device->ops.write) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status =
        gpuhal_device_result(device, call, device->ops.write(device->handle, NULL, to, to_offset, from, bytes));
    bool failed = status != GPUHAL_OK && status != GPUHAL_ERROR_NOT_SUPPORTED;
    return failed ? gpuhal_device_failed(device, status, "writing %" PRIu64 " bytes", bytes) : status;
}

gpuhal_status gpuhal_slot_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                               uint64_t bytes)
{
    if (!device->ops.read) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status =
        gpuhal_device_result(device, call, device->ops.read(device->handle, NULL, to, from, from_offset, bytes));
    bool failed = status != GPUHAL_OK && status != GPUHAL_ERROR_NOT_SUPPORTED;
    return failed ? gpuhal_device_failed(device, status, "reading %" PRIu64 " bytes", bytes) : status;
}

/* plugin.h wants one of the two for all memory that a plugin hides; here is neither. */
gpuhal_status gpuhal_slot_no_way(gpuhal_device *device, gpuhal_staging_direction direction)
{
    return gpuhal_device_failed(device, GPUHAL_ERROR_NOT_SUPPORTED,
                                direction == GPUHAL_STAGING_TO_DEVICE
                                    ? "it offers neither write nor memory of kind upload"
                                    : "it offers neither read nor memory of kind readback");
}

gpuhal_status gpuhal_slot_clean(gpuhal_device *device, const gpuhal_memory *memory, uint64_t bytes, bool invalidate)
{
    if ((memory->flags & GPUHAL_MEMORY_HOST_COHERENT) || !device->ops.memory_flush) {
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_memory_clean(device, memory, 0, bytes, invalidate);
    return status ? gpuhal_device_failed(device, status, "making staging memory coherent") : GPUHAL_OK;
}

/* ---- one alignment block */

static gpuhal_status copy_block(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes, const char *what)
{
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = gpuhal_device_result(
        device, call, device->ops.copy(device->handle, NULL, to, to_offset, from, from_offset, bytes));
    return status ? gpuhal_device_failed(device, status, "%s", what) : GPUHAL_OK;
}

/* Between host and device through memory made for it. */
static gpuhal_status block_through_memory(gpuhal_device *device, const gpuhal_memory *memory, uint64_t offset,
                                          void *block, gpuhal_staging_direction direction)
{
    bool to_device = direction == GPUHAL_STAGING_TO_DEVICE;
    const gpuhal_alloc alloc = {.size = sizeof alloc,
                                .kind = to_device ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_READBACK,
                                .bytes = device->copy_mask + 1};
    gpuhal_memory between = {.size = sizeof between};
    if (!(device->memory_kinds & 1u << alloc.kind)) {
        return gpuhal_slot_no_way(device, direction);
    }
    const gpuhal_call call = gpuhal_call_blocking(device, alloc.bytes);
    gpuhal_status status = gpuhal_device_result(device, call, device->ops.allocate(device->handle, &alloc, &between));
    if (status) {
        return gpuhal_device_failed(device, status, "allocating memory for one block");
    }
    if (!between.host || between.bytes < alloc.bytes) {
        gpuhal_memory_release(device, &between);
        return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER,
                                    "memory for one block has no host address, or too few bytes");
    }
    if (to_device) {
        memcpy(between.host, block, (size_t)alloc.bytes);
        status = gpuhal_slot_clean(device, &between, alloc.bytes, false);
        status = status ? status
                        : copy_block(device, memory, offset, &between, 0, alloc.bytes, "copying from staging memory");
    } else {
        status = copy_block(device, &between, 0, memory, offset, alloc.bytes, "copying to staging memory");
        status = status ? status : gpuhal_slot_clean(device, &between, alloc.bytes, true);
        memcpy(block, between.host, (size_t)alloc.bytes);
    }
    gpuhal_memory_release(device, &between);
    return status;
}

static gpuhal_status read_block(gpuhal_device *device, void *block, const gpuhal_memory *from, uint64_t offset)
{
    gpuhal_status status = gpuhal_slot_read(device, block, from, offset, device->copy_mask + 1);
    return status == GPUHAL_ERROR_NOT_SUPPORTED
               ? block_through_memory(device, from, offset, block, GPUHAL_STAGING_FROM_DEVICE)
               : status;
}

static gpuhal_status write_block(gpuhal_device *device, const gpuhal_memory *to, uint64_t offset, void *block)
{
    gpuhal_status status = gpuhal_slot_write(device, to, offset, block, device->copy_mask + 1);
    return status == GPUHAL_ERROR_NOT_SUPPORTED
               ? block_through_memory(device, to, offset, block, GPUHAL_STAGING_TO_DEVICE)
               : status;
}

/* The part of an alignment block that a range touches is changed (to_device) or taken out. A block is read, changed and
 * written back, and nothing here keeps two threads from doing that to one block, where the later would undo the
 * earlier: pieces of one copy must not share a block (staged.c). The whole block may be touched: memory is always made,
 * imported or wrapped in whole blocks (gpuhal_buffer_plan(), gpuhal_import_unit(), gpuhal_buffer_wrap()). */
static gpuhal_status edge(gpuhal_device *device, const gpuhal_memory *memory, uint64_t offset, void *host,
                          uint64_t bytes, bool to_device)
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

/* ---- ranges */

/* The bytes up to the next alignment boundary, at most all. */
static uint64_t head_bytes(const gpuhal_device *device, uint64_t offset, uint64_t bytes)
{
    uint64_t rest = (0 - offset) & device->copy_mask;
    return bytes < rest ? bytes : rest;
}

gpuhal_status gpuhal_blocks_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from,
                                  uint64_t bytes, gpuhal_slot_write_fn *middle)
{
    const char *source = from;
    uint64_t head = head_bytes(device, to_offset, bytes);
    uint64_t whole = (bytes - head) & ~device->copy_mask;
    uint64_t tail = bytes - head - whole;
    gpuhal_status status = head > 0 ? edge(device, to, to_offset, (void *)(uintptr_t)source, head, true) : GPUHAL_OK;
    if (!status && whole > 0) {
        status = middle(device, to, to_offset + head, source + head, whole);
    }
    if (!status && tail > 0) {
        status = edge(device, to, to_offset + head + whole, (void *)(uintptr_t)(source + head + whole), tail, true);
    }
    return status;
}

gpuhal_status gpuhal_blocks_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                 uint64_t bytes, gpuhal_slot_read_fn *middle)
{
    char *target = to;
    uint64_t head = head_bytes(device, from_offset, bytes);
    uint64_t whole = (bytes - head) & ~device->copy_mask;
    uint64_t tail = bytes - head - whole;
    gpuhal_status status = head > 0 ? edge(device, from, from_offset, target, head, false) : GPUHAL_OK;
    if (!status && whole > 0) {
        status = middle(device, target + head, from, from_offset + head, whole);
    }
    if (!status && tail > 0) {
        status = edge(device, from, from_offset + head + whole, target + head + whole, tail, false);
    }
    return status;
}

/* A plugin that is NOT_READY has recorded nothing. Its device is checked each time, or a lost one would be polled for
 * ever. */
gpuhal_status gpuhal_event_record_blocking(gpuhal_device *device, gpuhal_plugin_queue *queue,
                                           gpuhal_plugin_event *event)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    uint64_t pause_ns = 0;
    while (status == GPUHAL_NOT_READY) {
        status = gpuhal_plugin_event_record(device, queue, event);
        if (status == GPUHAL_NOT_READY) {
            pause_ns = gpuhal_poll_longer(pause_ns);
            gpuhal_os_sleep(pause_ns);
            status = gpuhal_device_check(device) ? GPUHAL_ERROR_DEVICE_LOST : status;
        }
    }
    return status;
}
