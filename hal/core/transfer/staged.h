/* transfer/staged.h: moves many bytes between device memory and another place through the device's staging memory, in
 * overlapping pieces.
 *
 * A function accesses the other place: it fills a chunk or consumes a chunk's bytes, e.g. with memcpy or with another
 * device. The caller's thread and the helpers from the thread pool each have their own chunks and move complete pieces,
 * so no piece is passed between threads. If the chunks' copies are asynchronous (gpuhal_chunk.can_begin), each thread
 * has up to two chunks: the device copies one chunk while the thread works on the other. A copy begins with as many
 * threads as an earlier copy needed. A helper is added when the device is found waiting for the threads. If copies are
 * not asynchronous, up to two threads make blocking copies. */
#ifndef GPUHAL_TRANSFER_STAGED_H
#define GPUHAL_TRANSFER_STAGED_H

#include "transfer/staging.h"

#define GPUHAL_STAGED_PAGE_BYTES 4096u

/* In a copy to the device, fills `chunk` with `bytes` bytes; in a copy from the device, consumes them. `done` is the
 * first byte's offset in the copy. Called on several threads in parallel, in any order, once for each byte. On
 * failure it sets the error detail, and no more pieces are begun. In a copy from a device it may wait for a chunk for
 * the direction to a device; in any other copy it must not wait for a chunk. */
typedef gpuhal_status gpuhal_staged_fn(void *user, void *chunk, uint64_t done, uint64_t bytes);

typedef struct gpuhal_staged_copy {
    gpuhal_device *device;
    gpuhal_direction direction;
    const gpuhal_memory *memory;
    uint64_t offset, bytes; /* in the memory; in a copy to the device, both must be multiples of the device's
                             * alignment */
    /* At the beginning of every piece but the first, phase + done is a multiple of the page size above. To align pieces
     * for another device, set `phase` to the offset in that device's memory. In a copy to the device, `phase` must be a
     * multiple of the device's alignment. */
    uint64_t phase;
    gpuhal_staged_fn *move;
    void *user;
    bool in_order; /* call `move` only on the caller's thread, in order */
} gpuhal_staged_copy;

/* Blocks until all bytes have arrived. Returns the first failure. Bytes that were moved before the failure stay moved,
 * and no copy remains in flight. Returns OUT_OF_MEMORY or HOST_MEMORY if not even one chunk can be created. */
gpuhal_status gpuhal_staged_run(const gpuhal_staged_copy *copy);

/* Moves bytes between the beginning of a chunk and device memory. In the direction to the device, the chunk must not be
 * plain, and offset and size must be aligned. `bytes` must not exceed the payload size. Blocks. */
gpuhal_status gpuhal_staged_move_chunk(gpuhal_chunk *chunk, const gpuhal_memory *memory, uint64_t offset,
                                       uint64_t bytes);

#endif
