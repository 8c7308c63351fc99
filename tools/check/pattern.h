/* pattern.h: bytes that show where they belong, and the comparison that describes their faults. */
#ifndef GPUHAL_CHECK_PATTERN_H
#define GPUHAL_CHECK_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes bytes that depend on seed and place: any eight in a row are found in one place alone. */
void gpuhal_pattern(unsigned char *to, uint64_t bytes, uint64_t seed);

/* The contents of a memory after an operation that should have changed one range of it, or one rectangle in that
 * range. */
typedef struct gpuhal_claim {
    const unsigned char *expected;
    const unsigned char *actual;
    const unsigned char *before; /* contents before the operation; NULL: not known */
    uint64_t total;
    uint64_t offset, bytes;      /* the range */
    const unsigned char *source; /* the origin of the bytes; NULL: not from memory */
    uint64_t source_total, source_offset;
    uint64_t width, rows, row_pitch, slice_pitch; /* of a rectangle; width 0: the range is one piece */
} gpuhal_claim;

/* @return true if all bytes are as expected; otherwise @p out_fault names the fault */
bool gpuhal_claim_holds(const gpuhal_claim *claim, char *out_fault, size_t size);

#endif
