/* transfer/slot.c: see slot.h. */
#include "transfer/slot.h"

#include "base/error.h"
#include "memory/buffer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

gpuhal_status gpuhal_slot_result(gpuhal_direction direction, gpuhal_device *device, gpuhal_status status,
                                 uint64_t bytes)
{
    bool failed = status != GPUHAL_OK && status != GPUHAL_ERROR_NOT_SUPPORTED;
    return failed ? gpuhal_device_failed(device, status, "%s %" PRIu64 " bytes",
                                         direction == GPUHAL_TO_DEVICE ? "writing" : "reading", bytes)
                  : status;
}

gpuhal_status gpuhal_slot_move(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                               uint64_t offset, void *host, uint64_t bytes)
{
    const bool writes = direction == GPUHAL_TO_DEVICE;
    if (writes ? !device->ops.write : !device->ops.read) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = writes ? device->ops.write(device->handle, NULL, memory, offset, host, bytes)
                                  : device->ops.read(device->handle, NULL, host, memory, offset, bytes);
    return gpuhal_slot_result(direction, device, gpuhal_device_result(device, call, status), bytes);
}

/* plugin.h requires plugins to offer a slot or staging memory for all memory that the host cannot access. */
gpuhal_status gpuhal_slot_no_way(gpuhal_device *device, gpuhal_direction direction)
{
    return gpuhal_device_failed(device, GPUHAL_ERROR_NOT_SUPPORTED,
                                direction == GPUHAL_TO_DEVICE ? "it offers neither write nor memory of kind upload"
                                                              : "it offers neither read nor memory of kind readback");
}

gpuhal_status gpuhal_slot_copy(gpuhal_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                               uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    return gpuhal_device_result(device, call,
                                device->ops.copy(device->handle, queue, to, to_offset, from, from_offset, bytes));
}

/* ---- intermediate memory */

gpuhal_status gpuhal_slot_allocate(gpuhal_device *device, gpuhal_direction direction, uint64_t bytes,
                                   gpuhal_memory *out_memory)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = gpuhal_slot_kind(direction), .bytes = bytes};
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = gpuhal_device_result(device, call, device->ops.allocate(device->handle, &alloc, out_memory));
    if (!status && (!out_memory->host || out_memory->bytes < bytes)) {
        gpuhal_memory_release(device, out_memory);
        return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER,
                                    "memory for staging has no host address, or too few bytes");
    }
    return status ? gpuhal_device_failed(device, status, "allocating %" PRIu64 " bytes for staging", bytes) : GPUHAL_OK;
}

gpuhal_status gpuhal_slot_clean(gpuhal_device *device, gpuhal_direction direction, const gpuhal_memory *memory,
                                uint64_t bytes)
{
    if ((memory->flags & GPUHAL_MEMORY_HOST_COHERENT) || !device->ops.memory_flush) {
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_memory_clean(device, memory, 0, bytes, direction == GPUHAL_FROM_DEVICE);
    return status ? gpuhal_device_failed(device, status, "making staging memory coherent") : GPUHAL_OK;
}

/* ---- one alignment block */

static gpuhal_status block_through_memory(gpuhal_direction direction, gpuhal_device *device,
                                          const gpuhal_memory *memory, uint64_t offset, void *block)
{
    const bool writes = direction == GPUHAL_TO_DEVICE;
    const uint64_t bytes = device->copy_mask + 1;
    gpuhal_memory between;
    if (!(device->memory_kinds & 1u << gpuhal_slot_kind(direction))) {
        return gpuhal_slot_no_way(device, direction);
    }
    gpuhal_status status = gpuhal_slot_allocate(device, direction, bytes, &between);
    if (status) {
        return status;
    }
    if (writes) {
        memcpy(between.host, block, (size_t)bytes);
        status = gpuhal_slot_clean(device, direction, &between, bytes);
    }
    if (!status) {
        status = writes ? gpuhal_slot_copy(device, NULL, memory, offset, &between, 0, bytes)
                        : gpuhal_slot_copy(device, NULL, &between, 0, memory, offset, bytes);
        status = status ? gpuhal_device_failed(device, status, "copying %s staging memory", writes ? "from" : "to")
                        : GPUHAL_OK;
    }
    if (!status && !writes) {
        status = gpuhal_slot_clean(device, direction, &between, bytes);
        memcpy(block, between.host, (size_t)bytes);
    }
    gpuhal_memory_release(device, &between);
    return status;
}

static gpuhal_status move_block(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                uint64_t offset, void *block)
{
    gpuhal_status status = gpuhal_slot_move(direction, device, memory, offset, block, device->copy_mask + 1);
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? block_through_memory(direction, device, memory, offset, block)
                                                : status;
}

/* Writes or reads the part of an alignment block that a range covers. Two threads that modify one block at the same
 * time can undo each other's changes. So pieces of one copy must not share a block (gpuhal_memory_copy_between()).
 * Accessing the whole block is safe: memory is always allocated, imported or wrapped in whole blocks
 * (gpuhal_buffer_plan(), gpuhal_import_unit(), gpuhal_buffer_wrap()). */
static gpuhal_status edge(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                          uint64_t offset, void *host, uint64_t bytes)
{
    uint64_t lead = offset & device->copy_mask;
    unsigned char *block = malloc((size_t)device->copy_mask + 1);
    if (!block) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = move_block(GPUHAL_FROM_DEVICE, device, memory, offset - lead, block);
    if (!status && direction == GPUHAL_TO_DEVICE) {
        memcpy(block + lead, host, (size_t)bytes);
        status = move_block(GPUHAL_TO_DEVICE, device, memory, offset - lead, block);
    } else if (!status) {
        memcpy(host, block + lead, (size_t)bytes);
    }
    free(block);
    return status;
}

/* ---- ranges */

gpuhal_status gpuhal_slot_move_blocks(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                      uint64_t offset, void *host, uint64_t bytes, gpuhal_move_fn *middle)
{
    char *side = host;
    const uint64_t rest = (0 - offset) & device->copy_mask;
    const uint64_t head = bytes < rest ? bytes : rest; /* number of bytes up to the next block boundary */
    const uint64_t whole = (bytes - head) & ~device->copy_mask, tail = bytes - head - whole;
    gpuhal_status status = head > 0 ? edge(direction, device, memory, offset, side, head) : GPUHAL_OK;
    if (!status && whole > 0) {
        status = middle(direction, device, memory, offset + head, side + head, whole);
    }
    return status || tail == 0 ? status
                               : edge(direction, device, memory, offset + head + whole, side + head + whole, tail);
}
