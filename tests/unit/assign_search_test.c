/* The search for an assignment, on plain numbers, compared with all possible assignments. */
#include "schedule_support.h"

#include "schedule/assign.h"

enum { ITEMS_MOST = 6, UNITS_MOST = 4 };

typedef struct problem {
    gpuhal_assign_problem of;
    gpuhal_assign_item items[ITEMS_MOST];
    gpuhal_assign_place places[ITEMS_MOST * UNITS_MOST];
    gpuhal_assign_unit units[UNITS_MOST];
} problem;

static void make(problem *own, uint32_t *random, gpuhal_assign_policy policy)
{
    memset(own, 0, sizeof *own);
    own->of = (gpuhal_assign_problem){.policy = policy,
                                      .in_turn = next_random(random) % 8 == 0,
                                      .margin_permille = 100,
                                      .item_count = 1 + next_random(random) % ITEMS_MOST,
                                      .unit_count = 1 + next_random(random) % UNITS_MOST,
                                      .items = own->items,
                                      .places = own->places,
                                      .units = own->units};
    for (uint32_t u = 0; u < own->of.unit_count; u++) {
        const uint64_t total = 4 + next_random(random) % 12, room = total - next_random(random) % 4;
        own->units[u] =
            (gpuhal_assign_unit){.total_bytes = total, .free_bytes = room, .busy_permille = next_random(random) % 1001};
    }
    for (uint32_t i = 0; i < own->of.item_count; i++) {
        own->items[i] = (gpuhal_assign_item){
            .bytes = next_random(random) % 8, .steps = 1 + next_random(random) % 3, .former = GPUHAL_NONE};
        for (uint32_t u = 0; u < own->of.unit_count; u++) {
            gpuhal_assign_place *place = &own->places[i * own->of.unit_count + u];
            place->room = own->units[u].free_bytes;
            place->offer = next_random(random) % 4 == 0 || own->items[i].bytes > place->room ? GPUHAL_NONE : u;
        }
    }
}

/* Returns whether each item is on an allowed unit and no unit is over its capacity. Also returns the number of used
 * units and the largest number of steps on one unit. */
static bool is_valid(const problem *own, const uint32_t *units, uint32_t *out_units_used, uint32_t *out_most_steps)
{
    uint64_t used[UNITS_MOST] = {0};
    uint32_t steps[UNITS_MOST] = {0}, items[UNITS_MOST] = {0};
    *out_units_used = *out_most_steps = 0;
    for (uint32_t i = 0; i < own->of.item_count; i++) {
        const uint32_t u = units[i];
        const uint64_t bytes = own->items[i].bytes;
        used[u] = !own->of.in_turn ? used[u] + bytes : used[u] > bytes ? used[u] : bytes;
        steps[u] += own->items[i].steps;
        *out_units_used += items[u]++ == 0;
        *out_most_steps = steps[u] > *out_most_steps ? steps[u] : *out_most_steps;
        if (own->places[i * own->of.unit_count + u].offer == GPUHAL_NONE || used[u] > own->units[u].free_bytes) {
            return false;
        }
    }
    return true;
}

/* Tries all assignments; returns false if none is valid. */
static bool find_best(const problem *own, uint32_t *out_units_used, uint32_t *out_most_steps)
{
    uint32_t units[ITEMS_MOST] = {0}, at = 0, used = 0, most = 0;
    bool any = false;
    *out_units_used = *out_most_steps = UINT32_MAX;
    while (at < own->of.item_count) {
        if (is_valid(own, units, &used, &most)) {
            any = true;
            *out_units_used = used < *out_units_used ? used : *out_units_used;
            *out_most_steps = most < *out_most_steps ? most : *out_most_steps;
        }
        for (at = 0; at < own->of.item_count && ++units[at] == own->of.unit_count; at++) {
            units[at] = 0;
        }
    }
    return any;
}

TEST(an_assignment_is_found_exactly_when_there_is_one_and_pack_and_spread_are_the_best)
{
    uint32_t random = 1, found = 0, impossible = 0;
    for (uint32_t round = 0; round < 6000; round++) {
        problem own;
        uint32_t units[ITEMS_MOST], stuck = 0, least_units = 0, least_steps = 0, used = 0, most = 0;
        const gpuhal_assign_policy policy = round % 6;
        make(&own, &random, policy);
        const bool possible = find_best(&own, &least_units, &least_steps);
        const gpuhal_assign_result result = gpuhal_assign_search(&own.of, units, &stuck);
        assert_int_equal(result, possible ? GPUHAL_ASSIGN_FOUND : GPUHAL_ASSIGN_IMPOSSIBLE);
        if (!possible) {
            impossible++;
            assert_in_range(stuck, 0, own.of.item_count - 1);
            continue;
        }
        found++;
        assert_true(is_valid(&own, units, &used, &most));
        if (policy == GPUHAL_ASSIGN_PACK) {
            assert_int_equal(used, least_units);
        } else if (policy == GPUHAL_ASSIGN_SPREAD) {
            assert_int_equal(most, least_steps);
        }
    }
    assert_true(found > 1000 && impossible > 1000); /* both results occur often */
}

/* Returns the unit that the policy selects for an item if the earlier items are placed, without a search. */
static uint32_t choose(const problem *own, const uint64_t *used, uint32_t item, uint32_t next)
{
    uint32_t best = GPUHAL_NONE;
    uint64_t best_value = 0;
    for (uint32_t u = 0; u < own->of.unit_count; u++) {
        const uint64_t bytes = own->items[item].bytes, room = own->units[u].free_bytes,
                       with = !own->of.in_turn  ? used[u] + bytes
                              : used[u] > bytes ? used[u]
                                                : bytes;
        if (own->places[item * own->of.unit_count + u].offer == GPUHAL_NONE || with > room) {
            continue;
        }
        const uint64_t value =
            own->of.policy == GPUHAL_ASSIGN_ROUND_ROBIN ? (u + own->of.unit_count - next) % own->of.unit_count
            : own->of.policy == GPUHAL_ASSIGN_MOST_FREE ? 1000 - (room - with)
            : own->of.policy == GPUHAL_ASSIGN_LEAST_LOADED
                ? ((uint64_t)gpuhal_load(own->units[u].total_bytes, room - with, own->units[u].busy_permille, 0)
                   << 32) +
                      1000 - (room - with)
                : u;
        if (best == GPUHAL_NONE || value < best_value) {
            best = u;
            best_value = value;
        }
    }
    return best;
}

TEST(the_search_keeps_the_choices_of_a_policy_that_never_gets_stuck)
{
    static const gpuhal_assign_policy policies[] = {GPUHAL_ASSIGN_FIRST, GPUHAL_ASSIGN_ROUND_ROBIN,
                                                    GPUHAL_ASSIGN_MOST_FREE, GPUHAL_ASSIGN_LEAST_LOADED};
    uint32_t random = 2, compared = 0;
    for (uint32_t round = 0; round < 4000; round++) {
        problem own;
        uint32_t units[ITEMS_MOST], expected[ITEMS_MOST], stuck = 0, next = 0;
        uint64_t used[UNITS_MOST] = {0};
        bool works = true;
        make(&own, &random, policies[round % 4]);
        for (uint32_t i = 0; i < own.of.item_count && works; i++) {
            expected[i] = choose(&own, used, i, next);
            works = expected[i] != GPUHAL_NONE;
            if (works) {
                const uint64_t bytes = own.items[i].bytes, before = used[expected[i]];
                used[expected[i]] = !own.of.in_turn ? before + bytes : before > bytes ? before : bytes;
                next = (expected[i] + 1) % own.of.unit_count;
            }
        }
        if (works) {
            compared++;
            assert_int_equal(gpuhal_assign_search(&own.of, units, &stuck), GPUHAL_ASSIGN_FOUND);
            assert_memory_equal(units, expected, own.of.item_count * sizeof *units);
        }
    }
    assert_true(compared > 500);
}

TEST(without_effort_left_the_search_says_that_there_may_be_an_assignment)
{
    enum { ITEMS = 40 };
    gpuhal_assign_item items[ITEMS];
    gpuhal_assign_place places[ITEMS * 3];
    const gpuhal_assign_unit units[3] = {{.total_bytes = 100, .free_bytes = 100},
                                         {.total_bytes = 100, .free_bytes = 100},
                                         {.total_bytes = 100, .free_bytes = 100}};
    uint32_t chosen[ITEMS], stuck = 0;
    for (uint32_t i = 0; i < ITEMS; i++) { /* 300 bytes in all; a unit holds at most 99 of its 100 */
        items[i] = (gpuhal_assign_item){.bytes = 6 + 3 * (i % 2), .steps = 1, .former = GPUHAL_NONE};
        for (uint32_t u = 0; u < 3; u++) {
            places[3 * i + u] = (gpuhal_assign_place){.offer = u, .room = 100};
        }
    }
    const gpuhal_assign_problem of = {
        .item_count = ITEMS, .unit_count = 3, .items = items, .places = places, .units = units, .effort = 500};
    assert_int_equal(gpuhal_assign_search(&of, chosen, &stuck), GPUHAL_ASSIGN_GAVE_UP);
    assert_in_range(stuck, 30, ITEMS - 1);
}

TEST(the_device_of_before_is_kept_exactly_within_the_margin)
{
    const gpuhal_assign_item item = {.steps = 1, .former = 0};
    const gpuhal_assign_place places[2] = {{.offer = 0, .room = 100}, {.offer = 1, .room = 100}};
    uint32_t chosen = 9, stuck = 0;
    for (uint32_t load = 0; load <= 1000; load += 5) {
        for (uint32_t other = 0; other <= 1000; other += 5) {
            const gpuhal_assign_unit units[2] = {
                {.total_bytes = GPUHAL_UNKNOWN_BYTES, .free_bytes = GPUHAL_UNKNOWN_BYTES, .busy_permille = load},
                {.total_bytes = GPUHAL_UNKNOWN_BYTES, .free_bytes = GPUHAL_UNKNOWN_BYTES, .busy_permille = other}};
            const gpuhal_assign_problem of = {.policy = GPUHAL_ASSIGN_LEAST_LOADED,
                                              .margin_permille = 100,
                                              .item_count = 1,
                                              .unit_count = 2,
                                              .items = &item,
                                              .places = places,
                                              .units = units};
            assert_int_equal(gpuhal_assign_search(&of, &chosen, &stuck), GPUHAL_ASSIGN_FOUND);
            assert_int_equal(chosen, load > other + 100);
        }
    }
}

/* The first item is placed on the first unit, which then has too little room for the second item. Once the first item
 * is moved, its load must no longer count on the first unit, so the third item is placed there. */
TEST(an_item_that_is_taken_back_leaves_no_load_behind)
{
    const struct {
        uint32_t former;
        bool runs;
    } cases[] = {{GPUHAL_NONE, false}, {GPUHAL_NONE, true}, {0, false}};
    const gpuhal_assign_unit units[2] = {
        {.total_bytes = GPUHAL_UNKNOWN_BYTES, .free_bytes = GPUHAL_UNKNOWN_BYTES},
        {.total_bytes = GPUHAL_UNKNOWN_BYTES, .free_bytes = GPUHAL_UNKNOWN_BYTES, .busy_permille = 10}};
    const gpuhal_assign_place small = {.offer = 0, .room = 4}, large = {.offer = 1, .room = 10},
                              none = {.offer = GPUHAL_NONE}, places[] = {small, large, small, none, small, large};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gpuhal_assign_item items[] = {
            {.bytes = 4, .busy_permille = 500, .steps = 1, .former = cases[i].former, .runs = cases[i].runs},
            {.bytes = 3, .busy_permille = 100, .steps = 1, .former = GPUHAL_NONE},
            {.busy_permille = 100, .steps = 1, .former = GPUHAL_NONE}};
        uint32_t chosen[3] = {9, 9, 9}, stuck = 0;
        const gpuhal_assign_problem of = {.policy = GPUHAL_ASSIGN_LEAST_LOADED,
                                          .item_count = 3,
                                          .unit_count = 2,
                                          .items = items,
                                          .places = places,
                                          .units = units};
        assert_int_equal(gpuhal_assign_search(&of, chosen, &stuck), GPUHAL_ASSIGN_FOUND);
        assert_int_equal(chosen[0], 1);
        assert_int_equal(chosen[1], 0);
        assert_int_equal(chosen[2], 0);
    }
}

#include "test_main.h"
