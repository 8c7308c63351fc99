/* transfer/move.h: moves bytes between host memory and device memory. docs/transfers.md describes how the path is
 * chosen: the plugin's write or read; memcpy, if the host can access the device memory; the plugin's copy, if the host
 * memory is page-locked memory of this device; or staging memory. If staging memory is faster than the plugin's write
 * or read, it is used first.
 *
 * For all functions, the ranges must have been checked and the devices must be open. */
#ifndef GPUHAL_TRANSFER_MOVE_H
#define GPUHAL_TRANSFER_MOVE_H

#include "transfer/slot.h"

/* The long parts of gpuhal_move(). Handles any range, and continues after a slot that did not return OK. */
gpuhal_move_fn gpuhal_move_any;
gpuhal_status gpuhal_move_after(gpuhal_status status, gpuhal_direction direction, gpuhal_device *device,
                                const gpuhal_memory *memory, uint64_t offset, void *host, uint64_t bytes);

/* Moves a range of any offset and size, with any plugin. Inline, so that small moves reach the plugin's function
 * without overhead. */
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

/* Moves with the plugin's slot, or through staging memory if that is faster. Returns NOT_SUPPORTED if the plugin has no
 * slot for this memory. Returns NOT_READY if the range is not aligned; another range of the same memory may succeed.
 * Neither status sets an error detail. */
gpuhal_move_fn gpuhal_move_try;
/* If the host memory is page-locked memory of this device, moves with the plugin's copy: on a plugin queue, or blocking
 * if `queue` is NULL. For other host memory, and if the copy cannot be used, e.g. for an unaligned range, returns
 * NOT_SUPPORTED without an error detail. With a queue it may also return NOT_READY, as a slot does. */
gpuhal_status gpuhal_move_locked(gpuhal_plugin_queue *queue, gpuhal_direction direction, gpuhal_device *device,
                                 const gpuhal_memory *memory, uint64_t offset, void *host, uint64_t bytes);

#endif
