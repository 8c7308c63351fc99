/* transfer/slot.h: calls the plugin's write, read and copy slots, also for ranges that are not aligned.
 *
 * Slots accept only whole alignment blocks. At an unaligned end of a range, the whole block is read and, for a
 * write, modified and written back. This uses separately allocated memory, so that a thread that holds a staging chunk
 * never needs a second chunk. */
#ifndef GPUHAL_TRANSFER_SLOT_H
#define GPUHAL_TRANSFER_SLOT_H

#include "device/device.h"

typedef enum { GPUHAL_TO_DEVICE = 0, GPUHAL_FROM_DEVICE = 1 } gpuhal_direction;

/* Moves bytes between device memory and host memory. With TO_DEVICE, host memory is only read. Blocks until the bytes
 * have arrived. The range must have been checked and the device must be open. */
typedef gpuhal_status gpuhal_move_fn(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                     uint64_t offset, void *host, uint64_t bytes);

static inline bool gpuhal_is_aligned(const gpuhal_device *device, uint64_t offset, uint64_t bytes)
{
    return ((offset | bytes) & device->copy_mask) == 0;
}

/* Calls the plugin's write or read. Offset and size must be aligned. If the slot is missing or refuses this memory,
 * returns NOT_SUPPORTED without an error detail, and the caller must use another path. */
gpuhal_move_fn gpuhal_slot_move;
/* Sets the error detail if the slot failed with any status but NOT_SUPPORTED. Returns the status. */
gpuhal_status gpuhal_slot_result(gpuhal_direction direction, gpuhal_device *device, gpuhal_status status,
                                 uint64_t bytes);
/* Moves a range of any offset; `middle` moves the whole blocks. Returns NOT_SUPPORTED without an error detail if
 * `middle` does. */
gpuhal_status gpuhal_slot_move_blocks(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                      uint64_t offset, void *host, uint64_t bytes, gpuhal_move_fn *middle);
/* Sets the error detail and returns NOT_SUPPORTED, for a device that has neither a slot for its memory nor staging
 * memory for this direction. */
gpuhal_status gpuhal_slot_no_way(gpuhal_device *device, gpuhal_direction direction);

/* Calls the plugin's copy: on a plugin queue, or blocking if `queue` is NULL. Returns the plugin's status, and sets no
 * error detail. */
gpuhal_status gpuhal_slot_copy(gpuhal_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                               uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);

/* Returns the kind of memory used for staging in this direction. */
static inline gpuhal_memory_kind gpuhal_slot_kind(gpuhal_direction direction)
{
    return direction == GPUHAL_TO_DEVICE ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_READBACK;
}
/* Allocates memory of the kind gpuhal_slot_kind(). Also fails if the plugin returns memory that has no host address or
 * too few bytes. */
gpuhal_status gpuhal_slot_allocate(gpuhal_device *device, gpuhal_direction direction, uint64_t bytes,
                                      gpuhal_memory *out_memory);
/* If the memory is not coherent, makes its first `bytes` bytes visible to the device or to the host. */
gpuhal_status gpuhal_slot_clean(gpuhal_device *device, gpuhal_direction direction, const gpuhal_memory *memory,
                                   uint64_t bytes);

#endif
