/* registry/checksum.h: CRC-32C (Castagnoli), which detects every burst error of up to 32 bits in a record. */
#ifndef GPUHAL_REGISTRY_CHECKSUM_H
#define GPUHAL_REGISTRY_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* `before` is the checksum of the preceding bytes, or 0 if there are none. */
uint32_t gpuhal_checksum(uint32_t before, const void *bytes, size_t count);
/* Returns the contribution of a sum to the checksum after `bytes` more bytes. The checksum of concatenated blocks is
 * the XOR of all blocks' sums, each shifted by the number of bytes after the block. */
uint32_t gpuhal_checksum_shift(uint32_t sum, uint64_t bytes);

#endif
