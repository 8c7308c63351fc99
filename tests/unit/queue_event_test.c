/* Events whose queue was destroyed or reset, with a plugin whose events point to their queues. The engine's
 * queue_destroy() fails the test if an event that was recorded in the queue still exists. */
#include "support/import_host.h"
#include "engine_support.h"

#include "os/os.h"

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

#include "test_main.h"
