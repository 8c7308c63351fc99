/* gpuhal_place() compared with brute force, which tries every order of every subset of the devices, and every division
 * of the layers into the same number of ranges. Most of the problems are absurd.
 *
 * A failure prints the seed; the environment variables PLACE_SEED and PLACE_PROBLEMS set the first problem and the
 * number of problems. */
#include "test.h"

#include <gpuhal/error.h>
#include <gpuhal/schedule/placement.h>

#include <math.h>

enum { LAYERS = 7, DEVICES = 4, PROBLEMS = 2500 };

static gpuhal_placement_layer layers[LAYERS];
static gpuhal_placement_device devices[DEVICES];
static gpuhal_placement_link links[DEVICES * DEVICES];
static uint32_t previous[LAYERS];
static gpuhal_placement_problem problem;
static uint32_t seed, state;

static uint32_t roll(uint32_t sides)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 10) % sides;
}

static void make_layers(void)
{
    const bool pinned = roll(3) == 0, tied = roll(3) == 0;
    for (uint32_t i = 0; i < problem.layer_count; i++) {
        layers[i] = (gpuhal_placement_layer){.weight_bytes = 10 + roll(20),
                                             .state_bytes = roll(5),
                                             .workspace_bytes = roll(8),
                                             .read_bytes = roll(2) * (1 + roll(40)),
                                             .output_bytes = roll(10),
                                             .operations = roll(100)};
        if (pinned && roll(3) == 0) {
            layers[i].devices = 1 + roll((1u << problem.device_count) - 1);
        }
        if (tied && roll(2)) {
            layers[i].tie = 7 + roll(2);
            layers[i].weight_bytes = 10 * layers[i].tie - 60;
        }
        previous[i] = roll(4) ? roll(problem.device_count) : UINT32_MAX;
    }
}

static void make_devices(void)
{
    const uint32_t kinds = 1 + roll(3), scale = 10 + roll(120);
    const double speeds[] = {1, 3, 10, 0};
    for (uint32_t d = 0; d < problem.device_count; d++) {
        const uint32_t kind = roll(kinds);
        devices[d] = (gpuhal_placement_device){.capacity_bytes = scale * (kind + 2) / 2 * (roll(12) > 0),
                                               .margin_bytes = kind,
                                               .bytes_per_second = speeds[kind],
                                               .operations_per_second = speeds[(kind + 1) % 4],
                                               .start_seconds = kind,
                                               .layer_limit = kind == 2 ? 3 : 0};
        for (uint32_t to = 0; to < problem.device_count; to++) {
            links[d * problem.device_count + to] = (gpuhal_placement_link){
                .latency_seconds = roll(8) ? (double)roll(3) : (double)INFINITY, .bytes_per_second = roll(3)};
        }
    }
}

static void make_problem(void)
{
    state = seed * 2654435761u + 1;
    problem = (gpuhal_placement_problem){.size = sizeof problem,
                                         .objective = roll(5),
                                         .layers = layers,
                                         .devices = devices,
                                         .layer_count = 1 + roll(LAYERS),
                                         .device_count = 1 + roll(DEVICES),
                                         .flags = roll(2) * GPUHAL_PLACEMENT_FREE_ORDER};
    problem.links = roll(3) ? links : NULL;
    problem.previous = problem.objective == GPUHAL_PLACEMENT_LEAST_MOVED || roll(2) ? previous : NULL;
    make_layers();
    make_devices();
}

/* ---- the plain computation */

typedef struct outcome {
    bool possible;
    double value, seconds;
    uint64_t missing; /* UINT64_MAX if no amount of memory would suffice */
} outcome;

typedef struct range {
    uint32_t device, first, past;
} range;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static uint64_t need_of(const range *r)
{
    uint64_t bytes = 0, workspace = 0;
    for (uint32_t i = r->first; i < r->past; i++) {
        bool counted = false;
        for (uint32_t before = r->first; before < i; before++) {
            counted = counted || (layers[i].tie && layers[before].tie == layers[i].tie);
        }
        bytes += layers[i].state_bytes + (counted ? 0 : layers[i].weight_bytes);
        workspace = layers[i].workspace_bytes > workspace ? layers[i].workspace_bytes : workspace;
    }
    return bytes + workspace;
}

static double seconds_of(const range *r)
{
    const gpuhal_placement_device *device = &devices[r->device];
    double seconds = device->start_seconds;
    for (uint32_t i = r->first; i < r->past; i++) {
        const uint64_t bytes =
            layers[i].read_bytes ? layers[i].read_bytes : layers[i].weight_bytes + layers[i].state_bytes;
        seconds += larger(device->bytes_per_second > 0 ? (double)bytes / device->bytes_per_second : 0,
                          device->operations_per_second > 0 ? layers[i].operations / device->operations_per_second : 0);
    }
    return seconds;
}

static double link_of(const range *from, const range *to)
{
    if (!problem.links) {
        return 0;
    }
    const gpuhal_placement_link *link = &links[from->device * problem.device_count + to->device];
    const double bytes = (double)layers[to->first - 1].output_bytes;
    return link->latency_seconds + (link->bytes_per_second > 0 ? bytes / link->bytes_per_second : 0);
}

static bool may_be_there(const range *r)
{
    bool may = devices[r->device].capacity_bytes > 0 &&
               (devices[r->device].layer_limit == 0 || r->past - r->first <= devices[r->device].layer_limit);
    for (uint32_t i = r->first; i < r->past; i++) {
        may = may && (layers[i].devices == 0 || layers[i].devices >> r->device & 1);
    }
    return may;
}

static void judge(const range *ranges, uint32_t count, outcome *best)
{
    double seconds = 0, slowest = 0, share = 0, moved = 0;
    uint64_t missing = 0;
    for (uint32_t i = 0; i < count; i++) {
        const gpuhal_placement_device *device = &devices[ranges[i].device];
        const uint64_t need = need_of(&ranges[i]);
        const uint64_t usable =
            device->capacity_bytes > device->margin_bytes ? device->capacity_bytes - device->margin_bytes : 0;
        const double link = i > 0 ? link_of(&ranges[i - 1], &ranges[i]) : 0, stage = seconds_of(&ranges[i]);
        if (!may_be_there(&ranges[i]) || isinf(link)) {
            return;
        }
        missing += need > usable ? need - usable : 0;
        seconds += stage + link;
        slowest = larger(slowest, larger(stage, link));
        share = larger(share, (double)need / (double)usable);
        for (uint32_t layer = ranges[i].first; layer < ranges[i].past; layer++) {
            moved += problem.previous && previous[layer] == ranges[i].device
                         ? 0
                         : (double)(layers[layer].weight_bytes + layers[layer].state_bytes);
        }
    }
    best->missing = missing < best->missing ? missing : best->missing;
    if (missing > 0) {
        return;
    }
    const double values[] = {seconds, slowest, count, share, moved};
    const double value = values[problem.objective];
    if (!best->possible || value < best->value - 1e-9 || (value < best->value + 1e-9 && seconds < best->seconds)) {
        *best = (outcome){.possible = true, .value = value, .seconds = seconds};
    }
}

static void try_all(range *ranges, uint32_t count, uint32_t used, outcome *best)
{
    const uint32_t first = count > 0 ? ranges[count - 1].past : 0;
    if (first == problem.layer_count) {
        judge(ranges, count, best);
        return;
    }
    const bool is_free = problem.flags & GPUHAL_PLACEMENT_FREE_ORDER;
    for (uint32_t d = is_free || count == 0 ? 0 : ranges[count - 1].device + 1; d < problem.device_count; d++) {
        for (uint32_t past = first + 1; past <= problem.layer_count && !(used >> d & 1); past++) {
            ranges[count] = (range){.device = d, .first = first, .past = past};
            try_all(ranges, count + 1, used | 1u << d, best);
        }
    }
}

/* ---- side by side */

static void check_stages(const gpuhal_placement *placement, const gpuhal_placement_info *info)
{
    range ranges[DEVICES];
    outcome own = {.missing = UINT64_MAX};
    uint32_t used = 0, layer = 0;
    assert_true(info->stage_count <= problem.device_count);
    for (uint32_t i = 0; i < info->stage_count; i++) {
        gpuhal_placement_stage stage = {.size = sizeof stage};
        assert_ok(gpuhal_placement_stage_at(placement, i, &stage));
        ranges[i] =
            (range){.device = stage.device, .first = stage.first_layer, .past = stage.first_layer + stage.layer_count};
        assert_int_equal(stage.first_layer, layer);
        assert_false(used >> stage.device & 1);
        assert_true(problem.flags & GPUHAL_PLACEMENT_FREE_ORDER || used < 1u << stage.device);
        assert_true(stage.used_bytes == need_of(&ranges[i]));
        assert_true(stage.used_bytes + stage.left_bytes == devices[stage.device].capacity_bytes);
        used |= 1u << stage.device;
        layer = ranges[i].past;
    }
    assert_int_equal(layer, problem.layer_count);
    judge(ranges, info->stage_count, &own); /* the ranges are valid, and as good as reported */
    assert_true(own.possible && fabs(own.seconds - info->step_seconds) < 1e-6);
}

static bool is_right(void)
{
    range ranges[DEVICES];
    outcome plain = {.missing = UINT64_MAX};
    try_all(ranges, 0, 0, &plain);
    gpuhal_placement *placement = NULL;
    gpuhal_placement_shortfall shortfall = {.size = sizeof shortfall};
    const gpuhal_status status = gpuhal_place(&problem, &shortfall, &placement);
    gpuhal_placement_info info = {.size = sizeof info};
    if (!plain.possible) {
        const bool by_memory = plain.missing != UINT64_MAX;
        const bool says_so = shortfall.constraint == GPUHAL_PLACEMENT_BY_MEMORY
                                 ? by_memory && shortfall.missing_bytes == plain.missing
                                 : shortfall.constraint == GPUHAL_PLACEMENT_BY_LAYER || !by_memory ||
                                       (problem.links && shortfall.constraint == GPUHAL_PLACEMENT_BY_LINKS);
        return status == GPUHAL_ERROR_INFEASIBLE && says_so;
    }
    assert_ok(status);
    assert_ok(gpuhal_placement_get_info(placement, &info));
    check_stages(placement, &info);
    gpuhal_placement_destroy(placement);
    const double values[] = {info.step_seconds, info.slowest_seconds, info.stage_count, info.largest_share,
                             (double)info.moved_bytes};
    return fabs(values[problem.objective] - plain.value) < 1e-9 * (1 + plain.value) &&
           fabs(info.step_seconds - plain.seconds) < 1e-6 && info.gap == 0;
}

TEST(placements_are_as_good_as_the_best_of_all_possible_ones)
{
    const char *from = getenv("PLACE_SEED"), *many = getenv("PLACE_PROBLEMS");
    const uint32_t first = from ? (uint32_t)atoi(from) : 1, count = many ? (uint32_t)atoi(many) : PROBLEMS;
    for (seed = first; seed < first + count; seed++) {
        make_problem();
        if (!is_right()) {
            fail_msg("PLACE_SEED=%u PLACE_PROBLEMS=1", seed);
        }
    }
}

#include "test_main.h"
