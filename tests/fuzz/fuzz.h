/* tests/fuzz/fuzz.h: the assertion that fuzz targets use, for fuzzing and for the replay. */
#ifndef GPUHAL_TEST_FUZZ_H
#define GPUHAL_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                  \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

#endif
