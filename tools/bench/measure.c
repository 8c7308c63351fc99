/* measure.c: rounds of samples, and the results computed from them.
 *
 * Ratios and differences are computed within each round, and then summarised. A disturbance affects both samples of a
 * round, or produces an outlier that the median ignores. No thread is pinned, and no sample is discarded. */
#include "measure.h"
#include "watch.h"

#include <string.h>
#include <time.h>

static const uint64_t largest_batch = UINT64_C(1) << 24;

/* A first call that takes this long is measured accurately enough even without a warm-up. */
static const uint64_t long_ns = 20000000;

/* A ratio whose interval is at most 2 % wide is certain enough. Rounds are added only because of the interval's width,
 * never because of its position, so additional rounds do not favour any result. */
static const double wanted_width = 0.02;

static bool timed(const gpuhal_bench_side *side, const gpuhal_bench_plan *plan, uint64_t count, uint64_t *out_ns)
{
    const clockid_t clock = plan->thread_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC_RAW;
    const uint64_t start = gpuhal_bench_clock_ns(clock);
    const bool good = side->run(side->user, count);
    *out_ns = gpuhal_bench_clock_ns(clock) - start;
    gpuhal_bench_watch_alive();
    return good && (side->settle == NULL || side->settle(side->user));
}

/* Determines how often the side must run for a sample of the required length. Also warms the side up. */
static bool calibrate(const gpuhal_bench_side *side, const gpuhal_bench_plan *plan, uint64_t *out_count)
{
    const uint64_t most = plan->max_count > 0 ? plan->max_count : largest_batch;
    uint64_t ns;
    *out_count = 1;
    if (!timed(side, plan, 1, &ns)) {
        return false;
    }
    while (ns < long_ns) {
        if (!timed(side, plan, *out_count, &ns)) {
            return false;
        }
        if (ns >= plan->sample_ns || *out_count >= most) {
            return true;
        }
        /* The first estimate comes from a cold call and is inaccurate, so the count grows in steps. */
        *out_count *= ns > plan->sample_ns / 2 ? 2 : 4;
        *out_count = *out_count < most ? *out_count : most;
    }
    return true;
}

static bool add_rounds(const gpuhal_bench_side *sides, size_t side_count, const gpuhal_bench_plan *plan, uint64_t batch,
                       size_t count, gpuhal_bench_times *times)
{
    for (const size_t end = times->rounds + count; times->rounds < end; times->rounds++) {
        for (size_t step = 0; step < side_count; step++) {
            const size_t side = times->rounds % 2 == 0 ? step : side_count - 1 - step;
            uint64_t ns;
            if (!timed(&sides[side], plan, batch, &ns)) {
                return false;
            }
            times->ns[side][times->rounds] = (double)ns / (double)batch;
        }
    }
    return true;
}

static bool uncertain(const gpuhal_bench_times *times)
{
    const gpuhal_bench_interval ratio = gpuhal_bench_ratio(times, 1, 0);
    return times->rounds + 2 <= GPUHAL_BENCH_SAMPLES_MAX && ratio.high - ratio.low > wanted_width * ratio.median;
}

static bool one_series(const gpuhal_bench_side *sides, size_t side_count, const gpuhal_bench_plan *plan,
                       gpuhal_bench_times *out_times)
{
    uint64_t batch = 1;
    for (size_t side = 0; side < side_count; side++) {
        uint64_t count;
        if (!calibrate(&sides[side], plan, &count)) {
            return false;
        }
        batch = count > batch ? count : batch;
    }
    const uint64_t enough = gpuhal_bench_now_ns() + plan->enough_ns;
    for (out_times->rounds = 0; out_times->rounds < plan->rounds;) {
        if (!add_rounds(sides, side_count, plan, batch, 1, out_times)) {
            return false;
        }
        if (out_times->rounds >= plan->min_rounds && gpuhal_bench_now_ns() >= enough) {
            break;
        }
    }
    const uint64_t end = gpuhal_bench_now_ns() + plan->extra_ns;
    while (side_count > 1 && uncertain(out_times) && gpuhal_bench_now_ns() < end) {
        if (!add_rounds(sides, side_count, plan, batch, 2, out_times)) {
            return false;
        }
    }
    return true;
}

/* On a shared CPU every operation may take twice as long for a while, but not every call slows down by the same factor.
 * Uses the series with the fastest baseline, which is the last side, so that gpuhal's times do not influence the choice
 * unless gpuhal is the only side. */
bool gpuhal_bench_measure(const gpuhal_bench_side *sides, size_t side_count, const gpuhal_bench_plan *plan,
                          gpuhal_bench_times *out_times)
{
    static const struct timespec pause = {.tv_nsec = 150000000};
    gpuhal_bench_times times;
    double calmest = 0;
    if (plan->series <= 1) {
        return one_series(sides, side_count, plan, out_times);
    }
    for (size_t series = 0; series < plan->series; series++) {
        if (!one_series(sides, side_count, plan, &times)) {
            return false;
        }
        const double baseline = gpuhal_bench_time(&times, side_count - 1).median;
        if (series == 0 || baseline < calmest) {
            calmest = baseline;
            *out_times = times;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

gpuhal_bench_interval gpuhal_bench_time(const gpuhal_bench_times *times, size_t side)
{
    double values[GPUHAL_BENCH_SAMPLES_MAX];
    memcpy(values, times->ns[side], times->rounds * sizeof *values);
    return gpuhal_bench_median(values, times->rounds);
}

gpuhal_bench_interval gpuhal_bench_ratio(const gpuhal_bench_times *times, size_t numerator, size_t denominator)
{
    double values[GPUHAL_BENCH_SAMPLES_MAX];
    for (size_t round = 0; round < times->rounds; round++) {
        values[round] = times->ns[numerator][round] / times->ns[denominator][round];
    }
    return gpuhal_bench_median(values, times->rounds);
}

gpuhal_bench_interval gpuhal_bench_difference(const gpuhal_bench_times *times, size_t side, size_t less)
{
    double values[GPUHAL_BENCH_SAMPLES_MAX];
    for (size_t round = 0; round < times->rounds; round++) {
        values[round] = times->ns[side][round] - times->ns[less][round];
    }
    return gpuhal_bench_median(values, times->rounds);
}
