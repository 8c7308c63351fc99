/* bench_statistics_test.c: the statistics behind gpuhal-bench's results. */
#include "test.h"

/* gpuhal-bench is not a library, so the test compiles this source file, which does not depend on the others. */
#include "../../tools/bench/statistics.c"

/* The ranks are from a table of the two-sided sign test at the 5 % level. */
TEST(the_interval_of_the_median_has_the_ranks_of_the_sign_test)
{
    static const struct {
        size_t count;
        size_t rank;
    } table[] = {{6, 0}, {8, 0}, {9, 1}, {11, 1}, {12, 2}, {15, 3}, {20, 5}, {25, 7}, {31, 9}, {50, 17}, {100, 39}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(gpuhal_bench_interval_rank(table[i].count), table[i].rank);
    }
}

TEST(the_interval_of_few_samples_is_their_whole_range)
{
    double one[] = {3};
    double three[] = {5, 1, 3};
    const gpuhal_bench_interval of_one = gpuhal_bench_median(one, 1);
    const gpuhal_bench_interval of_three = gpuhal_bench_median(three, 3);
    assert_true(of_one.low == 3 && of_one.median == 3 && of_one.high == 3);
    assert_true(of_three.low == 1 && of_three.median == 3 && of_three.high == 5);
}

TEST(the_median_of_an_even_number_lies_between_the_two_middle_ones)
{
    double values[] = {4, 1, 3, 2};
    assert_true(gpuhal_bench_median(values, 4).median == 2.5);
}

TEST(outliers_move_neither_median_nor_interval)
{
    double calm[15];
    double disturbed[15];
    for (size_t i = 0; i < 15; i++) {
        calm[i] = disturbed[i] = 1.0 + (double)i / 100;
    }
    disturbed[0] = -1000;
    disturbed[13] = disturbed[14] = 1000;
    const gpuhal_bench_interval a = gpuhal_bench_median(calm, 15);
    const gpuhal_bench_interval b = gpuhal_bench_median(disturbed, 15);
    assert_true(a.median == b.median && a.low == b.low && a.high == b.high);
    assert_true(a.low == calm[3] && a.median == calm[7] && a.high == calm[11]);
}

TEST(the_largest_series_stays_inside_the_range_of_a_double)
{
    const size_t rank = gpuhal_bench_interval_rank(GPUHAL_BENCH_SAMPLES_MAX);
    assert_in_range(rank, 465, 470);
}

/* Returns a sample with noise as on a shared machine. Half of the samples are between 9.9 and 10, four tenths are up to
 * 10.4, and a tenth are very late (50 to 60). So the true median is 10. */
static double noisy(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    const double uniform = (double)(*state >> 11) / 9007199254740992.0;
    return uniform < 0.5 ? 9.9 + uniform / 5 : uniform < 0.9 ? 10 + (uniform - 0.5) : 10 + 100 * (uniform - 0.5);
}

TEST(the_interval_holds_the_true_median_in_at_least_95_of_100_series)
{
    enum { SERIES = 4000 };
    uint64_t state = 88172645463325252u;
    unsigned held = 0;
    for (unsigned series = 0; series < SERIES; series++) {
        double values[15];
        for (size_t i = 0; i < 15; i++) {
            values[i] = noisy(&state);
        }
        const gpuhal_bench_interval interval = gpuhal_bench_median(values, 15);
        held += interval.low <= 10 && interval.high >= 10;
    }
    assert_in_range(held, SERIES * 95 / 100, SERIES * 98 / 100);
}

#include "test_main.h"
