/* The library's threads, with the names that docs/embedding.md promises. A thread must exist only while it is
 * needed. */
#include "support/mock.h"
#include "watchdog_support.h"

#include "device/fault_log.h"
#include "registry/store.h"

#include <dirent.h>

/* ---- names */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Reads the names of the library's threads, except "gpuhal-job", because the number of waiting jobs depends on the
 * plugin. Returns the number of all other threads. The other threads belong to the test or a sanitizer, or are unnamed
 * threads of the library. */
static size_t read_names(char out[512])
{
    char names[64][32];
    size_t count = 0, others = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder)) && count < 64;) {
        char path[300];
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (file && fgets(names[count], sizeof names[count], file)) {
            names[count][strcspn(names[count], "\n")] = 0;
            bool ours = strncmp(names[count], "gpuhal-", 7) == 0;
            others += !ours;
            count += ours && strcmp(names[count], "gpuhal-job") != 0;
        }
        if (file) {
            fclose(file);
        }
    }
    closedir(folder);
    qsort(names, count, sizeof *names, by_name);
    out[0] = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(out + strlen(out), 512 - strlen(out), "%s%s", i > 0 ? " " : "", names[i]);
    }
    return others;
}

static size_t others_before;

static void expect_threads(const char *expected)
{
    char names[512] = "";
    size_t others = SIZE_MAX;
    for (int i = 0; i < 4000 && (others != others_before || strcmp(names, expected) != 0); i++) {
        pause_ms(i > 0);
        others = read_names(names);
    }
    assert_string_equal(names, expected);
    assert_int_equal(others, others_before);
}

static void *end_at_once(void *unused)
{
    return unused;
}

/* Must be called before the library starts a thread. A sanitizer starts a thread of its own with the program's first
 * thread, so this function starts a thread before it counts. */
static void count_others(size_t own)
{
    char names[512];
    pthread_t first;
    assert_int_equal(pthread_create(&first, NULL, end_at_once, NULL), 0);
    assert_int_equal(pthread_join(first, NULL), 0);
    others_before = read_names(names) + own;
}

/* ---- the causes of each thread */

TEST(opening_starts_no_thread_that_stays_and_a_device_is_watched_while_it_is_open)
{
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0), *other = gpuhal_mock_open(NULL, 0);
    expect_threads("");
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    gpuhal_buffer_release(gpuhal_mock_buffer(other, 1, 64));
    expect_threads("gpuhal-watch");
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    expect_threads("gpuhal-watch");
    gpuhal_close(other);
    expect_threads("");
}

static void ignore_change(__attribute__((unused)) void *user, __attribute__((unused)) const gpuhal_change *change)
{
}

TEST(each_object_that_listens_has_a_thread_that_calls_back_and_all_share_the_one_that_watches)
{
    gpuhal_os_handle descriptor = -1;
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0), *other = gpuhal_mock_open(NULL, 0);
    assert_ok(gpuhal_on_change(gpu, ignore_change, NULL));
    expect_threads("gpuhal-serve gpuhal-watch");
    assert_ok(gpuhal_change_descriptor(other, &descriptor));
    expect_threads("gpuhal-serve gpuhal-watch");
    assert_ok(gpuhal_on_change(other, ignore_change, NULL));
    expect_threads("gpuhal-serve gpuhal-serve gpuhal-watch");
    gpuhal_close(gpu);
    expect_threads("gpuhal-serve gpuhal-watch");
    gpuhal_os_handle_close(descriptor);
    gpuhal_close(other);
    expect_threads("");
}

/* ---- closing */

static _Atomic bool called_back, goes_back;

static void stay_in_callback(__attribute__((unused)) void *user, __attribute__((unused)) gpuhal_status status)
{
    called_back = true;
    while (!goes_back) {
        pause_ms(1);
    }
}

TEST(an_object_that_is_closed_during_a_callback_ends_with_it)
{
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_event *event = NULL;
    assert_ok(gpuhal_event_create(gpu, GPUHAL_EVENT_HOST, &event));
    assert_ok(gpuhal_event_on_completion(event, stay_in_callback, NULL));
    assert_ok(gpuhal_event_signal(event, GPUHAL_OK));
    while (!called_back) {
        pause_ms(1);
    }
    gpuhal_event_destroy(event);
    gpuhal_close(gpu);
    expect_threads("gpuhal-serve");
    goes_back = true;
    expect_threads("");
}

static void *close_cancelled(void *gpu)
{
    pthread_cancel(pthread_self());
    gpuhal_close(gpu);
    pthread_testcancel();
    return NULL;
}

TEST(a_cancelled_thread_closes_its_object_and_keeps_no_lock_of_others)
{
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0), *other = gpuhal_mock_open(NULL, 0);
    pthread_t thread;
    void *result = NULL;
    assert_ok(gpuhal_on_change(gpu, ignore_change, NULL));
    assert_ok(gpuhal_on_change(other, ignore_change, NULL));
    expect_threads("gpuhal-serve gpuhal-serve gpuhal-watch");
    assert_int_equal(pthread_create(&thread, NULL, close_cancelled, gpu), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    expect_threads("gpuhal-serve gpuhal-watch");
    gpuhal_buffer_release(gpuhal_mock_buffer(other, 0, 64));
    gpuhal_close(other);
    expect_threads("");
}

/* Closing the descriptors does not end the watching thread's wait. */
TEST(a_program_that_closes_all_its_descriptors_still_closes_its_object)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer takes the closing of a descriptor in which a thread waits for a race");
#endif
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_ok(gpuhal_on_change(gpu, ignore_change, NULL));
    expect_threads("gpuhal-serve gpuhal-watch");
    pause_ms(100);
    for (int descriptor = 3; descriptor < 64; descriptor++) {
        close(descriptor);
    }
    gpuhal_close(gpu);
    expect_threads("");
}

/* ---- workers */

static _Atomic bool held_up;

static void hold_up(__attribute__((unused)) void *user, __attribute__((unused)) int32_t level,
                    __attribute__((unused)) const char *line)
{
    while (held_up) {
        pause_ms(1);
    }
}

TEST(one_rescan_at_a_time_runs_on_a_thread_of_its_own_which_ends)
{
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 3, .unplugged = 6};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.log = hold_up, .log_level = GPUHAL_LOG_INFO}, 0);
    gpuhal_os_handle descriptor = -1;
    assert_ok(gpuhal_change_descriptor(gpu, &descriptor));
    gpuhal_buffer_release(gpuhal_mock_buffer(gpu, 0, 64));
    expect_threads("gpuhal-watch");
    held_up = true;
    gpuhal_mock.unplugged = 4;
    gpuhal_mock.host->changed(gpuhal_mock.host);
    expect_threads("gpuhal-rescan gpuhal-watch");
    gpuhal_mock.unplugged = 0;
    gpuhal_mock.host->changed(gpuhal_mock.host);
    pause_ms(900);
    expect_threads("gpuhal-rescan gpuhal-watch");
    held_up = false;
    for (int i = 0; i < 20000 && gpuhal_device_count(gpu) < 3; i++) {
        pause_ms(1);
    }
    assert_int_equal(gpuhal_device_count(gpu), 3);
    expect_threads("gpuhal-watch");
    gpuhal_os_handle_close(descriptor);
    gpuhal_close(gpu);
    expect_threads("");
}

static gpuhal_status do_close(fixture *s)
{
    gpuhal_close(s->gpu);
    return GPUHAL_OK;
}

TEST(closing_waits_for_a_rescan_and_changes_during_it_cause_no_other)
{
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .unplugged = 2};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.log = hold_up, .log_level = GPUHAL_LOG_INFO}, 0);
    gpuhal_os_handle descriptor = -1;
    static fixture s;
    s.gpu = gpu;
    assert_ok(gpuhal_change_descriptor(gpu, &descriptor));
    held_up = true;
    gpuhal_mock.unplugged = 0;
    gpuhal_mock.host->changed(gpuhal_mock.host);
    expect_threads("gpuhal-rescan gpuhal-watch");
    gpuhal_mock.host->changed(gpuhal_mock.host);
    waiter own;
    begin_waiter(&own, &s, do_close);
    pause_ms(500);
    assert_false(own.ended);
    held_up = false;
    assert_int_equal(pthread_join(own.thread, NULL), 0);
    expect_threads("");
    gpuhal_os_handle_close(descriptor);
}

TEST(faults_are_written_by_a_thread_that_ends)
{
    count_others(0);
    use_registry();
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.registry = registry_folder}, 0);
    intptr_t lock = -1;
    assert_int_equal(gpuhal_store_lock(registry_folder, UINT64_MAX, &lock), 0);
    gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "the mock is lost");
    gpuhal_fault_log_fault(gpuhal_device_at(gpu, 0), GPUHAL_FAULT_LOST);
    gpuhal_fault_log_fault(gpuhal_device_at(gpu, 0), GPUHAL_FAULT_OUT_OF_MEMORY);
    expect_threads("gpuhal-faults");
    gpuhal_os_lock_give(lock);
    expect_threads("");
    expect_fault_on_disk("lost", 1);
    gpuhal_close(gpu);
}

TEST(a_queue_has_a_thread_from_the_first_deferred_work_to_its_end)
{
    count_others(0);
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_queue *queue = NULL;
    gpuhal_event *event = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue));
    assert_ok(gpuhal_event_create(gpu, GPUHAL_EVENT_HOST, &event));
    expect_threads("gpuhal-watch");
    assert_ok(gpuhal_queue_wait(queue, event));
    expect_threads("gpuhal-queue gpuhal-watch");
    assert_ok(gpuhal_event_signal(event, GPUHAL_OK));
    gpuhal_queue_destroy(queue);
    expect_threads("gpuhal-watch");
    gpuhal_event_destroy(event);
    gpuhal_close(gpu);
    expect_threads("");
}

/* ---- drivers that hang (in children, since threads stay blocked) */

static void ask_a_silent_driver(fixture *s)
{
    static const stop what = {"copy", prepare_unfinished, do_copy, 0};
    pthread_t thread;
    count_others(1);
    gpuhal_halting.also = "event_query";
    begin_fixture(s, &what, &thread);
    expect_threads("gpuhal-ask gpuhal-serve gpuhal-watch");
}

static void hold_up_the_report(fixture *s)
{
    static const stop what = {"copy", NULL, do_copy, 0};
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .ignore_environment = 1,
                                  .registry = "none", .hang_ns = HANG_NS, .builtins = builtins, .log = hold_up};
    pthread_t thread;
    count_others(1);
    s->what = &what;
    assert_ok(gpuhal_open(&config, &s->gpu));
    s->device = select_or_fail(s->gpu, "halting:0");
    s->a = buffer_on(s->device, 0);
    s->b = buffer_on(s->device, 0);
    held_up = true;
    begin_act(s, &thread);
    expect_threads("gpuhal-report");
    held_up = false;
    expect_threads("");
}

static const scenario hanging[] = {
    {"asking", ask_a_silent_driver},
    {"reporting", hold_up_the_report},
};

TEST(a_hanging_driver_is_asked_and_reported_by_threads_of_their_own)
{
    in_children(hanging, sizeof hanging / sizeof *hanging);
}

#include "test_main.h"
