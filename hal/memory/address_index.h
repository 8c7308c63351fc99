/* memory/address_index.h: from an address to the buffer in which it lies. */
#ifndef GPUHAL_MEMORY_ADDRESS_INDEX_H
#define GPUHAL_MEMORY_ADDRESS_INDEX_H

#include <gpuhal/buffer.h>

typedef struct gpuhal_address_index gpuhal_address_index;

/* A range of addresses that belongs to a buffer; embedded in it. bytes 0: not in the index. */
typedef struct gpuhal_address_range {
    uint64_t begin, bytes;
    gpuhal_buffer *buffer;
    struct gpuhal_address_range *left, *right; /* the index's own */
} gpuhal_address_range;

/* NULL without memory. */
gpuhal_address_index *gpuhal_address_index_create(void);
void gpuhal_address_index_destroy(gpuhal_address_index *index);
/* A range that overlaps one already there (two devices whose APIs count addresses for themselves, shared memory) is left out. */
void gpuhal_address_index_add(gpuhal_address_index *index, gpuhal_address_range *range);
void gpuhal_address_index_remove(gpuhal_address_index *index, gpuhal_address_range *range);
/* The buffer with a new reference, NULL when there is none. */
gpuhal_buffer *gpuhal_address_index_find(gpuhal_address_index *index, uint64_t address);

#endif
