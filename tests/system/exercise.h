/* tests/system/exercise.h: makes random transfers between two buffers and compares all bytes with a model. */
#ifndef GPUHAL_TEST_EXERCISE_H
#define GPUHAL_TEST_EXERCISE_H

#include "system.h"

/* Makes `steps` writes, fills, copies, mappings and reads at random offsets and sizes, and compares all bytes of
 * both buffers at the end. The same seed produces the same steps. */
void exercise_pair(gpuhal_buffer *one, gpuhal_buffer *two, unsigned steps, uint64_t seed);

void exercise_kinds(gpuhal_device *device, uint64_t bytes, unsigned steps, uint64_t seed);

/* Returns the seed's next number, which is less than `limit`. */
uint64_t exercise_random(uint64_t *seed, uint64_t limit);

#endif
