/* common/clock.h: the clock for timed waits. Changing the system time does not affect it. */
#ifndef GPUHAL_PLUGIN_CLOCK_H
#define GPUHAL_PLUGIN_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define GPUHAL_PLUGIN_SECOND_NS UINT64_C(1000000000)

static inline uint64_t gpuhal_plugin_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * GPUHAL_PLUGIN_SECOND_NS + (uint64_t)now.tv_nsec;
}

static inline struct timespec gpuhal_plugin_time(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / GPUHAL_PLUGIN_SECOND_NS),
                             .tv_nsec = (long)(ns % GPUHAL_PLUGIN_SECOND_NS)};
}

static inline void gpuhal_plugin_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

#endif
