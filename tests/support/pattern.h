/* support/pattern.h: the bytes that a fill leaves, by another computation than the library's. */
#ifndef SUPPORT_PATTERN_H
#define SUPPORT_PATTERN_H

#include <stdint.h>

/* The byte at `at` of memory filled with the low `unit` bytes of the pattern: the lowest comes first, except on a
 * big-endian processor. */
static inline unsigned char pattern_byte(uint32_t pattern, uint32_t unit, uint64_t at)
{
    const uint32_t place = (uint32_t)(at % unit);
    return (unsigned char)(pattern >> 8 * (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? place : unit - 1 - place));
}

#endif
