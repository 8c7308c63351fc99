/* transfer/slot.h: the plugin's own write and read, and ranges that break the device's alignment.
 *
 * The slots take whole alignment blocks. At the ends of other ranges a block is read, changed and written back, through
 * memory made for that: a thread that holds a chunk of staging memory never needs a second one. */
#ifndef GPUHAL_TRANSFER_SLOT_H
#define GPUHAL_TRANSFER_SLOT_H

#include "device/device.h"

typedef enum { GPUHAL_STAGING_TO_DEVICE = 0, GPUHAL_STAGING_FROM_DEVICE = 1 } gpuhal_staging_direction;

static inline bool gpuhal_is_aligned(const gpuhal_device *device, uint64_t offset, uint64_t bytes)
{
    return ((offset | bytes) & device->copy_mask) == 0;
}

/* At aligned offset and size. A slot that is missing and one that refuses this memory are the same to all callers:
 * NOT_SUPPORTED without a detail, and another path is taken. */
typedef gpuhal_status gpuhal_slot_write_fn(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                           const void *from, uint64_t bytes);
typedef gpuhal_status gpuhal_slot_read_fn(gpuhal_device *device, void *to, const gpuhal_memory *from,
                                          uint64_t from_offset, uint64_t bytes);
gpuhal_slot_write_fn gpuhal_slot_write;
gpuhal_slot_read_fn gpuhal_slot_read;

/* At any offset: `middle` moves the whole blocks. NOT_SUPPORTED without a detail where `middle` returns that. */
gpuhal_status gpuhal_blocks_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from,
                                  uint64_t bytes, gpuhal_slot_write_fn *middle);
gpuhal_status gpuhal_blocks_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                 uint64_t bytes, gpuhal_slot_read_fn *middle);

/* NOT_SUPPORTED with its detail: the device has neither a slot for its memory nor memory of the kind for that
 * direction. */
gpuhal_status gpuhal_slot_no_way(gpuhal_device *device, gpuhal_staging_direction direction);

/* Makes the first bytes of the library's own device memory visible to the device (invalidate 0), or to the host (1),
 * where it is not coherent. */
gpuhal_status gpuhal_slot_clean(gpuhal_device *device, const gpuhal_memory *memory, uint64_t bytes, bool invalidate);

/* The plugin's event_record, again and again with pauses where it is NOT_READY: for threads that may block. */
gpuhal_status gpuhal_event_record_blocking(gpuhal_device *device, gpuhal_plugin_queue *queue,
                                           gpuhal_plugin_event *event);

#endif
