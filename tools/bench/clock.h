/* clock.h: the clock for all measurements: monotonic and not slewed. */
#ifndef GPUHAL_BENCH_CLOCK_H
#define GPUHAL_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t gpuhal_bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
