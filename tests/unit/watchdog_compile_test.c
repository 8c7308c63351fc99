/* tests/unit/watchdog_compile_test.c: drivers with long compilations, in calls that compile, at the first launch of a
 * kernel, and in calls that wait for a compilation. */
#include "watchdog_support.h"

#include "device/device.h"

static gpuhal_status do_load_uncached(fixture *s)
{
    return load_with(s, GPUHAL_PROGRAM_NO_CACHE);
}

static void prepare_uncached(fixture *s)
{
    assert_ok(do_load_uncached(s));
}

static void prepare_uncached_kernel(fixture *s)
{
    prepare_uncached(s);
    assert_ok(do_kernel_create(s));
}

/* The kernel is compiled at its first launch in the queue. Meanwhile the driver does not return from event_query. */
static void prepare_first_launch(fixture *s)
{
    prepare_kernel(s);
    gpuhal_halting.work_goes_on = 1;
    assert_ok(do_queued_launch(s));
    gpuhal_halting.also = "event_query";
}

static void prepare_first_event(fixture *s)
{
    prepare_kernel(s);
    gpuhal_halting.work_goes_on = 1;
    assert_ok(do_queued_launch(s));
    assert_ok(do_record(s));
    gpuhal_halting.also = "event_query";
}

static gpuhal_status launch_wide(fixture *s)
{
    const gpuhal_argument argument = {.buffer = s->a};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 1, .arguments = &argument, .groups = {1, 65536, 1}};
    return gpuhal_kernel_launch(s->queue, kernel, &launch);
}

static void prepare_narrow_launch(fixture *s)
{
    prepare_kernel(s);
    assert_ok(do_queued_launch(s));
    assert_ok(do_synchronize(s));
}

/* Enqueues a narrow launch, so that the next launch, which is wide, could use the fast path. */
static void prepare_queued_launch(fixture *s)
{
    prepare_narrow_launch(s);
    assert_ok(do_queued_launch(s));
}

/* Loads a program on another thread. The compilation in the driver delays a call that does not compile. */
static void *load_beside(void *user)
{
    (void)do_load(user);
    return NULL;
}

static void prepare_load_beside(fixture *s)
{
    pthread_t thread;
    gpuhal_halting.also = "program_load";
    assert_int_equal(pthread_create(&thread, NULL, load_beside, s), 0);
    assert_int_equal(pthread_detach(thread), 0);
    wait_for_stop("program_load");
}

static gpuhal_status do_run_wide(fixture *s)
{
    const gpuhal_slot_value value = {.slot = 1, .groups = {1, 65536, 1}};
    return gpuhal_recording_run(s->queue, recording, &value, 1);
}

static const stop compilers[] = {
    {"program_load", NULL, do_load, 0},
    {"program_load", NULL, do_load_uncached, 0},
    {"program_compiled_bytes", NULL, do_load, 0},
    {"program_compiled", NULL, do_load, 0},
    {"kernel_create", prepare_program, do_kernel_create, 0},
    {"kernel_create", prepare_uncached, do_kernel_create, 0},
    {"program_compiled_bytes", prepare_program, do_kernel_create, 0},
    {"kernel_prepare", prepare_kernel, do_prepare, 0},
    {"queued_launch", prepare_kernel, do_queued_launch, 0},
    {"queued_launch", prepare_uncached_kernel, do_queued_launch, 0},
    {"queued_launch", prepare_narrow_launch, launch_wide, 0},
    {"queued_launch", prepare_queued_launch, launch_wide, 0},
    {"recording_create", prepare_recording, do_finish, 0},
    {"recording_run", prepare_finished, do_run, 0},
    {"recording_set", prepare_run, do_run_wide, 0},
    {"queue_flush", prepare_first_launch, do_native_begin, NO_LOCK},
    {"event_record", prepare_first_launch, do_record, 0},
    {"event_query", prepare_first_event, do_poll, 0},
    {"event_block", prepare_first_event, do_wait, 0},
    {"event_block", prepare_first_event, do_wait, HONORS},
    {"copy", prepare_first_launch, do_copy, 0},
    {"queue_create", prepare_first_launch, do_queue_create, 0},
    {"queue_create", prepare_load_beside, do_queue_create, 0},
};

static void take_three_times_hang_ns(fixture *s)
{
    pthread_t thread;
    begin_fixture(s, s->what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    gpuhal_halting.slot = gpuhal_halting.also = NULL;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(s->status == GPUHAL_OK || s->status == GPUHAL_NOT_READY);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_OK);
    end_now();
}

TEST(a_driver_that_compiles_for_three_times_hang_ns_keeps_its_device)
{
    play_all(compilers, sizeof compilers / sizeof *compilers, AT_ONCE_MOST, take_three_times_hang_ns);
}

static void expect_lost_at_last(fixture *s)
{
    const double end = now() + 10 * HANG_SECONDS;
    while (gpuhal_device_status(s->device) == GPUHAL_OK && now() < end) {
        pause_ms(20);
    }
    expect_lost(s);
}

static void never_return(fixture *s)
{
    pthread_t thread;
    begin_fixture(s, s->what, &thread);
    expect_well(s);
    gpuhal_halting.work_goes_on = 0;
    expect_lost_at_last(s);
    close_in_time(s);
    end_now();
}

static const stop endless[] = {
    {"queued_launch", prepare_kernel, do_queued_launch, 0},
    {"copy", prepare_first_launch, do_copy, 0},
    {"queue_create", prepare_load_beside, do_queue_create, 0},
};

TEST(a_first_launch_that_never_returns_loses_the_device_after_ten_times_hang_ns)
{
    play_all(endless, sizeof endless / sizeof *endless, AT_ONCE_MOST, never_return);
}

/* ---- results of creation */

static void lose_the_device_while_it_is_created(fixture *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    prepare_fixture(s);
    prepare_program(s);
    gpuhal_program *kept = program;
    gpuhal_halting.compiled_says = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(do_load(s), GPUHAL_ERROR_DEVICE_LOST);
    assert_null(program);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
    program = kept;
    assert_int_equal(do_kernel_create(s), GPUHAL_ERROR_DEVICE_LOST);
    assert_null(kernel);
    gpuhal_program_release(program);
}

static void lose_the_device_while_a_kernel_is_created(fixture *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    prepare_fixture(s);
    prepare_program(s);
    gpuhal_halting.compiled_says = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(do_kernel_create(s), GPUHAL_ERROR_DEVICE_LOST);
    assert_null(kernel);
    assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_program_release(program);
}

/* Lets another thread's call hang while the library reads the compiled program from the driver. */
static void lose_the_device_to_another_thread(fixture *s)
{
    static const stop what = {"program_compiled", NULL, do_load, 0};
    pthread_t loading;
    waiter other;
    begin_fixture(s, &what, &loading);
    gpuhal_halting.also = "copy";
    begin_waiter(&other, s, do_copy);
    expect_lost_at_last(s);
    gpuhal_halting.slot = gpuhal_halting.also = NULL;
    assert_int_equal(pthread_join(loading, NULL), 0);
    assert_int_equal(s->status, GPUHAL_ERROR_DEVICE_LOST);
    assert_null(program);
    expect_notified(&other);
}

static const scenario losses[] = {
    {"the driver reports it for a program", lose_the_device_while_it_is_created},
    {"the driver reports it for a kernel", lose_the_device_while_a_kernel_is_created},
    {"another call hangs", lose_the_device_to_another_thread},
};

TEST(the_loss_of_a_device_during_a_creation_is_the_result_of_the_creation)
{
    in_children(losses, sizeof losses / sizeof *losses);
}

/* ---- messages of waits */

static void expect_timeout(gpuhal_status status, bool names_kernel)
{
    assert_int_equal(status, GPUHAL_ERROR_TIMEOUT);
    const bool named = strstr(gpuhal_last_error()->sentence, "kernel kernel was launched for the first time") != NULL;
    if (named != names_kernel) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
}

static void wait_for_a_first_launch(fixture *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    prepare_fixture(s);
    prepare_kernel(s);
    gpuhal_halting.work_goes_on = 1;
    assert_ok(do_queued_copy(s));
    expect_timeout(gpuhal_queue_synchronize(s->queue, 10000000), false);
    assert_ok(do_queued_launch(s));
    assert_ok(do_record(s));
    expect_timeout(gpuhal_queue_synchronize(s->queue, 10000000), true);
    expect_timeout(gpuhal_event_wait(s->event, 10000000), true);
    expect_timeout(gpuhal_event_wait(s->event, 0), true);
    assert_ok(gpuhal_copy(s->second, s->spare, 0, s->b, 0, 64));
    expect_timeout(gpuhal_queue_synchronize(s->second, 10000000), false);
    gpuhal_halting.work_goes_on = 0;
    assert_ok(do_synchronize(s));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(do_queued_launch(s));
    expect_timeout(gpuhal_queue_synchronize(s->queue, 10000000), false);
    assert_ok(launch_wide(s));
    expect_timeout(gpuhal_queue_synchronize(s->queue, 10000000), true);
    gpuhal_halting.work_goes_on = 0;
    assert_ok(do_synchronize(s));
}

/* The plugin does not support launches in a queue, so the queue's worker launches the kernel. */
static void wait_for_a_first_launch_of_the_worker(fixture *s)
{
    static const stop what = {"nothing", NULL, NULL, 0};
    s->what = &what;
    gpuhal_halting.no_queued_launch = 1;
    prepare_fixture(s);
    prepare_kernel(s);
    stop_driver("launch");
    assert_ok(do_queued_launch(s));
    wait_for_stop("launch");
    expect_timeout(gpuhal_queue_synchronize(s->queue, 10000000), true);
    stop_driver(NULL);
    assert_ok(do_synchronize(s));
    stop_driver("launch");
    assert_ok(do_queued_launch(s));
    wait_for_stop("launch");
    expect_timeout(gpuhal_queue_synchronize(s->queue, 10000000), false);
    stop_driver(NULL);
    assert_ok(do_synchronize(s));
    assert_int_equal(atomic_load(&s->device->compiling), 0); /* otherwise detecting a hang takes ten times as long */
}

static const scenario waits[] = {
    {"in the plugin's queue", wait_for_a_first_launch},
    {"in the queue's thread", wait_for_a_first_launch_of_the_worker},
};

TEST(a_timeout_names_the_kernel_that_was_launched_first_and_may_still_be_compiled)
{
    in_children(waits, sizeof waits / sizeof *waits);
}

#include "test_main.h"
