/* watch.h: ends a run that is stuck in a driver. The library gives such a device up, but the thread that called the
 * driver, which is the bench's only one, stays there. */
#ifndef GPUHAL_BENCH_WATCH_H
#define GPUHAL_BENCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a thread that calls @stuck once no call of gpuhal_bench_watch_alive() has come for @limit_ns. @stuck ends the
 * process. False with gpuhal_bench_failure(). */
bool gpuhal_bench_watch_start(uint64_t limit_ns, void (*stuck)(void *user), void *user);

/* Reports that the run continues. */
void gpuhal_bench_watch_alive(void);

#endif
