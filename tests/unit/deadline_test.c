/* A driver that stops in a call with a deadline: start, enumerate, open, sample, link, close.
 *
 * The caller must receive a result in time. Other callers and devices must not be affected. A driver that returns late
 * must be used again. */
#include "support/mock.h"
#include "support/record.h"
#include "test.h"

#include <gpuhal/native.h>

#include <pthread.h>
#include <time.h>

#define MS        UINT64_C(1000000)
#define HANG_NS   (600 * MS)
#define IN_TIME_S 8.0 /* generous, because threads run late on a busy machine */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static gpuhal *open_impatient(void)
{
    return gpuhal_mock_open(&(gpuhal_config){.hang_ns = HANG_NS, .helper_deadline_ns = HANG_NS}, 1);
}

static void expect_word(const char *text, const char *word)
{
    if (!strstr(text, word)) {
        fail_msg("\"%s\" does not hold \"%s\"", text, word);
    }
}

static gpuhal_device *find(gpuhal *gpu, const char *id)
{
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, id, 0, &device, NULL), GPUHAL_OK);
    return device;
}

static void expect_works(gpuhal_device *device)
{
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64};
    gpuhal_buffer *buffer = NULL;
    char back[4] = "";
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, "abc", 4), GPUHAL_OK);
    assert_int_equal(gpuhal_read(NULL, back, buffer, 0, 4), GPUHAL_OK);
    assert_string_equal(back, "abc");
    gpuhal_buffer_release(buffer);
}

/* Lets the driver continue, and waits until the call has returned. */
static void let_go(void)
{
    gpuhal_mock.stops = 0;
    for (int i = 0; i < 5000 && gpuhal_mock.stopped > 0; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    assert_int_equal(gpuhal_mock.stopped, 0);
}

/* ---- starting and listing */

static void expect_listing_in_time(uint32_t call, const char *words)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .stops = call};
    double begun = seconds_now();
    gpuhal *gpu = open_impatient();
    assert_true(seconds_now() - begun < IN_TIME_S);
    gpuhal_plugin_report report = report_of(gpu, "mock");
    assert_int_equal(report.state, GPUHAL_PLUGIN_TIMED_OUT);
    expect_word(report.reason, words);
    assert_int_equal(gpuhal_device_count(gpu), 1);
    expect_works(find(gpu, "cpu:0"));
    /* The second call does not wait for the plugin. */
    begun = seconds_now();
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
    assert_true(seconds_now() - begun < (double)HANG_NS / 1e9);
    let_go();
    while (report_of(gpu, "mock").state != GPUHAL_PLUGIN_OK) {
        assert_true(seconds_now() - begun < IN_TIME_S);
        assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
    }
    expect_works(find(gpu, "mock:1"));
    gpuhal_close(gpu);
}

TEST(a_plugin_that_hangs_while_starting_is_given_up_and_used_once_it_comes_back)
{
    expect_listing_in_time(GPUHAL_MOCK_START, "while starting");
}

TEST(a_plugin_that_hangs_while_listing_is_given_up_and_used_once_it_comes_back)
{
    expect_listing_in_time(GPUHAL_MOCK_ENUMERATE, "while listing devices");
}

TEST(free_memory_that_hangs_while_listing_costs_that_value_alone)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 3, .stops = GPUHAL_MOCK_SAMPLE};
    double begun = seconds_now();
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.hang_ns = HANG_NS, .helper_deadline_ns = 3 * HANG_NS}, 0);
    assert_true(seconds_now() - begun < IN_TIME_S);
    assert_int_equal(gpuhal_device_count(gpu), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(gpuhal_device_missing(gpuhal_device_at(gpu, i), GPUHAL_VALUE_MEMORY_FREE_BYTES, NULL),
                         GPUHAL_MISSING_TIMED_OUT);
        expect_works(gpuhal_device_at(gpu, i));
    }
    let_go();
    gpuhal_close(gpu);
}

/* ---- opening */

static void *open_it(void *device)
{
    return (void *)(intptr_t)gpuhal_device_open(device);
}

static void count_losses(void *user, const gpuhal_change *change)
{
    _Atomic int *losses = user;
    *losses += change->kind == GPUHAL_CHANGE_LOST;
}

TEST(a_device_that_hangs_while_opening_is_lost_for_every_caller_and_others_work)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = open_impatient();
    gpuhal_device *device = find(gpu, "mock:0");
    _Atomic int losses = 0;
    assert_int_equal(gpuhal_on_change(gpu, count_losses, (void *)&losses), GPUHAL_OK);
    gpuhal_mock.stops = GPUHAL_MOCK_OPEN;
    double begun = seconds_now();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_it, device), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *status = NULL;
        pthread_join(threads[i], &status);
        assert_int_equal((gpuhal_status)(intptr_t)status, GPUHAL_ERROR_DEVICE_LOST);
    }
    assert_true(seconds_now() - begun < IN_TIME_S);
    assert_int_equal(gpuhal_mock.stopped, 1);
    assert_int_equal(gpuhal_device_status(device), GPUHAL_ERROR_DEVICE_LOST);
    expect_word(gpuhal_last_error()->sentence, "hung");
    assert_string_equal(gpuhal_last_error()->device, "mock:0");
    while (losses == 0) {
        assert_true(seconds_now() - begun < 2 * IN_TIME_S);
    }
    expect_works(find(gpu, "cpu:0"));
    gpuhal_mock.stops = 0; /* must precede the opening of the other device, since the mock stops every opening */
    let_go();
    expect_works(find(gpu, "mock:1"));
    assert_int_equal(losses, 1);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
}

TEST(a_device_that_an_abandoned_opening_delivers_is_closed_and_may_be_opened_again)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = open_impatient();
    gpuhal_device *device = find(gpu, "mock:0");
    gpuhal_mock.stops = GPUHAL_MOCK_OPEN;
    assert_int_equal(gpuhal_device_open(device), GPUHAL_ERROR_DEVICE_LOST);
    double begun = seconds_now();
    assert_int_equal(gpuhal_device_open(device), GPUHAL_ERROR_DEVICE_LOST);
    assert_true(seconds_now() - begun < (double)HANG_NS / 1e9);
    assert_int_equal(gpuhal_mock.stopped, 1);
    let_go();
    while (gpuhal_device_open(device)) {
        assert_true(seconds_now() - begun < IN_TIME_S);
    }
    assert_int_equal(gpuhal_device_status(device), GPUHAL_OK);
    expect_works(device);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
}

TEST(an_object_may_be_closed_while_its_opening_is_stuck)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = open_impatient();
    gpuhal_mock.stops = GPUHAL_MOCK_OPEN;
    assert_int_equal(gpuhal_device_open(find(gpu, "mock:0")), GPUHAL_ERROR_DEVICE_LOST);
    double begun = seconds_now();
    gpuhal_close(gpu);
    assert_true(seconds_now() - begun < IN_TIME_S);
    let_go();
    while (gpuhal_mock.devices[0].openings != 0) {
        assert_true(seconds_now() - begun < 2 * IN_TIME_S);
    }
}

static void *adopt_it(void *device)
{
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_DEVICE, .values = {GPUHAL_MOCK_NATIVE}};
    return (void *)(intptr_t)gpuhal_device_adopt(device, &native);
}

TEST(an_opening_over_the_callers_device_stays_on_its_thread_and_holds_no_other_caller_up)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.adopt_kinds = 1u << GPUHAL_NATIVE_OPENCL_DEVICE}}};
    gpuhal *gpu = open_impatient();
    gpuhal_device *device = find(gpu, "mock:0");
    gpuhal_mock.stops = GPUHAL_MOCK_OPEN;
    pthread_t adopts;
    assert_int_equal(pthread_create(&adopts, NULL, adopt_it, device), 0);
    double begun = seconds_now();
    while (gpuhal_mock.stopped == 0) {
        assert_true(seconds_now() - begun < IN_TIME_S);
    }
    assert_true(pthread_equal(gpuhal_mock.stopped_thread, adopts));
    assert_int_equal(gpuhal_device_open(device), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(device), GPUHAL_ERROR_DEVICE_LOST);
    assert_true(seconds_now() - begun < IN_TIME_S);
    let_go();
    pthread_join(adopts, NULL);
    gpuhal_close(gpu);
}

TEST(the_vendors_words_travel_from_the_thread_that_opens)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.fail_open = GPUHAL_ERROR_NO_PERMISSION}}};
    gpuhal *gpu = open_impatient();
    assert_int_equal(gpuhal_device_open(find(gpu, "mock:0")), GPUHAL_ERROR_NO_PERMISSION);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockOpen");
    assert_int_equal(gpuhal_last_error()->vendor_code, 1);
    assert_string_equal(gpuhal_last_error()->device, "mock:0");
    gpuhal_close(gpu);
}

TEST(closing_an_object_does_not_wait_for_ever_for_a_driver_that_hangs_in_close)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = open_impatient();
    expect_works(find(gpu, "mock:0"));
    gpuhal_mock.stops = GPUHAL_MOCK_CLOSE;
    double begun = seconds_now();
    gpuhal_close(gpu);
    assert_true(seconds_now() - begun < IN_TIME_S);
    let_go();
}

/* ---- values and links */

static gpuhal_missing sample_one(gpuhal_device *device, gpuhal_key key)
{
    gpuhal_value value = {.key = key};
    assert_int_equal(gpuhal_device_sample(device, 0, &value, 1, NULL), GPUHAL_OK);
    return value.missing;
}

TEST(a_value_that_hangs_costs_itself_and_neither_the_others_nor_the_device)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = open_impatient();
    gpuhal_device *device = find(gpu, "mock:0");
    gpuhal_mock.stop_key = GPUHAL_VALUE_POWER_MICROWATTS;
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    gpuhal_value values[3] = {{.key = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS},
                              {.key = GPUHAL_VALUE_POWER_MICROWATTS},
                              {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}};
    double begun = seconds_now();
    assert_int_equal(gpuhal_device_sample(device, 0, values, 3, NULL), GPUHAL_OK);
    assert_true(seconds_now() - begun < IN_TIME_S);
    assert_int_equal(values[0].missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(values[1].missing, GPUHAL_MISSING_TIMED_OUT);
    assert_true(strlen(values[1].why) > 0);
    assert_int_equal(values[2].missing, 0);
    assert_int_equal(values[2].u64, 1u << 30);
    /* The value that hangs must not be queried again, and no other thread may wait for it. */
    begun = seconds_now();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(sample_one(device, GPUHAL_VALUE_POWER_MICROWATTS), GPUHAL_MISSING_TIMED_OUT);
        assert_int_equal(sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    }
    assert_true(seconds_now() - begun < IN_TIME_S);
    assert_int_equal(gpuhal_mock.stopped, 1);
    assert_int_equal(gpuhal_device_status(device), GPUHAL_OK);
    expect_works(device);
    let_go();
    while (sample_one(device, GPUHAL_VALUE_POWER_MICROWATTS) == GPUHAL_MISSING_TIMED_OUT) {
        assert_true(seconds_now() - begun < 2 * IN_TIME_S);
    }
    gpuhal_close(gpu);
}

TEST(a_driver_that_hangs_in_every_value_keeps_few_threads)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.hang_ns = 20 * MS}, 0);
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    double begun = seconds_now();
    for (int i = 0; i < 3; i++) {
        for (gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES; key <= GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL; key++) {
            assert_int_equal(sample_one(gpuhal_device_at(gpu, 0), key), GPUHAL_MISSING_TIMED_OUT);
        }
    }
    assert_true(seconds_now() - begun < 2 * IN_TIME_S);
    assert_in_range(gpuhal_mock.stopped, 1, 8);
    let_go();
    gpuhal_close(gpu);
}

TEST(values_that_a_plugin_gave_of_a_link_before_it_hung_count)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .links = 1};
    gpuhal *gpu = open_impatient();
    gpuhal_device *one = find(gpu, "mock:0"), *other = find(gpu, "mock:1");
    gpuhal_mock.stops = GPUHAL_MOCK_LINK;
    uint64_t value = 0;
    double begun = seconds_now();
    assert_int_equal(gpuhal_link_u64(one, other, GPUHAL_LINK_PEER_ADVERTISED, &value), GPUHAL_OK);
    assert_int_equal(value, 1);
    assert_int_equal(gpuhal_link_missing(one, other, GPUHAL_LINK_COUNT, NULL), GPUHAL_MISSING_TIMED_OUT);
    assert_true(seconds_now() - begun < IN_TIME_S);
    expect_works(one);
    let_go();
    gpuhal_close(gpu);
}

#include "test_main.h"
