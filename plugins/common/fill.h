/* common/fill.h: fill patterns. */
#ifndef GPUHAL_PLUGIN_FILL_H
#define GPUHAL_PLUGIN_FILL_H

#include <stdint.h>
#include <string.h>

/* Writes the pattern of 1, 2 or 4 bytes twice, so that a whole pattern can be read at each offset below its size. */
static inline void gpuhal_plugin_twice(uint32_t pattern, uint32_t pattern_bytes, unsigned char out_twice[8])
{
    const uint16_t half = (uint16_t)pattern;
    const unsigned char quarter = (unsigned char)pattern;
    const void *source = pattern_bytes == 4   ? (const void *)&pattern
                         : pattern_bytes == 2 ? (const void *)&half
                                              : &quarter;
    memcpy(out_twice, source, pattern_bytes);
    memcpy(out_twice + pattern_bytes, source, pattern_bytes);
}

/* Doubles the filled range until it reaches the end. The pattern stays aligned, since each copy starts at a multiple of
 * the pattern size. */
static inline void gpuhal_plugin_fill_host(char *to, uint64_t bytes, const unsigned char *pattern,
                                           uint32_t pattern_bytes)
{
    memcpy(to, pattern, pattern_bytes);
    for (uint64_t done = pattern_bytes; done < bytes;) {
        uint64_t piece = done < bytes - done ? done : bytes - done;
        memcpy(to + done, to, (size_t)piece);
        done += piece;
    }
}

#endif
