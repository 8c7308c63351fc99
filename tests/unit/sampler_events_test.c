/* Samplers: threshold and health events, through callbacks and the event list with a descriptor. */
#include "sampler_support.h"

#include <poll.h>
#include <pthread.h>

typedef struct heard {
    _Atomic uint32_t count;
    gpuhal_sampler_event last;
    gpuhal_sampler *sampler; /* the callback removes its threshold from the sampler, or destroys the sampler */
    uint32_t number;
} heard;

static void hear(void *user, const gpuhal_sampler_event *event)
{
    heard *own = user;
    own->last = *event;
    own->count++;
}

static void await_count(const heard *own, uint32_t count)
{
    for (int ms = 0; own->count < count; ms++) {
        assert_true(ms < PATIENCE_MS);
        gpuhal_os_sleep(MS);
    }
    assert_int_equal(own->count, count);
}

TEST(a_threshold_is_raised_and_cleared_with_hysteresis_once_each)
{
    gpuhal *gpu = open_devices(2);
    heard own = {0};
    uint32_t number = 0;
    set_value(0, 0, HEAT, 80000);
    set_value(1, 0, HEAT, 20000);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    const gpuhal_threshold hot = {.size = sizeof hot, .key = HEAT, .limit = 90000, .clear = 85000, .callback = hear,
                                  .user = &own};
    assert_ok(gpuhal_sampler_add_threshold(sampler, &hot, &number));
    assert_true(number > 0);
    await_samples(sampler, 2);
    set_value(0, 0, HEAT, 90000); /* not above the limit */
    await_samples(sampler, 2);
    assert_int_equal(own.count, 0);
    set_value(0, 0, HEAT, 90001);
    await_count(&own, 1);
    assert_int_equal(own.last.kind, GPUHAL_SAMPLER_RAISED);
    assert_ptr_equal(own.last.device, gpuhal_device_at(gpu, 0));
    assert_int_equal(own.last.threshold, number);
    assert_int_equal(own.last.key, HEAT);
    assert_int_equal(own.last.value, 90001);
    assert_string_equal(own.last.sentence, "mock:0: temperature_millicelsius is 90001, above 90000");
    set_value(0, 0, HEAT, 85001); /* below the limit, but not low enough to clear the event */
    await_samples(sampler, 2);
    gpuhal_mock.devices[0].values[0].missing = GPUHAL_MISSING_TIMED_OUT; /* a missing value has no effect */
    await_samples(sampler, 2);
    assert_int_equal(own.count, 1);
    set_value(0, 0, HEAT, 85000);
    await_count(&own, 2);
    assert_int_equal(own.last.kind, GPUHAL_SAMPLER_CLEARED);
    assert_string_equal(own.last.sentence, "mock:0: temperature_millicelsius is 85000, no longer above 85000");
    assert_ok(gpuhal_sampler_remove_threshold(sampler, number));
    assert_int_equal(gpuhal_sampler_remove_threshold(sampler, number), GPUHAL_ERROR_NOT_FOUND);
    set_value(0, 0, HEAT, 99000);
    await_samples(sampler, 2);
    assert_int_equal(own.count, 2);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(a_threshold_below_counts_samples_in_a_row_and_is_of_one_device)
{
    gpuhal *gpu = open_devices(2);
    heard own = {0};
    set_value(0, 0, HEAT, 5);
    set_value(1, 0, HEAT, 500);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    const gpuhal_threshold low = {.size = sizeof low, .key = HEAT, .device = gpuhal_device_at(gpu, 1), .is_below = 1,
                                  .samples = 3, .limit = 100, .callback = hear, .user = &own};
    assert_ok(gpuhal_sampler_add_threshold(sampler, &low, NULL));
    await_samples(sampler, 4);
    assert_int_equal(own.count, 0);
    set_value(1, 0, HEAT, 99);
    await_count(&own, 1);
    assert_ptr_equal(own.last.device, gpuhal_device_at(gpu, 1));
    assert_string_equal(own.last.sentence, "mock:1: temperature_millicelsius is 99, below 100");
    gpuhal_point points[300];
    uint32_t count = 0, low_ones = 0;
    assert_ok(gpuhal_sampler_history(sampler, low.device, HEAT, points, 300, &count));
    for (uint32_t i = 0; i < count; i++) {
        low_ones += points[i].u64 == 99 && points[i].time_ns <= own.last.time_ns;
    }
    assert_int_equal(low_ones, 3);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(events_of_one_sample_come_in_the_order_of_thresholds_then_of_devices_then_health)
{
    gpuhal *gpu = open_devices(2);
    gpuhal_os_handle descriptor = -1;
    gpuhal_sampler_event event = {.size = sizeof event};
    for (uint32_t d = 0; d < 2; d++) {
        set_value(d, 0, HEAT, 1);
        set_value(d, 1, GPUHAL_VALUE_THROTTLE_REASONS, 0);
    }
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){.period_ns = 500 * MS});
    await_samples(sampler, 0);
    assert_ok(gpuhal_sampler_descriptor(sampler, &descriptor));
    for (uint32_t i = 0; i < 3; i++) {
        const gpuhal_threshold any = {.size = sizeof any, .key = HEAT, .limit = 10 - i};
        assert_ok(gpuhal_sampler_add_threshold(sampler, &any, NULL));
    }
    for (uint32_t d = 0; d < 2; d++) { /* all changes are between two samples if the period is long enough */
        set_value(d, 0, HEAT, 11);
        set_value(d, 1, GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_THERMAL);
    }
    await_samples(sampler, 1);
    for (uint32_t i = 0; i < 8; i++) {
        assert_ok(gpuhal_sampler_next_event(sampler, &event));
        assert_int_equal(event.kind, i < 6 ? GPUHAL_SAMPLER_RAISED : GPUHAL_SAMPLER_HEALTH);
        assert_int_equal(event.threshold, i < 6 ? i / 2 + 1 : 0);
        assert_ptr_equal(event.device, gpuhal_device_at(gpu, i % 2));
    }
    gpuhal_os_handle_close(descriptor);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(events_are_listed_behind_a_descriptor_and_the_oldest_are_dropped)
{
    gpuhal *gpu = open_devices(1);
    gpuhal_os_handle descriptor = -1;
    gpuhal_sampler_event event = {.size = sizeof event};
    set_value(0, 0, HEAT, 1);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    const gpuhal_threshold any = {.size = sizeof any, .key = HEAT, .limit = 10};
    assert_int_equal(gpuhal_sampler_next_event(sampler, &event), GPUHAL_NOT_READY);
    assert_ok(gpuhal_sampler_descriptor(sampler, &descriptor));
    struct pollfd entry = {.fd = (int)descriptor, .events = POLLIN};
    await_samples(sampler, 1);
    assert_int_equal(poll(&entry, 1, 0), 0);
    for (uint32_t i = 0; i < 300; i++) { /* the next sample triggers all events */
        assert_ok(gpuhal_sampler_add_threshold(sampler, &any, NULL));
    }
    set_value(0, 0, HEAT, 11);
    assert_int_equal(poll(&entry, 1, PATIENCE_MS), 1);
    await_samples(sampler, 1);
    uint32_t count = 0;
    for (; gpuhal_sampler_next_event(sampler, &event) == GPUHAL_OK; count++) {
        assert_int_equal(event.kind, GPUHAL_SAMPLER_RAISED);
        assert_int_equal(event.size, sizeof event);
    }
    assert_int_equal(count, 256);
    assert_int_equal(poll(&entry, 1, 0), 0);
    gpuhal_os_handle_close(descriptor);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

static void remove_itself(void *user, const gpuhal_sampler_event *event)
{
    heard *own = user;
    assert_ok(gpuhal_sampler_remove_threshold(own->sampler, event->threshold));
    own->count++;
}

static void destroy_it(void *user, const gpuhal_sampler_event *event)
{
    heard *own = user;
    (void)event;
    gpuhal_sampler_destroy(own->sampler);
    own->count++;
}

TEST(a_callback_may_remove_its_threshold_and_destroy_the_sampler)
{
    gpuhal *gpu = open_devices(1);
    heard removing = {0}, destroying = {0};
    set_value(0, 0, HEAT, 11);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    removing.sampler = destroying.sampler = sampler;
    gpuhal_threshold any = {.size = sizeof any, .key = HEAT, .limit = 10, .callback = remove_itself, .user = &removing};
    assert_ok(gpuhal_sampler_add_threshold(sampler, &any, NULL));
    await_count(&removing, 1);
    any.callback = destroy_it;
    any.user = &destroying;
    assert_ok(gpuhal_sampler_add_threshold(sampler, &any, NULL));
    await_count(&destroying, 1);
    gpuhal_close(gpu);
}

static _Atomic bool holds;
static void hold(void *user, const gpuhal_sampler_event *event)
{
    heard *own = user;
    (void)event;
    own->count++;
    while (atomic_load(&holds)) {
        gpuhal_os_sleep(MS);
    }
    own->number = 1; /* the callback has ended */
}

static void *let_go(void *unused)
{
    gpuhal_os_sleep(50 * MS);
    atomic_store(&holds, false);
    return unused;
}

TEST(destroying_waits_for_a_callback_that_runs)
{
    gpuhal *gpu = open_devices(1);
    heard own = {0};
    pthread_t thread;
    set_value(0, 0, HEAT, 11);
    atomic_store(&holds, true);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    const gpuhal_threshold any = {.size = sizeof any, .key = HEAT, .limit = 10, .callback = hold, .user = &own};
    assert_ok(gpuhal_sampler_add_threshold(sampler, &any, NULL));
    await_count(&own, 1);
    assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
    gpuhal_sampler_destroy(sampler);
    assert_int_equal(own.number, 1);
    pthread_join(thread, NULL);
    gpuhal_close(gpu);
}

TEST(callbacks_of_taken_samples_come_after_closing_until_the_sampler_ends)
{
    gpuhal *gpu = open_devices(1);
    heard own = {0}, second = {0};
    set_value(0, 0, HEAT, 1);
    atomic_store(&holds, true);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    gpuhal_device *device = gpuhal_sampler_device(sampler, 0);
    gpuhal_threshold any = {.size = sizeof any, .key = HEAT, .limit = 10, .callback = hold, .user = &own};
    assert_ok(gpuhal_sampler_add_threshold(sampler, &any, NULL));
    any.user = &second;
    assert_ok(gpuhal_sampler_add_threshold(sampler, &any, NULL));
    set_value(0, 0, HEAT, 11);
    await_count(&own, 1); /* the callback delays the second event of the same sample */
    gpuhal_close(gpu);
    gpuhal_value value = {.key = HEAT};
    assert_ok(gpuhal_sampler_latest(sampler, device, &value, 1, NULL));
    assert_int_equal(value.u64, 11);
    assert_int_equal(second.count, 0);
    atomic_store(&holds, false);
    await_count(&second, 1);
    gpuhal_sampler_destroy(sampler);
}

/* ---- health */

static gpuhal_health health_of(gpuhal_sampler *sampler, uint32_t index)
{
    gpuhal_health health = {.size = sizeof health};
    assert_ok(gpuhal_sampler_health(sampler, gpuhal_sampler_device(sampler, index), &health));
    return health;
}

TEST(health_is_degraded_by_new_memory_errors_heat_and_events_of_the_vendor)
{
    gpuhal *gpu = open_devices(3);
    heard own = {0};
    set_value(0, 0, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, 5); /* earlier errors do not count */
    set_value(1, 0, GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_IDLE | GPUHAL_THROTTLE_POWER_CAP);
    set_value(2, 0, GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, 0);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    assert_ok(gpuhal_sampler_on_health(sampler, hear, &own));
    await_samples(sampler, 2);
    for (uint32_t d = 0; d < 3; d++) {
        assert_int_equal(health_of(sampler, d).state, GPUHAL_HEALTH_OK);
        assert_string_equal(health_of(sampler, d).sentence, "");
        assert_true(health_of(sampler, d).since_ns > 0);
    }
    assert_int_equal(own.count, 0);
    set_value(0, 0, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, 6);
    await_count(&own, 1);
    assert_int_equal(own.last.kind, GPUHAL_SAMPLER_HEALTH);
    assert_int_equal(own.last.value, GPUHAL_HEALTH_DEGRADED);
    assert_string_equal(own.last.sentence, "mock:0: new memory errors that could not be corrected");
    set_value(1, 0, GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_HARDWARE | GPUHAL_THROTTLE_POWER_BRAKE);
    await_count(&own, 2);
    assert_string_equal(own.last.sentence, "mock:1: slowed down by the power supply");
    set_value(2, 1, GPUHAL_VALUE_VENDOR_EVENT_CODE, 79);
    set_value(2, 0, GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, 1);
    await_count(&own, 3);
    assert_string_equal(own.last.sentence, "mock:2: the driver reported an error (code 79)");
    assert_int_equal(health_of(sampler, 0).reasons, GPUHAL_HEALTH_ECC);
    assert_int_equal(health_of(sampler, 1).reasons, GPUHAL_HEALTH_POWER_BRAKE);
    assert_int_equal(health_of(sampler, 2).reasons, GPUHAL_HEALTH_VENDOR_EVENT);
    assert_ok(gpuhal_sampler_on_health(sampler, NULL, NULL));
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(an_event_that_another_sampler_saw_does_not_degrade_the_health_again)
{
    gpuhal *gpu = open_devices(1);
    set_value(0, 0, GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, 1);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    await_samples(sampler, 2);
    assert_int_equal(health_of(sampler, 0).state, GPUHAL_HEALTH_OK);
    set_value(0, 0, GPUHAL_VALUE_VENDOR_EVENTS_TOTAL, 2);
    await_samples(sampler, 1);
    assert_int_equal(health_of(sampler, 0).reasons, GPUHAL_HEALTH_VENDOR_EVENT);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(few_repeated_packets_are_noise_and_many_degrade_the_link)
{
    gpuhal *gpu = open_devices(1);
    set_value(0, 0, GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, 1000);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    await_samples(sampler, 1);
    set_value(0, 0, GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, 1008);
    await_samples(sampler, 1);
    assert_int_equal(health_of(sampler, 0).state, GPUHAL_HEALTH_OK);
    set_value(0, 0, GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, 1009);
    await_samples(sampler, 1);
    assert_int_equal(health_of(sampler, 0).reasons, GPUHAL_HEALTH_PCIE_REPLAYS);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(a_lost_device_is_lost_and_the_others_are_sampled_on)
{
    gpuhal *gpu = open_devices(2);
    heard own = {0};
    set_value(1, 0, HEAT, 3);
    gpuhal_sampler *sampler = sampler_or_fail(gpu, (gpuhal_sampler_desc){0});
    assert_ok(gpuhal_sampler_on_health(sampler, hear, &own));
    await_samples(sampler, 1);
    gpuhal_mock.devices[0].fail_sample = GPUHAL_ERROR_DEVICE_LOST;
    await_count(&own, 1);
    assert_int_equal(own.last.value, GPUHAL_HEALTH_LOST);
    assert_ptr_equal(own.last.device, gpuhal_device_at(gpu, 0));
    assert_true(own.last.sentence[0] != 0);
    assert_int_equal(health_of(sampler, 0).state, GPUHAL_HEALTH_LOST);
    gpuhal_value value = {.key = HEAT};
    assert_int_equal(gpuhal_sampler_latest(sampler, gpuhal_device_at(gpu, 0), &value, 1, NULL),
                     GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_sampler_latest(sampler, gpuhal_device_at(gpu, 1), &value, 1, NULL));
    assert_int_equal(value.u64, 3);
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
}

TEST(the_states_of_health_have_names)
{
    assert_string_equal(gpuhal_health_name(GPUHAL_HEALTH_UNKNOWN), "unknown");
    assert_string_equal(gpuhal_health_name(GPUHAL_HEALTH_OK), "ok");
    assert_string_equal(gpuhal_health_name(GPUHAL_HEALTH_DEGRADED), "degraded");
    assert_string_equal(gpuhal_health_name(GPUHAL_HEALTH_LOST), "lost");
    assert_string_equal(gpuhal_health_name(99), "unknown");
}

#include "test_main.h"
