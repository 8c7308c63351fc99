/* gpuhal/schedule/strategy.h: the devices that workers use. */
#include "schedule_support.h"

#include <gpuhal/schedule/strategy.h>

static void clear_launchers(void)
{
    static const char *const names[] = {
        "LOCAL_RANK",      "RANK",         "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK",
        "MPI_LOCALRANKID", "SLURM_PROCID", "SLURM_LOCALID",        "SLURM_GPUS_ON_NODE",         "CUDA_VISIBLE_DEVICES",
        "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        unsetenv(names[i]);
    }
}

static gpuhal_strategy *create(gpuhal *gpu, const gpuhal_strategy_desc *desc)
{
    gpuhal_strategy *strategy = NULL;
    assert_ok(gpuhal_strategy_create(gpu, desc, &strategy));
    return strategy;
}

static void refuse(gpuhal *gpu, const gpuhal_strategy_desc *desc, gpuhal_status status, const char *words)
{
    gpuhal_strategy *strategy = (gpuhal_strategy *)(void *)gpu;
    assert_int_equal(gpuhal_strategy_create(gpu, desc, &strategy), status);
    assert_null(strategy);
    if (!strstr(gpuhal_last_error()->sentence, words)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
}

static void expect_device(const gpuhal_strategy *strategy, uint32_t worker, const char *id)
{
    gpuhal_device *device = NULL;
    assert_ok(gpuhal_strategy_device(strategy, worker, &device));
    assert_string_equal(gpuhal_device_id(device), id);
}

TEST(auto_is_cpu_without_a_device_single_device_with_one_and_rank_per_device_with_several)
{
    static const char *const expected[] = {"cpu", "single_device", "rank_per_device", "rank_per_device"};
    static const char *const devices[] = {"cpu:0", "mock:0", "mock:0", "mock:0"};
    clear_launchers();
    gpuhal_mock = (gpuhal_mock_state){.count = 4, .unplugged = 0xfu};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    for (uint32_t count = 0; count < 4; count++) {
        gpuhal_mock.unplugged = 0xfu << count & 0xfu;
        assert_ok(gpuhal_rescan(gpu, NULL));
        gpuhal_strategy *strategy = create(gpu, NULL);
        assert_string_equal(gpuhal_strategy_name(strategy), expected[count]);
        expect_device(strategy, 0, devices[count]);
        assert_true(count != 1 || gpuhal_strategy_worker_count(strategy) == 1);
        assert_true(count < 2 || gpuhal_strategy_worker_count(strategy) == count);
        assert_true(gpuhal_strategy_worker_count(strategy) >= 1);
        gpuhal_strategy_destroy(strategy);
    }
    gpuhal_close(gpu);
}

TEST(software_drivers_do_not_count_and_a_machine_of_them_is_left_to_the_cpu)
{
    clear_launchers();
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.software = 1}, {.software = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_strategy *strategy = create(gpu, NULL);
    assert_string_equal(gpuhal_strategy_name(strategy), "cpu");
    gpuhal_strategy_destroy(strategy);
    const gpuhal_strategy_desc ranks = {.size = sizeof ranks, .name = "rank_per_device"},
                               single = {.size = sizeof single, .name = "single_device"},
                               named = {
                                   .size = sizeof named, .name = "single_device", .device = "mock:1", .workers = 3};
    refuse(gpu, &ranks, GPUHAL_ERROR_NO_DEVICE, "rank_per_device");
    refuse(gpu, &single, GPUHAL_ERROR_NO_DEVICE, "no device but the CPU");
    strategy = create(gpu, &named);
    expect_device(strategy, 2, "mock:1");
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
}

TEST(cpu_has_the_workers_that_are_asked_for_and_uses_no_other_device)
{
    gpuhal *gpu = open_equal(2);
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "cpu", .workers = 5};
    gpuhal_strategy *strategy = create(gpu, &desc);
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_strategy_worker_count(strategy), 5);
    for (uint32_t i = 0; i < 5; i++) {
        expect_device(strategy, i, "cpu:0");
    }
    assert_int_equal(gpuhal_strategy_device(strategy, 5, &device), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(gpuhal_strategy_device(strategy, UINT32_MAX, &device), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "no worker 4294967295 of 5"));
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
    gpu = gpuhal_mock_open(NULL, 0);
    refuse(gpu, &desc, GPUHAL_ERROR_NO_DEVICE, "cpu");
    gpuhal_close(gpu);
}

TEST(the_memory_share_of_single_device_is_enforced_and_ends_with_the_strategy)
{
    gpuhal *gpu = open_equal(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_mock.devices[0].total_bytes = GIB(16);
    const gpuhal_strategy_desc desc = {
        .size = sizeof desc, .name = "single_device", .workers = 2, .memory_permille = 1};
    const uint64_t share = GIB(16) / 1000;
    gpuhal_buffer_desc large = {.size = sizeof large, .bytes = share + 1}, fits = {.size = sizeof fits, .bytes = share};
    gpuhal_buffer *buffer = NULL;
    gpuhal_strategy *strategy = create(gpu, &desc);
    assert_int_equal(gpuhal_buffer_create(device, &large, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_buffer_create(device, &fits, &buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_strategy_destroy(strategy);
    assert_ok(gpuhal_buffer_create(device, &large, &buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

static uint64_t find_limit(gpuhal_device *device)
{
    uint64_t low = 0, high = GIB(1);
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = middle};
        gpuhal_buffer *buffer = NULL;
        const bool given = gpuhal_buffer_create(device, &desc, &buffer) == GPUHAL_OK;
        gpuhal_buffer_release(buffer);
        *(given ? &low : &high) = middle;
    }
    return low;
}

TEST(the_smallest_share_of_live_strategies_is_enforced_in_any_order_of_ends)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 1000000}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "single_device", .memory_permille = 500};
    for (int first_ends = 0; first_ends < 2; first_ends++) {
        gpuhal_strategy *strategies[3];
        assert_ok(gpuhal_device_limit_memory(device, 800000));
        for (uint32_t i = 0; i < 3; i++) {
            desc.memory_permille = i == 0 ? 500 : i == 1 ? 200 : 700;
            strategies[i] = create(gpu, &desc);
        }
        assert_int_equal(find_limit(device), 200000);
        gpuhal_strategy_destroy(strategies[first_ends ? 0 : 1]);
        assert_int_equal(find_limit(device), first_ends ? 200000 : 500000);
        gpuhal_strategy_destroy(strategies[first_ends ? 1 : 0]);
        assert_int_equal(find_limit(device), 700000);
        gpuhal_strategy_destroy(strategies[2]);
        assert_int_equal(find_limit(device), 800000);
        /* A limit that the application has set in the meantime must stay. */
        strategies[0] = create(gpu, &desc);
        assert_ok(gpuhal_device_limit_memory(device, 900000));
        gpuhal_strategy_destroy(strategies[0]);
        assert_int_equal(find_limit(device), 900000);
    }
    gpuhal_close(gpu);
}

TEST(a_share_for_processes_is_divided_and_no_limit_becomes_higher_than_it_was)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 1000000}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "single_device", .workers = 4};
    gpuhal_strategy *strategy = create(gpu, &desc);
    assert_int_equal(find_limit(device), 900000);
    gpuhal_strategy_destroy(strategy);
    desc.flags = GPUHAL_STRATEGY_PROCESSES;
    desc.memory_permille = 800;
    strategy = create(gpu, &desc);
    assert_int_equal(find_limit(device), 200000);
    gpuhal_strategy_destroy(strategy);
    assert_ok(gpuhal_device_limit_memory(device, 70000));
    strategy = create(gpu, &desc);
    assert_int_equal(find_limit(device), 70000);
    gpuhal_strategy_destroy(strategy);
    assert_int_equal(find_limit(device), 70000);
    strategy = create(gpu, &desc);
    assert_ok(gpuhal_device_limit_memory(device, 60000)); /* the application's own limit stays */
    gpuhal_strategy_destroy(strategy);
    assert_int_equal(find_limit(device), 60000);
    gpuhal_close(gpu);
}

TEST(ranks_have_one_device_each_and_a_local_rank_without_a_device_is_out_of_range)
{
    clear_launchers();
    gpuhal *gpu = open_equal(3);
    gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "rank_per_device"};
    gpuhal_strategy *strategy = create(gpu, &desc);
    assert_int_equal(gpuhal_strategy_worker_count(strategy), 3);
    expect_device(strategy, 2, "mock:2");
    gpuhal_strategy_destroy(strategy);
    setenv("SLURM_PROCID", "11", 1);
    setenv("SLURM_LOCALID", "3", 1);
    refuse(gpu, &desc, GPUHAL_ERROR_OUT_OF_RANGE, "SLURM_LOCALID is \"3\", and this process sees 3 devices");
    desc.flags = GPUHAL_STRATEGY_SHARE_DEVICES;
    strategy = create(gpu, &desc);
    assert_int_equal(gpuhal_strategy_worker_count(strategy), 4);
    expect_device(strategy, 3, "mock:0");
    gpuhal_strategy_destroy(strategy);
    desc.flags = 0;
    setenv("SLURM_LOCALID", "x", 1);
    refuse(gpu, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, "SLURM_LOCALID is \"x\"");
    gpuhal_close(gpu);
}

TEST(ranks_with_devices_of_their_own_from_slurm_need_no_flag)
{
    clear_launchers();
    gpuhal *gpu = open_equal(1);
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "rank_per_device"};
    setenv("SLURM_PROCID", "5", 1);
    setenv("SLURM_LOCALID", "1", 1);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    setenv("SLURM_GPUS_ON_NODE", "1", 1);
    refuse(gpu, &desc, GPUHAL_ERROR_OUT_OF_RANGE, "SLURM_LOCALID is \"1\", and this process sees 1 device");
    setenv("SLURM_GPUS_ON_NODE", "2", 1);
    gpuhal_strategy *strategy = create(gpu, &desc);
    assert_int_equal(gpuhal_strategy_worker_count(strategy), 2);
    expect_device(strategy, 1, "mock:0");
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
}

TEST(when_a_device_vanishes_its_worker_is_refused_and_a_new_strategy_does_without_it)
{
    clear_launchers();
    gpuhal *gpu = open_equal(3);
    gpuhal_device *device = NULL;
    gpuhal_strategy *strategy = create(gpu, NULL);
    gpuhal_mock.unplugged = 2;
    assert_ok(gpuhal_rescan(gpu, NULL));
    expect_device(strategy, 0, "mock:0");
    assert_int_equal(gpuhal_strategy_device(strategy, 1, &device), GPUHAL_ERROR_DEVICE_LOST);
    assert_null(device);
    assert_int_equal(gpuhal_strategy_bind(strategy, 1), GPUHAL_ERROR_DEVICE_LOST);
    expect_device(strategy, 2, "mock:2");
    gpuhal_strategy_destroy(strategy);
    strategy = create(gpu, NULL);
    assert_int_equal(gpuhal_strategy_worker_count(strategy), 2);
    expect_device(strategy, 1, "mock:2");
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
}

/* ---- strategies of the application's own */

typedef struct own_state {
    gpuhal *gpu;
    uint32_t begun, ended;
    gpuhal_status fails;
} own_state;

static gpuhal_status begin_own(void *user, gpuhal *gpu, const gpuhal_strategy_desc *desc, void **out_state)
{
    own_state *own = user;
    assert_string_equal(desc->name, "two_each");
    if (own->fails) {
        return own->fails;
    }
    own->gpu = gpu;
    own->begun++;
    *out_state = own;
    return GPUHAL_OK;
}

static uint32_t count_own(void *state)
{
    return 2 * gpuhal_device_count(((const own_state *)state)->gpu);
}

static gpuhal_status find_own(void *state, uint32_t worker, gpuhal_device **out_device)
{
    *out_device = gpuhal_device_at(((const own_state *)state)->gpu, worker / 2);
    return GPUHAL_OK;
}

static void end_own(void *state)
{
    ((own_state *)state)->ended++;
}

static gpuhal_status find_nothing(void *state, uint32_t worker, gpuhal_device **out_device)
{
    (void)state;
    *out_device = NULL;
    return worker == 0 ? GPUHAL_OK : worker == 1 ? GPUHAL_ERROR_BUSY : 7;
}

TEST(a_strategy_of_the_application_is_found_by_its_name)
{
    gpuhal *gpu = open_equal(2);
    own_state own = {0};
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "two_each"};
    refuse(gpu, &desc, GPUHAL_ERROR_NOT_FOUND,
           "no strategy \"two_each\"; there are auto, cpu, single_device, rank_per_device");
    const gpuhal_strategy_table table = {.size = sizeof table,
                                         .name = "two_each",
                                         .user = &own,
                                         .init = begin_own,
                                         .worker_count = count_own,
                                         .device_for_worker = find_own,
                                         .cleanup = end_own};
    assert_ok(gpuhal_strategy_register(gpu, &table));
    gpuhal_strategy *strategy = create(gpu, &desc);
    assert_string_equal(gpuhal_strategy_name(strategy), "two_each");
    assert_int_equal(gpuhal_strategy_worker_count(strategy), 6);
    expect_device(strategy, 3, "mock:1");
    expect_device(strategy, 5, "cpu:0");
    gpuhal_strategy_destroy(strategy);
    assert_int_equal(own.begun, 1);
    assert_int_equal(own.ended, 1);
    own.fails = GPUHAL_ERROR_NO_PERMISSION;
    refuse(gpu, &desc, GPUHAL_ERROR_NO_PERMISSION, "strategy two_each: init returned no permission");
    own.fails = 5;
    refuse(gpu, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, "init returned unknown status (5)");
    assert_int_equal(own.ended, 1);
    gpuhal_close(gpu);
}

TEST(a_strategy_without_init_gets_user_as_its_state_and_no_cleanup)
{
    gpuhal *gpu = open_equal(2);
    own_state own = {.gpu = gpu};
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "plain"};
    const gpuhal_strategy_table table = {.size = sizeof table,
                                         .name = "plain",
                                         .user = &own,
                                         .worker_count = count_own,
                                         .device_for_worker = find_own,
                                         .cleanup = end_own};
    assert_ok(gpuhal_strategy_register(gpu, &table));
    for (int i = 0; i < 2; i++) {
        gpuhal_strategy *strategy = create(gpu, &desc);
        assert_int_equal(gpuhal_strategy_worker_count(strategy), 6);
        expect_device(strategy, 3, "mock:1");
        gpuhal_strategy_destroy(strategy);
    }
    assert_int_equal(own.ended, 0);
    gpuhal_close(gpu);
}

TEST(a_registered_name_is_copied)
{
    gpuhal *gpu = open_equal(1);
    own_state own = {.gpu = gpu};
    char name[] = "passing";
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "passing"};
    const gpuhal_strategy_table table = {
        .size = sizeof table, .name = name, .user = &own, .worker_count = count_own, .device_for_worker = find_own};
    assert_ok(gpuhal_strategy_register(gpu, &table));
    memset(name, 'x', strlen(name));
    gpuhal_strategy *strategy = create(gpu, &desc);
    assert_string_equal(gpuhal_strategy_name(strategy), "passing");
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
}

TEST(a_wrong_result_of_a_strategy_of_the_application_is_an_error)
{
    gpuhal *gpu = open_equal(1);
    own_state own = {.gpu = gpu};
    gpuhal_device *device = NULL;
    const gpuhal_strategy_table table = {.size = sizeof table,
                                         .name = "odd",
                                         .user = &own,
                                         .worker_count = count_own,
                                         .device_for_worker = find_nothing};
    const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = "odd"};
    assert_ok(gpuhal_strategy_register(gpu, &table));
    gpuhal_strategy *strategy = create(gpu, &desc);
    assert_int_equal(gpuhal_strategy_device(strategy, 0, &device), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_strategy_device(strategy, 1, &device), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_strategy_device(strategy, 2, &device), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
}

TEST(names_of_strategies_are_taken_once_and_bad_tables_are_refused)
{
    gpuhal *gpu = open_equal(1);
    char name[65] = "";
    memset(name, 'n', 64);
    const gpuhal_strategy_table good = {
        .size = sizeof good, .name = "mine", .worker_count = count_own, .device_for_worker = find_own};
    gpuhal_strategy_table table = good;
    assert_ok(gpuhal_strategy_register(gpu, &good));
    assert_int_equal(gpuhal_strategy_register(gpu, &good), GPUHAL_ERROR_BUSY);
    static const char *const taken[] = {"auto", "cpu", "single_device", "rank_per_device"};
    for (size_t i = 0; i < 4; i++) {
        table.name = taken[i];
        assert_int_equal(gpuhal_strategy_register(gpu, &table), GPUHAL_ERROR_BUSY);
    }
    static gpuhal_strategy_table bad[7];
    for (size_t i = 0; i < 7; i++) {
        bad[i] = good;
        bad[i].name = "other";
    }
    bad[0].size = 0;
    bad[1].name = NULL;
    bad[2].name = "";
    bad[3].name = name;
    bad[4].worker_count = NULL;
    bad[5].device_for_worker = NULL;
    bad[6].reserved = 1;
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(gpuhal_strategy_register(gpu, &bad[i]), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(gpuhal_strategy_register(NULL, &good), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_strategy_register(gpu, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

TEST(bad_arguments_of_strategies_are_refused)
{
    gpuhal *gpu = open_equal(1);
    gpuhal_device *device = NULL;
    gpuhal_strategy *strategy = NULL;
    const gpuhal_strategy_desc bad[] = {
        {.size = 0}, {.size = sizeof *bad, .flags = 4}, {.size = sizeof *bad, .memory_permille = 1001}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(gpuhal_strategy_create(gpu, &bad[i], &strategy), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    const gpuhal_strategy_desc nowhere = {.size = sizeof nowhere, .name = "single_device", .device = "mock:9"};
    refuse(gpu, &nowhere, GPUHAL_ERROR_NOT_FOUND, "mock:9");
    assert_int_equal(gpuhal_strategy_create(NULL, NULL, &strategy), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_strategy_create(gpu, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_strategy_device(NULL, 0, &device), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_strategy_bind(NULL, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_strategy_worker_count(NULL), 0);
    assert_string_equal(gpuhal_strategy_name(NULL), "");
    gpuhal_strategy_destroy(NULL);
    gpuhal_close(gpu);
}

#include "test_main.h"
