/* transfer/staging.h: staging memory, a bounded amount of host memory for transfers to and from devices. There is one
 * pool of chunks per device and direction, shared by all copies. Chunks are page-locked memory from the device (kind
 * UPLOAD or READBACK) if the device offers such memory, otherwise plain pages. Chunks are created on demand and kept as
 * long as the device, unless they are free and another pool needs the room: the total for the process is also bounded.
 * Every pool can create its first chunk regardless of the bounds.
 *
 * A chunk has one user at a time. The user waits for the chunk's copies before it returns the chunk
 * (transfer/staged.h). To prevent deadlocks, a thread that holds a chunk for the direction to the host may wait for a
 * chunk for the direction to a device, but never vice versa. No thread waits for a second chunk of the same direction.
 */
#ifndef GPUHAL_TRANSFER_STAGING_H
#define GPUHAL_TRANSFER_STAGING_H

#include "transfer/slot.h"

typedef struct gpuhal_chunk {
    struct gpuhal_chunk *next;
    gpuhal_device *device;
    gpuhal_direction direction;
    gpuhal_memory memory; /* page-locked memory from the device; unused if plain */
    bool plain;           /* plain host pages */
    bool can_begin;       /* copies run asynchronously; if false, starting a copy blocks */
    void *host;
    uint64_t bytes;
    /* A queue and an event for this chunk only, so that chunks share nothing. Created for the first asynchronous copy,
     * and again after a failure. */
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    bool under_way;          /* a copy was started, and no thread has waited for it yet */
    uint64_t arriving, lead; /* number of bytes in transit to the host, and number of unwanted bytes before them */
} gpuhal_chunk;

/* Returns whether chunks are page-locked memory from the device. */
static inline bool gpuhal_staging_has_memory(const gpuhal_device *device, gpuhal_direction direction)
{
    return device->memory_kinds & 1u << gpuhal_slot_kind(direction);
}
/* Returns whether the device has queues that are worth using for staging. */
bool gpuhal_staging_has_engine(const gpuhal_device *device);

/* If necessary, waits until a chunk is free. Fails only if the pool has no chunk and cannot create one, or if the
 * device hangs. */
gpuhal_status gpuhal_staging_take(gpuhal_device *device, gpuhal_direction direction, gpuhal_chunk **out_chunk);
/* Takes a chunk without waiting. Returns NULL if no chunk is free and none can be created, e.g. because a bound is
 * reached. */
gpuhal_chunk *gpuhal_staging_try_take(gpuhal_device *device, gpuhal_direction direction);
void gpuhal_staging_give(gpuhal_chunk *chunk);
/* Destroys the chunk's queue, and thereby waits for copies in flight. Leaks objects that a hanging driver still
 * uses. */
void gpuhal_staging_drop_queue(gpuhal_chunk *chunk);
/* Wakes all threads that wait for a chunk of a lost device, because a stuck thread may hold the chunk. */
void gpuhal_staging_wake(gpuhal_device *device);
/* Ends the thread pool and frees all chunks of all devices. No chunk may be in use. Called before
 * gpuhal_devices_destroy(). */
void gpuhal_staging_destroy_all(gpuhal *gpu);

/* Returns the maximum number of bytes that one piece can move through a chunk. If the device requires alignment, this
 * number is less than the chunk's size, and a multiple of the alignment. */
uint64_t gpuhal_staging_payload_bytes(const gpuhal_device *device);
/* Returns the number of threads that large copies in this direction have needed so far, at least 1. transfer/staged.c
 * sets it. */
uint32_t gpuhal_staging_threads(gpuhal_device *device, gpuhal_direction direction);
void gpuhal_staging_set_threads(gpuhal_device *device, gpuhal_direction direction, uint32_t threads);
/* Returns the total size of this process's staging memory, for all gpuhal objects. */
uint64_t gpuhal_staging_process_bytes(void);

#endif
