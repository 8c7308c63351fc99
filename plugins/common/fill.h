/* common/fill.h: the patterns of fills. */
#ifndef GPUHAL_PLUGIN_FILL_H
#define GPUHAL_PLUGIN_FILL_H

#include <stdint.h>
#include <string.h>

/* Writes the 1, 2 or 4 bytes of the pattern twice, to be read from any of its bytes on. */
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

/* Doubles the filled part up to the end: the pattern continues, since each copied piece begins at a multiple of its
 * size. */
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
