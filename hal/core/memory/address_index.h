/* memory/address_index.h: finds the buffer that contains an address. */
#ifndef GPUHAL_MEMORY_ADDRESS_INDEX_H
#define GPUHAL_MEMORY_ADDRESS_INDEX_H

#include <gpuhal/buffer.h>

typedef struct gpuhal_address_index gpuhal_address_index;

/* An address range of a buffer, embedded in the buffer. `bytes` is 0 if the buffer has no such address or the range is
 * not in the index. */
typedef struct gpuhal_address_range {
    uint64_t begin, bytes;
    gpuhal_buffer *buffer;
    struct gpuhal_address_range *left, *right; /* used by the index */
} gpuhal_address_range;

/* The spaces are separate, because a device address may have the same value as a host address. */
typedef enum { GPUHAL_ADDRESS_DEVICE, GPUHAL_ADDRESS_HOST, GPUHAL_ADDRESS_KINDS } gpuhal_address_kind;

/* Returns NULL if out of memory. */
gpuhal_address_index *gpuhal_address_index_create(void);
void gpuhal_address_index_destroy(gpuhal_address_index *index);
/* Adds both ranges of a buffer under one lock. Skips a range that overlaps a range in the index. Overlaps occur with
 * shared memory, and with devices whose APIs number addresses independently. */
void gpuhal_address_index_add(gpuhal_address_index *index, gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS]);
void gpuhal_address_index_remove(gpuhal_address_index *index, gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS]);
/* Returns the buffer that contains the address, with a new reference, and the address's offset in the buffer. Returns
 * NULL if no buffer contains the address. */
gpuhal_buffer *gpuhal_address_index_find(gpuhal_address_index *index, gpuhal_address_kind kind, uint64_t address,
                                         uint64_t *out_offset);

#endif
