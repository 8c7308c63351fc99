/* transfer/pageable.h: pageable host memory and devices that cannot reach it themselves, through our own page-locked
 * chunks. */
#ifndef GPUHAL_TRANSFER_PAGEABLE_H
#define GPUHAL_TRANSFER_PAGEABLE_H

#include "transfer/chunk.h"

/* Whether these bytes can take that path: not where the host sees the memory, nor from page-locked memory of the
 * library. */
bool gpuhal_pageable_is_possible(gpuhal_device *device, gpuhal_staging_direction direction,
                                 const gpuhal_memory *memory, const void *host, uint64_t bytes);
/* Whether it is quicker than the driver's own, by what the device states: the driver stages pageable memory itself,
 * which takes one thread, and a GPU with memory of its own copies by itself meanwhile (docs/transfers.md). */
bool gpuhal_pageable_is_quicker(const gpuhal_device *device);

/* From which size on it is worth asking: every chunk of the pool is then used at least twice, and looking an address up
 * costs nothing. */
static inline bool gpuhal_pageable_is_large(const gpuhal_device *device, uint64_t bytes)
{
    return __builtin_expect(bytes > device->gpu->settings.staging_limit_bytes, 0);
}

/* Bytes between memory of the device and host memory. */
typedef struct gpuhal_locked_move {
    gpuhal_staging_direction direction;
    const gpuhal_memory *memory;
    uint64_t offset;
    const void *host; /* written when the direction is FROM_DEVICE */
    uint64_t bytes;
} gpuhal_locked_move;
/* Where the host memory is page-locked memory of the device's own, the device's copy moves the bytes, without staging:
 * on the queue, or NULL and at once. NOT_SUPPORTED without a detail where it is not; with a queue also NOT_READY, as of
 * a slot. */
gpuhal_status gpuhal_locked_copy(gpuhal_device *device, gpuhal_plugin_queue *queue, const gpuhal_locked_move *move);

/* At aligned offset and size. NOT_SUPPORTED where the device has no such memory. */
gpuhal_status gpuhal_pageable_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                    const void *from, uint64_t bytes);
/* At any offset. */
gpuhal_status gpuhal_pageable_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                   uint64_t bytes);

#endif
