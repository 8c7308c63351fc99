/* Devices that are plugged in and unplugged while a program has loaded their plugin: the devices that can be opened,
 * and their handles. */
#include "support/mock.h"
#include "loader_support.h"

static char slots_file[512];

static void put_slots(const char *slots)
{
    snprintf(slots_file, sizeof slots_file, "%s", in_folder("slots"));
    write_file(slots_file, slots, strlen(slots));
    setenv("GPUHAL_TEST_SLOTS", slots_file, 1);
}

static gpuhal *open_plugin(const char *name, uint32_t isolation)
{
    char path[512];
    gpuhal *gpu = NULL;
    snprintf(path, sizeof path, "%s/%s", GPUHAL_TEST_PLUGINS, name);
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = isolation,
                                  .plugin_path = path,
                                  .backends = name,
                                  .helper_path = GPUHAL_HELPER,
                                  .registry = "none",
                                  .helper_deadline_ns = PATIENT_NS};
    if (gpuhal_open(&config, &gpu)) {
        fail_msg("gpuhal_open: %s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

static gpuhal_device *find(gpuhal *gpu, const char *id)
{
    gpuhal_device *device = NULL;
    if (gpuhal_select(gpu, id, 0, &device, NULL)) {
        fail_msg("%s: %s", id, gpuhal_last_error()->sentence);
    }
    return device;
}

static void expect_works(gpuhal_device *device)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64};
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_buffer_create(device, &desc, &buffer)) {
        fail_msg("%s: %s", gpuhal_device_id(device), gpuhal_last_error()->sentence);
    }
    gpuhal_buffer_release(buffer);
}

static void rescan(gpuhal *gpu)
{
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
}

TEST(a_device_that_is_plugged_in_after_its_plugin_was_loaded_can_be_opened)
{
    put_slots("A");
    gpuhal *gpu = open_plugin("good_comes_and_goes", GPUHAL_ISOLATION_ALWAYS);
    expect_works(find(gpu, "good_comes_and_goes:0"));
    put_slots("AB");
    rescan(gpu);
    expect_works(find(gpu, "good_comes_and_goes:1"));
    /* In a new helper B would be the first device. In this process B stays the second device. */
    put_slots("B");
    rescan(gpu);
    assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DEVICE_LOST);
    expect_works(gpuhal_device_at(gpu, 1));
    gpuhal_close(gpu);
}

TEST(a_plugin_that_is_probed_in_this_process_is_probed_again_by_a_rescan)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 3, .unplugged = 4};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_int_equal(gpuhal_device_count(gpu), 2);
    expect_works(gpuhal_device_at(gpu, 1));
    gpuhal_mock.unplugged = 1;
    rescan(gpu);
    /* The devices are identical; only the index identifies them. */
    assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, 1)), GPUHAL_OK);
    expect_works(gpuhal_device_at(gpu, 1));
    assert_int_equal(gpuhal_device_count(gpu), 3);
    assert_string_equal(gpuhal_device_id(gpuhal_device_at(gpu, 2)), "mock:2");
    expect_works(gpuhal_device_at(gpu, 2));
    gpuhal_mock.unplugged = 7;
    rescan(gpu);
    assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, 1)), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_mock.unplugged = 0;
    rescan(gpu);
    assert_int_equal(gpuhal_device_count(gpu), 6);
    expect_works(gpuhal_device_at(gpu, 3));
    gpuhal_close(gpu);
}

static _Atomic bool notified;

static void take_line(__attribute__((unused)) void *user, __attribute__((unused)) int32_t level,
                      __attribute__((unused)) const char *line)
{
    notified = true;
    usleep(200000); /* threads are cancelled here */
}

static void *rescan_alone(void *gpu)
{
    return gpuhal_rescan(gpu, NULL) == GPUHAL_OK ? gpu : NULL;
}

/* The object used to treat the notification and the rescan as still running, so rescans and gpuhal_close() waited
 * forever. */
TEST(a_thread_that_is_cancelled_while_a_rescan_notifies_leaves_the_object_usable)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .unplugged = 2};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.log = take_line, .log_level = GPUHAL_LOG_INFO}, 0);
    gpuhal_mock.unplugged = 0;
    notified = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, rescan_alone, gpu), 0);
    while (!notified) {
        usleep(100);
    }
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    assert_int_equal(gpuhal_device_count(gpu), 2);
    gpuhal_mock.unplugged = 1;
    rescan(gpu);
    assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_close(gpu);
}

TEST(the_loaded_driver_identifies_which_of_equal_devices_without_identity_is_left)
{
    put_slots("AB");
    gpuhal *gpu = open_plugin("good_without_identity", GPUHAL_ISOLATION_ALWAYS);
    gpuhal_device *first = find(gpu, "good_without_identity:0"), *second = find(gpu, "good_without_identity:1");
    expect_works(first);
    expect_works(second);
    put_slots("B");
    rescan(gpu);
    assert_int_equal(gpuhal_device_status(first), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(second), GPUHAL_OK);
    expect_works(second);
    gpuhal_close(gpu);
}

TEST(equal_devices_without_identity_are_all_lost_when_nothing_identifies_those_left)
{
    put_slots("ABC");
    gpuhal *gpu = open_plugin("good_without_identity", GPUHAL_ISOLATION_ALWAYS);
    uint64_t before = gpuhal_generation(gpu);
    put_slots("BC");
    rescan(gpu);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, i)), GPUHAL_ERROR_DEVICE_LOST);
    }
    assert_int_equal(gpuhal_generation(gpu) - before, 5);
    expect_works(find(gpu, "good_without_identity:0"));
    expect_works(find(gpu, "good_without_identity:1"));
    /* An additional device is not ambiguous, because the earlier devices still exist. */
    before = gpuhal_generation(gpu);
    put_slots("BCD");
    rescan(gpu);
    assert_int_equal(gpuhal_generation(gpu) - before, 1);
    expect_works(find(gpu, "good_without_identity:2"));
    gpuhal_close(gpu);
}

TEST(an_identity_that_differs_from_process_to_process_is_said_to)
{
    put_slots("A");
    gpuhal *gpu = open_plugin("good_other_identity", GPUHAL_ISOLATION_ALWAYS);
    assert_int_equal(gpuhal_device_open(find(gpu, "good_other_identity:0")), GPUHAL_ERROR_NO_DEVICE);
    const char *sentence = gpuhal_last_error()->sentence;
    assert_non_null(strstr(sentence, "UUID"));
    assert_non_null(strstr(sentence, "does not state the same identity in every process"));
    assert_null(strstr(sentence, "restarted"));
    gpuhal_close(gpu);
}

TEST(a_driver_that_hangs_when_it_is_asked_again_is_given_up_and_its_devices_stay)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.helper_deadline_ns = 600000000u}, 1);
    expect_works(gpuhal_device_at(gpu, 0));
    gpuhal_mock.stops = GPUHAL_MOCK_ENUMERATE;
    uint64_t begun = gpuhal_os_monotonic_ns();
    rescan(gpu);
    assert_in_range(gpuhal_os_monotonic_ns() - begun, 0, 8000000000u);
    begun = gpuhal_os_monotonic_ns();
    rescan(gpu);
    assert_in_range(gpuhal_os_monotonic_ns() - begun, 0, 4000000000u);
    assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, 0)), GPUHAL_OK);
    expect_works(gpuhal_device_at(gpu, 0));
    gpuhal_mock.stops = 0;
    gpuhal_close(gpu);
}

/* ---- notifications */

static void await_generation(const gpuhal *gpu, uint64_t generation)
{
    for (int i = 0; i < 3000 && gpuhal_generation(gpu) < generation; i++) {
        gpuhal_os_sleep(10000000);
    }
    assert_int_equal(gpuhal_generation(gpu), generation);
}

TEST(a_plugin_that_announces_a_change_makes_the_library_look_again)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .unplugged = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_os_handle descriptor = -1;
    const gpuhal_host *host = gpuhal_mock.host;
    host->changed(host); /* no listener is set */
    assert_int_equal(gpuhal_change_descriptor(gpu, &descriptor), GPUHAL_OK);
    gpuhal_mock.unplugged = 0;
    for (int i = 0; i < 100; i++) {
        host->changed(host);
    }
    await_generation(gpu, 2);
    expect_works(gpuhal_device_at(gpu, 1));
    gpuhal_mock.unplugged = 1;
    host->changed(host);
    await_generation(gpu, 3);
    assert_int_equal(gpuhal_device_status(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DEVICE_LOST);
    close((int)descriptor);
    gpuhal_close(gpu);
    host->changed(host);
}

/* Opens good_comes_and_goes. The manifest watches a file in a missing folder. The file names the plugin's devices. */
static gpuhal *open_watched(char slots[512])
{
    char more[600];
    gpuhal *gpu = NULL;
    new_folder();
    snprintf(slots, 512, "%s/run/slots", own_folder());
    snprintf(more, sizeof more, "watch = %s\n", slots);
    write_manifest("good_comes_and_goes.gpuhal", "good_comes_and_goes", test_plugin("good_comes_and_goes"), more);
    setenv("GPUHAL_TEST_SLOTS", slots, 1);
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_ALWAYS,
                                  .plugin_path = own_folder(),
                                  .backends = "good_comes_and_goes",
                                  .helper_path = GPUHAL_HELPER,
                                  .registry = "none",
                                  .helper_deadline_ns = PATIENT_NS};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    return gpu;
}

TEST(a_file_that_a_manifest_watches_makes_the_library_rescan)
{
    char slots[512];
    gpuhal_os_handle descriptor = -1;
    gpuhal *gpu = open_watched(slots);
    assert_int_equal(gpuhal_change_descriptor(gpu, &descriptor), GPUHAL_OK);
    assert_int_equal(mkdir(in_folder("run"), 0755), 0);
    write_file(slots, "A", 1);
    await_generation(gpu, 2);
    write_file(slots, "AB", 2);
    await_generation(gpu, 3);
    assert_int_equal(unlink(slots), 0);
    await_generation(gpu, 5);
    write_file(slots, "C", 1);
    await_generation(gpu, 6);
    expect_works(gpuhal_device_at(gpu, gpuhal_device_count(gpu) - 1));
    close((int)descriptor);
    gpuhal_close(gpu);
}

/* The folder appears between two scans, and the file in it changes during the rescan. */
TEST(a_file_that_changes_while_the_library_looks_makes_it_look_again)
{
    char slots[512], was_read[512];
    gpuhal_os_handle descriptor = -1;
    gpuhal *gpu = open_watched(slots);
    snprintf(was_read, sizeof was_read, "%s/was_read", own_folder());
    setenv("GPUHAL_TEST_READ", was_read, 1);
    assert_int_equal(gpuhal_change_descriptor(gpu, &descriptor), GPUHAL_OK);
    assert_int_equal(mkdir(in_folder("run"), 0755), 0);
    write_file(slots, "A", 1);
    while (access(was_read, F_OK) != 0) {
        gpuhal_os_sleep(1000000);
    }
    write_file(slots, "AB", 2);
    await_generation(gpu, 3);
    expect_works(gpuhal_device_at(gpu, 1));
    close((int)descriptor);
    gpuhal_close(gpu);
}

static bool has_news(gpuhal_file_watch *watch)
{
    gpuhal_os_sleep(20000000);
    return gpuhal_os_file_watch_take(watch);
}

TEST(other_changes_in_the_folder_of_a_watched_file_are_no_news)
{
    gpuhal_file_watch *watch = NULL;
    new_folder();
    write_file(in_folder("watched"), "1", 1);
    assert_int_equal(gpuhal_os_file_watch_create(&watch), 0);
    assert_int_equal(gpuhal_os_file_watch_add(watch, in_folder("watched")), 0);
    assert_int_equal(gpuhal_os_file_watch_add(watch, in_folder("watched")), 0);
    assert_int_equal(gpuhal_os_file_watch_add(watch, in_folder("missing/folder/file")), 0);
    assert_false(has_news(watch));
    write_file(in_folder("other"), "1", 1);
    assert_false(has_news(watch));
    write_file(in_folder("watched"), "2", 1);
    assert_true(has_news(watch));
    assert_false(has_news(watch));
    assert_int_equal(rename(in_folder("other"), in_folder("watched")), 0);
    assert_true(has_news(watch));
    assert_int_equal(mkdir(in_folder("missing"), 0755), 0);
    assert_true(has_news(watch));
    assert_int_equal(gpuhal_os_file_watch_add(watch, in_folder("missing")), 0);
    write_file(in_folder("missing/anything"), "1", 1);
    assert_true(has_news(watch));
    gpuhal_os_file_watch_destroy(watch);
}

#include "test_main.h"
