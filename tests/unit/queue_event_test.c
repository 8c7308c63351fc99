/* Events whose queue was destroyed or reset, with a plugin whose events point to their queues. The engine's
 * queue_destroy() fails the test if an event that was recorded in the queue still exists. */
#include "support/import_host.h"
#include "engine_support.h"

#include "os/os.h"
#include "queue/queue.h"

#include <gpuhal/pool.h>
#include <gpuhal/trace.h>
#include <pthread.h>

enum { PIECE = 4096 };
static const uint64_t second_ns = 1000000000;

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_queue *queue;
    gpuhal_event *event;
    gpuhal_buffer *to, *from;
} fixture;

static gpuhal_queue *make_queue(const fixture *d)
{
    const gpuhal_queue_desc desc = {.size = sizeof desc, .flags = GPUHAL_QUEUE_TIMED};
    gpuhal_queue *queue = NULL;
    assert_int_equal(gpuhal_queue_create(gpuhal_buffer_device(d->to), &desc, &queue), GPUHAL_OK);
    return queue;
}

static gpuhal_event *make_event(const fixture *d, uint32_t flags)
{
    gpuhal_event *event = NULL;
    assert_int_equal(gpuhal_event_create(d->gpu, flags, &event), GPUHAL_OK);
    return event;
}

static fixture open_fixture(bool honors_timeouts)
{
    engine.honors_timeouts = honors_timeouts;
    fixture d = {.gpu = open_engine()};
    d.to = gpuhal_mock_buffer(d.gpu, 0, PIECE);
    d.from = gpuhal_mock_buffer(d.gpu, 0, PIECE);
    d.queue = make_queue(&d);
    d.event = make_event(&d, 0);
    return d;
}

static void close_fixture(fixture *d)
{
    gpuhal_event_destroy(d->event);
    gpuhal_queue_destroy(d->queue);
    gpuhal_buffer_release(d->to);
    gpuhal_buffer_release(d->from);
    close_engine(d->gpu);
}

static void copy_and_record(const fixture *d, gpuhal_queue *queue, gpuhal_event *event)
{
    assert_int_equal(gpuhal_copy(queue, d->to, 0, d->from, 0, PIECE), GPUHAL_OK);
    assert_int_equal(gpuhal_event_record(event, queue), GPUHAL_OK);
}

/* Returns false if the count does not become the wanted value in time. */
static bool becomes(const _Atomic int64_t *count, int64_t wanted)
{
    for (int i = 0; i < 10000 && *count != wanted; i++) {
        gpuhal_os_sleep(1000000);
    }
    return *count == wanted;
}

TEST(the_plugins_queue_goes_once_its_event_is_done_and_the_result_stays)
{
    for (int honors = 0; honors < 2; honors++) {
        fixture d = open_fixture(honors);
        engine.never_done = true;
        copy_and_record(&d, d.queue, d.event);
        gpuhal_queue_destroy(d.queue);
        d.queue = NULL;
        assert_int_equal(gpuhal_event_poll(d.event), GPUHAL_NOT_READY);
        assert_int_equal(engine.queues, 1);
        engine.never_done = false;
        assert_int_equal(gpuhal_event_wait(d.event, 10 * second_ns), GPUHAL_OK);
        assert_true(becomes(&engine.queues, 0));
        assert_int_equal(engine.events, 0);
        assert_int_equal(gpuhal_event_poll(d.event), GPUHAL_OK);
        close_fixture(&d);
    }
}

TEST(a_timed_event_keeps_the_plugins_queue_until_it_is_destroyed_or_recorded_elsewhere)
{
    fixture d = open_fixture(true);
    gpuhal_event *first = make_event(&d, GPUHAL_EVENT_TIMED), *second = make_event(&d, GPUHAL_EVENT_TIMED);
    uint64_t ns = 0;
    copy_and_record(&d, d.queue, first);
    copy_and_record(&d, d.queue, second);
    gpuhal_queue_destroy(d.queue);
    d.queue = make_queue(&d);
    assert_int_equal(gpuhal_event_wait(second, 10 * second_ns), GPUHAL_OK);
    gpuhal_os_sleep(50 * 1000000); /* gives the worker time to end */
    assert_int_equal(gpuhal_event_elapsed(first, second, &ns), GPUHAL_OK);
    assert_int_equal(ns, 1);
    copy_and_record(&d, d.queue, second);
    assert_int_equal(gpuhal_event_wait(second, 10 * second_ns), GPUHAL_OK);
    assert_int_equal(gpuhal_event_elapsed(first, second, &ns), GPUHAL_OK);
    assert_int_equal(engine.queues, 2);
    gpuhal_event_destroy(first);
    assert_true(becomes(&engine.queues, 1));
    gpuhal_event_destroy(second);
    close_fixture(&d);
}

TEST(a_reset_keeps_the_plugins_queue_that_failed_while_a_timed_event_is_of_it)
{
    fixture d = open_fixture(true);
    gpuhal_event *timed = make_event(&d, GPUHAL_EVENT_TIMED), *second = make_event(&d, GPUHAL_EVENT_TIMED);
    uint64_t ns = 0;
    copy_and_record(&d, d.queue, d.event); /* leaves a spare event of the plugin's queue */
    copy_and_record(&d, d.queue, timed);
    assert_int_equal(gpuhal_queue_synchronize(d.queue, 10 * second_ns), GPUHAL_OK);
    engine.fail_at[COPY] = engine.calls[COPY] + 1;
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_queue_reset(d.queue, 10 * second_ns), GPUHAL_OK);
    copy_and_record(&d, d.queue, d.event);
    copy_and_record(&d, d.queue, second);
    assert_int_equal(gpuhal_event_wait(second, 10 * second_ns), GPUHAL_OK);
    assert_int_equal(engine.queues, 2);
    assert_int_equal(gpuhal_event_elapsed(timed, second, &ns), GPUHAL_OK);
    gpuhal_event_destroy(timed);
    assert_true(becomes(&engine.queues, 1));
    gpuhal_event_destroy(second);
    close_fixture(&d);
}

static void *wait_for_event(void *user)
{
    assert_int_equal(gpuhal_event_wait(user, UINT64_MAX), GPUHAL_OK);
    return NULL;
}

TEST(the_plugins_queue_stays_while_a_thread_is_in_event_block)
{
    fixture d = open_fixture(true);
    pthread_t thread;
    engine.never_done = engine.block_holds = true;
    copy_and_record(&d, d.queue, d.event);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_event, d.event), 0);
    while (!engine.is_held) {
        gpuhal_os_sleep(1000000);
    }
    gpuhal_queue_destroy(d.queue);
    d.queue = NULL;
    engine.never_done = false;
    while (gpuhal_event_poll(d.event) != GPUHAL_OK) {
        gpuhal_os_sleep(1000000);
    }
    gpuhal_os_sleep(50 * 1000000); /* gives the worker time to end */
    assert_int_equal(engine.queues, 1);
    engine.block_holds = false;
    pthread_join(thread, NULL);
    assert_true(becomes(&engine.queues, 0));
    close_fixture(&d);
}

TEST(the_plugins_queue_stays_while_work_of_another_one_waits_for_its_event)
{
    engine.waits = true;
    fixture d = open_fixture(true);
    gpuhal_queue *other = make_queue(&d);
    gpuhal_event *last = make_event(&d, 0);
    engine.never_done = true;
    copy_and_record(&d, d.queue, d.event);
    assert_int_equal(gpuhal_queue_wait(other, d.event), GPUHAL_OK);
    copy_and_record(&d, other, last);
    gpuhal_queue_destroy(d.queue);
    d.queue = NULL;
    engine.never_done = false;
    assert_int_equal(gpuhal_event_wait(d.event, 10 * second_ns), GPUHAL_OK);
    engine.never_done = true;
    gpuhal_event_destroy(d.event);
    d.event = NULL;
    gpuhal_os_sleep(50 * 1000000);
    assert_int_equal(engine.queues, 2);
    engine.never_done = false;
    assert_int_equal(gpuhal_event_wait(last, 10 * second_ns), GPUHAL_OK);
    assert_true(becomes(&engine.queues, 1));
    gpuhal_event_destroy(last);
    gpuhal_queue_destroy(other);
    engine.waits = false;
    close_fixture(&d);
}

/* ---- a failed queue whose driver records no further event, and whose work goes on */

static const uint64_t moment_ns = 50 * 1000000;

static int64_t allocations(void)
{
    return gpuhal_mock.devices[0].allocations;
}

/* A timed event that is done keeps the plugin's queue. */
static gpuhal_event *keep_vendors_queue(const fixture *d)
{
    gpuhal_event *timed = make_event(d, GPUHAL_EVENT_TIMED);
    copy_and_record(d, d->queue, timed);
    assert_ok(gpuhal_event_wait(timed, 10 * second_ns));
    return timed;
}

/* The queue's work uses a third buffer, which the application has released. */
static void fail_while_work_goes_on(const fixture *d, gpuhal_queue *queue)
{
    gpuhal_buffer *used = gpuhal_mock_buffer(d->gpu, 0, PIECE);
    assert_ok(gpuhal_copy(queue, used, 0, d->from, 0, PIECE));
    gpuhal_buffer_release(used);
    engine.fail_at[COPY] = engine.calls[COPY] + 1;
    assert_int_equal(gpuhal_copy(queue, d->to, 0, d->from, 0, PIECE), GPUHAL_ERROR_DRIVER);
    engine.records_nothing = true;
}

static void expect_usable(const fixture *d)
{
    engine.records_nothing = false;
    assert_int_equal(allocations(), 2);
    assert_int_equal(engine.queues, 1);
    copy_and_record(d, d->queue, d->event);
    assert_ok(gpuhal_event_wait(d->event, 10 * second_ns));
}

TEST(a_reset_waits_until_an_event_or_the_destruction_of_the_plugins_queue_shows_the_end)
{
    for (int records = 0; records < 2; records++) {
        fixture d = open_fixture(records);
        gpuhal_event *timed = keep_vendors_queue(&d);
        fail_while_work_goes_on(&d, d.queue);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(gpuhal_queue_reset(d.queue, moment_ns), GPUHAL_ERROR_TIMEOUT);
            assert_non_null(strstr(gpuhal_last_error()->sentence, "destroy its timed events"));
            assert_int_equal(allocations(), 3);
            assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DRIVER);
        }
        assert_ok(gpuhal_event_poll(timed));
        if (records) { /* the driver records an event after all */
            engine.records_nothing = false;
            assert_ok(gpuhal_queue_reset(d.queue, 10 * second_ns));
        }
        gpuhal_event_destroy(timed);
        assert_ok(gpuhal_queue_reset(d.queue, 10 * second_ns));
        expect_usable(&d);
        close_fixture(&d);
    }
}

TEST(a_destroyed_queue_keeps_its_memory_until_the_plugins_queue_can_be_destroyed)
{
    enum { SEGMENT = 1 << 16 };
    for (int resets = 0; resets < 2; resets++) {
        fixture d = open_fixture(resets);
        const gpuhal_pool_desc desc = {.size = sizeof desc, .segment_bytes = SEGMENT, .limit_bytes = SEGMENT};
        gpuhal_pool *pool = NULL;
        gpuhal_buffer *part = NULL, *next = NULL;
        assert_ok(gpuhal_pool_create(gpuhal_buffer_device(d.to), &desc, &pool));
        assert_ok(gpuhal_pool_allocate(pool, d.queue, SEGMENT, 0, 0, &part));
        gpuhal_event *timed = keep_vendors_queue(&d);
        assert_ok(gpuhal_copy(d.queue, part, 0, d.from, 0, PIECE));
        gpuhal_buffer_release(part);
        fail_while_work_goes_on(&d, d.queue);
        if (resets) {
            assert_int_equal(gpuhal_queue_reset(d.queue, moment_ns), GPUHAL_ERROR_TIMEOUT);
        }
        gpuhal_queue_destroy(d.queue);
        d.queue = NULL;
        assert_int_equal(gpuhal_pool_allocate(pool, NULL, SEGMENT, 0, moment_ns, &next), GPUHAL_ERROR_OUT_OF_MEMORY);
        assert_int_equal(allocations(), 4);
        assert_int_equal(engine.queues, 1);
        gpuhal_event_destroy(timed);
        assert_ok(gpuhal_pool_allocate(pool, NULL, SEGMENT, 0, 10 * second_ns, &next));
        assert_true(becomes(&gpuhal_mock.devices[0].allocations, 3));
        assert_true(becomes(&engine.queues, 0));
        gpuhal_buffer_release(next);
        gpuhal_pool_destroy(pool);
        engine.records_nothing = false;
        close_fixture(&d);
    }
}

TEST(a_reset_waits_for_the_events_that_the_queue_recorded_before_it_failed)
{
    for (int honors = 0; honors < 2; honors++) {
        fixture d = open_fixture(honors);
        engine.never_done = true;
        copy_and_record(&d, d.queue, d.event);
        fail_while_work_goes_on(&d, d.queue);
        assert_int_equal(gpuhal_queue_reset(d.queue, moment_ns), GPUHAL_ERROR_TIMEOUT);
        assert_int_equal(gpuhal_event_poll(d.event), GPUHAL_NOT_READY);
        assert_int_equal(allocations(), 3);
        engine.never_done = false;
        assert_ok(gpuhal_queue_reset(d.queue, 10 * second_ns));
        assert_ok(gpuhal_event_poll(d.event));
        expect_usable(&d);
        close_fixture(&d);
    }
}

/* The failure of an event also ends the later events of its queue, but not the work between them. */
TEST(a_reset_waits_for_work_after_an_event_that_failed)
{
    fixture d = open_fixture(true);
    gpuhal_event *timed = keep_vendors_queue(&d);
    engine.never_done = engine.block_holds = true;
    copy_and_record(&d, d.queue, d.event);
    fail_while_work_goes_on(&d, d.queue);
    engine.records_nothing = false;
    assert_int_equal(gpuhal_queue_reset(d.queue, moment_ns), GPUHAL_ERROR_TIMEOUT);
    assert_true(engine.is_held);
    engine.query_fails = true;
    assert_int_equal(gpuhal_event_poll(d.event), GPUHAL_ERROR_DRIVER);
    engine.block_holds = false;
    assert_int_equal(gpuhal_queue_reset(d.queue, moment_ns), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(allocations(), 3);
    engine.never_done = false;
    assert_ok(gpuhal_queue_reset(d.queue, 10 * second_ns));
    gpuhal_event_destroy(timed);
    expect_usable(&d);
    close_fixture(&d);
}

/* The second queue's work waits for an event of the first, and so keeps the plugin's queue of the first. */
TEST(two_failed_queues_of_which_one_waits_for_the_other_are_reset_and_destroyed_in_any_order)
{
    engine.waits = true;
    for (int order = 0; order < 4; order++) {
        const bool destroys = order & 1, second_first = order & 2;
        fixture d = open_fixture(true);
        gpuhal_queue *other = make_queue(&d);
        gpuhal_queue *queues[] = {second_first ? other : d.queue, second_first ? d.queue : other};
        engine.never_done = true;
        copy_and_record(&d, d.queue, d.event);
        assert_ok(gpuhal_queue_wait(other, d.event));
        engine.never_done = false;
        assert_ok(gpuhal_event_wait(d.event, 10 * second_ns));
        for (int i = 0; i < 2; i++) {
            engine.records_nothing = false;
            fail_while_work_goes_on(&d, queues[i]);
        }
        if (!destroys) {
            assert_int_equal(gpuhal_queue_reset(queues[0], second_first ? 10 * second_ns : moment_ns),
                             second_first ? GPUHAL_OK : GPUHAL_ERROR_TIMEOUT);
            assert_ok(gpuhal_queue_reset(queues[1], 10 * second_ns));
            assert_ok(gpuhal_queue_reset(queues[0], 10 * second_ns));
            assert_int_equal(engine.queues, 2);
        }
        gpuhal_queue_destroy(queues[0]);
        gpuhal_queue_destroy(queues[1]);
        assert_true(becomes(&engine.queues, 0));
        assert_true(becomes(&gpuhal_mock.devices[0].allocations, 2));
        engine.records_nothing = false;
        d.queue = NULL;
        close_fixture(&d);
    }
    engine.waits = false;
}

TEST(a_destroyed_queue_records_its_last_event_once_there_is_host_memory)
{
    fixture d = open_fixture(true);
    fail_while_work_goes_on(&d, d.queue);
    engine.failure = GPUHAL_ERROR_HOST_MEMORY;
    gpuhal_queue_destroy(d.queue);
    d.queue = NULL;
    gpuhal_os_sleep(moment_ns);
    assert_int_equal(allocations(), 3);
    assert_int_equal(engine.queues, 1);
    engine.never_done = true;
    engine.records_nothing = false;
    gpuhal_os_sleep(moment_ns);
    assert_int_equal(engine.queues, 1);
    engine.never_done = false;
    assert_true(becomes(&engine.queues, 0));
    assert_true(becomes(&gpuhal_mock.devices[0].allocations, 2));
    engine.failure = GPUHAL_ERROR_DRIVER;
    close_fixture(&d);
}

TEST(a_reset_that_waits_for_events_ends_when_the_device_is_lost)
{
    fixture d = open_fixture(true);
    gpuhal_queue *other = make_queue(&d);
    gpuhal_event *timed = keep_vendors_queue(&d);
    fail_while_work_goes_on(&d, d.queue);
    assert_int_equal(gpuhal_queue_reset(d.queue, moment_ns), GPUHAL_ERROR_TIMEOUT);
    engine.failure = GPUHAL_ERROR_DEVICE_LOST;
    engine.fail_at[COPY] = engine.calls[COPY] + 1;
    assert_int_equal(gpuhal_copy(other, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_queue_reset(d.queue, 10 * second_ns), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_queue_destroy(d.queue);
    gpuhal_queue_destroy(other);
    d.queue = NULL;
    assert_true(becomes(&gpuhal_mock.devices[0].allocations, 2));
    gpuhal_event_destroy(timed);
    close_fixture(&d);
    engine.records_nothing = false;
    engine.failure = GPUHAL_ERROR_DRIVER;
}

/* The trace keeps the last event of which it has the time. */
TEST(events_of_a_trace_do_not_delay_a_reset)
{
    for (int destroys = 0; destroys < 2; destroys++) {
        fixture d = open_fixture(true);
        assert_ok(gpuhal_trace_start(d.gpu, NULL));
        for (int i = 0; i < 3; i++) {
            copy_and_record(&d, d.queue, d.event);
            assert_ok(gpuhal_event_wait(d.event, 10 * second_ns));
        }
        fail_while_work_goes_on(&d, d.queue);
        if (destroys) {
            gpuhal_queue_destroy(d.queue);
            d.queue = NULL;
            gpuhal_event_destroy(d.event); /* a trace makes it a timed event */
            d.event = NULL;
            assert_true(becomes(&engine.queues, 0));
            engine.records_nothing = false;
        } else {
            gpuhal_event_destroy(d.event);
            d.event = make_event(&d, 0);
            assert_ok(gpuhal_queue_reset(d.queue, 10 * second_ns));
            expect_usable(&d);
        }
        close_fixture(&d);
    }
}

TEST(a_queue_that_is_being_reset_takes_a_buffer_to_keep_at_once)
{
    fixture d = open_fixture(false);
    fail_while_work_goes_on(&d, d.queue);
    engine.records_nothing = false;
    engine.never_done = true;
    assert_int_equal(gpuhal_queue_reset(d.queue, moment_ns), GPUHAL_ERROR_TIMEOUT);
    assert_ok(gpuhal_queue_hold(d.queue, d.to));
    engine.never_done = false;
    assert_ok(gpuhal_queue_reset(d.queue, 10 * second_ns));
    expect_usable(&d);
    close_fixture(&d);
}

#include "test_main.h"
