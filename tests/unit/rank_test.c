/* gpuhal_rank() and its rules: the devices that satisfy a need, their order, and the reasons for the order. */
#include "schedule_support.h"

#include "schedule/need.h"

enum { LIST = 16 };

typedef struct ranks {
    gpuhal_ranked list[LIST];
    uint32_t count;
} ranks;

static gpuhal_status rank(gpuhal *gpu, const gpuhal_rank_desc *desc, ranks *out)
{
    memset(out, 0, sizeof *out);
    out->list[0].size = sizeof *out->list;
    return gpuhal_rank(gpu, desc, out->list, LIST, &out->count);
}

static void expect_place(const ranks *own, uint32_t at, const char *id, uint32_t fits, const char *reason)
{
    assert_in_range(at, 0, own->count - 1);
    const gpuhal_ranked *one = &own->list[at];
    if (strcmp(gpuhal_device_id(one->device), id) != 0 || one->fits != fits || !strstr(one->reason, reason)) {
        fail_msg("place %u: %s, fits %u: %s", at, gpuhal_device_id(one->device), one->fits, one->reason);
    }
}

TEST(most_free_puts_the_device_with_most_free_memory_first_and_says_how_much)
{
    gpuhal *gpu = open_equal(3);
    ranks own;
    set_load(0, GIB(4), 0);
    set_load(1, GIB(12), 900);
    set_load(2, GIB(8), 0);
    const gpuhal_rank_desc desc = {.size = sizeof desc, .order = GPUHAL_RANK_MOST_FREE};
    assert_ok(rank(gpu, &desc, &own));
    assert_int_equal(own.count, 4);
    expect_place(&own, 0, "mock:1", 1, "most free memory of 3");
    expect_place(&own, 1, "mock:2", 1, "less free memory: 8589934592 bytes, mock:1 has 12884901888");
    expect_place(&own, 2, "mock:0", 1, "less free memory");
    expect_place(&own, 3, "cpu:0", 0, "used only by name (the CPU)");
    assert_int_equal(own.list[0].free_bytes, GIB(12));
    assert_int_equal(own.list[0].load_permille, UINT32_MAX); /* not measured */
    gpuhal_close(gpu);
}

TEST(a_prohibited_device_comes_last_and_the_reason_says_that_it_is_prohibited)
{
    gpuhal_mock.count = 2;
    gpuhal_mock.devices[0].compute_mode = GPUHAL_COMPUTE_PROHIBITED;
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *const devices[] = {gpuhal_device_at(gpu, 0), gpuhal_device_at(gpu, 1)};
    const gpuhal_rank_desc desc = {.size = sizeof desc, .devices = devices, .device_count = 2};
    ranks own;
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "mock:1", 1, "neither failed nor prohibited, of 2 that satisfy the need");
    expect_place(&own, 1, "mock:0", 1, "its compute mode is prohibited");
    assert_null(strstr(own.list[1].reason, "self-test"));
    gpuhal_close(gpu);
}

TEST(best_follows_the_rule_of_selection_and_loads_no_plugin)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *selected = NULL;
    ranks own;
    assert_ok(gpuhal_select(gpu, "auto", 0, &selected, NULL));
    assert_ok(rank(gpu, NULL, &own));
    assert_int_equal(own.count, 6);
    assert_ptr_equal(own.list[0].device, selected);
    expect_place(&own, 2, "mock:1", 1, "an integrated GPU, mock:");
    expect_place(&own, 3, "mock:4", 1, "an accelerator, mock:1 is an integrated GPU");
    expect_place(&own, 4, "mock:0", 0, "a software driver on the CPU");
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(gpuhal_mock.devices[i].openings, 0);
    }
    gpuhal_close(gpu);
}

TEST(a_need_leaves_out_unfit_devices_and_each_reason_says_why)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 3,
                                      .devices = {{.no_staging_kinds = 1, .total_bytes = GIB(80)},
                                                  {.total_bytes = GIB(4)},
                                                  {.allocation_max = GIB(1)}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    ranks own;
    gpuhal_need need = {.size = sizeof need, .memory_kinds = 1u << GPUHAL_MEMORY_UPLOAD, .allocation_bytes = GIB(2)};
    const gpuhal_rank_desc desc = {.size = sizeof desc, .need = &need};
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "mock:1", 1, "the only device that satisfies the need");
    expect_place(&own, 1, "mock:0", 0, "has no memory of kind upload");
    expect_place(&own, 2, "mock:2", 0, "allocates at most 1073741824 bytes at once of the 2147483648 that are needed");
    need = (gpuhal_need){.size = sizeof need, .data_types = GPUHAL_DATA_FP64 | GPUHAL_DATA_BF16};
    assert_int_equal(rank(gpu, &desc, &own), GPUHAL_ERROR_NOT_FOUND);
    expect_place(&own, 0, "mock:0", 0, "does not compute with bf16, fp64");
    need = (gpuhal_need){.size = sizeof need, .capabilities = GPUHAL_CAPABILITY_PROGRAMS};
    assert_int_equal(rank(gpu, &desc, &own), GPUHAL_ERROR_NOT_FOUND);
    expect_place(&own, 0, "mock:0", 0, "lacks programs");
    gpuhal_close(gpu);
}

TEST(without_enough_memory_anywhere_the_need_is_infeasible_and_all_devices_are_listed)
{
    gpuhal *gpu = open_equal(2);
    ranks own;
    const gpuhal_need need = {.size = sizeof need, .bytes = GIB(17)};
    const gpuhal_rank_desc desc = {.size = sizeof desc, .need = &need};
    assert_int_equal(rank(gpu, &desc, &own), GPUHAL_ERROR_INFEASIBLE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "mock:0 has 17179869184 bytes free of the 18253611008"));
    assert_int_equal(own.count, 3);
    expect_place(&own, 1, "mock:1", 0, "has 17179869184 bytes free of the 18253611008 that are needed");
    gpuhal_close(gpu);
}

TEST(backends_are_tried_in_the_order_of_the_need_and_the_cpu_if_allowed)
{
    gpuhal *gpu = open_equal(1);
    ranks own;
    const char *const names[] = {"cpu", "mock"}, *const other[] = {"other"};
    gpuhal_need need = {.size = sizeof need, .backends = names, .backend_count = 2};
    const gpuhal_rank_desc desc = {.size = sizeof desc, .need = &need};
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "cpu:0", 1, "first backend of the need of 2");
    expect_place(&own, 1, "mock:0", 1, "mock comes later in the need than cpu");
    need = (gpuhal_need){.size = sizeof need, .flags = GPUHAL_NEED_ALLOW_CPU};
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 1, "cpu:0", 1, "the CPU comes last");
    need = (gpuhal_need){.size = sizeof need, .backends = other, .backend_count = 1};
    assert_int_equal(rank(gpu, &desc, &own), GPUHAL_ERROR_NOT_FOUND);
    expect_place(&own, 0, "mock:0", 0, "is of another backend");
    gpuhal_close(gpu);
}

TEST(least_loaded_counts_memory_work_and_promises_and_unknown_loads_come_last)
{
    gpuhal *gpu = open_equal(4);
    ranks own;
    set_load(0, GIB(16), 900); /* 450 */
    set_load(1, GIB(4), 100);  /* 425 */
    set_load(2, GIB(16), 0);   /* 0, or 500 with the promise */
    gpuhal_mock.devices[3].values[0].missing = gpuhal_mock.devices[3].values[1].missing = GPUHAL_MISSING_ASLEEP;
    gpuhal_rank_desc desc = {.size = sizeof desc, .order = GPUHAL_RANK_LEAST_LOADED};
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "mock:2", 1, "least load of 4");
    expect_place(&own, 1, "mock:1", 1, "more load: 425 permille, mock:2 has 0");
    expect_place(&own, 2, "mock:0", 1, "more load: 450");
    expect_place(&own, 3, "mock:3", 1, "its load is unknown");
    const gpuhal_promise promise = {
        .size = sizeof promise, .device = gpuhal_device_at(gpu, 2), .bytes = GIB(8), .busy_permille = 500};
    desc.promises = &promise;
    desc.promise_count = 1;
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "mock:1", 1, "least load");
    expect_place(&own, 2, "mock:2", 1, "more load: 500");
    assert_int_equal(own.list[2].free_bytes, GIB(8));
    gpuhal_close(gpu);
}

TEST(a_device_that_is_busy_all_the_time_has_a_load_that_is_known)
{
    gpuhal *gpu = open_equal(2);
    ranks own;
    set_load(0, GIB(16), 1000);
    set_load(1, GIB(16), 600);
    const gpuhal_rank_desc desc = {.size = sizeof desc, .order = GPUHAL_RANK_LEAST_LOADED};
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "mock:1", 1, "least load");
    expect_place(&own, 1, "mock:0", 1, "more load: 500 permille");
    gpuhal_close(gpu);
}

TEST(with_a_balance_nearly_equal_loads_do_not_change_the_first_device)
{
    gpuhal *gpu = open_equal(2);
    gpuhal_balance *balance = NULL;
    ranks own;
    uint32_t random = 7;
    const gpuhal_balance_desc how = {.size = sizeof how, .margin_permille = 60};
    assert_ok(gpuhal_balance_create(gpu, &how, &balance));
    const gpuhal_rank_desc desc = {.size = sizeof desc, .order = GPUHAL_RANK_LEAST_LOADED, .balance = balance};
    for (uint32_t round = 0; round < 50; round++) { /* loads of 200 to 260 */
        set_load(0, GIB(16), 400 + (round == 0 ? 0 : next_random(&random) % 121));
        set_load(1, GIB(16), 400 + (round == 0 ? 120 : next_random(&random) % 121));
        assert_ok(rank(gpu, &desc, &own));
        expect_place(&own, 0, "mock:0", 1, "");
    }
    set_load(0, GIB(16), 640);
    set_load(1, GIB(16), 518); /* lower by 61 than the other load */
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "mock:1", 1, "least load");
    set_load(0, GIB(16), 400);
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 0, "mock:1", 1, "first before, and within the margin");
    expect_place(&own, 1, "mock:0", 1, "mock:1 was first before");
    gpuhal_balance_destroy(balance);
    gpuhal_close(gpu);
}

TEST(a_memory_limit_of_the_device_is_the_room_that_it_has)
{
    gpuhal *gpu = open_equal(2);
    ranks own;
    assert_ok(gpuhal_device_limit_memory(gpuhal_device_at(gpu, 0), GIB(2)));
    const gpuhal_rank_desc desc = {.size = sizeof desc, .order = GPUHAL_RANK_MOST_FREE};
    assert_ok(rank(gpu, &desc, &own));
    expect_place(&own, 1, "mock:0", 1, "less free memory: 2147483648");
    gpuhal_close(gpu);
}

TEST(a_device_that_vanished_is_ranked_no_more)
{
    gpuhal *gpu = open_equal(2);
    ranks own;
    gpuhal_device *both[] = {gpuhal_device_at(gpu, 0), gpuhal_device_at(gpu, 1)};
    const gpuhal_rank_desc desc = {
        .size = sizeof desc, .order = GPUHAL_RANK_MOST_FREE, .devices = both, .device_count = 2};
    gpuhal_mock.unplugged = 1;
    assert_ok(gpuhal_rescan(gpu, NULL));
    assert_ok(rank(gpu, &desc, &own));
    assert_int_equal(own.count, 1);
    expect_place(&own, 0, "mock:1", 1, "the only device");
    gpuhal_mock.unplugged = 3;
    assert_ok(gpuhal_rescan(gpu, NULL));
    assert_int_equal(rank(gpu, &desc, &own), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(own.count, 0);
    gpuhal_close(gpu);
}

TEST(a_device_that_is_lost_while_its_values_are_read_is_left_out)
{
    gpuhal *gpu = open_equal(2);
    ranks own;
    const gpuhal_rank_desc desc = {.size = sizeof desc, .order = GPUHAL_RANK_LEAST_LOADED};
    gpuhal_mock.devices[0].fail_sample = GPUHAL_ERROR_DEVICE_LOST;
    assert_ok(rank(gpu, &desc, &own));
    assert_int_equal(own.count, 2);
    expect_place(&own, 0, "mock:1", 1, "the only device");
    gpuhal_close(gpu);
}

TEST(bad_arguments_of_rankings_are_refused)
{
    gpuhal *gpu = open_equal(1), *other = gpuhal_mock_open(NULL, 0);
    gpuhal_balance *balance = NULL;
    ranks own;
    uint32_t count = 9;
    const char *const nothing[] = {NULL};
    gpuhal_device *stranger = gpuhal_device_at(other, 0);
    const gpuhal_need flag = {.size = sizeof flag, .flags = 2},
                      name = {.size = sizeof name, .backends = nothing, .backend_count = 1}, none = {.size = 0},
                      list = {.size = sizeof list, .backend_count = 1};
    const gpuhal_promise promise = {.size = sizeof promise, .device = stranger}, empty = {.size = sizeof empty};
    assert_ok(gpuhal_balance_create(other, NULL, &balance));
    const gpuhal_rank_desc bad[] = {
        {.size = 0},
        {.size = sizeof *bad, .order = 3},
        {.size = sizeof *bad, .flags = 2},
        {.size = sizeof *bad, .need = &flag},
        {.size = sizeof *bad, .need = &name},
        {.size = sizeof *bad, .need = &none},
        {.size = sizeof *bad, .need = &list},
        {.size = sizeof *bad, .device_count = 1},
        {.size = sizeof *bad, .device_count = 1, .devices = &stranger},
        {.size = sizeof *bad, .promise_count = 1},
        {.size = sizeof *bad, .promise_count = 1, .promises = &promise},
        {.size = sizeof *bad, .promise_count = 1, .promises = &empty},
        {.size = sizeof *bad, .balance = balance},
        {.size = sizeof *bad, .reserved = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (rank(gpu, &bad[i], &own) != GPUHAL_ERROR_INVALID_ARGUMENT) {
            fail_msg("description %zu is taken", i);
        }
    }
    assert_int_equal(gpuhal_rank(NULL, NULL, own.list, 1, &count), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(count, 0);
    own.list[0].size = 0;
    assert_int_equal(gpuhal_rank(gpu, NULL, own.list, 1, &count), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_rank(gpu, NULL, NULL, 1, &count), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_ok(gpuhal_rank(gpu, NULL, NULL, 0, &count));
    assert_int_equal(count, 2);
    gpuhal_balance *none_made = balance;
    const gpuhal_balance_desc wide = {.size = sizeof wide, .margin_permille = 1001};
    assert_int_equal(gpuhal_balance_create(gpu, &wide, &none_made), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(none_made);
    gpuhal_balance_destroy(balance);
    gpuhal_balance_destroy(NULL);
    gpuhal_close(other);
    gpuhal_close(gpu);
}

/* ---- the rules, over plain numbers */

TEST(less_room_and_more_work_never_make_a_load_less)
{
    uint32_t random = 3;
    for (uint32_t round = 0; round < 20000; round++) {
        const uint64_t total = round % 7 == 0 ? UINT64_MAX - 1 - next_random(&random) : 1 + next_random(&random),
                       room = round % 5 == 0 ? GPUHAL_UNKNOWN_BYTES : next_random(&random) % total;
        const uint32_t busy = round % 3 == 0 ? GPUHAL_UNKNOWN_PERMILLE : next_random(&random) % 1001,
                       more = next_random(&random) % 1200;
        const uint32_t load = gpuhal_load(total, room, busy, more);
        assert_true(load == GPUHAL_UNKNOWN_PERMILLE || load <= 1000);
        assert_true(gpuhal_load(total, room, busy, more + 50) >= load);
        if (room != GPUHAL_UNKNOWN_BYTES) {
            assert_true(gpuhal_load(total, room / 2, busy, more) >= load);
        }
    }
    assert_int_equal(gpuhal_load(1000, 250, 250, 0), 500);
    assert_int_equal(gpuhal_load(1000, 250, GPUHAL_UNKNOWN_PERMILLE, 0), 750);
    assert_int_equal(gpuhal_load(GPUHAL_UNKNOWN_BYTES, GPUHAL_UNKNOWN_BYTES, 300, 0), 300);
    assert_int_equal(gpuhal_load(0, 0, GPUHAL_UNKNOWN_PERMILLE, 0), GPUHAL_UNKNOWN_PERMILLE);
}

#include "test_main.h"
