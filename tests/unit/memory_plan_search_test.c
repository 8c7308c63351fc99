/* tests/unit/memory_plan_search_test.c: plans within a capacity, and with time for a search. A test problem is either a
 * rectangle cut into pieces, whose best plan is the rectangle, or so small that the test can try all plans. */
#include "support/faults.h"
#include "test.h"

#include <gpuhal/error.h>
#include <gpuhal/schedule/memory_plan.h>

#include "schedule/plan_search.h"

#include <time.h>

enum { MANY = 2000 };
#define HEIGHT (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)
#define MUCH   (3 * SECOND)

static gpuhal_memory_plan_item items[MANY];
static uint64_t offsets[MANY];
static uint32_t count, state;

static uint32_t roll(uint32_t sides)
{
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * sides >> 32);
}

static bool around; /* half of the large cuts put four pieces around a fifth, so that no straight cut divides them */

static void cut(uint32_t first, uint32_t last, uint64_t bytes, uint32_t pieces);

static void cut_around(uint32_t first, uint32_t last, uint64_t bytes, uint32_t pieces)
{
    const uint32_t units = (uint32_t)(bytes / 1024), each = pieces / 5;
    const uint32_t left = first + 1 + roll((last - first) / 2), right = left + 1 + roll(last - left - 1);
    const uint64_t low = 1 + roll(units / 2), high = low + 1 + roll(units - (uint32_t)low - 1);
    cut(first, right - 1, 1024 * low, each);
    cut(right, last, 1024 * high, each);
    cut(left, last, bytes - 1024 * high, each);
    cut(first, left - 1, bytes - 1024 * low, each);
    cut(left, right - 1, 1024 * (high - low), pieces - 4 * each);
}

/* Cuts a rectangle of steps `first` to `last` and height `bytes` into at most `pieces`. */
static void cut(uint32_t first, uint32_t last, uint64_t bytes, uint32_t pieces)
{
    if (around && pieces >= 5 && last - first >= 16 && bytes >= 16384 && roll(2)) {
        cut_around(first, last, bytes, pieces);
        return;
    }
    const bool in_time = last > first && (bytes < 4096 || roll(2));
    if (pieces <= 1 || (!in_time && bytes < 4096)) {
        items[count++] = (gpuhal_memory_plan_item){bytes, first, last};
        return;
    }
    const uint32_t less = 1 + roll(pieces - 1);
    if (in_time) {
        const uint32_t middle = first + roll(last - first);
        cut(first, middle, bytes, less);
        cut(middle + 1, last, bytes, pieces - less);
    } else {
        const uint64_t low = 1024 * (1 + roll((uint32_t)(bytes / 1024) - 1));
        cut(first, last, low, less);
        cut(first, last, bytes - low, pieces - less);
    }
}

static void cut_rectangle(uint32_t seed, uint32_t steps, uint32_t pieces)
{
    state = seed;
    count = 0;
    cut(0, steps - 1, HEIGHT, pieces);
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t other = roll(i);
        const gpuhal_memory_plan_item moved = items[i - 1];
        items[i - 1] = items[other];
        items[other] = moved;
    }
}

static gpuhal_status plan(uint64_t capacity, uint64_t search_ns, gpuhal_memory_plan_info *out_info)
{
    const gpuhal_memory_plan_problem problem = {.size = sizeof problem,
                                                .item_count = count,
                                                .items = items,
                                                .capacity_bytes = capacity,
                                                .search_ns = search_ns};
    *out_info = (gpuhal_memory_plan_info){.size = sizeof *out_info};
    const gpuhal_status status = gpuhal_memory_plan(&problem, offsets, out_info);
    uint64_t top = 0;
    for (uint32_t a = 0; a < count; a++) {
        top = offsets[a] + items[a].bytes > top ? offsets[a] + items[a].bytes : top;
        for (uint32_t b = 0; b < a; b++) {
            assert_false(items[a].first_use <= items[b].last_use && items[b].first_use <= items[a].last_use &&
                         offsets[a] < offsets[b] + items[b].bytes && offsets[b] < offsets[a] + items[a].bytes);
        }
    }
    assert_true(top == out_info->total_bytes);
    return status;
}

/* Solves problems whose quick plan needs more than the rectangle. Returns whether a search of one second finds one of
 * the rectangles. */
static bool search_each(uint64_t capacity)
{
    bool found = false;
    for (uint32_t seed = 1; seed <= 10 && !found; seed++) {
        gpuhal_memory_plan_info quick, searched;
        cut_rectangle(seed, 1000, 300);
        assert_ok(plan(0, 0, &quick));
        if (quick.total_bytes > HEIGHT) {
            const gpuhal_status status = plan(capacity, SECOND, &searched);
            assert_true(searched.total_bytes <= quick.total_bytes);
            assert_int_equal(status, capacity == 0 || searched.total_bytes == HEIGHT ? GPUHAL_OK
                                                                                     : GPUHAL_ERROR_TIMEOUT);
            found = searched.total_bytes == HEIGHT;
        }
    }
    return found;
}

TEST(a_search_finds_plans_that_the_quick_one_misses)
{
    assert_true(search_each(HEIGHT));
    assert_true(search_each(0));
}

/* Each search takes a few hundredths of a second, or more than 5 s if parts do not have separate ranks. */
TEST(pieces_that_lie_around_others_are_found_in_a_short_time)
{
    static const struct {
        uint32_t seed, pieces;
    } problems[] = {{53, 200}, {65, 250}};
    around = true;
    for (uint32_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        gpuhal_memory_plan_info info;
        cut_rectangle(problems[i].seed, 1000, problems[i].pieces);
        assert_int_equal(plan(HEIGHT, 0, &info), GPUHAL_ERROR_TIMEOUT);
        assert_ok(plan(HEIGHT, MUCH, &info));
    }
    around = false;
}

TEST(a_quick_plan_within_the_capacity_needs_no_search)
{
    gpuhal_memory_plan_info info;
    cut_rectangle(1, 1000, 300);
    assert_ok(plan(2 * HEIGHT, 0, &info));
    assert_true(info.total_bytes <= 2 * HEIGHT);
}

TEST(a_capacity_below_the_need_of_one_step_is_infeasible)
{
    gpuhal_memory_plan_info info;
    cut_rectangle(1, 1000, 300);
    assert_int_equal(plan(HEIGHT - 1, MUCH, &info), GPUHAL_ERROR_INFEASIBLE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "one step needs 1048576 bytes"));
    assert_true(info.least_bytes == HEIGHT && info.total_bytes >= HEIGHT);
}

/* ---- all plans of small problems */

enum { SMALL = 8, STEPS = 6 };

static gpuhal_skyline_box boxes[SMALL];

static bool share_a_step(const gpuhal_skyline_box *a, const gpuhal_skyline_box *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Returns the smallest total if the boxes outside of `placed` are placed on top of the others in any order. */
static uint64_t least_total(uint32_t placed, const uint64_t *tops, uint64_t so_far)
{
    uint64_t least = placed == (1u << SMALL) - 1 ? so_far : UINT64_MAX;
    for (uint32_t i = 0; i < SMALL && least > so_far; i++) {
        uint64_t after[STEPS], low = 0;
        if (placed & 1u << i) {
            continue;
        }
        memcpy(after, tops, sizeof after);
        for (uint32_t step = boxes[i].first; step <= boxes[i].last; step++) {
            low = tops[step] > low ? tops[step] : low;
        }
        for (uint32_t step = boxes[i].first; step <= boxes[i].last; step++) {
            after[step] = low + boxes[i].height;
        }
        const uint64_t top = low + boxes[i].height > so_far ? low + boxes[i].height : so_far;
        const uint64_t total = least_total(placed | 1u << i, after, top);
        least = total < least ? total : least;
    }
    return least;
}

/* Makes SMALL boxes whose heights have the same sum at every step, and returns the sum. */
static uint64_t full_boxes(void)
{
    uint64_t sum = 3 + roll(3);
    uint32_t used;
    do {
        uint64_t left[STEPS];
        used = 0;
        for (uint32_t step = 0; step < STEPS; step++) {
            left[step] = sum;
        }
        for (uint32_t step = 0; step < STEPS && used <= SMALL;) {
            if (left[step] == 0) {
                step++;
                continue;
            }
            const uint64_t height = 1 + roll(left[step] < 3 ? (uint32_t)left[step] : 3);
            uint32_t last = step;
            while (last + 1 < STEPS && left[last + 1] >= height && roll(2)) {
                last++;
            }
            for (uint32_t s = step; s <= last; s++) {
                left[s] -= height;
            }
            if (used < SMALL) {
                boxes[used] = (gpuhal_skyline_box){
                    .height = height, .steps = last - step + 1, .first = step, .last = last, .item = used};
            }
            used++;
        }
    } while (used != SMALL);
    return sum;
}

/* These boxes need four bytes at each step, but every plan needs at least five. */
static const gpuhal_skyline_box hard[SMALL] = {
    {2, 1, 0, 0, 0}, {2, 2, 0, 1, 1}, {1, 2, 1, 2, 2}, {1, 1, 2, 2, 3},
    {1, 3, 1, 3, 4}, {1, 2, 2, 3, 5}, {2, 3, 3, 5, 6}, {2, 2, 4, 5, 7}};

static void expect_least(uint64_t least)
{
    uint64_t found[SMALL];
    gpuhal_plan_search *search = gpuhal_plan_search_create(boxes, SMALL, STEPS);
    assert_non_null(search);
    assert_int_equal(gpuhal_plan_search_run(search, least - 1, UINT64_MAX, found), GPUHAL_PLAN_NONE);
    assert_int_equal(gpuhal_plan_search_run(search, least, UINT64_MAX, found), GPUHAL_PLAN_FOUND);
    for (uint32_t a = 0; a < SMALL; a++) {
        assert_true(found[a] + boxes[a].height <= least);
        for (uint32_t b = 0; b < a; b++) {
            assert_false(share_a_step(&boxes[a], &boxes[b]) && found[a] < found[b] + boxes[b].height &&
                         found[b] < found[a] + boxes[a].height);
        }
    }
    gpuhal_plan_search_destroy(search);
}

TEST(the_search_finds_a_plan_exactly_if_one_exists)
{
    unsigned above = 0;
    const uint64_t none[STEPS] = {0};
    state = 3;
    for (unsigned i = 0; i < 400; i++) {
        const uint64_t sum = full_boxes(), least = least_total(0, none, 0);
        expect_least(least);
        above += least > sum;
    }
    print_message("%u of 400 take more than one step needs\n", above);
    memcpy(boxes, hard, sizeof boxes);
    assert_int_equal(least_total(0, none, 0), 5);
    expect_least(5);
}

TEST(a_capacity_that_no_plan_keeps_is_infeasible)
{
    gpuhal_memory_plan_info info;
    for (count = 0; count < SMALL; count++) {
        items[count] = (gpuhal_memory_plan_item){hard[count].height, hard[count].first, hard[count].last};
    }
    assert_int_equal(plan(4, MUCH, &info), GPUHAL_ERROR_INFEASIBLE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "no plan takes 4 bytes or less"));
    assert_true(info.least_bytes == 4 && info.total_bytes == 5);
    assert_ok(plan(5, MUCH, &info));
}

/* ---- time */

TEST(without_time_a_plan_above_the_capacity_is_a_timeout_with_the_best_one)
{
    bool missed = false;
    for (uint32_t seed = 1; seed <= 10 && !missed; seed++) {
        gpuhal_memory_plan_info info;
        cut_rectangle(seed, 1000, 300);
        const gpuhal_status status = plan(HEIGHT, 0, &info);
        missed = status != GPUHAL_OK;
        if (missed) {
            assert_int_equal(status, GPUHAL_ERROR_TIMEOUT);
            assert_non_null(strstr(gpuhal_last_error()->sentence, "no plan of 1048576 bytes or less was found"));
            assert_true(info.total_bytes > HEIGHT && info.least_bytes == HEIGHT);
        }
    }
    assert_true(missed);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void expect_time_kept(uint32_t pieces)
{
    gpuhal_memory_plan_info info;
    cut_rectangle(1, 1000, pieces);
    const double begin = processor_seconds();
    const gpuhal_status status = plan(HEIGHT, SECOND / 2, &info);
    const double took = processor_seconds() - begin;
    print_message("%u items: status %d, %.2f s, %.4f\n", count, status, took,
                  (double)info.total_bytes / (double)HEIGHT);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_TIMEOUT);
    assert_true(took < 5);
    assert_true(status == GPUHAL_OK || took >= 0.5);
}

TEST(a_search_keeps_its_processor_time)
{
    expect_time_kept(600);
    expect_time_kept(1800); /* too many items to try all plans */
}

TEST(every_allocation_of_a_search_that_fails_is_reported)
{
    cut_rectangle(2, 1000, 300);
    const gpuhal_memory_plan_problem problem = {
        .size = sizeof problem, .item_count = count, .items = items, .search_ns = SECOND / 10};
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
    assert_true(failures >= 20);
}

#include "test_main.h"
