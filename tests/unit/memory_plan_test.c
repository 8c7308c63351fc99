/* gpuhal_memory_plan(). Items that are needed in the same step must never overlap, the plans' totals must be near the
 * minimum, and bad arguments must be refused.
 *
 * For a rectangle that was cut into pieces, the best plan is the rectangle. A failure prints the seed; the environment
 * variable MEMORY_PLAN_PROBLEMS sets the number of problems of each kind. */
#include "support/faults.h"
#include "test.h"

#include <gpuhal/error.h>
#include <gpuhal/schedule/memory_plan.h>

#include <time.h>

enum { MANY = 30000, CUT = 200, PROBLEMS = 10 };

static gpuhal_memory_plan_item items[MANY];
static uint64_t offsets[MANY];
static uint32_t count, seed, state;

static uint32_t roll(uint32_t sides)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * sides >> 32);
}

static uint32_t problems(void)
{
    const char *wanted = getenv("MEMORY_PLAN_PROBLEMS");
    return wanted ? (uint32_t)strtoul(wanted, NULL, 10) : PROBLEMS;
}

static gpuhal_memory_plan_problem problem_of(uint64_t alignment)
{
    return (gpuhal_memory_plan_problem){
        .size = sizeof(gpuhal_memory_plan_problem), .item_count = count, .items = items, .alignment = alignment};
}

static bool together(const gpuhal_memory_plan_item *a, const gpuhal_memory_plan_item *b)
{
    return a->first_use <= b->last_use && b->first_use <= a->last_use;
}

/* Plans the items, and checks every `step`-th pair of items. */
static gpuhal_memory_plan_info plan(uint64_t alignment, uint32_t step)
{
    const gpuhal_memory_plan_problem problem = problem_of(alignment);
    gpuhal_memory_plan_info info = {.size = sizeof info};
    const uint64_t unit = alignment ? alignment : 1;
    uint64_t top = 0;
    memset(offsets, 0xff, sizeof offsets);
    assert_ok(gpuhal_memory_plan(&problem, offsets, &info));
    for (uint32_t a = 0; a < count; a++) {
        const uint64_t end = items[a].bytes > 0 ? offsets[a] + items[a].bytes : 0;
        top = end > top ? end : top;
        if (offsets[a] % unit || (items[a].bytes == 0 && offsets[a] != 0)) {
            fail_msg("seed %u: item %u of %llu bytes is at %llu", seed, a, (unsigned long long)items[a].bytes,
                     (unsigned long long)offsets[a]);
        }
        for (uint32_t b = a % step; b < a; b += step) {
            if (together(&items[a], &items[b]) && items[a].bytes > 0 && items[b].bytes > 0 &&
                offsets[a] < offsets[b] + items[b].bytes && offsets[b] < end) {
                fail_msg("seed %u: items %u and %u overlap", seed, a, b);
            }
        }
    }
    assert_true(info.total_bytes == (top + unit - 1) / unit * unit);
    assert_true(info.least_bytes <= info.total_bytes);
    return info;
}

/* Returns the largest sum of bytes that any step needs, computed in the simplest way. */
static uint64_t largest_sum(uint64_t unit)
{
    uint64_t largest = 0;
    for (uint32_t a = 0; a < count; a++) {
        uint64_t sum = 0;
        for (uint32_t b = 0; b < count; b++) {
            if (items[b].first_use <= items[a].first_use && items[a].first_use <= items[b].last_use) {
                sum += (items[b].bytes + unit - 1) / unit * unit;
            }
        }
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

/* ---- problems */

static void shuffle(void)
{
    for (uint32_t i = count; i-- > 1;) {
        const uint32_t other = roll(i + 1);
        const gpuhal_memory_plan_item kept = items[i];
        items[i] = items[other];
        items[other] = kept;
    }
}

/* The place of a cut in a piece. */
typedef enum cuts {
    ANYWHERE,
    LONG_SIDES,  /* near the middle of the longer side, so that no piece is thin */
    NEAR_MIDDLES /* near the middle of either side */
} cuts;

/* Cuts a rectangle of steps `first` to `last` and height `bytes` into at most `pieces`. */
static void cut(uint32_t first, uint32_t last, uint64_t bytes, uint32_t pieces, cuts how)
{
    const bool halves = how != ANYWHERE;
    const uint32_t steps = last - first + 1, part = halves ? pieces / 2 : 1 + (pieces > 2 ? roll(pieces - 2) : 0);
    const bool tall = how == LONG_SIDES ? steps * 1048576.0 < (double)bytes : roll(2) != 0;
    const bool flat = steps == 1 || (bytes > 1 && tall);
    if (pieces <= 1 || (flat && bytes < 2)) {
        items[count++] = (gpuhal_memory_plan_item){bytes, first, last};
    } else if (flat) {
        const uint64_t height = halves ? bytes / 4 + roll((uint32_t)(bytes / 2) + 1) : 1 + roll((uint32_t)bytes - 1);
        const uint64_t low = height == 0 ? 1 : height < bytes ? height : bytes - 1;
        cut(first, last, low, part, how);
        cut(first, last, bytes - low, pieces - part, how);
    } else {
        const uint32_t width = halves ? steps / 4 + roll(steps / 2 + 1) : 1 + roll(steps - 1);
        const uint32_t left = width == 0 ? 1 : width < steps ? width : steps - 1;
        cut(first, first + left - 1, bytes, part, how);
        cut(first + left, last, bytes, pieces - part, how);
    }
}

static void cut_rectangle(uint32_t steps, uint32_t pieces, cuts how)
{
    count = 0;
    cut(0, steps - 1, 1u << 30, pieces, how);
    shuffle();
}

/* Makes items. Most are needed for a few steps, some for many. The sizes have all magnitudes, including 0. */
static void any_items(uint32_t how_many, uint32_t steps)
{
    for (count = 0; count < how_many; count++) {
        const uint32_t first = roll(steps), life = roll(8) ? roll(6) : roll(steps);
        items[count] = (gpuhal_memory_plan_item){roll(1u << roll(24)), first, first + life};
    }
}

/* Makes a chain of layers with a skip connection around every second layer, and weights that are needed in every
 * step. */
static void a_network(uint32_t layers)
{
    count = 0;
    for (uint32_t i = 0; i < layers; i++) {
        items[count++] = (gpuhal_memory_plan_item){4096 * (1 + i % 3), 3 * i, 3 * i + 3};
        items[count++] = (gpuhal_memory_plan_item){16384, 3 * i + 1, 3 * i + 2};
        if (i % 2) {
            items[count++] = (gpuhal_memory_plan_item){4096, 3 * i, 3 * i + 9};
        }
    }
    items[count++] = (gpuhal_memory_plan_item){1000, 0, UINT32_MAX};
}

/* ---- tests */

TEST(items_that_are_needed_together_never_overlap)
{
    for (seed = 1; seed <= 20 * problems(); seed++) {
        state = seed;
        const uint64_t alignments[] = {0, 1, 16, 256, 65536};
        const uint64_t alignment = alignments[roll(5)];
        any_items(1 + roll(60), 1 + roll(100));
        const gpuhal_memory_plan_info info = plan(alignment, 1);
        assert_true(info.least_bytes == largest_sum(alignment ? alignment : 1));
    }
}

TEST(a_network_takes_no_more_than_its_largest_step)
{
    a_network(60);
    const gpuhal_memory_plan_info info = plan(256, 1);
    assert_true(info.total_bytes == info.least_bytes);
}

/* Fails if a plan needs more than `limit` times the rectangle's bytes, or if the plans need more than `mean` times the
 * bytes on average. */
static void expect_near(uint32_t steps, cuts how, double limit, double mean)
{
    double sum = 0;
    for (seed = 1; seed <= problems(); seed++) {
        state = seed;
        cut_rectangle(steps, CUT, how);
        const gpuhal_memory_plan_info info = plan(0, 1);
        const double ratio = (double)info.total_bytes / (1u << 30);
        assert_true(info.least_bytes == 1u << 30);
        sum += ratio;
        printf("seed %u: %u items, %.4f\n", seed, count, ratio);
        assert_true(ratio <= limit);
    }
    printf("in the mean: %.4f\n", sum / problems());
    assert_true(sum / problems() <= mean);
}

TEST(a_rectangle_cut_on_its_long_sides_is_planned_within_a_tenth)
{
    expect_near(1000, LONG_SIDES, 1.1, 1.06);
}

TEST(a_rectangle_cut_anywhere_is_planned_within_a_tenth)
{
    expect_near(1000, ANYWHERE, 1.1, 1.03);
}

TEST(a_rectangle_of_few_steps_is_planned_within_a_tenth)
{
    expect_near(100, NEAR_MIDDLES, 1.1, 1.06);
}

TEST(plans_are_the_same_at_every_call)
{
    static uint64_t first[CUT];
    state = 5;
    cut_rectangle(300, CUT, NEAR_MIDDLES);
    plan(64, 1);
    memcpy(first, offsets, sizeof first);
    plan(64, 1);
    assert_memory_equal(first, offsets, sizeof first);
}

/* Makes one of the shapes that cause the most segments, the most raises, or the most boxes that do not fit. */
static void shape(uint32_t which)
{
    for (count = 0; count < MANY; count++) {
        const uint32_t i = count, half = MANY / 2;
        items[i] = which == 0   ? (gpuhal_memory_plan_item){1 + i % 977, i, i}
                   : which == 1 ? (gpuhal_memory_plan_item){1 + i, 0, UINT32_MAX}
                   : which == 2 ? (gpuhal_memory_plan_item){1 + i % 7, i, 2 * MANY - i}
                   : which == 3 ? (gpuhal_memory_plan_item){1 + i % 31, 7, 7 + i}
                   : which == 4 ? (gpuhal_memory_plan_item){1 + i % 5, i < half ? i : half / 2, i < half ? i : half / 2}
                                : (gpuhal_memory_plan_item){1 + i % 13, i, i + 1 + i % 1000};
    }
}

TEST(thirty_thousand_items_of_any_shape_are_planned_in_bounded_time)
{
    for (uint32_t which = 0; which <= 5; which++) {
        shape(which);
        const clock_t began = clock();
        const gpuhal_memory_plan_info info = plan(0, 997);
        printf("shape %u: %.4f times the least, %.2f s of processor time\n", which,
               (double)info.total_bytes / (double)info.least_bytes, (double)(clock() - began) / CLOCKS_PER_SEC);
    }
}

static void refuse(const gpuhal_memory_plan_problem *problem, uint64_t *out, gpuhal_memory_plan_info *info,
                   const char *words)
{
    assert_int_equal(gpuhal_memory_plan(problem, out, info), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, words));
}

TEST(wrong_problems_are_refused_by_name)
{
    gpuhal_memory_plan_info info = {.size = sizeof info};
    count = 2;
    items[0] = (gpuhal_memory_plan_item){100, 3, 3};
    items[1] = (gpuhal_memory_plan_item){100, 5, 4};
    gpuhal_memory_plan_problem problem = problem_of(0);
    refuse(&problem, offsets, &info, "item 1: first use in step 5, last use in step 4");
    refuse(NULL, offsets, &info, "problem is NULL");
    items[1].last_use = 5;
    refuse(&problem, NULL, &info, "out_offsets is NULL");
    info.size = 0;
    refuse(&problem, offsets, &info, "size of the info");
    info.size = sizeof info;
    problem.size = 8; /* must not be treated as a problem without items */
    refuse(&problem, offsets, &info, "size of the problem");
    problem = problem_of(48);
    refuse(&problem, offsets, &info, "48 is not a power of two");
    problem = problem_of(0);
    problem.items = NULL;
    refuse(&problem, offsets, &info, "item_count is 2, and items is NULL");
    problem = problem_of(0);
    problem.item_count = GPUHAL_MEMORY_PLAN_ITEMS_MAX + 1;
    refuse(&problem, offsets, &info, "1048577; at most 1048576");
}

TEST(more_than_2_to_the_63_bytes_are_refused)
{
    const uint64_t most = (uint64_t)1 << 63;
    const struct {
        uint64_t first, second, alignment;
        bool right;
    } cases[] = {{most, 0, 0, true},           {most, 1, 0, false},       {most + 1, 0, 0, false},
                 {UINT64_MAX, 0, 0, false},    {most, UINT64_MAX, 256, false}, {most - 255, 0, 256, true},
                 {1, 0, most, true},           {1, 1, most, false}};
    count = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        items[0] = (gpuhal_memory_plan_item){cases[i].first, 0, 1};
        items[1] = (gpuhal_memory_plan_item){cases[i].second, 0, UINT32_MAX};
        gpuhal_memory_plan_problem problem = problem_of(cases[i].alignment);
        gpuhal_memory_plan_info info = {.size = sizeof info};
        if (cases[i].right) {
            assert_ok(gpuhal_memory_plan(&problem, offsets, &info));
            assert_true(info.total_bytes == most);
        } else {
            refuse(&problem, offsets, &info, "more than 2^63 bytes");
        }
    }
}

TEST(no_items_take_no_bytes)
{
    count = 0;
    gpuhal_memory_plan_problem problem = problem_of(256);
    gpuhal_memory_plan_info info = {.size = sizeof info, .total_bytes = 1, .least_bytes = 1};
    problem.items = NULL;
    assert_ok(gpuhal_memory_plan(&problem, NULL, &info));
    assert_true(info.total_bytes == 0 && info.least_bytes == 0);
    count = 1;
    items[0] = (gpuhal_memory_plan_item){0, 4, 4};
    assert_true(plan(256, 1).total_bytes == 0);
}

TEST(every_allocation_that_fails_is_reported_and_leaves_the_offsets_alone)
{
    state = 1;
    any_items(50, 40);
    const gpuhal_memory_plan_problem problem = problem_of(16);
    const int64_t held = gpuhal_fault_held();
    bool came = true;
    unsigned failures = 0;
    for (unsigned at = 1; came; at++) {
        offsets[0] = 12345;
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
        const gpuhal_status status = gpuhal_memory_plan(&problem, offsets, NULL);
        came = gpuhal_fault_end();
        assert_int_equal(status, came ? GPUHAL_ERROR_HOST_MEMORY : GPUHAL_OK);
        assert_true(gpuhal_fault_held() == held);
        assert_true(!came || offsets[0] == 12345);
        failures += came;
    }
    assert_true(failures >= 12);
}

#include "test_main.h"
