/* heap.h: finds the blocks of the allocator that a plugin has taken and not given back. */
#ifndef GPUHAL_CHECK_HEAP_H
#define GPUHAL_CHECK_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_heap_count {
    unsigned blocks;
    uint64_t bytes;
} gpuhal_heap_count;

/* Returns the bytes that malloc() has given out to this process and not got back; 0 if the C library does not say. */
uint64_t gpuhal_heap_bytes(void);
/* Counts, from now on, the blocks that code of the object at this address takes. False if that cannot be known: in
 * builds with a sanitizer, and with other C libraries than glibc. */
bool gpuhal_heap_watch(const void *of_object);
/* Returns the blocks taken since then that are still there; ends the watch. */
gpuhal_heap_count gpuhal_heap_left(void);

#endif
