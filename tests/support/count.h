/* tests/support/count.h: the number of times that a test repeats its work. */
#ifndef GPUHAL_TEST_COUNT_H
#define GPUHAL_TEST_COUNT_H

#include <stdlib.h>

/* Returns `count`, multiplied by the variable GPUHAL_TEST_TIMES, which `ctest -C large` sets. */
static inline unsigned test_count(unsigned count)
{
    const char *times = getenv("GPUHAL_TEST_TIMES");
    return times ? count * (unsigned)strtoul(times, NULL, 10) : count;
}

#endif
