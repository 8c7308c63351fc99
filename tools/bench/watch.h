/* watch.h: ends a run that is stuck in a driver. The library abandons a device whose driver hangs, but the thread that
 * called the driver stays in the driver, and the bench has no other thread. */
#ifndef GPUHAL_BENCH_WATCH_H
#define GPUHAL_BENCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a thread that calls @stuck if gpuhal_bench_watch_alive() has not been called for @limit_ns. @stuck must end
 * the process. Returns false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_watch_start(uint64_t limit_ns, void (*stuck)(void *user), void *user);

/* Reports that the run is making progress. */
void gpuhal_bench_watch_alive(void);

#endif
