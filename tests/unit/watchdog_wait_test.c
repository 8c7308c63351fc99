/* tests/unit/watchdog_wait_test.c: threads that wait for a thread that is blocked in a driver. */
#include "watchdog_support.h"

static void wait_behind_a_stuck_queue(fixture *s)
{
    static const stop what = {"queued_copy", prepare_unfinished, do_queued_copy, 0};
    waiter waiters[3];
    pthread_t thread;
    gpuhal_queue *elsewhere = NULL;
    begin_fixture(s, &what, &thread);
    assert_ok(gpuhal_queue_create(s->other, NULL, &elsewhere));
    gpuhal_os_handle descriptor = -1;
    assert_ok(gpuhal_event_descriptor(s->event, &descriptor));
    begin_waiter(&waiters[0], s, do_synchronize);
    begin_waiter(&waiters[1], s, do_wait);
    begin_waiter(&waiters[2], s, do_native_begin);
    gpuhal_halting.also = "event_query";
    for (size_t i = 0; i < 3; i++) {
        expect_notified(&waiters[i]);
    }
    struct pollfd readable = {.fd = (int)descriptor, .events = POLLIN};
    assert_int_equal(poll(&readable, 1, 5000), 1);
    expect_lost(s);
    assert_int_equal(do_queued_copy(s), GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_fill(elsewhere, s->far, 0, BYTES, 1, 4));
    gpuhal_queue_destroy(elsewhere);
    close_in_time(s);
}

/* The blocked thread does not hold a lock; a second caller waits for its turn. */
static void enqueue_behind_a_stuck_call(fixture *s)
{
    static const stop what = {"queued_copy", NULL, do_queued_copy, 0};
    waiter own;
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    begin_waiter(&own, s, do_queued_copy);
    expect_notified(&own);
    close_in_time(s);
}

static void wait_behind_a_stuck_writer(fixture *s)
{
    static const stop what = {"write", NULL, do_write, NOT_COHERENT};
    waiter own;
    pthread_t thread;
    begin_fixture(s, &what, &thread);
    begin_waiter(&own, s, do_fill);
    expect_notified(&own);
    expect_lost(s);
    close_in_time(s);
}

static gpuhal_status do_adopt(fixture *s)
{
    const gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_DEVICE};
    return gpuhal_device_adopt(s->device, &native);
}
static gpuhal_status do_open(fixture *s)
{
    return gpuhal_device_open(s->device);
}

static void open_over_the_callers_device(fixture *s)
{
    static const stop what = {"adopt", NULL, do_adopt, 0};
    waiter own;
    pthread_t thread;
    s->what = &what;
    open_fixture(s);
    gpuhal_halting.slot = "adopt";
    assert_int_equal(pthread_create(&thread, NULL, run_act, s), 0);
    wait_for_stop(gpuhal_halting.slot);
    begin_waiter(&own, s, do_open);
    expect_notified(&own);
    expect_lost(s);
    close_in_time(s);
}

static const scenario behind[] = {
    {"for a queue and an event", wait_behind_a_stuck_queue},
    {"to enqueue", enqueue_behind_a_stuck_call},
    {"for a buffer that is written", wait_behind_a_stuck_writer},
    {"to open over the caller's device", open_over_the_callers_device},
};

TEST(threads_that_wait_behind_a_stuck_one_return_device_lost)
{
    in_children(behind, sizeof behind / sizeof *behind);
}

#include "test_main.h"
