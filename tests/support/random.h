/* tests/support/random.h: pseudo-random bytes, the same for the same seed. Eight bytes are generated at a time, because
 * tests use megabytes of them, also in builds that instrument each access. */
#ifndef GPUHAL_TEST_RANDOM_H
#define GPUHAL_TEST_RANDOM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t next_word(uint64_t *seed) /* SplitMix64 */
{
    uint64_t word = *seed += UINT64_C(0x9e3779b97f4a7c15);
    word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
    return word ^ word >> 31;
}

static inline void fill_randomly(unsigned char *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i += sizeof(uint64_t)) {
        const uint64_t word = next_word(&seed);
        memcpy(bytes + i, &word, count - i < sizeof word ? count - i : sizeof word);
    }
}

/* The caller frees the bytes. */
static inline unsigned char *bytes_of_seed(uint64_t seed, size_t count)
{
    unsigned char *bytes = malloc(count);
    if (!bytes) {
        abort();
    }
    fill_randomly(bytes, count, seed);
    return bytes;
}

#endif
