/* tests/unit/watchdog_patience_test.c: long waits that are not hangs, and the time that the library allows. */
#include "watchdog_support.h"

static gpuhal_status do_synchronize_second(fixture *s)
{
    return gpuhal_queue_synchronize(s->second, UINT64_MAX);
}

static void expect_end(fixture *s, pthread_t thread)
{
    gpuhal_halting.slot = NULL;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(s->status);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_OK);
}

static void prepare_long_work(fixture *s)
{
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
}

static void copy_behind_long_work(fixture *s)
{
    static const stop what = {"copy", prepare_long_work, do_copy, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    assert_true(gpuhal_halting.answered > 0);
    expect_end(s, thread);
}

static void copy_behind_long_work_of_another_object(fixture *s)
{
    static const stop what = {"copy", NULL, do_copy, 0};
    static fixture other;
    pthread_t thread;
    other.what = &what;
    prepare_fixture(&other);
    prepare_long_work(&other);
    begin_fixture(s, &what, &thread);
    expect_well(s);
    assert_true(gpuhal_halting.answered > 0);
    expect_end(s, thread);
}

static void copy_behind_work_that_ends(fixture *s)
{
    static const stop what = {"copy", prepare_long_work, do_copy, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    double began = now();
    expect_lost(s);
    assert_true(now() - began > 0.4 * (double)HANG_NS / 1e9); /* time of earlier work does not count */
}

static void copy_behind_silence(fixture *s)
{
    static const stop what = {"copy", prepare_long_work, do_copy, 0};
    pthread_t thread;
    gpuhal_halting.also = "event_query";
    begin_fixture(s, &what, &thread);
    expect_lost(s);
    close_in_time(s);
}

static void wait_for_long_work(fixture *s)
{
    static const stop what = {"nothing", prepare_unfinished, do_wait, 0};
    pthread_t thread;
    s->what = &what;
    open_fixture(s);
    fill_fixture(s);
    prepare_unfinished(s);
    assert_int_equal(pthread_create(&thread, NULL, run_act, s), 0);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

/* Imitates a driver that ignores timeouts. event_block returns only when the work has ended. */
static void wait_in_a_driver_that_knows_no_time(fixture *s)
{
    static const stop what = {"event_block", prepare_unfinished, do_wait, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

/* Two threads are in event_block. Each sign of progress counts for both calls. */
static void wait_twice_in_a_driver_that_knows_no_time(fixture *s)
{
    static const stop what = {"event_block", prepare_unfinished, do_wait, 0};
    pthread_t thread;
    waiter own;
    begin_fixture(s, &what, &thread);
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
    begin_waiter(&own, s, do_synchronize_second);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
    assert_int_equal(pthread_join(own.thread, NULL), 0);
    assert_ok(own.status);
}

/* Fills the ring of a queue, after work that no event of the application covers. */
static void prepare_ring(fixture *s)
{
    gpuhal_halting.work_goes_on = 1;
    for (int i = 0; i < 1000; i++) {
        assert_ok(do_queued_copy(s));
    }
}

static void fill_the_ring(fixture *s)
{
    static const stop what = {"queued_copy", prepare_ring, do_queued_copy, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
    assert_ok(do_synchronize(s));
}

static void record_in_a_full_ring(fixture *s)
{
    static const stop what = {"event_record", prepare_ring, do_record, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

static void fill_the_ring_of_a_silent_driver(fixture *s)
{
    static const stop what = {"queued_copy", prepare_ring, do_queued_copy, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    gpuhal_halting.also = "event_query";
    expect_lost(s);
    close_in_time(s);
}

/* Imitates an application that fills the ring with long work in native access. */
static void prepare_native_work(fixture *s)
{
    assert_ok(do_native_begin(s));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_queue_native_end(s->queue));
}

static void enqueue_behind_native_work(fixture *s)
{
    static const stop what = {"queued_copy", prepare_native_work, do_queued_copy, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_lost(s);
    close_in_time(s);
}

static gpuhal_status submit_native_work(void *user, const gpuhal_native *native)
{
    (void)user;
    (void)native;
    gpuhal_halting.work_goes_on = 1;
    return GPUHAL_OK;
}

static void prepare_native_call(fixture *s)
{
    assert_ok(gpuhal_queue_native_call(s->queue, submit_native_work, NULL));
    for (int i = 0; i < 5000 && !gpuhal_halting.work_goes_on; i++) {
        pause_ms(1);
    }
}

static void enqueue_behind_a_native_call(fixture *s)
{
    static const stop what = {"queued_copy", prepare_native_call, do_queued_copy, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

/* Ends native access. The call waits until it can record the event after the native work. */
static gpuhal_status do_native_end(fixture *s)
{
    return gpuhal_queue_native_end(s->queue);
}

static void prepare_native_begin(fixture *s)
{
    assert_ok(do_native_begin(s));
}

static void end_native_access_in_a_full_ring(fixture *s)
{
    static const stop what = {"event_record", prepare_native_begin, do_native_end, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    expect_end(s, thread);
    assert_ok(do_queued_copy(s));
    assert_ok(do_synchronize(s));
}

static void enqueue_beside_native_access(fixture *s)
{
    static const stop what = {"queued_copy", NULL, do_queued_copy, 0};
    gpuhal_native native = {.size = sizeof native};
    pthread_t thread;
    s->what = &what;
    open_fixture(s);
    fill_fixture(s);
    assert_ok(gpuhal_queue_native_begin(s->second, 0, &native));
    gpuhal_halting.slot = what.slot;
    assert_int_equal(pthread_create(&thread, NULL, run_act, s), 0);
    wait_for_stop(gpuhal_halting.slot);
    expect_well(s);
    assert_ok(gpuhal_queue_native_end(s->second));
    expect_lost(s);
}

static gpuhal_status do_launch(fixture *s)
{
    return launch_in(NULL, s->a);
}

/* A kernel may run for any time. In the meantime the device runs another thread's work. */
static void launch_for_long(fixture *s)
{
    static const stop what = {"launch", prepare_kernel, do_launch, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
    assert_ok(gpuhal_queue_synchronize(s->second, UINT64_MAX));
    assert_ok(do_write(s));
    expect_well(s);
    expect_end(s, thread);
}

/* Describes 64 copies of 4 MiB, which the driver gets in one call. */
static void prepare_recorded_copies(fixture *s)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 4 << 20};
    gpuhal_buffer *to = NULL, *from = NULL;
    assert_ok(gpuhal_buffer_create(s->device, &desc, &to));
    assert_ok(gpuhal_buffer_create(s->device, &desc, &from));
    assert_ok(gpuhal_recording_create(s->device, NULL, &recording));
    for (int i = 0; i < 64; i++) {
        assert_ok(gpuhal_recording_copy(recording, to, 0, from, 0, desc.bytes));
    }
    assert_ok(gpuhal_recording_finish(recording));
}

/* The call may take as long as the copies would. */
static void run_recorded_copies(fixture *s)
{
    static const stop what = {"recording_run", prepare_recorded_copies, do_run, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    expect_well(s);
    expect_end(s, thread);
}

static const scenario calm[] = {
    {"a blocking copy", copy_behind_long_work},
    {"a blocking copy behind another object's work", copy_behind_long_work_of_another_object},
    {"a wait", wait_for_long_work},
    {"a wait in a driver that knows no time", wait_in_a_driver_that_knows_no_time},
    {"two waits in a driver that knows no time", wait_twice_in_a_driver_that_knows_no_time},
    {"a full ring", fill_the_ring},
    {"recording an event in a full ring", record_in_a_full_ring},
    {"a ring that a function filled with the vendor's queue", enqueue_behind_a_native_call},
    {"native access that ends in a full ring", end_native_access_in_a_full_ring},
    {"a kernel without a queue", launch_for_long},
    {"a recording of large copies", run_recorded_copies},
};

TEST(work_behind_long_work_is_no_hang_while_the_driver_answers)
{
    in_children(calm, sizeof calm / sizeof *calm);
}

/* Later work in the queue must wait, and all other work must continue, whether the plugin's queue or the worker runs
 * the kernel. The queue can be destroyed and the object closed. The driver keeps the kernel and the buffer. */
static void leave_an_endless_kernel(fixture *s)
{
    static const stop what = {"nothing", prepare_kernel, NULL, 0};
    s->what = &what;
    prepare_fixture(s);
    gpuhal_halting.work_goes_on = !gpuhal_halting.no_queued_launch;
    stop_driver("launch");
    assert_ok(do_queued_launch(s));
    assert_ok(do_record(s));
    if (gpuhal_halting.no_queued_launch) {
        wait_for_stop("launch");
    }
    assert_int_equal(gpuhal_queue_synchronize(s->queue, 50000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_event_wait(s->event, 50000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_event_poll(s->event), GPUHAL_NOT_READY);
    expect_well(s);
    assert_ok(gpuhal_fill(NULL, s->b, 0, BYTES, 1, 4));
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
    assert_int_equal(gpuhal_queue_synchronize(s->second, 50000000),
                     gpuhal_halting.no_queued_launch ? GPUHAL_OK : GPUHAL_ERROR_TIMEOUT);
    double began = now();
    gpuhal_queue_destroy(s->queue);
    gpuhal_queue_destroy(s->second);
    gpuhal_event_destroy(s->event);
    gpuhal_event_destroy(s->later);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    gpuhal_buffer_release(s->a);
    expect_in_time(began, "giving back a queue with an endless kernel");
    close_in_time(s);
}

static void leave_an_endless_kernel_of_the_worker(fixture *s)
{
    gpuhal_halting.no_queued_launch = 1;
    leave_an_endless_kernel(s);
}

static const scenario endless[] = {
    {"in the plugin's queue", leave_an_endless_kernel},
    {"in the worker", leave_an_endless_kernel_of_the_worker},
};

TEST(an_endless_kernel_makes_waits_return_timeout_and_keeps_no_queue_and_no_object_from_ending)
{
    in_children(endless, sizeof endless / sizeof *endless);
}

static const scenario late[] = {
    {"a blocking copy", copy_behind_work_that_ends},
    {"a ring that the caller filled during native access", enqueue_behind_native_work},
    {"a call that may wait for the caller's native access", enqueue_beside_native_access},
};

TEST(work_behind_other_work_hangs_once_that_has_ended_and_its_time_has_passed)
{
    in_children(late, sizeof late / sizeof *late);
}

static const scenario silent[] = {
    {"a blocking copy", copy_behind_silence},
    {"a full ring", fill_the_ring_of_a_silent_driver},
};

TEST(work_behind_other_work_hangs_if_the_driver_does_not_answer)
{
    in_children(silent, sizeof silent / sizeof *silent);
}

static void lose_the_device_as_native_access_ends(fixture *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    prepare_fixture(s);
    assert_ok(do_native_begin(s));
    gpuhal_halting.record_says = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(do_native_end(s), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
}

TEST(native_access_whose_end_loses_the_device_reports_it)
{
    in_child(lose_the_device_as_native_access_ends);
}

/* Work that is deferred while native access begins must run after the native access. */
static void defer_while_a_section_begins(fixture *s)
{
    static const stop what = {"native_lock", NULL, do_native_begin, 0};
    pthread_t thread;
    waiter own;
    begin_fixture(s, &what, &thread);
    begin_waiter(&own, s, do_synchronize);
    pause_ms(100);
    expect_end(s, thread);
    assert_ok(do_record(s)); /* the recording is also deferred, and wakes the queue's thread */
    pause_ms(100);
    assert_ok(gpuhal_queue_native_end(s->queue));
    assert_int_equal(pthread_join(own.thread, NULL), 0);
    assert_ok(own.status);
}

TEST(a_wait_that_comes_while_native_access_begins_ends_with_it)
{
    in_child(defer_while_a_section_begins);
}

/* Each native access leaves an event. Completed events are released without a wait. */
static void begin_many_native_accesses(fixture *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    open_fixture(s);
    fill_fixture(s);
    for (int i = 0; i < 200; i++) {
        assert_ok(do_native_begin(s));
        assert_ok(gpuhal_queue_native_end(s->queue));
        assert_true(gpuhal_halting.events < 50);
    }
}

TEST(native_access_keeps_no_events)
{
    in_child(begin_many_native_accesses);
}

/* With a hang_ns of 1 ns the watchdog would poll continuously. */
static void watch_with_no_patience(fixture *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    s->hang_ns = 1;
    open_fixture(s);
    fill_fixture(s);
    struct timespec begun, ended;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
    pause_ms(1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    double spent = (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
    printf("%.3f s of processor time in a second\n", spent);
    assert_true(spent < 0.15);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_OK);
}

/* The minimum hang_ns is 20 ms. A busy machine may delay a call by 20 ms as well, so it is enough if one of several
 * attempts passes. */
TEST(a_hang_ns_of_a_nanosecond_keeps_no_processor_busy_and_opens_devices)
{
    static fixture s;
    int state = 1;
    for (int i = 0; i < 5 && state != 0; i++) {
        pid_t child = begin_child();
        if (child == 0) {
            watch_with_no_patience(&s);
            end_now();
        }
        assert_int_equal(waitpid(child, &state, 0), child);
    }
    assert_int_equal(state, 0);
}

static void be_stopped(fixture *s)
{
    static const stop what = {"copy", NULL, do_copy, 0};
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    pause_ms(100);
    raise(SIGSTOP);
    pause_ms(100);
    expect_end(s, thread);
}

TEST(a_process_that_was_stopped_has_not_waited)
{
    static fixture s;
    int state = 0;
    pid_t child = begin_child();
    if (child == 0) {
        be_stopped(&s);
        end_now();
    }
    assert_int_equal(waitpid(child, &state, WUNTRACED), child);
    assert_true(WIFSTOPPED(state));
    pause_ms(3000);
    kill(child, SIGCONT);
    end_child(child, "stopped");
}

#include "test_main.h"
