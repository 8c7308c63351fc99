/* tests/unit/watchdog_test.c: if a driver stops in a slot, its device is lost. Every other thread must be notified of
 * the loss in time, by a status, a listener or the registry. */
#include "base/call.h"
#include "device/device.h"
#include "watchdog_support.h"

/* ---- calls that stop in the driver */

static gpuhal_status do_large_copy(fixture *s)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 2 << 20};
    gpuhal_buffer *to = NULL, *from = NULL;
    gpuhal_status status = gpuhal_buffer_create(s->device, &desc, &to);
    status = status ? status : gpuhal_buffer_create(s->device, &desc, &from);
    return status ? status : gpuhal_copy(NULL, to, 0, from, 0, desc.bytes);
}
static gpuhal_status do_map(fixture *s)
{
    return gpuhal_buffer_map(s->a, 0, BYTES, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &s->mapped);
}
static void prepare_map(fixture *s)
{
    assert_ok(do_map(s));
}
static gpuhal_status do_unmap(fixture *s)
{
    return gpuhal_buffer_unmap(s->a, s->mapped);
}
static void prepare_peer_failure(fixture *s)
{
    assert_ok(do_peer_copy(s));
    gpuhal_halting.fail_peer_copy = 1;
}
static gpuhal_status do_native_device(fixture *s)
{
    gpuhal_native native = {.size = sizeof native};
    return gpuhal_device_native(s->device, &native);
}
static gpuhal_status do_native_memory(fixture *s)
{
    gpuhal_native native = {.size = sizeof native};
    return gpuhal_buffer_native(s->a, &native);
}
static void prepare_native(fixture *s)
{
    assert_ok(do_native_begin(s));
}
static gpuhal_status do_native_end(fixture *s)
{
    return gpuhal_queue_native_end(s->queue);
}
static gpuhal_status do_wrap(fixture *s)
{
    const gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_BUFFER};
    gpuhal_buffer *buffer = NULL;
    return gpuhal_buffer_wrap(s->device, &native, BYTES, NULL, NULL, &buffer);
}
static void prepare_batch(fixture *s)
{
    assert_ok(do_queued_copy(s));
    assert_ok(do_queued_copy(s));
}
static void prepare_old_work(fixture *s)
{
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
    assert_ok(gpuhal_event_record(s->later, s->second));
    gpuhal_halting.work_goes_on = 0;
}

static gpuhal_status do_unload(__attribute__((unused)) fixture *s)
{
    gpuhal_program_release(program);
    return GPUHAL_OK;
}
static gpuhal_status do_kernel_destroy(__attribute__((unused)) fixture *s)
{
    gpuhal_kernel_release(kernel);
    return GPUHAL_OK;
}

static gpuhal_pool *pool;
static void prepare_pool(fixture *s)
{
    assert_ok(gpuhal_pool_create(s->device, NULL, &pool));
}
/* Allocates two buffers that use a whole segment each, and returns them to the driver. */
static gpuhal_status do_pool(fixture *s)
{
    gpuhal_buffer *one = NULL, *other = NULL;
    (void)s;
    gpuhal_status status = gpuhal_pool_allocate(pool, NULL, 64 << 20, 0, 0, &one);
    status = status ? status : gpuhal_pool_allocate(pool, NULL, 64 << 20, 0, 0, &other);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(other);
    (void)gpuhal_pool_trim(pool, 0, NULL);
    gpuhal_pool_destroy(pool);
    return status;
}
static void *grow_pool(void *user)
{
    gpuhal_buffer *buffer = NULL;
    *(gpuhal_status *)user = gpuhal_pool_allocate(pool, NULL, 64 << 20, 0, 0, &buffer);
    gpuhal_buffer_release(buffer);
    return NULL;
}

/* Launches the kernel once, since the first launch may compile the kernel and is allowed more time. */
static void prepare_launched(fixture *s)
{
    prepare_kernel(s);
    assert_ok(do_queued_launch(s));
    assert_ok(do_synchronize(s));
}

static gpuhal_status do_recording_release(__attribute__((unused)) fixture *s)
{
    gpuhal_recording_release(recording);
    return GPUHAL_OK;
}

static const stop stops[] = {
    {"allocate", NULL, do_allocate, 0},
    {"release", NULL, do_release, SILENT},
    {"copy", NULL, do_copy, 0},
    {"copy", NULL, do_large_copy, 0},
    {"copy", prepare_old_work, do_copy, 0}, /* with earlier work whose end no thread has detected yet */
    {"write", NULL, do_write, 0},
    {"read", NULL, do_read, 0},
    {"fill", NULL, do_fill, 0},
    {"copy_rect", NULL, do_rect, 0},
    {"memory_flush", prepare_map, do_unmap, NOT_COHERENT},
    {"memory_invalidate", NULL, do_map, NOT_COHERENT},
    {"map", NULL, do_map, HIDDEN},
    {"unmap", prepare_map, do_unmap, HIDDEN},
    {"export_memory", prepare_export, do_export, 0},
    {"queue_create", NULL, do_queue_create, 0},
    {"queue_destroy", NULL, do_queue_destroy, SILENT},
    {"queue_flush", NULL, do_native_begin, NO_LOCK},
    {"event_create", NULL, do_record, 0},
    {"event_destroy", prepare_spare_event, do_queue_end, SILENT},
    {"event_record", NULL, do_record, 0},
    {"event_query", prepare_unfinished, do_poll, 0},
    {"event_block", prepare_unfinished, do_wait, 0},
    {"event_block", prepare_unfinished, do_wait, HONORS},
    {"queue_wait", prepare_unfinished, do_queue_wait, 0},
    {"elapsed", prepare_elapsed, do_elapsed, 0},
    {"peer_enable", NULL, do_peer_copy, 0},
    {"peer_copy", NULL, do_peer_copy, 0},
    {"query_health", prepare_peer_failure, do_peer_copy, 0},
    {"native_device", NULL, do_native_device, 0},
    {"native_memory", NULL, do_native_memory, 0},
    {"native_queue", NULL, do_native_begin, 0},
    {"native_lock", NULL, do_native_begin, 0},
    {"native_unlock", prepare_native, do_native_end, 0},
    {"wrap_memory", NULL, do_wrap, 0},
    {"range_granularity", prepare_pool, do_pool, NO_PEERS},
    {"range_reserve", prepare_pool, do_pool, NO_PEERS},
    {"range_commit", prepare_pool, do_pool, NO_PEERS},
    {"range_decommit", prepare_pool, do_pool, NO_PEERS | SILENT},
    {"range_release", prepare_pool, do_pool, NO_PEERS | SILENT},
    {"program_unload", prepare_program, do_unload, SILENT},
    {"kernel_destroy", prepare_kernel, do_kernel_destroy, SILENT},
    {"queued_launch", prepare_launched, do_queued_launch, 0},
    {"recording_set", prepare_run, do_run_with_another_buffer, 0},
    {"recording_run", prepare_run, do_run, 0},
    {"recording_destroy", prepare_run, do_recording_release, SILENT},
    {"queued_copy", NULL, do_queued_copy, 0},
    {"queued_copy", prepare_batch, do_queued_copy, 0},
};

/* Values must not be sampled from a lost device. */
static void stop_and_learn(fixture *s, pthread_t *thread)
{
    prepare_fixture(s);
    begin_act(s, thread);
    gpuhal_halting.work_goes_on = 0; /* otherwise a driver may wait for the work */
    uint32_t samples = gpuhal_halting.samples;
    expect_lost(s);
    assert_int_equal(gpuhal_halting.samples, samples);
}

static void play(fixture *s)
{
    pthread_t thread;
    stop_and_learn(s, &thread);
    close_in_time(s);
}

static void play_late(fixture *s)
{
    pthread_t thread;
    stop_and_learn(s, &thread);
    stop_driver(NULL);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(s->status, s->what->flags & SILENT ? GPUHAL_OK : GPUHAL_ERROR_DEVICE_LOST);
    close_in_time(s);
    end_now();
}

/* ---- the end of the object, and its calls of the driver */

static void prepare_peer(fixture *s)
{
    assert_ok(do_peer_copy(s));
}
/* Makes a write that is staged through a chunk, with a queue and an event. */
static void prepare_staging(fixture *s)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 2 << 20};
    gpuhal_buffer *large = NULL;
    unsigned char *bytes = calloc(1, desc.bytes);
    assert_non_null(bytes);
    assert_ok(gpuhal_buffer_create(s->device, &desc, &large));
    assert_ok(gpuhal_write(NULL, large, 0, bytes, desc.bytes));
    gpuhal_buffer_release(large);
    free(bytes);
}

static const stop endings[] = {
    {"peer_disable", prepare_peer, NULL, 0},
    {"release", prepare_staging, NULL, HIDDEN | NO_WRITE},
    {"queue_destroy", prepare_staging, NULL, HIDDEN | NO_WRITE},
    {"event_destroy", prepare_staging, NULL, HIDDEN | NO_WRITE},
    {"close", NULL, NULL, 0},
};

static void give_back(fixture *s)
{
    gpuhal_event_destroy(s->event);
    gpuhal_event_destroy(s->later);
    gpuhal_queue_destroy(s->queue);
    gpuhal_queue_destroy(s->second);
    gpuhal_buffer_release(s->a);
    gpuhal_buffer_release(s->b);
    gpuhal_buffer_release(s->far);
    gpuhal_buffer_release(s->spare);
}

static void play_ending(fixture *s)
{
    prepare_fixture(s);
    give_back(s);
    stop_driver(s->what->slot);
    close_in_time(s);
    assert_in_range(gpuhal_halting.stopped, 1, 2); /* both devices are being closed */
    /* Devices are closed after links and staging. The object is not freed if the driver hangs in a call for links or
     * staging, but is freed if the driver hangs in a device's close. */
    assert_int_equal(stays, strcmp(s->what->slot, "close") != 0);
}

TEST(a_thread_that_grows_a_pool_does_not_wait_for_a_driver_that_hangs_in_a_trim)
{
    static const stop what = {"range_decommit", prepare_pool, do_pool, NO_PEERS | SILENT};
    fixture s = {.what = &what};
    pthread_t trimming, growing;
    gpuhal_status status = GPUHAL_OK;
    open_fixture(&s);
    prepare_fixture(&s);
    begin_act(&s, &trimming);
    assert_int_equal(pthread_create(&growing, NULL, grow_pool, &status), 0);
    assert_int_equal(pthread_join(growing, NULL), 0);
    assert_int_equal(status, GPUHAL_ERROR_DEVICE_LOST);
    end_now();
}

static void *let_both_come_back(void *user)
{
    fixture *s = user;
    for (int i = 0; i < 10000 && gpuhal_halting.stopped < 2; i++) {
        pause_ms(1);
    }
    s->changes = (int)gpuhal_halting.stopped;
    stop_driver(NULL);
    return NULL;
}

static void close_side_by_side(fixture *s)
{
    static const stop what = {"close", NULL, NULL, 0};
    pthread_t thread;
    s->what = &what;
    s->hang_ns = 40 * SECOND_NS;
    prepare_fixture(s);
    give_back(s);
    stop_driver("close");
    assert_int_equal(pthread_create(&thread, NULL, let_both_come_back, s), 0);
    gpuhal_close(s->gpu);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(s->changes, 2);
    assert_int_equal(gpuhal_halting.openings, 0);
}

static void play_late_ending(fixture *s)
{
    play_ending(s);
    stop_driver(NULL);
    for (int i = 0; i < 10000 && gpuhal_halting.openings > 0; i++) {
        pause_ms(1);
    }
    assert_int_equal(gpuhal_halting.openings, 0);
    end_now();
}

/* ---- all stops */

enum { STOPS = sizeof stops / sizeof *stops, ENDINGS = sizeof endings / sizeof *endings, AT_ONCE = 12 };

TEST(a_driver_that_hangs_in_any_slot_loses_its_device_and_no_other_caller_waits)
{
    play_all(stops, STOPS, AT_ONCE, play);
}

TEST(a_call_that_comes_back_late_returns_device_lost)
{
    play_all(stops, STOPS, AT_ONCE, play_late);
}

TEST(gpuhal_close_returns_in_time_from_a_driver_that_stops_in_any_call)
{
    play_all(endings, ENDINGS, AT_ONCE, play_ending);
}

TEST(gpuhal_close_closes_its_devices_side_by_side)
{
    in_child(close_side_by_side);
}

TEST(a_driver_that_comes_back_after_gpuhal_close_has_its_devices_closed)
{
    play_all(endings, ENDINGS, AT_ONCE, play_late_ending);
}

/* ---- whole plugins, and processes */

static void *stay_in_plugin(void *user)
{
    const gpuhal_call call = gpuhal_call_blocking(((gpuhal_device *)user)->plugin, 0);
    pause_ms(30000);
    gpuhal_call_end(call);
    return NULL;
}

static void stay_in_enumerate(fixture *s)
{
    static const stop what = {"enumerate", NULL, NULL, 0};
    pthread_t thread;
    s->what = &what;
    open_fixture(s);
    fill_fixture(s);
    assert_int_equal(pthread_create(&thread, NULL, stay_in_plugin, s->device), 0);
    for (double end = now() + LEARNT_SECONDS;
         now() < end && (!gpuhal_device_status(s->device) || !gpuhal_device_status(s->other));) {
        pause_ms(5);
    }
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(s->other), GPUHAL_ERROR_DEVICE_LOST);
    expect_fault_on_disk("hang", 1);
    close_in_time(s);
}

TEST(a_call_for_a_whole_plugin_that_hangs_costs_all_its_devices)
{
    in_child(stay_in_enumerate);
}

/* The parent has an open device and watchdog threads. The child has a device and threads of its own. */
static void fork_and_hang(fixture *s)
{
    static const stop what = {"copy", NULL, do_copy, 0};
    gpuhal_halting.fork_safe = 1;
    open_fixture(s);
    fill_fixture(s);
    assert_ok(do_copy(s));
    pid_t child = begin_child();
    if (child == 0) {
        static fixture own;
        pthread_t thread;
        begin_fixture(&own, &what, &thread);
        expect_lost(&own);
        close_in_time(&own);
        end_now();
    }
    end_child(child, "the child");
    assert_ok(do_copy(s));
}

TEST(after_a_fork_the_child_has_a_watchdog_of_its_own)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    in_child(fork_and_hang);
}

#include "test_main.h"
