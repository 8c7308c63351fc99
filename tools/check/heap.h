/* heap.h: finds allocator blocks that a plugin has not freed. */
#ifndef GPUHAL_CHECK_HEAP_H
#define GPUHAL_CHECK_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_heap_count {
    unsigned blocks;
    uint64_t bytes;
} gpuhal_heap_count;

/* Returns the number of bytes that this process has allocated with malloc() and not freed; 0 if the C library does not
 * report it. */
uint64_t gpuhal_heap_bytes(void);
/* Starts counting the blocks allocated by code of the object at this address. Returns false in sanitizer builds and
 * with C libraries other than glibc, since blocks cannot be counted there. */
bool gpuhal_heap_watch(const void *of_object);
/* Returns the number and the bytes of the blocks that were allocated since the start of counting and not freed. Stops
 * counting. */
gpuhal_heap_count gpuhal_heap_left(void);

#endif
