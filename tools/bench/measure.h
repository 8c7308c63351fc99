/* measure.h: timing several ways of doing the same thing beside each other, in alternating rounds. */
#ifndef GPUHAL_BENCH_MEASURE_H
#define GPUHAL_BENCH_MEASURE_H

#include "clock.h"
#include "failure.h"
#include "statistics.h"

#include <stdbool.h>
#include <stdint.h>

/* One way of doing the work: does it @count times. False with gpuhal_bench_failure(). */
typedef struct gpuhal_bench_side {
    bool (*run)(void *user, uint64_t count);
    void *user;
    bool (*settle)(void *user); /* Ends work that a run has only begun, outside the measured time; NULL: none. */
} gpuhal_bench_side;

enum { GPUHAL_BENCH_SIDES_MAX = 4 };

/* The length of a measurement. */
typedef struct gpuhal_bench_plan {
    size_t rounds;      /* Their number, 1 to GPUHAL_BENCH_SAMPLES_MAX; each side is timed once in each. */
    size_t min_rounds;  /* After this number of rounds it is enough when ... */
    uint64_t enough_ns; /* ... they took this long. */
    uint64_t sample_ns; /* A sample lasts at least this long: quick operations are repeated within it ... */
    uint64_t max_count; /* ... at most this number of times; 0: no limit. */
    size_t series;      /* Of this number of series, spread over time, the calmest counts; 0 and 1: one. */
    uint64_t
        extra_ns; /* Time for more rounds if the noise leaves the ratio of the first two sides uncertain; 0: none. */
} gpuhal_bench_plan;

/* Nanoseconds for one operation: of each side, in each round. */
typedef struct gpuhal_bench_times {
    size_t rounds;
    double ns[GPUHAL_BENCH_SIDES_MAX][GPUHAL_BENCH_SAMPLES_MAX];
} gpuhal_bench_times;

/* Times the sides. Rounds go forth and back (A B, B A, A B …), so that a drift of the machine, and the cache contents
 * that one side leaves for the next, affect all sides alike. False if an operation failed; gpuhal_bench_failure() says
 * why. */
bool gpuhal_bench_measure(const gpuhal_bench_side *sides, size_t side_count, const gpuhal_bench_plan *plan,
                          gpuhal_bench_times *out_times);

/* Over the rounds: the time of one side, of one side divided by another's, and of one side less another's. */
gpuhal_bench_interval gpuhal_bench_time(const gpuhal_bench_times *times, size_t side);
gpuhal_bench_interval gpuhal_bench_ratio(const gpuhal_bench_times *times, size_t numerator, size_t denominator);
gpuhal_bench_interval gpuhal_bench_difference(const gpuhal_bench_times *times, size_t side, size_t less);

#endif
