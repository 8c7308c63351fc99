/* memory/address_index.h: finds the buffer that contains an address. */
#ifndef GPUHAL_MEMORY_ADDRESS_INDEX_H
#define GPUHAL_MEMORY_ADDRESS_INDEX_H

#include <gpuhal/buffer.h>

typedef struct gpuhal_address_index gpuhal_address_index;

/* A range of addresses that belongs to a buffer; embedded in it. bytes 0: none, or not in the index. */
typedef struct gpuhal_address_range {
    uint64_t begin, bytes;
    gpuhal_buffer *buffer;
    struct gpuhal_address_range *left, *right; /* the index's own */
} gpuhal_address_range;

/* Addresses of devices and of the host are separate spaces: a device may number its addresses from anywhere. */
typedef enum { GPUHAL_ADDRESS_DEVICE, GPUHAL_ADDRESS_HOST, GPUHAL_ADDRESS_KINDS } gpuhal_address_kind;

/* NULL without memory. */
gpuhal_address_index *gpuhal_address_index_create(void);
void gpuhal_address_index_destroy(gpuhal_address_index *index);
/* Adds both ranges of a buffer at once, under one lock. A range that overlaps another one already there (two devices
 * whose APIs count addresses for themselves, shared memory) is left out. */
void gpuhal_address_index_add(gpuhal_address_index *index, gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS]);
void gpuhal_address_index_remove(gpuhal_address_index *index, gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS]);
/* Returns the buffer with a new reference, and the offset of the address in it; NULL when there is none. */
gpuhal_buffer *gpuhal_address_index_find(gpuhal_address_index *index, gpuhal_address_kind kind, uint64_t address,
                                         uint64_t *out_offset);

#endif
