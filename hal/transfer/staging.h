/* transfer/staging.h: bounded host memory between a device and the rest of the world: per device and direction one pool of chunks,
 * shared by all copies. Chunks are page-locked memory of the device (kind UPLOAD or READBACK) where it offers that, else plain pages.
 * They are made when first needed and live as long as the device.
 *
 * Who holds a chunk towards the host may wait for one towards a device, never the other way round: so nobody waits in a circle.
 */
#ifndef GPUHAL_TRANSFER_STAGING_H
#define GPUHAL_TRANSFER_STAGING_H

#include "device/device.h"

typedef enum { GPUHAL_STAGING_TO_DEVICE = 0, GPUHAL_STAGING_FROM_DEVICE = 1 } gpuhal_staging_direction;

typedef struct gpuhal_chunk {
    struct gpuhal_chunk *next;
    gpuhal_memory memory; /* of the device; not used when plain */
    bool plain;           /* pages of the host, because the device offers no such memory */
    void *host;
    uint64_t bytes;
} gpuhal_chunk;

/* Waits until a chunk is free. Fails only when not even one can be made. */
gpuhal_status gpuhal_staging_take(gpuhal_device *device, gpuhal_staging_direction direction, gpuhal_chunk **out_chunk);
/* The same without waiting: NULL when none is free and the bound is reached. */
gpuhal_chunk *gpuhal_staging_try_take(gpuhal_device *device, gpuhal_staging_direction direction);
void gpuhal_staging_give(gpuhal_device *device, gpuhal_staging_direction direction, gpuhal_chunk *chunk);
/* Frees all chunks of all devices; nothing is using them. Before gpuhal_devices_destroy. */
void gpuhal_staging_destroy_all(gpuhal *gpu);

/* How many bytes go through a chunk at a time; less than its size where the device wants alignment. A multiple of that alignment. */
uint64_t gpuhal_staging_payload_bytes(const gpuhal_device *device);
/* Device memory into the beginning of a chunk of the same device, at any offset, at most the payload. */
gpuhal_status gpuhal_chunk_fill(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *from, uint64_t from_offset,
                                uint64_t bytes);
/* A chunk that is memory of the device into device memory, at aligned offset and size. */
gpuhal_status gpuhal_chunk_empty(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *to, uint64_t to_offset,
                                 uint64_t bytes);

#endif
