/* memory_use.h: the memory that this process has in use, as the system sees it. */
#ifndef GPUHAL_BENCH_MEMORY_USE_H
#define GPUHAL_BENCH_MEMORY_USE_H

#include <stdbool.h>

/* Reads the value of one line of /proc/self/status: "VmRSS", "VmHWM". */
bool gpuhal_bench_status_kib(const char *key, double *out_kib);

/* Reads the resident part of the mappings whose line contains @word; "": of all. Exact, while VmRSS lags behind by some
 * pages. */
bool gpuhal_bench_mapped_kib(const char *word, double *out_kib);

/* Resets VmHWM to the present value. False if the system forbids it. */
bool gpuhal_bench_reset_peak(void);

#endif
