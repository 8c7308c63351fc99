/* memory_use.h: how much memory this process has in use, as the system sees it. */
#ifndef GPUHAL_BENCH_MEMORY_USE_H
#define GPUHAL_BENCH_MEMORY_USE_H

#include <stdbool.h>

/* The value of one line of /proc/self/status: "VmRSS", "VmHWM". */
bool gpuhal_bench_status_kib(const char *key, double *out_kib);

/* The resident part of the mappings whose line contains @word; "": of all. Exact, while VmRSS lags behind by some
 * pages. */
bool gpuhal_bench_mapped_kib(const char *word, double *out_kib);

/* Lets VmHWM begin again at the present value. False where the system forbids it. */
bool gpuhal_bench_reset_peak(void);

#endif
