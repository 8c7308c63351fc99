/* pattern.h: bytes whose values show their position, and a comparison that describes errors. */
#ifndef GPUHAL_CHECK_PATTERN_H
#define GPUHAL_CHECK_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Generates bytes that depend on seed and position: any eight consecutive bytes occur at only one position. */
void gpuhal_pattern(unsigned char *to, uint64_t bytes, uint64_t seed);

/* A memory's contents after an operation that should have changed one range, or one rectangle in that range. */
typedef struct gpuhal_claim {
    const unsigned char *expected;
    const unsigned char *actual;
    const unsigned char *before; /* contents before the operation; NULL if unknown */
    uint64_t total;
    uint64_t offset, bytes;      /* the range */
    const unsigned char *source; /* the expected source of the bytes; NULL if the source is not memory */
    uint64_t source_total, source_offset;
    uint64_t width, rows, row_pitch, slice_pitch; /* the rectangle; width is 0 if the range is contiguous */
} gpuhal_claim;

/* Returns true if all bytes are as expected; otherwise @p out_fault describes the error. */
bool gpuhal_claim_holds(const gpuhal_claim *claim, char *out_fault, size_t size);

#endif
