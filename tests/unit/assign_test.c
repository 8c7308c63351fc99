/* gpuhal_assign() as an application uses it: the device of each step. */
#include "schedule_support.h"

#include <gpuhal/schedule.h>

static const gpuhal_need any = {.size = sizeof any}, one_gib = {.size = sizeof one_gib, .bytes = GIB(1)},
                         six_gib = {.size = sizeof six_gib, .bytes = GIB(6)},
                         ten_gib = {.size = sizeof ten_gib, .bytes = GIB(10)};

#define STEP(needed, ...)                                                                                              \
    {                                                                                                                  \
        .size = sizeof(gpuhal_assign_step), .need = (needed), __VA_ARGS__                                              \
    }

static gpuhal_assignment *assign(gpuhal *gpu, const gpuhal_assign_desc *desc)
{
    gpuhal_assignment *assignment = NULL;
    assert_ok(gpuhal_assign(gpu, desc, &assignment));
    return assignment;
}

/* Compares the devices of the steps with a string like "0 1 - cpu" (the mock's device numbers; - means no device), and
 * destroys the assignment. */
static void expect_devices(gpuhal_assignment *assignment, uint32_t steps, const char *expected)
{
    char text[256] = "";
    for (uint32_t i = 0; i < steps; i++) {
        const gpuhal_device *device = gpuhal_assignment_device(assignment, i);
        const char *id = !device                                             ? "-"
                         : strcmp(gpuhal_device_backend(device), "cpu") == 0 ? "cpu"
                                                                             : gpuhal_device_id(device) + 5;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", id);
    }
    assert_string_equal(text, expected);
    gpuhal_assignment_destroy(assignment);
}

static void refuse(gpuhal *gpu, const gpuhal_assign_desc *desc, gpuhal_status status, const char *name,
                   const char *reason)
{
    gpuhal_assignment *assignment = (gpuhal_assignment *)(void *)gpu;
    assert_int_equal(gpuhal_assign(gpu, desc, &assignment), status);
    assert_null(assignment);
    if (!strstr(gpuhal_last_error()->sentence, name) || !strstr(gpuhal_last_error()->sentence, reason)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
}

TEST(each_policy_chooses_by_its_own_rule)
{
    gpuhal *gpu = open_equal(3);
    set_load(0, GIB(12), 0);
    set_load(1, GIB(16), 800);
    set_load(2, GIB(14), 0);
    const gpuhal_assign_step steps[] = {STEP(&one_gib), STEP(&six_gib), STEP(&one_gib), STEP(&six_gib), STEP(&one_gib)};
    static const char *const expected[] = {
        [GPUHAL_ASSIGN_FIRST] = "0 0 0 1 0",     [GPUHAL_ASSIGN_ROUND_ROBIN] = "0 1 2 0 1",
        [GPUHAL_ASSIGN_SPREAD] = "0 1 2 0 1",    [GPUHAL_ASSIGN_PACK] = "1 1 1 1 1",
        [GPUHAL_ASSIGN_MOST_FREE] = "1 1 2 2 0", [GPUHAL_ASSIGN_LEAST_LOADED] = "2 2 0 0 2",
    };
    for (gpuhal_assign_policy policy = 0; policy < sizeof expected / sizeof *expected; policy++) {
        const gpuhal_assign_desc desc = {.size = sizeof desc, .policy = policy, .steps = steps, .step_count = 5};
        expect_devices(assign(gpu, &desc), 5, expected[policy]);
    }
    gpuhal_close(gpu);
}

TEST(steps_without_needs_get_no_device_and_a_plan_of_them_is_empty_on_any_machine)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 0};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_assign_step steps[] = {STEP(NULL), STEP(NULL, .group = 1), STEP(&any, .name = "compute")};
    gpuhal_assign_desc desc = {.size = sizeof desc, .steps = steps, .step_count = 2};
    gpuhal_assignment *assignment = assign(gpu, &desc);
    assert_int_equal(gpuhal_assignment_count(assignment), 0);
    assert_ok(gpuhal_assignment_check(assignment));
    expect_devices(assignment, 2, "- -");
    desc.step_count = 0;
    expect_devices(assign(gpu, &desc), 0, "");
    desc.step_count = 3;
    refuse(gpu, &desc, GPUHAL_ERROR_NOT_FOUND, "step \"compute\"", "there is no device that can be used");
    gpuhal_close(gpu);
    gpu = open_equal(1);
    assignment = assign(gpu, &desc);
    assert_int_equal(gpuhal_assignment_count(assignment), 1);
    expect_devices(assignment, 3, "- - 0");
    gpuhal_close(gpu);
}

TEST(the_error_names_the_step_and_the_lack_of_each_device)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.no_staging_kinds = 1}, {.no_staging_kinds = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    const char *const cuda[] = {"cuda"};
    const gpuhal_need kinds = {.size = sizeof kinds, .memory_kinds = 1u << GPUHAL_MEMORY_READBACK},
                      backend = {.size = sizeof backend, .backends = cuda, .backend_count = 1};
    gpuhal_assign_step steps[] = {STEP(&any, .name = "load"), STEP(&kinds, .name = "store results")};
    const gpuhal_assign_desc desc = {.size = sizeof desc, .steps = steps, .step_count = 2};
    refuse(gpu, &desc, GPUHAL_ERROR_NOT_FOUND, "step \"store results\"",
           "mock:0 has no memory of kind readback; mock:1");
    steps[1].need = &backend;
    refuse(gpu, &desc, GPUHAL_ERROR_NOT_FOUND, "step \"store results\"", "mock:0 is of another backend");
    steps[1].name = NULL;
    refuse(gpu, &desc, GPUHAL_ERROR_NOT_FOUND, "step number 1", "of another backend");
    steps[1].need = &ten_gib;
    refuse(gpu, &desc, GPUHAL_ERROR_INFEASIBLE, "step number 1", "mock:0 has 1073741824 bytes free of the 10737418240");
    gpuhal_close(gpu);
}

TEST(steps_that_fit_alone_and_not_together_are_infeasible_unless_they_run_in_turn)
{
    gpuhal *gpu = open_equal(1);
    const gpuhal_assign_step steps[] = {STEP(&six_gib, .name = "a"), STEP(&ten_gib, .name = "b"),
                                        STEP(&one_gib, .name = "c")};
    gpuhal_assign_desc desc = {.size = sizeof desc, .steps = steps, .step_count = 2};
    gpuhal_assignment *assignment = assign(gpu, &desc);
    assert_int_equal(gpuhal_assignment_bytes(assignment, gpuhal_device_at(gpu, 0)), GIB(16));
    assert_int_equal(gpuhal_assignment_bytes(assignment, gpuhal_device_at(gpu, 1)), 0);
    gpuhal_assignment_destroy(assignment);
    desc.step_count = 3;
    refuse(gpu, &desc, GPUHAL_ERROR_INFEASIBLE, "step \"c\"", "1073741824 bytes that it needs free beside the other");
    desc.flags = GPUHAL_ASSIGN_IN_TURN;
    assignment = assign(gpu, &desc);
    assert_int_equal(gpuhal_assignment_bytes(assignment, gpuhal_device_at(gpu, 0)), GIB(10));
    expect_devices(assignment, 3, "0 0 0");
    gpuhal_close(gpu);
}

TEST(other_choices_are_found_if_the_first_ones_leave_a_step_without_room)
{
    gpuhal *gpu = open_equal(2);
    set_load(1, GIB(10), 0);
    const gpuhal_assign_step steps[] = {STEP(&six_gib), STEP(&six_gib), STEP(&one_gib), STEP(&ten_gib)};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_ROUND_ROBIN, .steps = steps, .step_count = 4};
    expect_devices(assign(gpu, &desc), 4, "0 1 1 0"); /* round robin would leave no device with ten GiB */
    gpuhal_close(gpu);
}

TEST(steps_of_a_group_are_on_one_device_unless_splitting_is_allowed)
{
    gpuhal *gpu = open_equal(2);
    gpuhal_assign_step steps[] = {STEP(&ten_gib, .name = "a", .group = 7), STEP(&one_gib, .name = "b"),
                                  STEP(&six_gib, .name = "c", .group = 7), STEP(&one_gib, .name = "d", .group = 7)};
    gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_ROUND_ROBIN, .steps = steps, .step_count = 3};
    expect_devices(assign(gpu, &desc), 3, "0 1 0");
    desc.step_count = 4;
    refuse(gpu, &desc, GPUHAL_ERROR_INFEASIBLE, "step \"a\"",
           "all 3 steps of its group 7, which need 18253611008 bytes");
    steps[2].flags = GPUHAL_STEP_MAY_SPLIT;
    expect_devices(assign(gpu, &desc), 4, "0 1 1 0");
    for (uint32_t i = 0; i < 4; i++) {
        steps[i].flags = GPUHAL_STEP_MAY_SPLIT;
    }
    expect_devices(assign(gpu, &desc), 4, "0 1 0 1"); /* step c is on the device of step a */
    gpuhal_close(gpu);
}

TEST(a_group_that_fits_is_not_divided_although_it_may_be)
{
    gpuhal *gpu = open_equal(2);
    const gpuhal_assign_step steps[] = {STEP(&six_gib, .group = 1, .flags = GPUHAL_STEP_MAY_SPLIT),
                                        STEP(&six_gib, .group = 1, .flags = GPUHAL_STEP_MAY_SPLIT),
                                        STEP(&ten_gib, .group = 2, .flags = GPUHAL_STEP_MAY_SPLIT),
                                        STEP(&one_gib, .group = 2, .flags = GPUHAL_STEP_MAY_SPLIT)};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_SPREAD, .steps = steps, .step_count = 4};
    expect_devices(assign(gpu, &desc), 4, "0 0 1 1");
    gpuhal_close(gpu);
}

TEST(the_cpu_takes_a_step_only_if_no_device_has_room_and_the_step_allows_it)
{
    gpuhal *gpu = open_equal(1);
    const gpuhal_need small = {.size = sizeof small, .bytes = GIB(1) / 4, .flags = GPUHAL_NEED_ALLOW_CPU},
                      tiny = {.size = sizeof tiny, .bytes = 4096, .flags = GPUHAL_NEED_ALLOW_CPU};
    set_load(0, GIB(1) / 4, 0);
    const gpuhal_assign_step steps[] = {STEP(&tiny), STEP(&small), STEP(&tiny)};
    static const gpuhal_assign_policy policies[] = {GPUHAL_ASSIGN_PACK, GPUHAL_ASSIGN_ROUND_ROBIN};
    for (size_t i = 0; i < 2; i++) {
        gpuhal_assign_desc desc = {.size = sizeof desc, .policy = policies[i], .steps = steps, .step_count = 1};
        expect_devices(assign(gpu, &desc), 1, "0");
        desc.step_count = 3;
        expect_devices(assign(gpu, &desc), 3, "0 cpu 0");
    }
    gpuhal_close(gpu);
}

TEST(devices_of_the_caller_are_taken_in_the_callers_order_and_need_not_be_named)
{
    gpuhal *gpu = open_equal(2);
    gpuhal_device *cpu = NULL;
    assert_ok(gpuhal_select(gpu, "cpu", 0, &cpu, NULL));
    gpuhal_device *devices[] = {cpu, gpuhal_device_at(gpu, 1), cpu};
    const gpuhal_assign_step steps[] = {STEP(&any), STEP(&any), STEP(&any)};
    const gpuhal_assign_desc desc = {.size = sizeof desc,
                                     .policy = GPUHAL_ASSIGN_ROUND_ROBIN,
                                     .steps = steps,
                                     .step_count = 3,
                                     .devices = devices,
                                     .device_count = 3};
    expect_devices(assign(gpu, &desc), 3, "cpu 1 cpu");
    gpuhal_close(gpu);
}

TEST(round_robin_goes_on_from_the_last_call_with_a_balance)
{
    gpuhal *gpu = open_equal(3);
    gpuhal_balance *balance = NULL;
    assert_ok(gpuhal_balance_create(gpu, NULL, &balance));
    const gpuhal_assign_step steps[] = {STEP(&any), STEP(&any)};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_ROUND_ROBIN, .steps = steps, .step_count = 2, .balance = balance};
    expect_devices(assign(gpu, &desc), 2, "0 1");
    expect_devices(assign(gpu, &desc), 2, "2 0");
    expect_devices(assign(gpu, &desc), 2, "1 2");
    gpuhal_balance_destroy(balance);
    gpuhal_close(gpu);
}

TEST(least_loaded_does_not_move_a_step_for_noise_nor_for_its_own_load)
{
    gpuhal *gpu = open_equal(2);
    gpuhal_balance *balance = NULL;
    uint32_t random = 5;
    assert_ok(gpuhal_balance_create(gpu, NULL, &balance));
    gpuhal_assign_step steps[] = {STEP(&one_gib, .name = "segment", .busy_permille = 900)};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_LEAST_LOADED, .steps = steps, .step_count = 1, .balance = balance};
    expect_devices(assign(gpu, &desc), 1, "0");
    steps[0].flags = GPUHAL_STEP_RUNS;
    for (uint32_t round = 0; round < 30; round++) { /* the step's device is busy, and the other device is idle */
        set_load(0, GIB(15), 850 + next_random(&random) % 100);
        set_load(1, GIB(16), next_random(&random) % 100);
        expect_devices(assign(gpu, &desc), 1, "0");
    }
    set_load(0, GIB(2), 1000); /* other work has arrived */
    expect_devices(assign(gpu, &desc), 1, "1");
    set_load(0, GIB(16), 0);
    set_load(1, GIB(15), 900);
    expect_devices(assign(gpu, &desc), 1, "1");
    gpuhal_balance_destroy(balance);
    gpuhal_close(gpu);
}

TEST(a_running_step_keeps_a_device_that_is_full_of_its_own_bytes)
{
    gpuhal *gpu = open_equal(1);
    gpuhal_balance *balance = NULL;
    assert_ok(gpuhal_balance_create(gpu, NULL, &balance));
    gpuhal_assign_step steps[] = {STEP(&ten_gib, .name = "model")};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_LEAST_LOADED, .steps = steps, .step_count = 1, .balance = balance};
    expect_devices(assign(gpu, &desc), 1, "0");
    set_load(0, GIB(6), 500); /* the model itself now occupies the other 10 GiB */
    refuse(gpu, &desc, GPUHAL_ERROR_INFEASIBLE, "\"model\"", "6442450944 bytes free");
    steps[0].flags = GPUHAL_STEP_RUNS;
    expect_devices(assign(gpu, &desc), 1, "0");
    gpuhal_balance_destroy(balance);
    gpuhal_close(gpu);
}

TEST(promises_take_room_from_steps)
{
    gpuhal *gpu = open_equal(2);
    const gpuhal_promise promises[] = {{.size = sizeof *promises, .device = gpuhal_device_at(gpu, 0), .bytes = GIB(4)},
                                       {.size = sizeof *promises, .device = gpuhal_device_at(gpu, 0), .bytes = GIB(3)}};
    const gpuhal_assign_step steps[] = {STEP(&ten_gib, .name = "a")};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .steps = steps, .step_count = 1, .promises = promises, .promise_count = 2};
    expect_devices(assign(gpu, &desc), 1, "1");
    gpuhal_close(gpu);
}

TEST(when_a_device_vanishes_the_check_names_it_and_assigning_again_gives_a_plan_without_it)
{
    gpuhal *gpu = open_equal(3);
    gpuhal_balance *balance = NULL;
    assert_ok(gpuhal_balance_create(gpu, NULL, &balance));
    const gpuhal_assign_step steps[] = {STEP(&six_gib), STEP(&six_gib), STEP(&six_gib), STEP(&six_gib)};
    const gpuhal_assign_desc desc = {
        .size = sizeof desc, .policy = GPUHAL_ASSIGN_SPREAD, .steps = steps, .step_count = 4, .balance = balance};
    gpuhal_assignment *before = assign(gpu, &desc);
    assert_ok(gpuhal_assignment_check(before));
    gpuhal_mock.unplugged = 2;
    assert_ok(gpuhal_rescan(gpu, NULL));
    assert_int_equal(gpuhal_assignment_check(before), GPUHAL_ERROR_DEVICE_LOST);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "step number 1: mock:1"));
    assert_string_equal(gpuhal_last_error()->device, "mock:1");
    gpuhal_assignment *after = assign(gpu, &desc);
    assert_ok(gpuhal_assignment_check(after));
    expect_devices(after, 4, "0 2 0 2");
    gpuhal_mock.unplugged = 6;
    assert_ok(gpuhal_rescan(gpu, NULL));
    refuse(gpu, &desc, GPUHAL_ERROR_INFEASIBLE, "step number 2", "free beside");
    expect_devices(before, 4, "0 1 2 0");
    gpuhal_balance_destroy(balance);
    gpuhal_close(gpu);
}

TEST(bad_arguments_of_assignments_are_refused)
{
    gpuhal *gpu = open_equal(1);
    gpuhal_assignment *assignment = NULL;
    const gpuhal_need none = {.size = 0};
    const gpuhal_assign_step empty = {.size = 0}, flag = {.size = sizeof flag, .flags = 4},
                             busy = {.size = sizeof busy, .busy_permille = 1001},
                             need = {.size = sizeof need, .need = &none}, good = {.size = sizeof good},
                             mixed[] = {{.size = sizeof good}, {.size = 8}};
    const gpuhal_assign_desc bad[] = {
        {.size = 0, .steps = &good, .step_count = 1},
        {.size = sizeof *bad, .step_count = 1},
        {.size = sizeof *bad, .steps = &empty, .step_count = 1},
        {.size = sizeof *bad, .steps = &flag, .step_count = 1},
        {.size = sizeof *bad, .steps = &busy, .step_count = 1},
        {.size = sizeof *bad, .steps = &need, .step_count = 1},
        {.size = sizeof *bad, .steps = mixed, .step_count = 2},
        {.size = sizeof *bad, .policy = 6},
        {.size = sizeof *bad, .flags = 2},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (gpuhal_assign(gpu, &bad[i], &assignment) != GPUHAL_ERROR_INVALID_ARGUMENT) {
            fail_msg("description %zu is taken", i);
        }
        assert_null(assignment);
    }
    assert_int_equal(gpuhal_assign(gpu, NULL, &assignment), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_assign(NULL, bad, &assignment), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_assignment_check(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_assignment_count(NULL), 0);
    assert_null(gpuhal_assignment_device(NULL, 0));
    gpuhal_assignment_destroy(NULL);
    gpuhal_close(gpu);
}

#include "test_main.h"
