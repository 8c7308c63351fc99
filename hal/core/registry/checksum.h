/* registry/checksum.h: CRC-32C (Castagnoli), which finds every error of up to 32 neighbouring bits in a record. */
#ifndef GPUHAL_REGISTRY_CHECKSUM_H
#define GPUHAL_REGISTRY_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* `before` is the checksum of what comes before these bytes; 0 for nothing. */
uint32_t gpuhal_checksum(uint32_t before, const void *bytes, size_t count);
/* What a sum becomes when so many bytes follow, without those: the sum of neighbouring stretches is that of the last,
 * XOR those of the others, each shifted by what follows it. */
uint32_t gpuhal_checksum_shift(uint32_t sum, uint64_t bytes);

#endif
