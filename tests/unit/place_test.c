/* gpuhal_place(): refusals and their reasons, plans for equal devices and for many devices, plans after a device was
 * lost, and descriptions of devices and links. place_random_test.c checks the quality of placements. */
#include "support/faults.h"
#include "support/mock.h"
#include "test.h"

#include <gpuhal/error.h>
#include <gpuhal/schedule/placement.h>

#include <math.h>

enum { MANY = 80 };

static gpuhal_placement_layer layers[MANY];
static gpuhal_placement_device devices[GPUHAL_PLACEMENT_DEVICES_MAX];
static gpuhal_placement_link links[GPUHAL_PLACEMENT_DEVICES_MAX * GPUHAL_PLACEMENT_DEVICES_MAX];
static uint32_t previous[MANY];

/* Returns a problem with layers of 100 bytes each, and devices of `bytes` each. */
static gpuhal_placement_problem problem_of(uint32_t layer_count, uint32_t device_count, uint64_t bytes)
{
    for (uint32_t i = 0; i < layer_count; i++) {
        layers[i] = (gpuhal_placement_layer){.weight_bytes = 100};
        previous[i] = UINT32_MAX;
    }
    for (uint32_t d = 0; d < device_count; d++) {
        devices[d] = (gpuhal_placement_device){.capacity_bytes = bytes, .bytes_per_second = 100};
    }
    for (uint32_t i = 0; i < device_count * device_count; i++) {
        links[i] = (gpuhal_placement_link){0};
    }
    return (gpuhal_placement_problem){.size = sizeof(gpuhal_placement_problem),
                                      .layers = layers,
                                      .devices = devices,
                                      .links = links,
                                      .layer_count = layer_count,
                                      .device_count = device_count};
}

static void expect_stages(const gpuhal_placement *placement, uint32_t count, const uint32_t (*expected)[2])
{
    gpuhal_placement_stage stage = {.size = sizeof stage};
    for (uint32_t i = 0; i < count; i++) {
        assert_ok(gpuhal_placement_stage_at(placement, i, &stage));
        assert_int_equal(stage.device, expected[i][0]);
        assert_int_equal(stage.layer_count, expected[i][1]);
    }
    assert_int_equal(gpuhal_placement_stage_at(placement, count, &stage), GPUHAL_ERROR_NOT_FOUND);
}

static gpuhal_placement_info info_of(const gpuhal_placement *placement)
{
    gpuhal_placement_info info = {.size = sizeof info};
    assert_ok(gpuhal_placement_get_info(placement, &info));
    return info;
}

static void refuse(const gpuhal_placement_problem *problem, const char *words)
{
    gpuhal_placement *placement = (gpuhal_placement *)&layers;
    assert_int_equal(gpuhal_place(problem, NULL, &placement), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(placement);
    if (!strstr(gpuhal_last_error()->sentence, words)) {
        fail_msg("\"%s\" is not in \"%s\"", words, gpuhal_last_error()->sentence);
    }
}

TEST(numbers_that_are_none_are_refused_by_name)
{
    gpuhal_placement_problem problem = problem_of(3, 2, 1000);
    problem.size = 0;
    refuse(&problem, "size");
    problem = problem_of(0, 2, 1000);
    refuse(&problem, "0 layers");
    problem = problem_of(3, 2, 1000);
    problem.device_count = 65;
    refuse(&problem, "65 devices");
    problem = problem_of(3, 2, 1000);
    problem.objective = 9;
    refuse(&problem, "objective 9");
    problem = problem_of(3, 2, 1000);
    layers[1].operations = (double)NAN;
    refuse(&problem, "layer 1: operations");
    problem = problem_of(3, 2, 1000);
    layers[2].weight_bytes = UINT64_C(1) << 63;
    refuse(&problem, "number 2 have more than 2^63 bytes");
    problem = problem_of(3, 2, 1000);
    layers[2].devices = 4;
    refuse(&problem, "layer 2: devices");
    problem = problem_of(3, 2, 1000);
    layers[0].tie = layers[2].tie = 5;
    layers[2].weight_bytes = 99;
    refuse(&problem, "layers 0 and 2 are tied");
    problem = problem_of(3, 2, 1000);
    layers[2].reserved = 1;
    refuse(&problem, "layer 2: reserved");
    problem = problem_of(3, 2, 1000);
    devices[1].operations_per_second = 1;
    layers[0].operations = layers[1].operations = 1e308;
    refuse(&problem, "on device 1 than a number can say");
    problem = problem_of(3, 2, 1000);
    devices[1].bytes_per_second = -1;
    refuse(&problem, "device 1");
    problem = problem_of(3, 2, 1000);
    links[1].latency_seconds = (double)NAN;
    refuse(&problem, "link from device 0 to 1");
    problem = problem_of(3, 2, 1000);
    problem.previous = previous;
    previous[1] = 2;
    refuse(&problem, "previous[1]");
}

static void refuse_because(const gpuhal_placement_problem *problem, gpuhal_placement_shortfall expected)
{
    gpuhal_placement *placement = NULL;
    gpuhal_placement_shortfall shortfall = {.size = sizeof shortfall};
    assert_int_equal(gpuhal_place(problem, &shortfall, &placement), GPUHAL_ERROR_INFEASIBLE);
    assert_null(placement);
    assert_int_equal(shortfall.constraint, expected.constraint);
    assert_int_equal(shortfall.layer, expected.layer);
    assert_int_equal(shortfall.device, expected.device);
    assert_true(shortfall.missing_bytes == expected.missing_bytes);
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_INFEASIBLE);
}

TEST(the_constraint_that_stands_in_the_way_is_named_with_the_bytes_that_are_missing)
{
    const uint32_t none = UINT32_MAX;
    gpuhal_placement_problem problem = problem_of(4, 2, 150); /* one layer fits on each device, so two do not fit */
    refuse_because(&problem,
                   (gpuhal_placement_shortfall){
                       .constraint = GPUHAL_PLACEMENT_BY_MEMORY, .layer = none, .device = none, .missing_bytes = 100});
    problem = problem_of(4, 2, 500);
    layers[2].weight_bytes = 700;
    devices[1].margin_bytes = 100;
    refuse_because(&problem,
                   (gpuhal_placement_shortfall){
                       .constraint = GPUHAL_PLACEMENT_BY_LAYER, .layer = 2, .device = 0, .missing_bytes = 200});
    problem = problem_of(4, 2, 500); /* the first and the last layer on one device, the middle on the other */
    layers[0].devices = layers[3].devices = 1;
    layers[1].devices = 2;
    refuse_because(&problem, (gpuhal_placement_shortfall){
                                 .layer = none, .device = none, .constraint = GPUHAL_PLACEMENT_BY_DEVICES});
    problem = problem_of(4, 2, 500);
    devices[0].layer_limit = 1;
    devices[1].layer_limit = 2;
    refuse_because(&problem, (gpuhal_placement_shortfall){
                                 .constraint = GPUHAL_PLACEMENT_BY_LAYER_LIMIT, .layer = none, .device = none});
    problem = problem_of(4, 2, 500);
    layers[0].devices = 1;
    layers[3].devices = 2;
    links[1].latency_seconds = (double)INFINITY;
    refuse_because(
        &problem, (gpuhal_placement_shortfall){.constraint = GPUHAL_PLACEMENT_BY_LINKS, .layer = none, .device = none});
    problem = problem_of(8, 2, 500); /* enough memory, but no link between the two devices */
    links[1].latency_seconds = links[2].latency_seconds = (double)INFINITY;
    refuse_because(
        &problem, (gpuhal_placement_shortfall){.constraint = GPUHAL_PLACEMENT_BY_LINKS, .layer = none, .device = none});
    problem = problem_of(1, 1, 50); /* the missing bytes include the margin */
    devices[0].margin_bytes = 1000;
    refuse_because(&problem,
                   (gpuhal_placement_shortfall){
                       .constraint = GPUHAL_PLACEMENT_BY_LAYER, .layer = 0, .device = 0, .missing_bytes = 1050});
    problem = problem_of(4, 2, 0); /* both devices are lost */
    refuse_because(&problem,
                   (gpuhal_placement_shortfall){.constraint = GPUHAL_PLACEMENT_BY_DEVICES, .layer = 0, .device = none});
}

TEST(a_tie_counts_its_weights_once_on_a_device_and_on_each_device_that_has_a_part_of_it)
{
    gpuhal_placement_problem problem = problem_of(4, 1, 300);
    layers[0].tie = layers[3].tie = 9;
    gpuhal_placement *placement = NULL;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    gpuhal_placement_stage stage = {.size = sizeof stage};
    assert_ok(gpuhal_placement_stage_at(placement, 0, &stage));
    assert_true(stage.used_bytes == 300 && stage.left_bytes == 0);
    gpuhal_placement_destroy(placement);
    problem = problem_of(4, 2, 200);
    layers[0].tie = layers[3].tie = 9;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    expect_stages(placement, 2, (const uint32_t[][2]){{0, 2}, {1, 2}});
    gpuhal_placement_destroy(placement);
}

TEST(after_a_device_is_lost_the_fewest_bytes_are_moved)
{
    gpuhal_placement_problem problem = problem_of(9, 3, 500);
    for (uint32_t i = 0; i < 9; i++) {
        previous[i] = i / 3;
    }
    problem.objective = GPUHAL_PLACEMENT_LEAST_MOVED;
    problem.flags = GPUHAL_PLACEMENT_FREE_ORDER;
    problem.previous = previous;
    gpuhal_placement *placement = NULL;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    assert_true(info_of(placement).moved_bytes == 0);
    gpuhal_placement_destroy(placement);
    devices[1].capacity_bytes = 0;
    devices[2].capacity_bytes = 600;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    assert_true(info_of(placement).moved_bytes == 300);
    gpuhal_placement_destroy(placement);
}

TEST(of_equal_devices_those_with_the_lowest_numbers_are_used_and_all_orders_are_compared)
{
    gpuhal_placement_problem problem = problem_of(MANY, 64, 400);
    problem.flags = GPUHAL_PLACEMENT_FREE_ORDER;
    problem.objective = GPUHAL_PLACEMENT_FEWEST_DEVICES;
    gpuhal_placement *placement = NULL;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    const gpuhal_placement_info info = info_of(placement);
    assert_int_equal(info.stage_count, MANY / 4);
    assert_true(info.gap == 0);
    for (uint32_t i = 0; i < info.stage_count; i++) {
        gpuhal_placement_stage stage = {.size = sizeof stage};
        assert_ok(gpuhal_placement_stage_at(placement, i, &stage));
        assert_int_equal(stage.device, i);
    }
    gpuhal_placement_destroy(placement);
}

/* 20 different devices have more orders than the search compares. */
TEST(a_search_of_some_orders_is_as_good_as_the_given_order_and_states_the_gap)
{
    for (uint32_t objective = 0; objective <= GPUHAL_PLACEMENT_BALANCED; objective++) {
        gpuhal_placement_problem problem = problem_of(40, 20, 0);
        for (uint32_t d = 0; d < 20; d++) {
            devices[d].capacity_bytes = 250 + 7 * (d * 7 % 20);
            devices[d].bytes_per_second = 100 + d * 13 % 20;
        }
        problem.objective = objective;
        gpuhal_placement *given = NULL, *any = NULL;
        assert_ok(gpuhal_place(&problem, NULL, &given));
        problem.flags = GPUHAL_PLACEMENT_FREE_ORDER;
        assert_ok(gpuhal_place(&problem, NULL, &any));
        const gpuhal_placement_info g = info_of(given), a = info_of(any);
        const double values[][2] = {{g.step_seconds, a.step_seconds},
                                    {g.slowest_seconds, a.slowest_seconds},
                                    {g.stage_count, a.stage_count},
                                    {g.largest_share, a.largest_share}};
        assert_true(values[objective][1] <= values[objective][0] * (1 + 1e-9));
        assert_true(a.gap >= 0 && a.gap < 1 && g.gap == 0);
        gpuhal_placement_destroy(given);
        gpuhal_placement_destroy(any);
    }
}

/* Each device has room for one layer. Only links from a faster to a slower device are free. */
TEST(a_search_of_some_orders_includes_the_fastest_devices_first)
{
    enum { COUNT = GPUHAL_PLACEMENT_DEVICES_MAX };
    gpuhal_placement_problem problem = problem_of(COUNT, COUNT, 100);
    problem.flags = GPUHAL_PLACEMENT_FREE_ORDER;
    for (uint32_t d = 0; d < COUNT; d++) {
        devices[d].bytes_per_second = 100 + d * 37 % COUNT;
    }
    for (uint32_t i = 0; i < COUNT * COUNT; i++) {
        const bool slower = devices[i % COUNT].bytes_per_second <= devices[i / COUNT].bytes_per_second;
        links[i].latency_seconds = slower ? 0 : 1000;
    }
    gpuhal_placement *placement = NULL;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    assert_int_equal(info_of(placement).stage_count, COUNT);
    double before = INFINITY;
    for (uint32_t i = 0; i < COUNT; i++) {
        gpuhal_placement_stage stage = {.size = sizeof stage};
        assert_ok(gpuhal_placement_stage_at(placement, i, &stage));
        assert_true(devices[stage.device].bytes_per_second < before);
        before = devices[stage.device].bytes_per_second;
    }
    gpuhal_placement_destroy(placement);
}

/* Each device has room for one layer. Only the reverse order of the devices allows a placement. */
TEST(an_order_without_a_placement_does_not_hide_one_that_has_a_placement)
{
    enum { COUNT = 20 };
    gpuhal_placement_problem problem = problem_of(COUNT, COUNT, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        layers[COUNT - 1 - i].weight_bytes = devices[i].capacity_bytes = 100 + i;
        devices[i].bytes_per_second = 100 + i;
    }
    gpuhal_placement *placement = NULL;
    assert_int_equal(gpuhal_place(&problem, NULL, &placement), GPUHAL_ERROR_INFEASIBLE);
    problem.flags = GPUHAL_PLACEMENT_FREE_ORDER;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    assert_int_equal(info_of(placement).stage_count, COUNT);
    gpuhal_placement_destroy(placement);
}

TEST(ten_thousand_layers_are_placed_as_well_as_ten_and_miss_as_exactly)
{
    enum { LAYERS = 10000, DEVICES = 6 };
    static gpuhal_placement_layer many[LAYERS];
    gpuhal_placement_problem problem = problem_of(1, DEVICES, 0);
    for (uint32_t i = 0; i < LAYERS; i++) {
        many[i] = (gpuhal_placement_layer){.weight_bytes = 100};
    }
    for (uint32_t d = 0; d < DEVICES; d++) { /* room for 1000 to 6000 layers; 1 to 6 layers per second */
        devices[d] = (gpuhal_placement_device){.capacity_bytes = 100000 * (d + 1), .bytes_per_second = 100 * (6 - d)};
    }
    problem.layers = many;
    problem.layer_count = LAYERS;
    problem.flags = GPUHAL_PLACEMENT_FREE_ORDER;
    gpuhal_placement *placement = NULL;
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    /* The fastest devices are full, with 1000, 2000 and 3000 layers. The fourth has 4000 layers. */
    assert_true(fabs(info_of(placement).step_seconds - (1000 / 6.0 + 2000 / 5.0 + 3000 / 4.0 + 4000 / 3.0)) < 1e-6);
    assert_true(info_of(placement).gap == 0);
    gpuhal_placement_destroy(placement);
    gpuhal_placement_shortfall shortfall = {.size = sizeof shortfall};
    problem.device_count = 3; /* with three devices the links' indices differ, and all links are alike */
    assert_int_equal(gpuhal_place(&problem, &shortfall, &placement), GPUHAL_ERROR_INFEASIBLE);
    assert_int_equal(shortfall.constraint, GPUHAL_PLACEMENT_BY_MEMORY);
    assert_true(shortfall.missing_bytes == 400000);
}

TEST(structures_of_older_programs_are_filled_as_far_as_they_go)
{
    gpuhal_placement_problem problem = problem_of(3, 2, 200);
    gpuhal_placement *placement = NULL;
    gpuhal_placement_info info = {.size = offsetof(gpuhal_placement_info, step_seconds), .step_seconds = -1};
    gpuhal_placement_stage stage = {.size = offsetof(gpuhal_placement_stage, first_layer), .layer_count = 77};
    assert_ok(gpuhal_place(&problem, NULL, &placement));
    assert_ok(gpuhal_placement_get_info(placement, &info));
    assert_true(info.stage_count == 2 && info.step_seconds == -1);
    assert_ok(gpuhal_placement_stage_at(placement, 0, &stage));
    assert_int_equal(stage.layer_count, 77);
    info.size = 0;
    assert_int_equal(gpuhal_placement_get_info(placement, &info), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_placement_destroy(placement);
}

static gpuhal_status place_both_ways(gpuhal_placement_problem *problem)
{
    gpuhal_placement *placement = NULL;
    gpuhal_placement_shortfall shortfall = {.size = sizeof shortfall};
    gpuhal_status status = gpuhal_place(problem, NULL, &placement);
    assert_true((status == GPUHAL_OK) == (placement != NULL));
    gpuhal_placement_destroy(placement);
    if (!status) {
        layers[0].weight_bytes += 2000;
        status = gpuhal_place(problem, &shortfall, &placement);
        layers[0].weight_bytes -= 2000;
        assert_true(status == GPUHAL_ERROR_INFEASIBLE || status == GPUHAL_ERROR_HOST_MEMORY);
        status = status == GPUHAL_ERROR_INFEASIBLE ? GPUHAL_OK : status;
    }
    return status;
}

TEST(every_allocation_may_fail_once)
{
    for (uint32_t objective = 0; objective <= GPUHAL_PLACEMENT_LEAST_MOVED; objective++) {
        gpuhal_placement_problem problem = problem_of(6, 3, 1250);
        problem.objective = objective;
        problem.flags = objective % 2 ? GPUHAL_PLACEMENT_FREE_ORDER : 0;
        const int64_t held = gpuhal_fault_held();
        bool came = true;
        for (unsigned at = 1; came; at++) {
            gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
            const gpuhal_status status = place_both_ways(&problem);
            came = gpuhal_fault_end();
            assert_int_equal(status, came ? GPUHAL_ERROR_HOST_MEMORY : GPUHAL_OK);
            assert_true(gpuhal_fault_held() == held);
        }
    }
}

TEST(a_device_and_a_link_are_described_as_they_are)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.total_bytes = 1 << 28}, {.total_bytes = 1 << 29}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *one = gpuhal_device_at(gpu, 0), *other = gpuhal_device_at(gpu, 1);
    gpuhal_placement_device device = {.layer_limit = 5};
    gpuhal_placement_link link = {.latency_seconds = 5};
    assert_ok(gpuhal_placement_describe(other, &device));
    assert_string_equal(device.name, gpuhal_device_id(other));
    assert_int_equal(device.layer_limit, 0);
    assert_true(device.capacity_bytes > 0 && device.capacity_bytes <= 1 << 29);
    assert_ok(gpuhal_placement_describe_link(one, other, &link));
    assert_true(link.latency_seconds == 0);
    assert_int_equal(gpuhal_placement_describe(NULL, &device), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_placement_describe_link(one, one, &link), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_ok(gpuhal_link_verify(one, other));
    assert_ok(gpuhal_placement_describe_link(one, other, &link));
    assert_true(link.latency_seconds > 0 && link.bytes_per_second > 0);
    gpuhal_close(gpu);
}

#include "test_main.h"
