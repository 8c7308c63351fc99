/* failure.h: the sentence about the last operation that failed. */
#ifndef GPUHAL_BENCH_FAILURE_H
#define GPUHAL_BENCH_FAILURE_H

#include <stdbool.h>

/* Sets the sentence and returns false; failed_call() takes its text from gpuhal_last_error(). */
bool gpuhal_bench_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool gpuhal_bench_failed_call(const char *call);
const char *gpuhal_bench_failure(void);

#endif
