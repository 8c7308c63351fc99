/* Tests queues and events of the Vulkan plugin with the fake driver (tests/fakes/vulkan), through the plugin's slots:
 * order, asynchrony, timing, and hung or lost devices. */
#include "direct_vulkan.h"
#include "support/random.h"
#include "exercise.h"
#include "fake.h"

#include <pthread.h>
#include <unistd.h>

enum { BYTES = 40000, PIECES = 3, STEPS = 120 };
static const uint64_t second_ns = UINT64_C(1000000000);

/* A device with a queue, an event, host-visible memory, and memory that the host cannot access. */
typedef struct fixture {
    fake_vulkan fake;
    opening o;
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    gpuhal_memory near, far, result;
} fixture;

static fixture open_fixture(const char *script, uint32_t flags)
{
    fixture d = {.fake = fake_vulkan_script(script)};
    assert_ok(open_direct(&d.o));
    const gpuhal_ops *ops = &d.o.ops;
    assert_non_null(ops->queues);
    assert_int_equal(ops->queues->queue_create(d.o.device, QUEUE_DESC(.flags = flags), &d.queue), GPUHAL_OK);
    assert_int_equal(ops->queues->event_create(d.o.device, EVENT_DESC(.flags = flags), &d.event), GPUHAL_OK);
    assert_int_equal(allocate_direct(&d.o, GPUHAL_MEMORY_UPLOAD, BYTES, &d.near), GPUHAL_OK);
    assert_int_equal(allocate_direct(&d.o, GPUHAL_MEMORY_DEVICE, BYTES, &d.far), GPUHAL_OK);
    assert_int_equal(allocate_direct(&d.o, GPUHAL_MEMORY_READBACK, BYTES, &d.result), GPUHAL_OK);
    return d;
}

static void close_fixture(fixture *d)
{
    const gpuhal_ops *ops = &d->o.ops;
    ops->queues->event_destroy(d->event);
    ops->queues->queue_destroy(d->queue);
    release_direct(&d->o, &d->near);
    release_direct(&d->o, &d->far);
    release_direct(&d->o, &d->result);
    d->o.plugin->close(d->o.device);
    fake_vulkan_expect_clean(&d->fake);
}

static gpuhal_status copy(fixture *d, gpuhal_memory *to, gpuhal_memory *from, uint64_t bytes)
{
    return d->o.ops.copy(d->o.device, d->queue, to, 0, from, 0, bytes);
}

static void enqueue_copy(fixture *d)
{
    assert_int_equal(copy(d, &d->far, &d->near, BYTES), GPUHAL_OK);
    assert_int_equal(d->o.ops.queues->event_record(d->queue, d->event), GPUHAL_OK);
}

static void expect_bytes(fixture *d, const unsigned char *wanted)
{
    assert_int_equal(copy(d, &d->result, &d->far, BYTES), GPUHAL_OK);
    assert_int_equal(d->o.ops.queues->event_record(d->queue, d->event), GPUHAL_OK);
    assert_int_equal(d->o.ops.queues->event_block(d->event, 5 * second_ns), GPUHAL_OK);
    if (!(d->result.flags & GPUHAL_MEMORY_HOST_COHERENT)) {
        assert_int_equal(d->o.ops.memory_invalidate(d->o.device, &d->result, 0, d->result.bytes), GPUHAL_OK);
    }
    assert_memory_equal(d->result.host, wanted, BYTES);
}

static void run_in_order(const char *script)
{
    static unsigned char expected[BYTES];
    fixture d = open_fixture(script, 0);
    uint64_t seed = 21;
    fill_randomly(d.near.host, BYTES, 5);
    enqueue_copy(&d);
    memcpy(expected, d.near.host, BYTES);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t bytes = 4 * (1 + exercise_random(&seed, 200)), half = BYTES / 2;
        const uint64_t from = 4 * exercise_random(&seed, (half - bytes) / 4),
                       to = half + 4 * exercise_random(&seed, (half - bytes) / 4);
        const bool down = exercise_random(&seed, 2) == 0;
        if (exercise_random(&seed, 3) == 0) {
            const uint32_t pattern = (uint32_t)exercise_random(&seed, UINT32_MAX);
            assert_int_equal(d.o.ops.fill(d.o.device, d.queue, &d.far, from, bytes, pattern, 4), GPUHAL_OK);
            for (uint64_t i = 0; i < bytes; i += 4) {
                memcpy(expected + from + i, &pattern, 4);
            }
        } else {
            assert_int_equal(
                d.o.ops.copy(d.o.device, d.queue, &d.far, down ? from : to, &d.far, down ? to : from, bytes),
                GPUHAL_OK);
            memcpy(expected + (down ? from : to), expected + (down ? to : from), bytes);
        }
    }
    expect_bytes(&d, expected);
    close_fixture(&d);
}

TEST(work_that_touches_the_same_bytes_stays_in_order_on_a_device_that_reorders)
{
    run_in_order("discrete;reorder");
}

TEST(work_stays_in_order_on_one_memory_for_all)
{
    run_in_order("integrated;reorder;inline");
}

TEST(work_stays_in_order_on_memory_that_is_not_coherent)
{
    run_in_order("discrete;types=d@0,vc@1,vh@1;reorder");
}

TEST(work_stays_in_order_on_vulkan_1_1)
{
    run_in_order("discrete;api=1.1;reorder");
}

TEST(enqueueing_does_not_wait_for_slow_work)
{
    fixture d = open_fixture("discrete;slow_us=100000", 0);
    const double begin = seconds_now();
    enqueue_copy(&d);
    assert_true(seconds_now() - begin < 0.05);
    assert_int_equal(d.o.ops.queues->event_query(d.event), GPUHAL_NOT_READY);
    assert_int_equal(d.o.ops.queues->event_block(d.event, 5 * second_ns), GPUHAL_OK);
    assert_true(seconds_now() - begin >= 0.1);
    assert_int_equal(d.o.ops.queues->event_query(d.event), GPUHAL_OK);
    close_fixture(&d);
}

TEST(sixty_four_small_copies_are_one_submission)
{
    fixture d = open_fixture("discrete", 0);
    d.fake.fail_call("", 0, 0);
    for (uint64_t c = 0; c < 64; c++) {
        assert_int_equal(d.o.ops.copy(d.o.device, d.queue, &d.far, c * 256, &d.near, c * 256, 256), GPUHAL_OK);
    }
    assert_int_equal(d.fake.calls("vkQueueSubmit"), 0);
    assert_int_equal(d.o.ops.queues->event_record(d.queue, d.event), GPUHAL_OK);
    assert_int_equal(d.o.ops.queues->event_block(d.event, 5 * second_ns), GPUHAL_OK);
    assert_int_equal(d.fake.calls("vkQueueSubmit"), 1);
    close_fixture(&d);
}

/* An enqueueing call must return quickly, so the plugin leaves long host copies to the core's own thread. */
TEST(the_host_copies_at_most_256_kib_inside_a_call_that_enqueues)
{
    enum { LARGE = 512 << 10, SMALL = 256 << 10 };
    static unsigned char bytes[LARGE];
    fixture d = open_fixture("integrated", 0);
    const gpuhal_ops *ops = &d.o.ops;
    gpuhal_memory memory = {0};
    assert_int_equal(allocate_direct(&d.o, GPUHAL_MEMORY_READBACK, LARGE, &memory), GPUHAL_OK);
    for (int queued = 0; queued < 2; queued++) {
        gpuhal_plugin_queue *queue = queued ? d.queue : NULL;
        const gpuhal_plugin_rect host = {.host = bytes, .row_pitch = 1024, .slice_pitch = LARGE},
                                 device = {.memory = &memory, .row_pitch = 1024, .slice_pitch = LARGE};
        gpuhal_status large = queued ? GPUHAL_ERROR_NOT_SUPPORTED : GPUHAL_OK;
        assert_int_equal(ops->write(d.o.device, queue, &memory, 0, bytes, SMALL), GPUHAL_OK);
        assert_int_equal(ops->write(d.o.device, queue, &memory, 0, bytes, SMALL + 4096), large);
        assert_int_equal(ops->read(d.o.device, queue, bytes, &memory, 0, SMALL), GPUHAL_OK);
        assert_int_equal(ops->read(d.o.device, queue, bytes, &memory, 0, SMALL + 4096), large);
        assert_int_equal(ops->copy_rect(d.o.device, queue, &device, &host, (const uint64_t[3]){1024, 256, 1}),
                         GPUHAL_OK);
        assert_int_equal(ops->copy_rect(d.o.device, queue, &device, &host, (const uint64_t[3]){1024, 257, 1}), large);
    }
    release_direct(&d.o, &memory);
    close_fixture(&d);
}

/* If the ring is full, calls return NOT_READY immediately and without side effects until the device has finished some
 * work. */
TEST(more_submissions_than_are_kept_in_flight_and_longer_runs_than_one_holds_stay_in_order)
{
    enum { COPIES = 1000, PIECE = 40, FLUSHES = 200 };
    unsigned refused = 0;
    fixture d = open_fixture("discrete;slow_us=100;reorder", 0);
    fill_randomly(d.near.host, BYTES, 11);
    for (uint64_t c = 0; c < COPIES; c++) {
        gpuhal_status status = d.o.ops.copy(d.o.device, d.queue, &d.far, c * PIECE, &d.near, c * PIECE, PIECE);
        for (; status == GPUHAL_NOT_READY; refused++) {
            usleep(100);
            status = d.o.ops.copy(d.o.device, d.queue, &d.far, c * PIECE, &d.near, c * PIECE, PIECE);
        }
        assert_int_equal(status, GPUHAL_OK);
        assert_int_equal(c < FLUSHES ? d.o.ops.queues->queue_flush(d.queue) : GPUHAL_OK, GPUHAL_OK);
    }
    assert_true(refused > 0);
    expect_bytes(&d, d.near.host);
    assert_true(d.fake.calls("vkQueueSubmit") > FLUSHES + 2);
    assert_true(d.fake.calls("vkAllocateCommandBuffers") < 100);
    close_fixture(&d);
}

/* ---- threads */

enum { THREADS = 8, ROUNDS = 10, COPIES = 60 };

typedef struct helper {
    pthread_t thread;
    fixture *d;
    gpuhal_memory memory;
    gpuhal_status status;
} helper;

/* Uses a separate queue and also makes blocking copies. The queues of all threads share a VkQueue. */
static gpuhal_status help_once(helper *h)
{
    const gpuhal_ops *ops = &h->d->o.ops;
    gpuhal_plugin_device *device = h->d->o.device;
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_event *event = NULL;
    gpuhal_status status = ops->queues->queue_create(device, QUEUE_DESC(.flags = 0), &queue);
    status = status ? status : ops->queues->event_create(device, EVENT_DESC(.flags = 0), &event);
    for (uint64_t c = 0; c < COPIES && !status; c++) {
        status = ops->copy(device, queue, &h->memory, c * 64, &h->d->near, c * 64, 64);
        status = !status && c % 3 == 0 ? ops->queues->queue_flush(queue) : status;
        status = !status && c % 20 == 0 ? ops->copy(device, NULL, &h->memory, BYTES - 64, &h->d->near, 0, 64) : status;
    }
    status = status ? status : ops->queues->event_record(queue, event);
    status = status ? status : ops->queues->event_block(event, 20 * second_ns);
    if (event) {
        ops->queues->event_destroy(event);
    }
    if (queue) {
        ops->queues->queue_destroy(queue);
    }
    return status;
}

static void *help(void *user)
{
    helper *h = user;
    for (int round = 0; round < ROUNDS && !h->status; round++) {
        h->status = help_once(h);
    }
    return NULL;
}

TEST(queues_of_many_threads_share_one_of_the_devices)
{
    static helper helpers[THREADS];
    fixture d = open_fixture("discrete;families=gct2,t1", 0);
    fill_randomly(d.near.host, BYTES, 12);
    for (int t = 0; t < THREADS; t++) {
        helpers[t].d = &d;
        assert_int_equal(allocate_direct(&d.o, GPUHAL_MEMORY_UPLOAD, BYTES, &helpers[t].memory), GPUHAL_OK);
        assert_int_equal(pthread_create(&helpers[t].thread, NULL, help, &helpers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(helpers[t].thread, NULL);
        assert_int_equal(helpers[t].status, GPUHAL_OK);
        assert_memory_equal(helpers[t].memory.host, d.near.host, COPIES * 64);
        release_direct(&d.o, &helpers[t].memory);
    }
    close_fixture(&d);
}

TEST(one_queue_waits_for_an_event_of_another)
{
    fixture d = open_fixture("discrete;slow_us=30000;families=gct2,t1", 0);
    const gpuhal_ops *ops = &d.o.ops;
    gpuhal_plugin_queue *other = NULL;
    gpuhal_plugin_event *end = NULL;
    assert_non_null(ops->queues->queue_wait);
    assert_int_equal(ops->queues->queue_create(d.o.device, QUEUE_DESC(.flags = 0), &other), GPUHAL_OK);
    assert_int_equal(ops->queues->event_create(d.o.device, EVENT_DESC(.flags = 0), &end), GPUHAL_OK);
    fill_randomly(d.near.host, BYTES, 8);
    enqueue_copy(&d);
    assert_int_equal(ops->queues->queue_wait(other, d.event), GPUHAL_OK);
    assert_int_equal(ops->copy(d.o.device, other, &d.result, 0, &d.far, 0, BYTES), GPUHAL_OK);
    assert_int_equal(ops->queues->event_record(other, end), GPUHAL_OK);
    assert_int_equal(ops->queues->event_block(end, 5 * second_ns), GPUHAL_OK);
    assert_memory_equal(d.result.host, d.near.host, BYTES);
    ops->queues->event_destroy(end);
    ops->queues->queue_destroy(other);
    close_fixture(&d);
}

/* Nothing was submitted to the VkQueue after the submission that waited for the event, so a driver like Mesa 22.3 may
 * still write to the semaphore. */
TEST(queues_and_events_may_be_destroyed_as_soon_as_the_work_that_awaited_them_has_ended)
{
    fixture d = open_fixture("discrete;families=gct2,t1;late_waits", 0);
    const gpuhal_ops *ops = &d.o.ops;
    fill_randomly(d.near.host, BYTES, 8);
    for (int round = 0; round < 50; round++) {
        gpuhal_plugin_queue *first = NULL, *second = NULL;
        gpuhal_plugin_event *middle = NULL, *end = NULL;
        assert_int_equal(ops->queues->queue_create(d.o.device, QUEUE_DESC(.flags = 0), &first), GPUHAL_OK);
        assert_int_equal(ops->queues->queue_create(d.o.device, QUEUE_DESC(.flags = 0), &second), GPUHAL_OK);
        assert_int_equal(ops->queues->event_create(d.o.device, EVENT_DESC(.flags = 0), &middle), GPUHAL_OK);
        assert_int_equal(ops->queues->event_create(d.o.device, EVENT_DESC(.flags = 0), &end), GPUHAL_OK);
        memset(d.result.host, 0, BYTES);
        assert_int_equal(ops->copy(d.o.device, first, &d.far, 0, &d.near, 0, BYTES), GPUHAL_OK);
        assert_int_equal(ops->queues->event_record(first, middle), GPUHAL_OK);
        assert_int_equal(ops->queues->queue_wait(second, middle), GPUHAL_OK);
        assert_int_equal(ops->copy(d.o.device, second, &d.result, 0, &d.far, 0, BYTES), GPUHAL_OK);
        assert_int_equal(ops->queues->event_record(second, end), GPUHAL_OK);
        assert_int_equal(ops->queues->event_block(end, 5 * second_ns), GPUHAL_OK);
        assert_memory_equal(d.result.host, d.near.host, BYTES);
        ops->queues->event_destroy(middle);
        ops->queues->event_destroy(end);
        ops->queues->queue_destroy(first);
        ops->queues->queue_destroy(second);
    }
    close_fixture(&d);
    assert_true(d.fake.calls("vkCreateSemaphore") <= 3); /* the number of queues that exist at the same time */
}

/* The time between two events equals the duration of the work between them, even if the transfer family has no
 * timestamps. */
static void measure(const char *script)
{
    fixture d = open_fixture(script, GPUHAL_TIMED);
    const gpuhal_ops *ops = &d.o.ops;
    gpuhal_plugin_event *before = NULL;
    uint64_t elapsed_ns = 0;
    assert_non_null(ops->queues->elapsed);
    assert_int_equal(ops->queues->event_create(d.o.device, EVENT_DESC(.flags = GPUHAL_TIMED), &before), GPUHAL_OK);
    for (int again = 0; again < 2; again++) {
        const double begin = seconds_now();
        assert_int_equal(ops->queues->event_record(d.queue, before), GPUHAL_OK);
        enqueue_copy(&d);
        assert_int_equal(ops->queues->event_block(d.event, 5 * second_ns), GPUHAL_OK);
        assert_int_equal(ops->queues->event_block(before, 5 * second_ns), GPUHAL_OK);
        assert_int_equal(ops->queues->elapsed(before, d.event, &elapsed_ns), GPUHAL_OK);
        assert_true(elapsed_ns >= 20000000);
        assert_true((double)elapsed_ns / 1e9 <= seconds_now() - begin);
    }
    ops->queues->event_destroy(before);
    close_fixture(&d);
}

TEST(timed_events_report_how_long_the_work_took)
{
    measure("discrete;slow_us=20000");
}

TEST(timed_events_work_if_the_transfer_family_has_no_timestamps)
{
    measure("discrete;slow_us=20000;families=gct1,t1/0");
}

/* The end event was recorded before the begin event. This can happen if the timestamps are from two queues. */
static void measure_backwards(const char *script)
{
    fixture d = open_fixture(script, GPUHAL_TIMED);
    const gpuhal_ops *ops = &d.o.ops;
    gpuhal_plugin_event *before = NULL;
    uint64_t elapsed_ns = 1;
    assert_int_equal(ops->queues->event_create(d.o.device, EVENT_DESC(.flags = GPUHAL_TIMED), &before), GPUHAL_OK);
    assert_int_equal(ops->queues->event_record(d.queue, before), GPUHAL_OK);
    enqueue_copy(&d);
    assert_int_equal(ops->queues->event_block(d.event, 5 * second_ns), GPUHAL_OK);
    assert_int_equal(ops->queues->event_block(before, 5 * second_ns), GPUHAL_OK);
    assert_int_equal(ops->queues->elapsed(d.event, before, &elapsed_ns), GPUHAL_OK);
    assert_int_equal(elapsed_ns, 0);
    ops->queues->event_destroy(before);
    close_fixture(&d);
}

TEST(time_stamps_out_of_order_are_no_time_apart)
{
    measure_backwards("discrete;families=gct2");
}

/* Intel's drivers behave like this. */
TEST(time_stamps_of_36_bits_out_of_order_are_no_time_apart)
{
    measure_backwards("discrete;families=gct2/36");
}

TEST(waiting_for_a_device_that_hangs_ends_with_the_time_and_the_queue_stays_usable)
{
    fixture d = open_fixture("discrete", 0);
    fill_randomly(d.near.host, BYTES, 9);
    d.fake.hang(1);
    const double begin = seconds_now();
    enqueue_copy(&d);
    assert_int_equal(d.o.ops.queues->event_block(d.event, second_ns / 20), GPUHAL_NOT_READY);
    assert_int_equal(d.o.ops.queues->event_block(d.event, 0), GPUHAL_NOT_READY);
    assert_true(seconds_now() - begin >= 0.05 && seconds_now() - begin < 2);
    assert_int_equal(d.o.ops.queues->event_query(d.event), GPUHAL_NOT_READY);
    d.fake.go_on();
    assert_int_equal(d.o.ops.queues->event_block(d.event, 5 * second_ns), GPUHAL_OK);
    expect_bytes(&d, d.near.host);
    close_fixture(&d);
}

/* The caller's own submissions need one more submission to show their end. */
static void record_after_a_failure(bool foreign)
{
    fixture d = open_fixture("discrete", 0);
    const gpuhal_ops *ops = &d.o.ops;
    fill_randomly(d.near.host, BYTES, 11);
    d.fake.hang(1);
    assert_int_equal(copy(&d, &d.result, &d.near, BYTES), GPUHAL_OK);
    assert_int_equal(ops->queues->queue_flush(d.queue), GPUHAL_OK);
    if (foreign) {
        assert_int_equal(ops->native->native_lock(d.queue, 0), GPUHAL_OK);
        ops->native->native_unlock(d.queue);
    }
    d.fake.fail_call("vkQueueSubmit", 1, -1);
    assert_int_equal(copy(&d, &d.far, &d.near, BYTES), GPUHAL_OK);
    assert_int_equal(ops->queues->queue_flush(d.queue), GPUHAL_ERROR_HOST_MEMORY);
    assert_int_equal(copy(&d, &d.far, &d.near, BYTES), GPUHAL_ERROR_CANCELLED);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(ops->queues->event_record(d.queue, d.event), GPUHAL_OK);
    }
    assert_int_equal(d.fake.calls("vkQueueSubmit"), 1 + foreign);
    assert_int_equal(ops->queues->event_query(d.event), GPUHAL_NOT_READY);
    d.fake.go_on();
    assert_int_equal(ops->queues->event_block(d.event, 5 * second_ns), GPUHAL_OK);
    assert_memory_equal(d.result.host, d.near.host, BYTES);
    assert_int_equal(ops->queues->queue_flush(d.queue), GPUHAL_ERROR_CANCELLED);
    close_fixture(&d);
}

TEST(an_event_of_a_queue_that_has_failed_shows_the_end_of_the_earlier_submissions)
{
    record_after_a_failure(false);
}

TEST(an_event_of_a_queue_that_has_failed_shows_the_end_of_the_callers_own_submissions)
{
    record_after_a_failure(true);
}

TEST(a_query_without_host_memory_does_not_end_the_work)
{
    fixture d = open_fixture("discrete", 0);
    const gpuhal_queue_ops *queues = d.o.ops.queues;
    static const char *const calls[] = {"vkGetSemaphoreCounterValue", "vkWaitSemaphores"};
    d.fake.hang(1);
    enqueue_copy(&d);
    for (int code = -1; code >= -2; code--) {
        d.fake.fail_call(calls[0], 1, code);
        assert_int_equal(queues->event_query(d.event), GPUHAL_NOT_READY);
        d.fake.fail_call(calls[1], 1, code);
        assert_int_equal(queues->event_block(d.event, 1000000), GPUHAL_NOT_READY);
    }
    d.fake.go_on();
    assert_int_equal(queues->event_block(d.event, UINT64_C(10000000000)), GPUHAL_OK);
    close_fixture(&d);
}

/* The plugin does not destroy objects that may still be in use. So the fake must report leaked objects, but no
 * destroyed object that was in use. */
TEST(work_that_never_ends_holds_up_closing_for_seconds_alone)
{
    static fixture d; /* leak checkers find the remaining objects through it */
    static gpuhal_plugin_queue *waiting;
    d = open_fixture("discrete;families=gct2,t1", 0);
    const gpuhal_ops *ops = &d.o.ops;
    assert_int_equal(ops->queues->queue_create(d.o.device, QUEUE_DESC(.flags = 0), &waiting), GPUHAL_OK);
    d.fake.hang(1);
    enqueue_copy(&d);
    assert_int_equal(ops->queues->queue_wait(waiting, d.event), GPUHAL_OK);
    assert_int_equal(ops->copy(d.o.device, waiting, &d.result, 0, &d.far, 0, BYTES), GPUHAL_OK);
    const double begin = seconds_now();
    ops->queues->queue_destroy(waiting);
    ops->queues->queue_destroy(d.queue);
    assert_int_equal(ops->queues->event_query(d.event), GPUHAL_ERROR_DEVICE_LOST);
    ops->queues->event_destroy(d.event);
    release_direct(&d.o, &d.near);
    release_direct(&d.o, &d.far);
    release_direct(&d.o, &d.result);
    d.o.plugin->close(d.o.device);
    assert_true(seconds_now() - begin < 6);
    assert_int_equal(d.fake.violations(), 0);
    assert_true(d.fake.alive() > 0);
    d.fake.go_on();
}

TEST(a_lost_device_answers_every_slot_of_its_queues_with_lost_and_closes)
{
    fixture d = open_fixture("discrete", 0);
    const gpuhal_ops *ops = &d.o.ops;
    gpuhal_plugin_queue *more = NULL;
    d.fake.lose(1);
    enqueue_copy(&d);
    const double begin = seconds_now();
    assert_int_equal(ops->queues->event_block(d.event, 5 * second_ns), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(ops->queues->event_query(d.event), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(copy(&d, &d.far, &d.near, BYTES), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(ops->queues->queue_flush(d.queue), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(ops->queues->event_record(d.queue, d.event), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(ops->queues->queue_create(d.o.device, QUEUE_DESC(.flags = 0), &more), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(ops->query_health(d.o.device), GPUHAL_ERROR_DEVICE_LOST);
    close_fixture(&d);
    assert_true(seconds_now() - begin < 1);
}

/* ---- each call fails once */

static gpuhal_status live(opening *o, gpuhal_plugin_queue **queue, gpuhal_plugin_event *events[2],
                          gpuhal_memory memory[2])
{
    const gpuhal_ops *ops = &o->ops;
    uint64_t elapsed_ns = 0;
    gpuhal_status status = ops->queues->queue_create(o->device, QUEUE_DESC(.flags = GPUHAL_TIMED), queue);
    for (int i = 0; i < 2 && !status; i++) {
        status = ops->queues->event_create(o->device, EVENT_DESC(.flags = GPUHAL_TIMED), &events[i]);
        status = status ? status
                        : allocate_direct(o, i == 0 ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_DEVICE, BYTES, &memory[i]);
    }
    for (int round = 0; round < 3 && !status; round++) {
        status = ops->queues->event_record(*queue, events[0]);
        for (uint64_t c = 0; c < PIECES && !status; c++) {
            status = ops->copy(o->device, *queue, &memory[1], c * 256, &memory[0], c * 256, 256);
        }
        status = status ? status : ops->queues->queue_flush(*queue);
        status = status ? status : ops->queues->event_record(*queue, events[1]);
        status = status ? status : ops->queues->event_block(events[1], 5 * second_ns);
        status = status ? status : ops->queues->event_query(events[0]);
        status = status ? status : ops->queues->elapsed(events[0], events[1], &elapsed_ns);
    }
    return status;
}

static bool fail_once(const fake_vulkan *fake, const char *function, unsigned nth, int code)
{
    opening o;
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_event *events[2] = {NULL};
    gpuhal_memory memory[2] = {{0}};
    fake->fail_call(function, nth, code);
    gpuhal_status status = open_direct(&o);
    if (!status) {
        status = live(&o, &queue, events, memory);
    }
    const bool reached = fake->calls(function) >= nth;
    if (status && o.device) {
        (void)gpuhal_direct_failed(o.plugin, status, "work");
    }
    if (status > 0 || (status && !reached) || (status && strlen(gpuhal_last_error()->sentence) < 10)) {
        fail_msg("%s, call %u: status %d, \"%s\"", function, nth, status, gpuhal_last_error()->sentence);
    }
    for (int i = 0; i < 2; i++) {
        if (events[i]) {
            o.ops.queues->event_destroy(events[i]);
        }
    }
    if (queue) {
        o.ops.queues->queue_destroy(queue);
    }
    for (int i = 0; i < 2; i++) {
        release_direct(&o, &memory[i]);
    }
    if (o.device) {
        o.plugin->close(o.device);
    }
    if (fake->alive() || fake->violations()) {
        fail_msg("%s, call %u, code %d: %u objects left, %s", function, nth, code, fake->alive(), fake->violation(0));
    }
    return reached;
}

TEST(whichever_call_fails_in_the_life_of_a_queue_nothing_is_leaked)
{
    static const struct {
        const char *function;
        int code;
    } sweeps[] = {
        {"vkCreateSemaphore", -1},
        {"vkCreateQueryPool", -2},
        {"vkCreateCommandPool", -1},
        {"vkAllocateCommandBuffers", -2},
        {"vkBeginCommandBuffer", -1},
        {"vkEndCommandBuffer", -2},
        {"vkQueueSubmit", -1},
        {"vkQueueSubmit", -4},
        {"vkWaitSemaphores", -1},
        {"vkWaitSemaphores", -4},
        {"vkGetSemaphoreCounterValue", -4},
        {"vkGetSemaphoreCounterValue", -1},
        {"vkGetQueryPoolResults", -1},
        {"vkGetQueryPoolResults", -4},
        {"vkCreateFence", -2},
        {"vkAllocateMemory", -2},
    };
    const fake_vulkan fake = fake_vulkan_script("discrete");
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) {
        unsigned nth = 1;
        while (fail_once(&fake, sweeps[i].function, nth, sweeps[i].code)) {
            nth++;
        }
    }
}

#include "test_main.h"
