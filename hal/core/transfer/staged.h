/* transfer/staged.h: moves many bytes between device memory and anything else through the device's staging memory, in
 * overlapping pieces.
 *
 * "Anything else" is a function that fills a chunk or consumes its bytes, e.g. with memcpy or another device. The
 * caller's thread and pool helpers each move complete pieces with chunks of their own, so nothing is handed over
 * between threads. If the device has queues, each thread has two chunks: the device copies one while the thread works
 * on the other. A copy begins with as many threads as an earlier copy needed. A helper is added as soon as the device
 * is found waiting for the threads. Without queues, two threads do blocking copies. */
#ifndef GPUHAL_TRANSFER_STAGED_H
#define GPUHAL_TRANSFER_STAGED_H

#include "transfer/staging.h"

#define GPUHAL_STAGED_PAGE_BYTES 4096u

/* Fills `chunk` with `bytes` bytes (towards the device), or consumes them (from the device). They are `done` bytes into
 * the copy. Called on several threads in parallel, in any order, once for each byte. On failure it sets the detail, and
 * no more pieces are begun. In a copy from a device it may wait for a chunk towards a device; in any other copy it must
 * not wait for a chunk. */
typedef gpuhal_status gpuhal_staged_fn(void *user, void *chunk, uint64_t done, uint64_t bytes);

typedef struct gpuhal_staged_copy {
    gpuhal_device *device;
    gpuhal_direction direction;
    const gpuhal_memory *memory;
    uint64_t offset, bytes; /* in the memory; towards the device these are multiples of its alignment */
    /* At the beginning of every piece but the first, phase + done is a multiple of the page size above. To align pieces
     * for another device, set this to the offset in that device's memory. Towards the device it is a multiple of the
     * device's alignment. */
    uint64_t phase;
    gpuhal_staged_fn *move;
    void *user;
    bool in_order; /* call `move` only on the caller's thread, in order */
} gpuhal_staged_copy;

/* Blocks until all bytes have arrived. Returns the first failure; bytes moved before it stay moved, and nothing remains
 * in flight. Returns OUT_OF_MEMORY or HOST_MEMORY if not even one chunk is available. */
gpuhal_status gpuhal_staged_run(const gpuhal_staged_copy *copy);

/* Moves the beginning of a chunk that is not plain to device memory at aligned offset and size, or moves device memory
 * from any offset to the beginning of a chunk. The payload size is the maximum. Blocks. */
gpuhal_status gpuhal_staged_move_chunk(gpuhal_chunk *chunk, const gpuhal_memory *memory, uint64_t offset,
                                       uint64_t bytes);

#endif
