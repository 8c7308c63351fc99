/* statistics.h: the median of noisy samples and how far it can be trusted. Pure functions over numbers. */
#ifndef GPUHAL_BENCH_STATISTICS_H
#define GPUHAL_BENCH_STATISTICS_H

#include <stddef.h>

/* Most samples of one series: beyond it the tail of the binomial distribution would leave the range of a double. */
enum { GPUHAL_BENCH_SAMPLES_MAX = 999 };

/* A median and its 95 % interval. */
typedef struct gpuhal_bench_interval {
    double median;
    double low;
    double high;
} gpuhal_bench_interval;

/* Returns the rank, counted from 0, of the sample that ends the 95 % interval of the median below; the same rank from
 * the top ends it above. With fewer than 6 samples there is no such interval and the rank is 0: the interval then
 * covers all samples. */
size_t gpuhal_bench_interval_rank(size_t count);

/* Sorts @values and returns their median with its interval. @count is 1 to GPUHAL_BENCH_SAMPLES_MAX. */
gpuhal_bench_interval gpuhal_bench_median(double *values, size_t count);

#endif
