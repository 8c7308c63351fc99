/* support/pattern.h: the expected bytes after a fill, computed independently of the library. */
#ifndef SUPPORT_PATTERN_H
#define SUPPORT_PATTERN_H

#include <stdint.h>

/* Returns the byte at offset `at` of memory that is filled with the low `unit` bytes of the pattern. The lowest byte
 * comes first, except on big-endian processors. */
static inline unsigned char pattern_byte(uint32_t pattern, uint32_t unit, uint64_t at)
{
    const uint32_t place = (uint32_t)(at % unit);
    return (unsigned char)(pattern >> 8 * (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? place : unit - 1 - place));
}

#endif
