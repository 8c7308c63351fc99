/* statistics.h: the median of noisy samples and its confidence interval. Pure functions. */
#ifndef GPUHAL_BENCH_STATISTICS_H
#define GPUHAL_BENCH_STATISTICS_H

#include <stddef.h>

/* The maximum number of samples in a series. With more samples, the tail of the binomial distribution would exceed the
 * range of a double. */
enum { GPUHAL_BENCH_SAMPLES_MAX = 999 };

/* A median and its 95 % interval. */
typedef struct gpuhal_bench_interval {
    double median;
    double low;
    double high;
} gpuhal_bench_interval;

/* Returns the rank, counted from 0, of the sample that is the lower end of the median's 95 % interval. The same rank
 * counted from the top is the upper end. With fewer than 6 samples there is no 95 % interval. Then the rank is 0, so
 * the returned interval covers all samples. */
size_t gpuhal_bench_interval_rank(size_t count);

/* Sorts @values and returns their median with its interval. @count is 1 to GPUHAL_BENCH_SAMPLES_MAX. */
gpuhal_bench_interval gpuhal_bench_median(double *values, size_t count);

#endif
