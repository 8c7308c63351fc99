/* Rankings and assignments of physical devices with several interfaces that share memory. */
#include "hardware_support.h"

#include <gpuhal/schedule.h>

static void put_two_cards(void)
{
    static const char *const addresses[] = {"0000:c1:00.0", "0000:c2:00.0"};
    static const char *const backends[] = {"cuda", "vulkan"};
    begin_machine();
    for (size_t b = 0; b < 2; b++) {
        for (size_t a = 0; a < 2; a++) {
            recorded_device *device = add_device(backends[b], "card");
            keep_fact(device, "pci_address", addresses[a]);
            keep_fact(device, "memory_total_bytes", "8589934592");
        }
    }
}

TEST(one_of_each_physical_device_is_its_preferred_interface_or_that_of_the_need)
{
    put_two_cards();
    gpuhal *gpu = open_listed(NULL);
    const char *const vulkan[] = {"vulkan"};
    const gpuhal_need need = {.size = sizeof need, .backends = vulkan, .backend_count = 1};
    gpuhal_rank_desc desc = {.size = sizeof desc, .flags = GPUHAL_RANK_ONE_EACH};
    gpuhal_ranked list[8] = {{.size = sizeof *list}};
    uint32_t count = 0;
    assert_ok(gpuhal_rank(gpu, &desc, list, 8, &count));
    assert_int_equal(count, 3);
    assert_string_equal(gpuhal_device_id(list[0].device), "cuda:0");
    assert_string_equal(gpuhal_device_id(list[1].device), "cuda:1");
    assert_string_equal(gpuhal_device_id(list[2].device), "cpu:0");
    desc.need = &need;
    assert_ok(gpuhal_rank(gpu, &desc, list, 8, &count));
    assert_int_equal(count, 3);
    assert_string_equal(gpuhal_device_id(list[0].device), "vulkan:0");
    assert_string_equal(gpuhal_device_id(list[1].device), "vulkan:1");
    desc.flags = 0;
    assert_ok(gpuhal_rank(gpu, &desc, list, 8, &count));
    assert_int_equal(count, 5);
    gpuhal_close(gpu);
    end_machine();
}

TEST(a_step_is_assigned_to_the_interface_that_comes_first_in_its_need)
{
    put_two_cards();
    gpuhal *gpu = open_listed(NULL);
    const char *const orders[][2] = {{"cuda", "vulkan"}, {"vulkan", "cuda"}};
    for (size_t i = 0; i < 2; i++) {
        const gpuhal_need need = {.size = sizeof need, .backends = orders[i], .backend_count = 2};
        const gpuhal_assign_step step = {.size = sizeof step, .need = &need};
        const gpuhal_assign_desc desc = {.size = sizeof desc, .steps = &step, .step_count = 1};
        gpuhal_assignment *assignment = NULL;
        assert_ok(gpuhal_assign(gpu, &desc, &assignment));
        assert_string_equal(gpuhal_device_backend(gpuhal_assignment_device(assignment, 0)), orders[i][0]);
        gpuhal_assignment_destroy(assignment);
    }
    gpuhal_close(gpu);
    end_machine();
}

TEST(steps_on_two_interfaces_of_one_physical_device_share_its_memory)
{
    put_two_cards();
    gpuhal *gpu = open_listed(NULL);
    const char *const cuda[] = {"cuda"}, *const vulkan[] = {"vulkan"};
    const gpuhal_need needs[] = {
        {.size = sizeof *needs, .bytes = UINT64_C(5) << 30, .backends = cuda, .backend_count = 1},
        {.size = sizeof *needs, .bytes = UINT64_C(5) << 30, .backends = vulkan, .backend_count = 1}};
    const gpuhal_assign_step steps[] = {{.size = sizeof *steps, .name = "a", .need = &needs[0]},
                                        {.size = sizeof *steps, .name = "b", .need = &needs[1]},
                                        {.size = sizeof *steps, .name = "c", .need = &needs[0]}};
    gpuhal_assign_desc desc = {.size = sizeof desc, .steps = steps, .step_count = 2};
    gpuhal_assignment *assignment = NULL;
    assert_ok(gpuhal_assign(gpu, &desc, &assignment));
    assert_string_equal(gpuhal_device_id(gpuhal_assignment_device(assignment, 0)), "cuda:0");
    assert_string_equal(gpuhal_device_id(gpuhal_assignment_device(assignment, 1)), "vulkan:1");
    gpuhal_assignment_destroy(assignment);
    desc.step_count = 3;
    assert_int_equal(gpuhal_assign(gpu, &desc, &assignment), GPUHAL_ERROR_INFEASIBLE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "\"c\""));
    gpuhal_close(gpu);
    end_machine();
}

TEST(the_limit_of_an_interface_counts_only_steps_that_are_assigned_to_it)
{
    put_two_cards();
    gpuhal *gpu = open_listed(NULL);
    const char *const cuda[] = {"cuda"}, *const vulkan[] = {"vulkan"};
    const gpuhal_need large = {.size = sizeof large,
                               .bytes = UINT64_C(5) << 30,
                               .backends = vulkan,
                               .backend_count = 1},
                      small = {.size = sizeof small, .bytes = UINT64_C(1) << 30, .backends = cuda, .backend_count = 1};
    const gpuhal_assign_step steps[] = {{.size = sizeof *steps, .name = "a", .need = &large},
                                        {.size = sizeof *steps, .name = "b", .need = &small},
                                        {.size = sizeof *steps, .name = "c", .need = &small},
                                        {.size = sizeof *steps, .name = "d", .need = &small}};
    gpuhal_device *devices[2] = {NULL, NULL};
    gpuhal_assign_desc desc = {
        .size = sizeof desc, .steps = steps, .step_count = 3, .devices = devices, .device_count = 2};
    gpuhal_assignment *assignment = NULL;
    assert_ok(gpuhal_select(gpu, "cuda:0", 0, &devices[0], NULL));
    assert_ok(gpuhal_select(gpu, "vulkan:0", 0, &devices[1], NULL));
    assert_ok(gpuhal_device_limit_memory(devices[0], UINT64_C(2) << 30));
    assert_ok(gpuhal_assign(gpu, &desc, &assignment));
    assert_ptr_equal(gpuhal_assignment_device(assignment, 0), devices[1]);
    assert_ptr_equal(gpuhal_assignment_device(assignment, 1), devices[0]);
    assert_ptr_equal(gpuhal_assignment_device(assignment, 2), devices[0]);
    gpuhal_assignment_destroy(assignment);
    desc.step_count = 4;
    assert_int_equal(gpuhal_assign(gpu, &desc, &assignment), GPUHAL_ERROR_INFEASIBLE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "\"d\""));
    /* Without the limit, the interfaces share the card's memory. */
    assert_ok(gpuhal_device_limit_memory(devices[0], 0));
    assert_ok(gpuhal_assign(gpu, &desc, &assignment));
    gpuhal_assignment_destroy(assignment);
    gpuhal_close(gpu);
    end_machine();
}

#include "test_main.h"
