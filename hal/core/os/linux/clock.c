/* os/linux/clock.c: monotonic time, thread CPU time, UTC conversion and sleep. */
#include "os/os.h"

#include <errno.h>
#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t gpuhal_os_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t gpuhal_os_processor_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

bool gpuhal_os_utc(uint64_t seconds, struct tm *out_parts)
{
    const time_t moment = (time_t)seconds;
    return moment >= 0 && (uint64_t)moment == seconds && gmtime_r(&moment, out_parts);
}

void gpuhal_os_sleep(uint64_t ns)
{
    struct timespec rest = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}
