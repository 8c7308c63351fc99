/* statistics.c: the median and its interval from order statistics.
 *
 * The interval assumes nothing about the distribution of the noise, which is far from normal on a shared machine. Each
 * sample is above or below the true median with equal probability, so the number of samples below the median has a
 * binomial distribution. The interval reaches from the k-th smallest to the k-th largest sample, for the largest k that
 * leaves at most 2.5 % on either side. */
#include "statistics.h"

#include <math.h>
#include <stdlib.h>

static const double tail = 0.025;

size_t gpuhal_bench_interval_rank(size_t count)
{
    double term = ldexp(1.0, -(int)count);
    double sum = term;
    size_t rank = 0;
    while (rank + 1 < count / 2) {
        term = term * (double)(count - rank) / (double)(rank + 1);
        sum += term;
        if (sum > tail) {
            break;
        }
        rank++;
    }
    return rank;
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

gpuhal_bench_interval gpuhal_bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    const size_t middle = count / 2;
    const size_t rank = gpuhal_bench_interval_rank(count);
    return (gpuhal_bench_interval){
        .median = count % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2,
        .low = values[rank],
        .high = values[count - 1 - rank],
    };
}
