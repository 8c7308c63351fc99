/* memory_use.h: this process's memory use according to the system. */
#ifndef GPUHAL_BENCH_MEMORY_USE_H
#define GPUHAL_BENCH_MEMORY_USE_H

#include <stdbool.h>

/* Reads the value of one line of /proc/self/status: "VmRSS", "VmHWM". */
bool gpuhal_bench_status_kib(const char *key, double *out_kib);

/* Reads the resident size of the mappings whose line contains @word, or of all mappings if @word is "". This size is
 * exact, whereas VmRSS may be off by some pages. */
bool gpuhal_bench_mapped_kib(const char *word, double *out_kib);

/* Resets VmHWM to the current value. Returns false if the system forbids it. */
bool gpuhal_bench_reset_peak(void);

#endif
