/* transfer/chunk.h: one chunk of staging memory, and copies between it and its device's memory: blocking, or begun here
 * and awaited later where the device has queues. A chunk has one user at a time, which waits for what it began before
 * passing the chunk on. */
#ifndef GPUHAL_TRANSFER_CHUNK_H
#define GPUHAL_TRANSFER_CHUNK_H

#include "transfer/slot.h"

typedef struct gpuhal_chunk {
    struct gpuhal_chunk *next;
    gpuhal_memory memory; /* of the device; not used when plain */
    bool plain;           /* pages of the host, because the device offers no such memory */
    bool can_begin; /* copies that are begun go on by themselves; otherwise beginning one blocks until it is done */
    void *host;
    uint64_t bytes;
    /* A queue and an event of the chunk's own, so that chunks share nothing; made when something is first begun, and
     * made anew after a failure. */
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    bool under_way;              /* something was begun and not waited for */
    uint64_t arriving, lead;     /* a fill in flight: its bytes, and the bytes in front of them that are not wanted */
} gpuhal_chunk;

/* Whether chunks are memory of the device; otherwise they are plain pages. */
bool gpuhal_chunk_has_memory(const gpuhal_device *device, gpuhal_staging_direction direction);
/* Whether the device has queues that are worth using for staging. */
bool gpuhal_chunk_has_engine(const gpuhal_device *device);
/* Memory of kind UPLOAD or READBACK, or plain pages. Called with no lock held: a plugin may take long to page-lock
 * memory. */
gpuhal_status gpuhal_chunk_create(gpuhal_device *device, gpuhal_staging_direction direction, uint64_t bytes,
                                  gpuhal_chunk **out_chunk);
void gpuhal_chunk_destroy(gpuhal_device *device, gpuhal_chunk *chunk);

/* Device memory into the beginning of a chunk of the same device, at any offset, at most the payload. */
gpuhal_status gpuhal_chunk_fill(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *from,
                                uint64_t from_offset, uint64_t bytes);
/* The beginning of a chunk that is not plain into device memory, at aligned offset and size. */
gpuhal_status gpuhal_chunk_empty(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *to,
                                 uint64_t to_offset, uint64_t bytes);

gpuhal_status gpuhal_chunk_begin_fill(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *from,
                                      uint64_t from_offset, uint64_t bytes);
gpuhal_status gpuhal_chunk_begin_empty(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *to,
                                       uint64_t to_offset, uint64_t bytes);
/* Whether what was begun has ended, well or not. */
bool gpuhal_chunk_has_ended(gpuhal_device *device, const gpuhal_chunk *chunk);
/* Sleeps until it has. OK where nothing is in flight. */
gpuhal_status gpuhal_chunk_wait(gpuhal_device *device, gpuhal_chunk *chunk);

#endif
