/* tests/support/count.h: how often a test does what it repeats. */
#ifndef GPUHAL_TEST_COUNT_H
#define GPUHAL_TEST_COUNT_H

#include <stdlib.h>

/* `count`, times GPUHAL_TEST_TIMES where that is set: by the tests of `ctest -C large`. */
static inline unsigned test_count(unsigned count)
{
    const char *times = getenv("GPUHAL_TEST_TIMES");
    return times ? count * (unsigned)strtoul(times, NULL, 10) : count;
}

#endif
