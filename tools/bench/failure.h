/* failure.h: the message about the last operation that failed. */
#ifndef GPUHAL_BENCH_FAILURE_H
#define GPUHAL_BENCH_FAILURE_H

#include <stdbool.h>

/* Set the message and return false; failed_call() uses the text of gpuhal_last_error(). */
bool gpuhal_bench_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool gpuhal_bench_failed_call(const char *call);
const char *gpuhal_bench_failure(void);

#endif
