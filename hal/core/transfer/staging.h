/* transfer/staging.h: bounded host memory between a device and the rest of the world: per device and direction one pool
 * of chunks, shared by all copies. Chunks are page-locked memory of the device (kind UPLOAD or READBACK) if it offers
 * that, else plain pages. They are made when first needed and live as long as the device, unless another pool needs the
 * room: all chunks of the process together are bounded too. No bound keeps a pool from its first chunk.
 *
 * A chunk has one user at a time, which waits for its copies before passing the chunk on (transfer/staged.h). A thread
 * that holds a chunk towards the host may wait for one towards a device, never the other way round, and no thread waits
 * for a second one of the same direction: so there is no deadlock.
 */
#ifndef GPUHAL_TRANSFER_STAGING_H
#define GPUHAL_TRANSFER_STAGING_H

#include "transfer/slot.h"

typedef struct gpuhal_chunk {
    struct gpuhal_chunk *next;
    gpuhal_device *device;
    gpuhal_direction direction;
    gpuhal_memory memory; /* of the device; not used when plain */
    bool plain;           /* pages of the host, because the device offers no such memory */
    bool can_begin; /* copies that are begun go on by themselves; otherwise beginning one blocks until it is done */
    void *host;
    uint64_t bytes;
    /* A queue and an event for this chunk alone, so that chunks share nothing; made when a copy is first begun, and
     * again after a failure. */
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    bool under_way;          /* a copy was begun and not waited for */
    uint64_t arriving, lead; /* bytes on their way to the host, and unwanted ones in front of them */
} gpuhal_chunk;

/* Returns whether chunks are memory of the device; otherwise they are plain pages. */
static inline bool gpuhal_staging_has_memory(const gpuhal_device *device, gpuhal_direction direction)
{
    return device->memory_kinds & 1u << gpuhal_slot_kind(direction);
}
/* Returns whether the device has queues that are worth using for staging. */
bool gpuhal_staging_has_engine(const gpuhal_device *device);

/* Waits until a chunk is free. Fails only when not even one can be made. */
gpuhal_status gpuhal_staging_take(gpuhal_device *device, gpuhal_direction direction, gpuhal_chunk **out_chunk);
/* Does the same without waiting: NULL when none is free and a bound is reached. */
gpuhal_chunk *gpuhal_staging_try_take(gpuhal_device *device, gpuhal_direction direction);
void gpuhal_staging_give(gpuhal_chunk *chunk);
/* Destroys the chunk's queue, which waits for copies in flight. Objects that a hanging driver still uses are left to
 * it. */
void gpuhal_staging_drop_queue(gpuhal_chunk *chunk);
/* Wakes threads once the device is lost: those waiting for a chunk that a stuck thread has go without. */
void gpuhal_staging_wake(gpuhal_device *device);
/* Ends the thread pool and frees all chunks of all devices; nothing is using them. Before gpuhal_devices_destroy. */
void gpuhal_staging_destroy_all(gpuhal *gpu);

/* Returns how many bytes go through a chunk at a time: fewer than its size if the device wants alignment, and a
 * multiple of that. */
uint64_t gpuhal_staging_payload_bytes(const gpuhal_device *device);
/* Returns how many threads large copies of that device and direction have kept busy so far; at least 1. Learnt by
 * transfer/staged.c. */
uint32_t gpuhal_staging_threads(gpuhal_device *device, gpuhal_direction direction);
void gpuhal_staging_set_threads(gpuhal_device *device, gpuhal_direction direction, uint32_t threads);
/* Returns the bytes of staging memory in this process, of all gpuhal objects. */
uint64_t gpuhal_staging_process_bytes(void);

#endif
