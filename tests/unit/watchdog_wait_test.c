/* tests/unit/watchdog_wait_test.c: threads that wait behind one that is stuck in a driver; what legitimately waits and is no hang; the slots of
 * threads. */
#include "core/call.h"
#include "device/device.h"
#include "watchdog_support.h"

/* ---- who waits for a thread that is stuck */

typedef struct waiter {
    scene *s;
    gpuhal_status (*act)(scene *s);
    pthread_t thread;
    gpuhal_status status;
    _Atomic bool ended;
} waiter;

static void *run_waiter(void *user)
{
    waiter *own = user;
    own->status = own->act(own->s);
    own->ended = true;
    return NULL;
}

static void begin_waiter(waiter *own, scene *s, gpuhal_status (*act)(scene *s))
{
    *own = (waiter){.s = s, .act = act};
    assert_int_equal(pthread_create(&own->thread, NULL, run_waiter, own), 0);
}

static void expect_told(waiter *own)
{
    for (int i = 0; i < 5000 && !own->ended; i++) {
        pause_ms(1);
    }
    assert_true(own->ended);
    assert_int_equal(pthread_join(own->thread, NULL), 0);
    assert_int_equal(own->status, GPUHAL_ERROR_DEVICE_LOST);
}

static gpuhal_status do_synchronize(scene *s)
{
    return gpuhal_queue_synchronize(s->queue, UINT64_MAX);
}
static gpuhal_status do_synchronize_second(scene *s)
{
    return gpuhal_queue_synchronize(s->second, UINT64_MAX);
}

static void wait_behind_a_stuck_queue(scene *s)
{
    static const stop what = {"queued_copy", prepare_unfinished, do_queued_copy, 0};
    waiter waiters[3];
    pthread_t thread;
    begin_scene(s, &what, &thread);
    gpuhal_os_handle descriptor = -1;
    assert_ok(gpuhal_event_descriptor(s->event, &descriptor));
    begin_waiter(&waiters[0], s, do_synchronize);
    begin_waiter(&waiters[1], s, do_wait);
    begin_waiter(&waiters[2], s, do_native_begin);
    gpuhal_halting.also = "event_query";
    for (size_t i = 0; i < 3; i++) {
        expect_told(&waiters[i]);
    }
    struct pollfd readable = {.fd = (int)descriptor, .events = POLLIN};
    assert_int_equal(poll(&readable, 1, 5000), 1);
    expect_lost(s);
    assert_int_equal(do_queued_copy(s), GPUHAL_ERROR_DEVICE_LOST);
    close_in_time(s);
}

TEST(threads_that_wait_behind_a_stuck_one_for_a_queue_or_an_event_return_device_lost)
{
    in_child(wait_behind_a_stuck_queue);
}

/* Nothing is held: a second caller waits for the right to call. */
static void enqueue_behind_a_stuck_call(scene *s)
{
    static const stop what = {"queued_copy", NULL, do_queued_copy, 0};
    waiter own;
    pthread_t thread;
    begin_scene(s, &what, &thread);
    begin_waiter(&own, s, do_queued_copy);
    expect_told(&own);
    close_in_time(s);
}

TEST(a_thread_that_enqueues_behind_a_stuck_one_returns_device_lost)
{
    in_child(enqueue_behind_a_stuck_call);
}

static void wait_behind_a_stuck_writer(scene *s)
{
    static const stop what = {"write", NULL, do_write, NOT_COHERENT};
    waiter own;
    pthread_t thread;
    begin_scene(s, &what, &thread);
    begin_waiter(&own, s, do_fill);
    expect_told(&own);
    expect_lost(s);
    close_in_time(s);
}

TEST(a_thread_that_waits_for_a_buffer_which_a_stuck_one_writes_returns_device_lost)
{
    in_child(wait_behind_a_stuck_writer);
}

static gpuhal_status do_adopt(scene *s)
{
    const gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_DEVICE};
    return gpuhal_device_adopt(s->device, &native);
}
static gpuhal_status do_open(scene *s)
{
    return gpuhal_device_open(s->device);
}

static void open_over_the_callers_device(scene *s)
{
    static const stop what = {"adopt", NULL, do_adopt, 0};
    waiter own;
    pthread_t thread;
    s->what = &what;
    open_scene(s);
    gpuhal_halting.slot = "adopt";
    assert_int_equal(pthread_create(&thread, NULL, run_act, s), 0);
    wait_for_stop(gpuhal_halting.slot);
    begin_waiter(&own, s, do_open);
    expect_told(&own);
    expect_lost(s);
    close_in_time(s);
}

TEST(an_opening_over_the_callers_device_that_hangs_costs_the_device_and_keeps_no_second_opener)
{
    in_child(open_over_the_callers_device);
}

/* ---- what is no hang */

static void expect_well(scene *s)
{
    for (double end = now() + 3 * (double)HANG_NS / 1e9; now() < end; pause_ms(20)) {
        if (gpuhal_device_status(s->device)) {
            fail_msg("%s", gpuhal_last_error()->sentence);
        }
    }
}

static void expect_end(scene *s, pthread_t thread)
{
    gpuhal_halting.slot = NULL;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ok(s->status);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_OK);
}

static void prepare_long_work(scene *s)
{
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
}

static void copy_behind_long_work(scene *s)
{
    static const stop what = {"copy", prepare_long_work, do_copy, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    assert_true(gpuhal_halting.answered > 0);
    expect_end(s, thread);
}

TEST(a_blocking_copy_behind_long_work_is_no_hang_while_the_driver_answers)
{
    in_child(copy_behind_long_work);
}

static void copy_behind_long_work_of_another_object(scene *s)
{
    static const stop what = {"copy", NULL, do_copy, 0};
    static scene other;
    pthread_t thread;
    other.what = &what;
    prepare_scene(&other);
    prepare_long_work(&other);
    begin_scene(s, &what, &thread);
    expect_well(s);
    assert_true(gpuhal_halting.answered > 0);
    expect_end(s, thread);
}

TEST(a_blocking_copy_behind_long_work_of_another_gpuhal_object_is_no_hang_while_the_driver_answers)
{
    in_child(copy_behind_long_work_of_another_object);
}

static void copy_behind_work_that_ends(scene *s)
{
    static const stop what = {"copy", prepare_long_work, do_copy, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    double began = now();
    expect_lost(s);
    assert_true(now() - began > 0.4 * (double)HANG_NS / 1e9); /* it was the work's turn before */
}

TEST(a_blocking_copy_hangs_once_the_work_before_it_has_ended_and_its_time_has_passed)
{
    in_child(copy_behind_work_that_ends);
}

static void copy_behind_silence(scene *s)
{
    static const stop what = {"copy", prepare_long_work, do_copy, 0};
    pthread_t thread;
    gpuhal_halting.also = "event_query";
    begin_scene(s, &what, &thread);
    expect_lost(s);
    close_in_time(s);
}

TEST(a_blocking_copy_behind_work_hangs_where_the_driver_does_not_answer_whether_that_has_ended)
{
    in_child(copy_behind_silence);
}

static void wait_for_long_work(scene *s)
{
    static const stop what = {"nothing", prepare_unfinished, do_wait, 0};
    pthread_t thread;
    s->what = &what;
    open_scene(s);
    fill_scene(s);
    prepare_unfinished(s);
    assert_int_equal(pthread_create(&thread, NULL, run_act, s), 0);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

TEST(waiting_for_work_that_takes_longer_than_hang_ns_is_no_hang)
{
    in_child(wait_for_long_work);
}

/* As with drivers that know no time: they come back from event_block when the work has ended. */
static void wait_in_a_driver_that_knows_no_time(scene *s)
{
    static const stop what = {"event_block", prepare_unfinished, do_wait, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

TEST(a_wait_in_a_driver_that_knows_no_time_is_no_hang_while_the_work_goes_on)
{
    in_child(wait_in_a_driver_that_knows_no_time);
}

/* Two threads in event_block at once: each answer counts for both. */
static void wait_twice_in_a_driver_that_knows_no_time(scene *s)
{
    static const stop what = {"event_block", prepare_unfinished, do_wait, 0};
    pthread_t thread;
    waiter own;
    begin_scene(s, &what, &thread);
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
    begin_waiter(&own, s, do_synchronize_second);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
    assert_int_equal(pthread_join(own.thread, NULL), 0);
    assert_ok(own.status);
}

TEST(several_waits_in_a_driver_that_knows_no_time_are_no_hang_while_the_work_goes_on)
{
    in_child(wait_twice_in_a_driver_that_knows_no_time);
}

/* The ring of a queue is full, behind work of which no event of the application's tells. */
static void prepare_ring(scene *s)
{
    gpuhal_halting.work_goes_on = 1;
    for (int i = 0; i < 1000; i++) {
        assert_ok(do_queued_copy(s));
    }
}

static void fill_the_ring(scene *s)
{
    static const stop what = {"queued_copy", prepare_ring, do_queued_copy, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
    assert_ok(do_synchronize(s));
}

TEST(a_full_ring_behind_long_work_is_no_hang_while_the_driver_answers)
{
    in_child(fill_the_ring);
}

static void record_in_a_full_ring(scene *s)
{
    static const stop what = {"event_record", prepare_ring, do_record, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

TEST(recording_an_event_in_a_full_ring_is_no_hang_while_the_driver_answers)
{
    in_child(record_in_a_full_ring);
}

static void fill_the_ring_of_a_silent_driver(scene *s)
{
    static const stop what = {"queued_copy", prepare_ring, do_queued_copy, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    gpuhal_halting.also = "event_query";
    expect_lost(s);
    close_in_time(s);
}

TEST(a_full_ring_hangs_where_the_driver_does_not_answer)
{
    in_child(fill_the_ring_of_a_silent_driver);
}

/* The application fills the ring by itself, with work that takes long. */
static void prepare_native_work(scene *s)
{
    assert_ok(do_native_begin(s));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_queue_native_end(s->queue));
}

static void enqueue_behind_native_work(scene *s)
{
    static const stop what = {"queued_copy", prepare_native_work, do_queued_copy, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_lost(s);
    close_in_time(s);
}

TEST(a_ring_that_the_caller_filled_in_a_native_section_is_no_hang_until_its_work_has_ended)
{
    in_child(enqueue_behind_native_work);
}

static gpuhal_status submit_native_work(void *user, const gpuhal_native *native)
{
    (void)user;
    (void)native;
    gpuhal_halting.work_goes_on = 1;
    return GPUHAL_OK;
}

static void prepare_native_call(scene *s)
{
    assert_ok(gpuhal_queue_native_call(s->queue, submit_native_work, NULL));
    for (int i = 0; i < 5000 && !gpuhal_halting.work_goes_on; i++) {
        pause_ms(1);
    }
}

static void enqueue_behind_a_native_call(scene *s)
{
    static const stop what = {"queued_copy", prepare_native_call, do_queued_copy, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_end(s, thread);
}

TEST(a_ring_that_a_function_filled_with_the_vendors_queue_is_no_hang)
{
    in_child(enqueue_behind_a_native_call);
}

/* Recording the event behind that work waits in its turn. */
static gpuhal_status do_native_end(scene *s)
{
    return gpuhal_queue_native_end(s->queue);
}

static void prepare_native_begin(scene *s)
{
    assert_ok(do_native_begin(s));
}

static void end_native_access_in_a_full_ring(scene *s)
{
    static const stop what = {"event_record", prepare_native_begin, do_native_end, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    expect_well(s);
    expect_end(s, thread);
    assert_ok(do_queued_copy(s));
    assert_ok(do_synchronize(s));
}

TEST(a_native_section_may_end_in_a_full_ring)
{
    in_child(end_native_access_in_a_full_ring);
}

static void lose_the_device_as_native_access_ends(scene *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    prepare_scene(s);
    assert_ok(do_native_begin(s));
    gpuhal_halting.record_says = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(do_native_end(s), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
}

TEST(a_native_section_that_costs_the_device_as_it_ends_says_so)
{
    in_child(lose_the_device_as_native_access_ends);
}

/* What is deferred while a section begins comes behind it. */
static void defer_while_a_section_begins(scene *s)
{
    static const stop what = {"native_lock", NULL, do_native_begin, 0};
    pthread_t thread;
    waiter own;
    begin_scene(s, &what, &thread);
    begin_waiter(&own, s, do_synchronize);
    pause_ms(100);
    expect_end(s, thread);
    assert_ok(do_record(s)); /* is deferred, too, and wakes the queue's thread */
    pause_ms(100);
    assert_ok(gpuhal_queue_native_end(s->queue));
    assert_int_equal(pthread_join(own.thread, NULL), 0);
    assert_ok(own.status);
}

TEST(a_wait_that_comes_while_a_native_section_begins_ends_with_it)
{
    in_child(defer_while_a_section_begins);
}

/* Each leaves an event behind, of which those that completed are given back without anybody's waiting. */
static void have_many_native_sections(scene *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    open_scene(s);
    fill_scene(s);
    for (int i = 0; i < 200; i++) {
        assert_ok(do_native_begin(s));
        assert_ok(gpuhal_queue_native_end(s->queue));
        assert_true(gpuhal_halting.events < 50);
    }
}

TEST(native_sections_keep_no_events)
{
    in_child(have_many_native_sections);
}

static void enqueue_beside_native_access(scene *s)
{
    static const stop what = {"queued_copy", NULL, do_queued_copy, 0};
    gpuhal_native native = {.size = sizeof native};
    pthread_t thread;
    s->what = &what;
    open_scene(s);
    fill_scene(s);
    assert_ok(gpuhal_queue_native_begin(s->second, 0, &native));
    gpuhal_halting.slot = what.slot;
    assert_int_equal(pthread_create(&thread, NULL, run_act, s), 0);
    wait_for_stop(gpuhal_halting.slot);
    expect_well(s);
    assert_ok(gpuhal_queue_native_end(s->second));
    expect_lost(s);
}

TEST(a_call_that_may_wait_for_the_callers_native_access_hangs_only_once_that_has_ended)
{
    in_child(enqueue_beside_native_access);
}

/* 1 ns would have it look all the time. */
static void watch_with_no_patience(scene *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    s->hang_ns = 1;
    open_scene(s);
    fill_scene(s);
    struct timespec begun, ended;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
    pause_ms(1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
    double spent = (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) / 1e9;
    printf("%.3f s of processor time in a second\n", spent);
    assert_true(spent < 0.15);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_OK);
}

TEST(a_hang_ns_of_a_nanosecond_keeps_no_processor_busy_and_opens_devices)
{
    in_child(watch_with_no_patience);
}

static void be_stopped(scene *s)
{
    static const stop what = {"copy", NULL, do_copy, 0};
    pthread_t thread;
    begin_scene(s, &what, &thread);
    pause_ms(100);
    raise(SIGSTOP);
    pause_ms(100);
    expect_end(s, thread);
}

TEST(a_process_that_was_stopped_has_not_waited)
{
    static scene s;
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

/* ---- slots */

static size_t count_slots(void)
{
    size_t count = 0;
    for (const gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
        count++;
    }
    return count;
}

static void *call_once(void *user)
{
    const gpuhal_call call = gpuhal_call_prompt(user);
    gpuhal_call_end(call);
    return NULL;
}

TEST(the_slot_of_a_thread_that_has_ended_is_used_again)
{
    static _Alignas(16) char subject;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, call_once, &subject), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_in_range(count_slots(), 1, 8);
}

TEST(calls_nest_and_the_end_of_the_inner_one_restores_the_outer)
{
    static _Alignas(16) char devices[3][16];
    const gpuhal_call outer = gpuhal_call_blocking(devices[0], 1000);
    gpuhal_call_slot *slot = outer.slot;
    uintptr_t what = slot->call;
    assert_int_equal(slot->extra_ns, 20000);
    const gpuhal_call middle = gpuhal_call_small(devices[1]);
    assert_int_equal(slot->call, (uintptr_t)devices[1] | GPUHAL_CALL_BLOCKS);
    const gpuhal_call inner = gpuhal_call_timed(devices[2], UINT64_MAX);
    assert_int_equal(slot->call, (uintptr_t)devices[2] | GPUHAL_CALL_BLOCKS | GPUHAL_CALL_EXTRA);
    gpuhal_call_end(inner);
    gpuhal_call_end(middle);
    assert_int_equal(slot->call, what);
    assert_int_equal(slot->extra_ns, 20000);
    gpuhal_call_end(outer);
    assert_int_equal(slot->call, 0);
}

static void *stay_in_plugin(void *user)
{
    const gpuhal_call call = gpuhal_call_blocking(((gpuhal_device *)user)->plugin, 0);
    pause_ms(30000);
    gpuhal_call_end(call);
    return NULL;
}

static void stay_in_enumerate(scene *s)
{
    static const stop what = {"enumerate", NULL, NULL, 0};
    pthread_t thread;
    s->what = &what;
    open_scene(s);
    fill_scene(s);
    assert_int_equal(pthread_create(&thread, NULL, stay_in_plugin, s->device), 0);
    for (double end = now() + LEARNT_SECONDS; now() < end && (!gpuhal_device_status(s->device) || !gpuhal_device_status(s->other));) {
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

/* A device of the parent's is open, and its threads watch; the child has its own. */
static void fork_and_hang(scene *s)
{
    static const stop what = {"copy", NULL, do_copy, 0};
    gpuhal_halting.fork_safe = 1;
    open_scene(s);
    fill_scene(s);
    assert_ok(do_copy(s));
    pid_t child = begin_child();
    if (child == 0) {
        static scene own;
        pthread_t thread;
        begin_scene(&own, &what, &thread);
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
