/* registry/checksum.h: CRC-32C (Castagnoli), which finds every error of up to 32 neighbouring bits in a record. */
#ifndef GPUHAL_REGISTRY_CHECKSUM_H
#define GPUHAL_REGISTRY_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum. `before` is the checksum of the bytes before these; 0 if there are none. */
uint32_t gpuhal_checksum(uint32_t before, const void *bytes, size_t count);
/* Returns the value of a sum after `bytes` further bytes, without their share. The sum of neighbouring stretches is
 * that of the last, XOR those of the others, each shifted by the bytes after it. */
uint32_t gpuhal_checksum_shift(uint32_t sum, uint64_t bytes);

#endif
