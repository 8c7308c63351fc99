/* transfer/slot.h: the plugin's own write, read and copy, and ranges that break the device's alignment.
 *
 * The slots take whole alignment blocks. At the ends of other ranges a block is read, changed and written back, through
 * memory made for that: a thread that holds a chunk of staging memory never needs a second one. */
#ifndef GPUHAL_TRANSFER_SLOT_H
#define GPUHAL_TRANSFER_SLOT_H

#include "device/device.h"

typedef enum { GPUHAL_TO_DEVICE = 0, GPUHAL_FROM_DEVICE = 1 } gpuhal_direction;

/* Moves bytes between memory of a device and host memory, which is only read when the direction is TO_DEVICE. Blocks
 * until they have arrived. The range was checked, and the device is open. */
typedef gpuhal_status gpuhal_move_fn(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                     uint64_t offset, void *host, uint64_t bytes);

static inline bool gpuhal_is_aligned(const gpuhal_device *device, uint64_t offset, uint64_t bytes)
{
    return ((offset | bytes) & device->copy_mask) == 0;
}

/* Calls the plugin's write or read, at aligned offset and size. A slot that is missing and one that refuses this memory
 * are the same to all callers: NOT_SUPPORTED without a detail, and another path is taken. */
gpuhal_move_fn gpuhal_slot_move;
/* Adds the detail of a failure to the slot's status. */
gpuhal_status gpuhal_slot_result(gpuhal_direction direction, gpuhal_device *device, gpuhal_status status,
                                 uint64_t bytes);
/* Moves at any offset: `middle` moves the whole blocks. NOT_SUPPORTED without a detail if `middle` returns that. */
gpuhal_status gpuhal_slot_move_blocks(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                      uint64_t offset, void *host, uint64_t bytes, gpuhal_move_fn *middle);
/* Returns NOT_SUPPORTED with its detail: the device has neither a slot for its memory nor memory of the kind for that
 * direction. */
gpuhal_status gpuhal_slot_no_way(gpuhal_device *device, gpuhal_direction direction);

/* Calls the plugin's copy, on a queue of the plugin's, or NULL and at once. Failures are the plugin's, without a detail
 * of the library's. */
gpuhal_status gpuhal_slot_copy(gpuhal_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                               uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);

/* Returns the kind of memory that bytes go through in this direction. */
static inline gpuhal_memory_kind gpuhal_slot_kind(gpuhal_direction direction)
{
    return direction == GPUHAL_TO_DEVICE ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_READBACK;
}
/* Allocates memory of that kind; fails also if the plugin gives none that the host can use. */
gpuhal_status gpuhal_slot_allocate(gpuhal_device *device, gpuhal_direction direction, uint64_t bytes,
                                      gpuhal_memory *out_memory);
/* Makes its first bytes visible to the device, or to the host, if it is not coherent. */
gpuhal_status gpuhal_slot_clean(gpuhal_device *device, gpuhal_direction direction, const gpuhal_memory *memory,
                                   uint64_t bytes);

#endif
