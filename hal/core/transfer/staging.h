/* transfer/staging.h: a bounded amount of host memory for transfers to and from devices. There is one pool of chunks
 * per device and direction, shared by all copies. Chunks are page-locked memory from the device (kind UPLOAD or
 * READBACK) if it offers that, otherwise plain pages. They are created on demand and live as long as the device, unless
 * another pool needs the room: the total for the process is bounded as well. Every pool can create its first chunk
 * regardless of the bounds.
 *
 * A chunk has one user at a time, which waits for its copies before returning the chunk (transfer/staged.h). A thread
 * that holds a chunk towards the host may wait for one towards a device, but never the other way round. No thread waits
 * for a second chunk of the same direction. So there is no deadlock.
 */
#ifndef GPUHAL_TRANSFER_STAGING_H
#define GPUHAL_TRANSFER_STAGING_H

#include "transfer/slot.h"

typedef struct gpuhal_chunk {
    struct gpuhal_chunk *next;
    gpuhal_device *device;
    gpuhal_direction direction;
    gpuhal_memory memory; /* page-locked memory from the device; unused if plain */
    bool plain;           /* host pages, because the device offers no such memory */
    bool can_begin;       /* copies can be started and proceed on their own; if false, starting a copy blocks */
    void *host;
    uint64_t bytes;
    /* A queue and an event for this chunk only, so that chunks share nothing. Created with the first asynchronous copy,
     * and again after a failure. */
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    bool under_way;          /* a copy was started and not waited for yet */
    uint64_t arriving, lead; /* number of bytes in transit to the host, and of unwanted bytes in front of them */
} gpuhal_chunk;

/* Returns whether chunks are page-locked memory from the device; otherwise they are plain pages. */
static inline bool gpuhal_staging_has_memory(const gpuhal_device *device, gpuhal_direction direction)
{
    return device->memory_kinds & 1u << gpuhal_slot_kind(direction);
}
/* Returns whether the device has queues that are worth using for staging. */
bool gpuhal_staging_has_engine(const gpuhal_device *device);

/* Waits until a chunk is free. Fails only if not even one can be created. */
gpuhal_status gpuhal_staging_take(gpuhal_device *device, gpuhal_direction direction, gpuhal_chunk **out_chunk);
/* Does the same without waiting. Returns NULL if none is free and a bound is reached. */
gpuhal_chunk *gpuhal_staging_try_take(gpuhal_device *device, gpuhal_direction direction);
void gpuhal_staging_give(gpuhal_chunk *chunk);
/* Destroys the chunk's queue, which waits for copies in flight. Objects that a hanging driver still uses are leaked. */
void gpuhal_staging_drop_queue(gpuhal_chunk *chunk);
/* Wakes threads once the device is lost: a stuck thread may hold the chunk that they wait for. */
void gpuhal_staging_wake(gpuhal_device *device);
/* Ends the thread pool and frees all chunks of all devices. None may be in use. Called before
 * gpuhal_devices_destroy(). */
void gpuhal_staging_destroy_all(gpuhal *gpu);

/* Returns how many bytes fit through a chunk at a time. If the device requires alignment, this is less than the chunk's
 * size, and a multiple of the alignment. */
uint64_t gpuhal_staging_payload_bytes(const gpuhal_device *device);
/* Returns the number of threads that large copies in this direction have kept busy so far; at least 1. Set by
 * transfer/staged.c. */
uint32_t gpuhal_staging_threads(gpuhal_device *device, gpuhal_direction direction);
void gpuhal_staging_set_threads(gpuhal_device *device, gpuhal_direction direction, uint32_t threads);
/* Returns the size of all staging memory in this process, for all gpuhal objects. */
uint64_t gpuhal_staging_process_bytes(void);

#endif
