/* Tests traces of queues on real drivers: the recorded times, and the effect of tracing on a queue. */
#include "queues.h"
#include "support/trace.h"

#include <gpuhal/usage.h>

#include <pthread.h>

enum { BYTES = 1 << 20, ROUNDS = 20 };

/* Largest difference between a real driver's clock and the host's. */
#define TOLERANCE_NS UINT64_C(200000000) /* the clocks are correlated on a busy machine */

static const char *const selectors[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};
enum { SELECTORS = sizeof selectors / sizeof *selectors };

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

typedef struct objects {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_queue *queue;
    gpuhal_buffer *one, *other;
} objects;

static bool begin(const char *selector, bool traced_before, objects *o)
{
    *o = (objects){.gpu = open_or_fail(NULL)};
    o->device = find(o->gpu, selector);
    if (!o->device) {
        gpuhal_close(o->gpu);
        return false;
    }
    if (traced_before) {
        assert_ok(gpuhal_trace_start(o->gpu, NULL));
    }
    o->queue = queue_or_fail(o->device, 0);
    o->one = buffer_or_fail(o->device, GPUHAL_MEMORY_DEVICE, BYTES);
    o->other = buffer_or_fail(o->device, GPUHAL_MEMORY_DEVICE, BYTES);
    if (!traced_before) {
        assert_ok(gpuhal_trace_start(o->gpu, NULL));
    }
    return true;
}

static void end(const objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_buffer_release(o->one);
    gpuhal_buffer_release(o->other);
    gpuhal_close(o->gpu);
}

/* Enqueues several kinds of operations, with waits between the rounds. Returns the number of operations. */
static size_t work(const objects *o)
{
    static unsigned char host[BYTES], back[BYTES];
    memset(host, 7, sizeof host);
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_ok(gpuhal_write(o->queue, o->one, 0, host, BYTES));
        assert_ok(gpuhal_copy(o->queue, o->other, 0, o->one, 0, BYTES));
        assert_ok(gpuhal_fill(o->queue, o->one, 0, 4096, 1, 4));
        assert_ok(gpuhal_read(o->queue, back, o->other, 0, 1000 + i)); /* an unaligned size */
        if (i % 5 == 0) {
            assert_ok(gpuhal_queue_synchronize(o->queue, PATIENCE_NS));
        }
    }
    assert_ok(gpuhal_queue_synchronize(o->queue, PATIENCE_NS));
    assert_memory_equal(back, host, 1000 + ROUNDS - 1);
    return 4 * ROUNDS;
}

TEST(times_lie_between_enqueueing_and_the_end_of_the_wait_on_every_device)
{
    begin_traces();
    for (size_t d = 0; d < SELECTORS; d++) {
        objects o;
        if (!begin(selectors[d], true, &o)) {
            continue;
        }
        const uint64_t before = now();
        const size_t count = work(&o);
        const uint64_t after = now();
        traced all = write_traced(o.gpu);
        assert_int_equal(all.count, count);
        assert_int_equal(all.dropped + all.unfinished, 0);
        for (size_t i = 0; i < all.count; i++) {
            const traced_piece *piece = &all.pieces[i];
            if (piece->begin < before || piece->end > after + TOLERANCE_NS || strcmp(piece->status, "ok") != 0) {
                fail_msg("%s: piece %zu, %s, by the clock of the %s, %s: from %lld to %lld ns of %lld", selectors[d], i,
                         piece->name, piece->clock, piece->status, (long long)(piece->begin - before),
                         (long long)(piece->end - before), (long long)(after - before));
            }
        }
        expect_usage(&all, o.device);
        free_traced(&all);
        end(&o);
    }
    end_traces();
}

static size_t count_clock(const traced *all, const char *clock)
{
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        count += strcmp(all->pieces[i].clock, clock) == 0 && strcmp(all->pieces[i].path, "worker") != 0;
    }
    return count;
}

/* PoCL and lavapipe report device times. */
TEST(a_queue_made_while_a_trace_is_on_has_times_of_the_device_and_an_older_one_has_none)
{
    static const char *const timed[] = {"opencl:0", "vulkan:0"};
    begin_traces();
    for (size_t d = 0; d < 2; d++) {
        objects o;
        for (int traced_before = 0; traced_before < 2 && begin(timed[d], traced_before, &o); traced_before++) {
            (void)work(&o);
            traced all = write_traced(o.gpu);
            assert_true(count_clock(&all, traced_before ? "device" : "host") > 0);
            assert_int_equal(count_clock(&all, traced_before ? "host" : "device"), 0);
            free_traced(&all);
            end(&o);
        }
    }
    end_traces();
}

/* Compares the device's own times, before their conversion to the host's clock. */
TEST(the_time_of_a_piece_agrees_with_the_events_around_it)
{
    static const char *const timed[] = {"opencl:0", "vulkan:0"};
    begin_traces();
    for (size_t d = 0; d < 2; d++) {
        objects o;
        if (!begin(timed[d], true, &o)) {
            continue;
        }
        gpuhal_queue *queue = queue_or_fail(o.device, GPUHAL_QUEUE_TIMED);
        gpuhal_event *from = event_or_fail(o.gpu, GPUHAL_EVENT_TIMED), *to = event_or_fail(o.gpu, GPUHAL_EVENT_TIMED);
        gpuhal_buffer *large = buffer_or_fail(o.device, GPUHAL_MEMORY_DEVICE, 64 * (uint64_t)BYTES);
        uint64_t measured = 0;
        assert_ok(gpuhal_event_record(from, queue));
        assert_ok(gpuhal_fill(queue, large, 0, 64 * (uint64_t)BYTES, 1, 4));
        assert_ok(gpuhal_event_record(to, queue));
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
        assert_ok(gpuhal_event_elapsed(from, to, &measured));
        traced all = write_traced(o.gpu);
        assert_int_equal(all.count, 1);
        const uint64_t traced_ns = all.pieces[0].end - all.pieces[0].begin;
        if (traced_ns > measured || traced_ns < measured / 10) {
            fail_msg("%s: %llu ns, events measure %llu", timed[d], (unsigned long long)traced_ns,
                     (unsigned long long)measured);
        }
        assert_int_equal(all.event_count, 2);
        assert_string_equal(all.events[0].clock, "device");
        assert_string_equal(all.events[1].clock, "device");
        assert_true(all.events[0].end <= all.pieces[0].begin && all.pieces[0].end <= all.events[1].end);
        free_traced(&all);
        gpuhal_buffer_release(large);
        gpuhal_event_destroy(from);
        gpuhal_event_destroy(to);
        gpuhal_queue_destroy(queue);
        end(&o);
    }
    end_traces();
}

TEST(an_arrow_joins_queues_of_one_device_and_of_two)
{
    begin_traces();
    objects o;
    if (!begin("opencl:1", true, &o)) {
        SKIP_TEST("no OpenCL");
    }
    gpuhal_queue *second = queue_or_fail(o.device, 0), *far = queue_or_fail(select_or_fail(o.gpu, "cpu:0"), 0);
    gpuhal_buffer *there = buffer_or_fail(select_or_fail(o.gpu, "cpu:0"), GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_event *event = event_or_fail(o.gpu, 0), *later = event_or_fail(o.gpu, 0);
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_event_record(event, o.queue));
    assert_ok(gpuhal_queue_wait(second, event));
    assert_ok(gpuhal_copy(second, o.other, 0, o.one, 0, BYTES));
    assert_ok(gpuhal_event_record(later, second));
    assert_ok(gpuhal_queue_wait(far, event));
    assert_ok(gpuhal_queue_wait(far, later));
    assert_ok(gpuhal_copy(far, there, 0, o.other, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(far, PATIENCE_NS));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 3);
    assert_int_equal(all.arrow_count, 3);
    assert_true(all.arrows[0].from == 1 && all.arrows[0].to == 3); /* numbers 2 and 4 are the events */
    assert_true(all.arrows[1].from == 1 && all.arrows[1].to == 5);
    assert_true(all.arrows[2].from == 3 && all.arrows[2].to == 5);
    assert_true(all.pieces[0].end <= all.pieces[1].begin + TOLERANCE_NS);
    assert_true(all.pieces[1].end <= all.pieces[2].begin + TOLERANCE_NS);
    assert_string_equal(all.pieces[2].usage, "pair");
    free_traced(&all);
    gpuhal_event_destroy(event);
    gpuhal_event_destroy(later);
    gpuhal_buffer_release(there);
    gpuhal_queue_destroy(second);
    gpuhal_queue_destroy(far);
    end(&o);
    end_traces();
}

TEST(an_arrow_begins_at_the_piece_before_an_event_that_was_deferred)
{
    begin_traces();
    objects o;
    if (!begin("opencl:1", true, &o)) {
        SKIP_TEST("no OpenCL");
    }
    gpuhal_queue *second = queue_or_fail(o.device, 0);
    gpuhal_event *host = event_or_fail(o.gpu, GPUHAL_EVENT_HOST), *event = event_or_fail(o.gpu, 0);
    assert_ok(gpuhal_queue_wait(o.queue, host));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
    assert_ok(gpuhal_event_record(event, o.queue)); /* number 2 */
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 2, 4));
    assert_ok(gpuhal_event_signal(host, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_queue_wait(second, event));
    assert_ok(gpuhal_fill(second, o.other, 0, BYTES, 3, 4)); /* number 4 */
    assert_ok(gpuhal_queue_synchronize(second, PATIENCE_NS));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.arrow_count, 1);
    assert_true(all.arrows[0].from == 1 && all.arrows[0].to == 4);
    assert_int_equal(all.event_count, 1);
    assert_int_equal(all.unfinished, 0);
    free_traced(&all);
    gpuhal_event_destroy(host);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(second);
    end(&o);
    end_traces();
}

static gpuhal_status call_native(void *user, const gpuhal_native *native)
{
    *(uint32_t *)user = native->size;
    return GPUHAL_OK;
}

TEST(native_calls_are_pieces_in_the_order_of_the_queue)
{
    begin_traces();
    for (size_t d = 0; d < SELECTORS; d++) {
        objects o;
        uint32_t seen = 0;
        if (!begin(selectors[d], true, &o)) {
            continue;
        }
        assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
        if (gpuhal_queue_native_call(o.queue, call_native, &seen) == GPUHAL_OK) {
            assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 1, 4));
            assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
            traced all = write_traced(o.gpu);
            assert_int_equal(all.count, 3);
            assert_string_equal(all.pieces[1].category, "call");
            assert_true(all.pieces[0].end <= all.pieces[1].begin && all.pieces[1].end <= all.pieces[2].begin);
            assert_true(seen > 0);
            free_traced(&all);
        }
        end(&o);
    }
    end_traces();
}

/* ---- threads */

enum { THREADS = 8, EACH = 100 };

static void *enqueue(void *user)
{
    const objects *o = user;
    for (int i = 0; i < EACH; i++) {
        if (gpuhal_fill(o->queue, o->one, 0, 4096, 1, 4) || gpuhal_copy(o->queue, o->other, 0, o->one, 0, 4096)) {
            return user;
        }
    }
    return gpuhal_queue_synchronize(o->queue, PATIENCE_NS) ? user : NULL;
}

TEST(threads_that_share_a_queue_leave_pieces_in_one_order_on_every_device)
{
    begin_traces();
    for (size_t d = 0; d < SELECTORS; d++) {
        objects o;
        pthread_t threads[THREADS];
        if (!begin(selectors[d], true, &o)) {
            continue;
        }
        for (int i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, enqueue, &o), 0);
        }
        assert_ok(gpuhal_trace_write(o.gpu, GPUHAL_TRACE_QUEUES, trace_path));
        for (int i = 0; i < THREADS; i++) {
            void *failed = NULL;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
        traced all = write_traced(o.gpu);
        assert_int_equal(all.count, 2 * THREADS * EACH);
        assert_int_equal(all.dropped + all.unfinished, 0);
        expect_usage(&all, o.device);
        free_traced(&all);
        end(&o);
    }
    end_traces();
}

/* Starts and stops the trace while the queue works, sometimes on its fast path and sometimes not. */
TEST(a_trace_that_begins_and_ends_beside_work_changes_no_byte)
{
    begin_traces();
    for (size_t d = 0; d < SELECTORS; d++) {
        objects o;
        if (!begin(selectors[d], true, &o)) {
            continue;
        }
        uint32_t got[1024] = {0};
        for (uint32_t i = 0; i < 200; i++) {
            if (i % 7 == 0) {
                assert_ok(i % 2 ? gpuhal_trace_start(o.gpu, NULL) : gpuhal_trace_stop(o.gpu, GPUHAL_TRACE_QUEUES));
            }
            assert_ok(gpuhal_fill(o.queue, o.one, 0, 4096, i, 4));
            assert_ok(gpuhal_fill(o.queue, o.one, 0, 2048, i + 1, 4));
            assert_ok(gpuhal_copy(o.queue, o.other, 0, o.one, 0, 4096));
        }
        assert_ok(gpuhal_read(o.queue, got, o.other, 0, sizeof got));
        assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
        for (uint32_t i = 0; i < 1024; i++) {
            assert_int_equal(got[i], i < 512 ? 200 : 199);
        }
        traced all = write_traced(o.gpu);
        assert_int_equal(all.unfinished, 0);
        free_traced(&all);
        end(&o);
    }
    end_traces();
}

#include "test_main.h"
