/* measure.h: compares the time of several ways of doing the same work, in alternating rounds. */
#ifndef GPUHAL_BENCH_MEASURE_H
#define GPUHAL_BENCH_MEASURE_H

#include "clock.h"
#include "failure.h"
#include "statistics.h"

#include <stdbool.h>
#include <stdint.h>

/* One way of doing the work @count times. Returns false and sets gpuhal_bench_failure() on failure. */
typedef struct gpuhal_bench_side {
    bool (*run)(void *user, uint64_t count);
    void *user;
    bool (*settle)(void *user); /* Finishes work that a run has only begun. Not included in the measured time. May be
                                 * NULL. */
} gpuhal_bench_side;

enum { GPUHAL_BENCH_SIDES_MAX = 4 };

/* The length of a measurement. */
typedef struct gpuhal_bench_plan {
    size_t rounds;      /* Maximum number of rounds without extra_ns, 1 to GPUHAL_BENCH_SAMPLES_MAX; each side is timed
                         * once per round. */
    size_t min_rounds;  /* Minimum number of rounds. After them, the measurement stops once enough_ns have passed. */
    uint64_t enough_ns; /* After this time the measurement ends once it has min_rounds rounds. */
    uint64_t sample_ns; /* Minimum duration of a sample. Short operations are repeated within a sample. */
    uint64_t max_count; /* Maximum number of repetitions within a sample; 0 means 2^24. */
    size_t series;      /* Number of series, spread over time; only the least noisy series counts. 0 and 1 mean one
                         * series. */
    uint64_t extra_ns;  /* Time for additional rounds if the ratio of the first two sides is still uncertain because of
                         * noise, or 0. */
    bool thread_time;   /* Measures the processor time of the calling thread in place of the time that passes. */
} gpuhal_bench_plan;

/* Nanoseconds per operation, for each side and round. */
typedef struct gpuhal_bench_times {
    size_t rounds;
    double ns[GPUHAL_BENCH_SIDES_MAX][GPUHAL_BENCH_SAMPLES_MAX];
} gpuhal_bench_times;

/* Times the sides. The order alternates between rounds (A B, B A, A B …), so that drift of the machine's speed and the
 * cache contents left by the previous side affect all sides equally. Returns false and sets gpuhal_bench_failure() if
 * an operation failed. */
bool gpuhal_bench_measure(const gpuhal_bench_side *sides, size_t side_count, const gpuhal_bench_plan *plan,
                          gpuhal_bench_times *out_times);

/* Return, over all rounds, the time of one side, the ratio of two sides, and the difference of two sides. */
gpuhal_bench_interval gpuhal_bench_time(const gpuhal_bench_times *times, size_t side);
gpuhal_bench_interval gpuhal_bench_ratio(const gpuhal_bench_times *times, size_t numerator, size_t denominator);
gpuhal_bench_interval gpuhal_bench_difference(const gpuhal_bench_times *times, size_t side, size_t less);

#endif
