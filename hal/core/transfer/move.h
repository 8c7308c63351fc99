/* transfer/move.h: the one path of bytes between host memory and memory of a device, in either direction, by the one
 * rule of docs/transfers.md: the plugin's own write or read, its copy if the host memory is page-locked memory of this
 * device, memcpy if the host sees the device's memory, or staging memory.
 *
 * All take ranges that were checked, of devices that are open. */
#ifndef GPUHAL_TRANSFER_MOVE_H
#define GPUHAL_TRANSFER_MOVE_H

#include "transfer/slot.h"

/* The long parts of gpuhal_move(): any range, and the steps after a slot that has not returned OK. */
gpuhal_move_fn gpuhal_move_any;
gpuhal_status gpuhal_move_after(gpuhal_status status, gpuhal_direction direction, gpuhal_device *device,
                                const gpuhal_memory *memory, uint64_t offset, void *host, uint64_t bytes);

/* Moves at any offset and size, with any plugin. Pieces that break the device's alignment are read, changed and written
 * back. Inline, so that nothing stands between a small move and the plugin's own function. */
static inline __attribute__((always_inline)) gpuhal_status gpuhal_move(gpuhal_direction direction,
                                                                       gpuhal_device *device,
                                                                       const gpuhal_memory *memory, uint64_t offset,
                                                                       void *host, uint64_t bytes)
{
    const bool writes = direction == GPUHAL_TO_DEVICE;
    const bool has_slot = writes ? device->ops.write != NULL : device->ops.read != NULL;
    if (__builtin_expect(!has_slot || bytes > GPUHAL_CALL_SMALL_BYTES || !gpuhal_is_aligned(device, offset, bytes),
                         0)) {
        return gpuhal_move_any(direction, device, memory, offset, host, bytes);
    }
    const gpuhal_call call = gpuhal_call_small(device);
    gpuhal_status status = writes ? device->ops.write(device->handle, NULL, memory, offset, host, bytes)
                                  : device->ops.read(device->handle, NULL, host, memory, offset, bytes);
    status = gpuhal_device_result(device, call, status);
    return __builtin_expect(status != GPUHAL_OK, 0)
               ? gpuhal_move_after(status, direction, device, memory, offset, host, bytes)
               : GPUHAL_OK;
}

/* Moves by the plugin's slot, or staged if that is quicker. Without a detail: NOT_SUPPORTED if the plugin has no slot
 * for this memory; NOT_READY if the range breaks the device's alignment, which shows nothing about the memory. */
gpuhal_move_fn gpuhal_move_try;
/* Moves by the device's copy, if the host memory is page-locked memory of this device: on a queue of the plugin's, or
 * NULL and at once. Else NOT_SUPPORTED without a detail; with a queue also NOT_READY, as of a slot. */
gpuhal_status gpuhal_move_locked(gpuhal_plugin_queue *queue, gpuhal_direction direction, gpuhal_device *device,
                                 const gpuhal_memory *memory, uint64_t offset, void *host, uint64_t bytes);

#endif
