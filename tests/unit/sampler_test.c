/* Samplers: values and their rates, history and windows, values that the library counts itself, and destruction. */
#include "sampler_support.h"
#include "support/child.h"

#include <gpuhal/transfer.h>

#include <sys/wait.h>

/* ---- reading */

TEST(the_newest_sample_has_values_reasons_and_marks_of_unsampled_keys)
{
    gpuhal *gpu = open_devices(2);
    const gpuhal_key keys[] = {HEAT, GPUHAL_VALUE_POWER_MICROWATTS};
    set_value(0, 0, HEAT, 41000);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){.keys = keys, .key_count = 2});
    await_samples(sampler, 1);
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_POWER_MICROWATTS}, {.key = HEAT}, {.key = GPUHAL_VALUE_FAN_PERMILLE}};
    uint64_t time_ns = 0;
    assert_ok(gpuhal_sampler_latest(sampler, gpuhal_device_at(gpu, 0), values, 3, &time_ns));
    assert_true(time_ns > 0 && time_ns <= gpuhal_os_monotonic_ns());
    assert_int_equal(values[0].missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(values[1].missing, 0);
    assert_int_equal(values[1].u64, 41000);
    assert_int_equal(values[2].missing, GPUHAL_MISSING_NOT_READ);
    assert_string_equal(gpuhal_missing_name(values[2].missing), "not read");
    assert_true(values[2].why[0] != 0);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(before_the_first_sample_nothing_is_ready)
{
    gpuhal *gpu = open_devices(1);
    gpuhal_value value = {.key = HEAT};
    uint32_t count = 7;
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){.period_ns = 5000 * MS});
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_health health = {.size = sizeof health, .state = 9};
    assert_int_equal(gpuhal_sampler_latest(sampler, device, &value, 1, NULL), GPUHAL_NOT_READY);
    assert_ok(gpuhal_sampler_history(sampler, device, HEAT, NULL, 0, &count));
    assert_int_equal(count, 0);
    assert_ok(gpuhal_sampler_health(sampler, device, &health));
    assert_int_equal(health.state, GPUHAL_HEALTH_UNKNOWN);
    gpuhal_mock.stops = 0;
    await_samples(sampler, 0);
    assert_ok(gpuhal_sampler_latest(sampler, device, &value, 1, NULL));
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(without_a_description_every_physical_device_is_sampled)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_sampler *sampler = NULL;
    assert_ok(gpuhal_sampler_create(gpu, NULL, &sampler));
    for (uint32_t i = 0; i < 5; i++) {
        assert_ptr_equal(gpuhal_sampler_device(sampler, i), gpuhal_device_at(gpu, i));
    }
    assert_null(gpuhal_sampler_device(sampler, 5));
    assert_null(gpuhal_sampler_device(NULL, 0));
    await_samples(sampler, 0);
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES},
                             {.key = GPUHAL_VALUE_MEMORY_HELD_BYTES},
                             {.key = GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND}};
    assert_ok(gpuhal_sampler_latest(sampler, gpuhal_device_at(gpu, 1), values, 3, NULL));
    assert_int_equal(values[0].missing, 0);
    assert_int_equal(values[1].missing, 0);
    assert_int_equal(values[2].missing, GPUHAL_MISSING_NOT_READ);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

/* ---- the past */

TEST(a_history_has_the_newest_samples_the_oldest_first)
{
    gpuhal *gpu = open_devices(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_point points[8];
    uint32_t count = 0;
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){.history = 4});
    for (uint64_t i = 1; i <= 6; i++) {
        set_value(0, 0, HEAT, i);
        await_samples(sampler, 1);
    }
    assert_ok(gpuhal_sampler_history(sampler, device, HEAT, points, 8, &count));
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(points[i].missing, 0);
        assert_true(points[i].u64 <= 6 && (i == 0 || points[i].u64 >= points[i - 1].u64));
        assert_true(i == 0 || points[i].time_ns > points[i - 1].time_ns);
    }
    assert_int_equal(points[3].u64, 6);
    assert_ok(gpuhal_sampler_history(sampler, device, HEAT, points, 1, &count));
    assert_int_equal(count, 1);
    assert_int_equal(points[0].u64, 6);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

/* Values whose sum exceeds 64 bits, with one missing value, and a counter that restarted. */
TEST(a_window_has_the_statistics_of_its_samples)
{
    static const uint64_t steps[] = {UINT64_MAX - 7, UINT64_MAX - 2, UINT64_MAX - 3};
    gpuhal *gpu = open_devices(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_window all = {.size = sizeof all}, newest = {.size = sizeof newest};
    gpuhal_mock.devices[0].values[0].missing = GPUHAL_MISSING_ASLEEP;
    gpuhal_mock.devices[0].values[0].key = GPUHAL_VALUE_ENERGY_MICROJOULES;
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){.history = 1000});
    await_samples(sampler, 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        set_value(0, 0, GPUHAL_VALUE_ENERGY_MICROJOULES, steps[i]);
        await_samples(sampler, 1);
    }
    assert_ok(gpuhal_sampler_window(sampler, device, GPUHAL_VALUE_ENERGY_MICROJOULES, 0, &all));
    assert_true(all.missing >= 1 && all.count >= 3);
    assert_int_equal(all.min, UINT64_MAX - 7);
    assert_int_equal(all.max, UINT64_MAX - 2);
    assert_int_equal(all.first, UINT64_MAX - 7);
    assert_int_equal(all.last, UINT64_MAX - 3);
    assert_true(all.mean >= all.min && all.mean <= all.max);
    assert_int_equal(all.increase, 5);
    assert_true(all.from_ns < all.to_ns);
    gpuhal_os_sleep(2 * MS);
    assert_ok(gpuhal_sampler_window(sampler, device, GPUHAL_VALUE_ENERGY_MICROJOULES, 1, &newest));
    assert_true(newest.count == 0 || newest.last == UINT64_MAX - 3);
    assert_ok(gpuhal_sampler_window(sampler, device, GPUHAL_VALUE_ENERGY_MICROJOULES, UINT64_MAX, &newest));
    assert_true(newest.count >= all.count);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

/* ---- values that the library counts itself */

static uint64_t counted(gpuhal_device *device, gpuhal_key key)
{
    gpuhal_value value = {.key = key};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    assert_int_equal(value.missing, 0);
    assert_string_equal(value.source, "library");
    return value.u64;
}

TEST(busy_time_and_bytes_of_queues_are_counted_from_the_first_reading)
{
    gpuhal *gpu = open_devices(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_queue *queue = NULL;
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 65536);
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    assert_int_equal(counted(device, GPUHAL_VALUE_QUEUES_BUSY_NS), 0);
    const uint64_t bytes = counted(device, GPUHAL_VALUE_TRANSFERRED_BYTES);
    gpuhal_mock.devices[0].slow_write_us = 20000;
    const uint64_t begin_ns = gpuhal_os_monotonic_ns();
    assert_ok(gpuhal_fill(queue, buffer, 0, 65536, 7, 1));
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    const uint64_t elapsed_ns = gpuhal_os_monotonic_ns() - begin_ns;
    const uint64_t busy_ns = counted(device, GPUHAL_VALUE_QUEUES_BUSY_NS);
    assert_true(busy_ns >= 19 * MS && busy_ns <= elapsed_ns);
    assert_int_equal(counted(device, GPUHAL_VALUE_TRANSFERRED_BYTES), bytes + 65536);
    gpuhal_os_sleep(20 * MS); /* an idle queue is not busy */
    assert_int_equal(counted(device, GPUHAL_VALUE_QUEUES_BUSY_NS), busy_ns);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

/* ---- bad arguments and the end */

TEST(bad_arguments_are_invalid)
{
    gpuhal *gpu = open_devices(2), *other = gpuhal_mock_open(NULL, 0);
    gpuhal_device *twice[] = {gpuhal_device_at(gpu, 0), gpuhal_device_at(gpu, 0)};
    gpuhal_device *foreign[] = {gpuhal_device_at(other, 0)}, *null[] = {NULL};
    const gpuhal_key fact = GPUHAL_FACT_NAME, link = GPUHAL_LINK_KIND;
    const struct {
        gpuhal_sampler_desc desc;
    } bad[] = {
        {{.size = 0}},
        {{.size = sizeof bad->desc, .flags = 2}},
        {{.size = sizeof bad->desc, .period_ns = 10 * MS - 1}},
        {{.size = sizeof bad->desc, .period_ns = UINT64_MAX}},
        {{.size = sizeof bad->desc, .history = 100001}},
        {{.size = sizeof bad->desc, .device_count = 1}},
        {{.size = sizeof bad->desc, .device_count = 2, .devices = twice}},
        {{.size = sizeof bad->desc, .device_count = 1, .devices = foreign}},
        {{.size = sizeof bad->desc, .device_count = 1, .devices = null}},
        {{.size = sizeof bad->desc, .key_count = 1}},
        {{.size = sizeof bad->desc, .key_count = 1, .keys = &fact}},
        {{.size = sizeof bad->desc, .key_count = 1, .keys = &link}},
        {{.size = sizeof bad->desc, .key_count = 1u << 30, .keys = &fact}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gpuhal_sampler *sampler = (gpuhal_sampler *)gpu;
        assert_int_equal(gpuhal_sampler_create(gpu, &bad[i].desc, &sampler), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_null(sampler);
    }
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    const gpuhal_threshold wrong[] = {{.size = 0, .key = HEAT},
                                      {.size = sizeof *wrong, .key = GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND},
                                      {.size = sizeof *wrong, .key = HEAT, .device = foreign[0]},
                                      {.size = sizeof *wrong, .key = HEAT, .limit = 5, .clear = 6},
                                      {.size = sizeof *wrong, .key = HEAT, .limit = 6, .clear = 5, .is_below = 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(gpuhal_sampler_add_threshold(sampler, &wrong[i], NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    gpuhal_value value = {.key = HEAT};
    gpuhal_window window = {.size = 0};
    uint32_t count = 0;
    assert_int_equal(gpuhal_sampler_latest(sampler, foreign[0], &value, 1, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_sampler_latest(NULL, twice[0], &value, 1, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_sampler_window(sampler, twice[0], HEAT, 0, &window), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_sampler_history(sampler, twice[0], GPUHAL_FACT_NAME, NULL, 0, &count),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_sampler_history(sampler, twice[0], HEAT, NULL, 1, &count), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_sampler_destroy(sampler);
    gpuhal_sampler_destroy(NULL);
    gpuhal_close(other);
    gpuhal_close(gpu);
}

TEST(of_a_structure_no_byte_beyond_its_size_is_read_or_written)
{
    gpuhal *gpu = open_devices(1);
    gpuhal_sampler *sampler = NULL;
    gpuhal_sampler_desc desc = {.period_ns = 1, .history = UINT32_MAX}; /* neither value is valid */
    desc.size = offsetof(gpuhal_sampler_desc, period_ns);
    assert_ok(gpuhal_sampler_create(gpu, &desc, &sampler));
    await_samples(sampler, 0);
    gpuhal_health health;
    for (uint32_t size = sizeof health.size; size <= sizeof health; size += 3) { /* may end inside a member */
        memset(&health, 0x5a, sizeof health);
        health.size = size;
        assert_ok(gpuhal_sampler_health(sampler, gpuhal_sampler_device(sampler, 0), &health));
        for (uint32_t b = size; b < sizeof health; b++) {
            assert_int_equal(((const unsigned char *)&health)[b], 0x5a);
        }
        assert_int_equal(health.size, size);
    }
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(a_machine_without_devices_has_nothing_to_sample)
{
    gpuhal *gpu = open_devices(0);
    gpuhal_sampler *sampler = NULL;
    assert_int_equal(gpuhal_sampler_create(gpu, NULL, &sampler), GPUHAL_ERROR_NO_DEVICE);
    gpuhal_close(gpu);
}

TEST(closing_ends_the_sampling_and_leaves_the_history_readable)
{
    gpuhal *gpu = open_devices(1);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_point points[300];
    uint32_t count = 0, later = 0;
    set_value(0, 0, HEAT, 77);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    await_samples(sampler, 2);
    gpuhal_close(gpu);
    assert_ok(gpuhal_sampler_history(sampler, device, HEAT, points, 300, &count));
    gpuhal_os_sleep(40 * MS);
    assert_ok(gpuhal_sampler_history(sampler, device, HEAT, points, 300, &later));
    assert_int_equal(later, count);
    assert_int_equal(points[count - 1].u64, 77);
    gpuhal_sampler_destroy(sampler);
}

TEST(a_driver_that_hangs_costs_its_values_and_neither_destroying_nor_closing)
{
    const gpuhal_config config = {.size = sizeof config, .hang_ns = 200 * MS};
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(&config, 0);
    set_value(1, 0, HEAT, 4);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    await_samples(sampler, 1);
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    await_samples(sampler, 1);
    gpuhal_value value = {.key = HEAT};
    assert_ok(gpuhal_sampler_latest(sampler, gpuhal_device_at(gpu, 1), &value, 1, NULL));
    assert_int_equal(value.missing, GPUHAL_MISSING_TIMED_OUT);
    const uint64_t begin_ns = gpuhal_os_monotonic_ns();
    gpuhal_sampler_destroy(sampler);
    assert_true(gpuhal_os_monotonic_ns() - begin_ns < 5000 * MS);
    gpuhal_mock.stops = 0;
    gpuhal_close(gpu);
}

TEST(in_the_child_of_a_fork_a_sampler_answers_forked)
{
    gpuhal *gpu = open_devices(1);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    await_samples(sampler, 1);
    const pid_t child = begin_child();
    if (child == 0) {
        gpuhal_value value = {.key = HEAT};
        gpuhal_sampler_event event = {.size = sizeof event};
        gpuhal_sampler *another = NULL;
        bool right = gpuhal_sampler_latest(sampler, gpuhal_device_at(gpu, 0), &value, 1, NULL) == GPUHAL_ERROR_FORKED;
        right = right && gpuhal_sampler_next_event(sampler, &event) == GPUHAL_ERROR_FORKED;
        right = right && gpuhal_sampler_create(gpu, NULL, &another) == GPUHAL_ERROR_FORKED;
        gpuhal_sampler_destroy(sampler);
        _exit(right ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

#include "test_main.h"
