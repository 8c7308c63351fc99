/* clock.h: the clocks of the measurements. */
#ifndef GPUHAL_BENCH_CLOCK_H
#define GPUHAL_BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t gpuhal_bench_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time that passes: monotonic and not slewed. */
static inline uint64_t gpuhal_bench_now_ns(void)
{
    return gpuhal_bench_clock_ns(CLOCK_MONOTONIC_RAW);
}

#endif
