/* transfer/staged.h: moves many bytes between a device's memory and anything else through its staging memory, in pieces
 * that overlap.
 *
 * "Anything else" is a function that fills a chunk or takes its bytes: memcpy, another device. The caller's thread and
 * helpers of the thread pool each move pieces from end to end by themselves, with separate chunks: nothing passes from
 * thread to thread. If the device has queues, each thread has two chunks: the device copies one while the thread works
 * on the other. A copy begins with as many threads as an earlier one needed, and another comes as soon as the device is
 * found waiting for them. Without queues two threads do blocking copies. */
#ifndef GPUHAL_TRANSFER_STAGED_H
#define GPUHAL_TRANSFER_STAGED_H

#include "transfer/staging.h"

#define GPUHAL_STAGED_PAGE_BYTES 4096u

/* Towards the device: puts `bytes` bytes into `chunk`. From it: takes them from there. They lie `done` bytes into the
 * copy. Called from several threads at once, in any order, once for each byte; on failure it sets the detail, and
 * nothing more is begun. If the copy is from a device, it may wait for a chunk towards one, otherwise for none. */
typedef gpuhal_status gpuhal_staged_fn(void *user, void *chunk, uint64_t done, uint64_t bytes);

typedef struct gpuhal_staged_copy {
    gpuhal_device *device;
    gpuhal_direction direction;
    const gpuhal_memory *memory;
    uint64_t offset, bytes; /* in the memory; towards the device multiples of its alignment */
    /* Every piece makes phase + done a multiple of the page above: as phase, the offset in another device's memory
     * gives pieces its alignment. Towards the device it is a multiple of the device's alignment. */
    uint64_t phase;
    gpuhal_staged_fn *move;
    void *user;
    bool in_order; /* calls `move` on the caller's thread alone, in order */
} gpuhal_staged_copy;

/* Blocks until all bytes have arrived. Returns the first failure; bytes moved until then are moved, and nothing is in
 * flight any more. OUT_OF_MEMORY and HOST_MEMORY when there is not even one chunk. */
gpuhal_status gpuhal_staged_run(const gpuhal_staged_copy *copy);

/* Moves the beginning of a chunk that is not plain to its device's memory, at aligned offset and size; or device memory
 * to the beginning of a chunk, at any offset, at most the payload. Blocks. */
gpuhal_status gpuhal_staged_move_chunk(gpuhal_chunk *chunk, const gpuhal_memory *memory, uint64_t offset,
                                       uint64_t bytes);

#endif
