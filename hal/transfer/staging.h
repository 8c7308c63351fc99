/* transfer/staging.h: bounded host memory between a device and the rest of the world: per device and direction one pool
 * of chunks, shared by all copies. Chunks are page-locked memory of the device (kind UPLOAD or READBACK) where it
 * offers that, else plain pages. They are made when first needed and live as long as the device, unless another pool
 * needs the room: all chunks of the process together are bounded too. No bound keeps a pool from its first chunk.
 *
 * A thread that holds a chunk towards the host may wait for one towards a device, never the other way round, and no
 * thread waits for a second one of the same direction: so there is no deadlock.
 */
#ifndef GPUHAL_TRANSFER_STAGING_H
#define GPUHAL_TRANSFER_STAGING_H

#include "transfer/chunk.h"

/* Waits until a chunk is free. Fails only when not even one can be made. */
gpuhal_status gpuhal_staging_take(gpuhal_device *device, gpuhal_staging_direction direction, gpuhal_chunk **out_chunk);
/* The same without waiting: NULL when none is free and a bound is reached. */
gpuhal_chunk *gpuhal_staging_try_take(gpuhal_device *device, gpuhal_staging_direction direction);
void gpuhal_staging_give(gpuhal_device *device, gpuhal_staging_direction direction, gpuhal_chunk *chunk);
/* The device is lost: threads that wait for a chunk that a stuck thread has go without. */
void gpuhal_staging_wake(gpuhal_device *device);
/* Ends the thread pool and frees all chunks of all devices; nothing is using them. Before gpuhal_devices_destroy. */
void gpuhal_staging_destroy_all(gpuhal *gpu);

/* How many bytes go through a chunk at a time; less than its size where the device wants alignment. A multiple of that
 * alignment. */
uint64_t gpuhal_staging_payload_bytes(const gpuhal_device *device);
/* How many threads large copies of that device and direction have kept busy so far; at least 1. Learnt by
 * transfer/ring.c. */
uint32_t gpuhal_staging_threads(gpuhal_device *device, gpuhal_staging_direction direction);
void gpuhal_staging_set_threads(gpuhal_device *device, gpuhal_staging_direction direction, uint32_t threads);
/* Of staging memory in this process, of all gpuhal objects. */
uint64_t gpuhal_staging_process_bytes(void);

#endif
