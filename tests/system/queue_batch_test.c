/* Tests batches of work with the same buffers. Such batches take a shorter path into the queue, with all guarantees of
 * the normal path. */
#include "cuda_fake.h"
#include "support/random.h"
#include "queues.h"

#include <gpuhal/usage.h>

#include <pthread.h>

enum { PIECE = 64, THREADS = 4, PIECES_EACH = 500, BYTES = PIECE * THREADS * PIECES_EACH };

static uint64_t copies_counted(const gpuhal_device *device, uint64_t *out_bytes)
{
    gpuhal_usage usage = {.size = sizeof usage};
    assert_ok(gpuhal_device_usage(device, &usage));
    *out_bytes = usage.copied.bytes;
    return usage.copied.operations;
}

TEST(each_piece_of_a_batch_is_counted_before_any_wait)
{
    uint64_t bytes = 0;
    use_machine("devices 1");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_buffer *from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES),
                  *to = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_queue *queue = queue_or_fail(device, 0);
    for (uint64_t i = 0; i < 100; i++) {
        assert_ok(gpuhal_copy(queue, to, i * PIECE, from, i * PIECE, PIECE));
        if (i % 10 == 3) {
            assert_int_equal(copies_counted(device, &bytes), i + 1);
            assert_int_equal(bytes, (i + 1) * PIECE);
        }
    }
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    close_clean(gpu);
}

TEST(a_batch_of_several_kinds_keeps_its_order)
{
    unsigned char out[PIECE], wanted[PIECE];
    use_machine("devices 1");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_buffer *one = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, PIECE),
                  *two = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, PIECE);
    gpuhal_queue *queue = queue_or_fail(device, 0);
    for (unsigned i = 0; i < 200; i++) {
        /* Fills and writes use the same buffer. The first copy reads one buffer and writes the other, the second copy
         * does the reverse. */
        assert_ok(gpuhal_fill(queue, one, 0, PIECE, i, 1));
        memset(wanted, (int)(i + 1), PIECE);
        assert_ok(gpuhal_write(queue, one, 0, wanted, PIECE / 2));
        assert_ok(gpuhal_copy(queue, two, 0, one, 0, PIECE));
        assert_ok(gpuhal_copy(queue, one, 0, two, PIECE / 2, PIECE / 2));
        assert_ok(gpuhal_read(queue, out, one, 0, PIECE));
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
        memset(wanted, (int)i, PIECE);
        assert_memory_equal(out, wanted, PIECE);
    }
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    close_clean(gpu);
}

TEST(a_piece_in_the_middle_of_a_batch_that_the_driver_refuses_ends_it_with_its_cause)
{
    unsigned char out[PIECE * 20], wanted[PIECE * 20];
    char first[512];
    use_machine("devices 1; fail cuMemcpyDtoDAsync_v2 8 999");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_buffer *from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof out),
                  *to = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof out);
    gpuhal_queue *queue = queue_or_fail(device, 0);
    assert_ok(gpuhal_fill(NULL, from, 0, sizeof out, 9, 1));
    assert_ok(gpuhal_fill(NULL, to, 0, sizeof out, 0, 1));
    gpuhal_status status = GPUHAL_OK;
    unsigned went = 0;
    while (!status && went < 20) {
        status = gpuhal_copy(queue, to, went * PIECE, from, went * PIECE, PIECE);
        went += !status;
    }
    assert_int_equal(went, 7);
    snprintf(first, sizeof first, "%s", gpuhal_last_error()->sentence);
    assert_int_equal(gpuhal_copy(queue, to, 0, from, 0, PIECE), status);
    assert_string_equal(gpuhal_last_error()->sentence, first);
    assert_int_equal(gpuhal_queue_synchronize(queue, PATIENCE_NS), status);
    assert_ok(gpuhal_queue_reset(queue, PATIENCE_NS));
    assert_ok(gpuhal_read(queue, out, to, 0, sizeof out));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    memset(wanted, 0, sizeof wanted);
    memset(wanted, 9, 7 * PIECE);
    assert_memory_equal(out, wanted, sizeof out);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    close_clean(gpu);
}

TEST(a_buffer_that_is_mapped_in_the_middle_of_a_batch_is_not_touched_meanwhile)
{
    void *bytes = NULL;
    use_machine("devices 1");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_buffer *memory = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, PIECE);
    for (unsigned i = 0; i < 2; i++) {
        gpuhal_buffer *mapped = buffer_or_fail(device, i ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_READBACK, PIECE);
        gpuhal_buffer *to = i ? memory : mapped, *from = i ? mapped : memory;
        assert_ok(gpuhal_copy(queue, to, 0, from, 0, PIECE));
        assert_ok(gpuhal_copy(queue, to, 0, from, 0, PIECE));
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
        assert_ok(gpuhal_copy(queue, to, 0, from, 0, PIECE));
        assert_ok(gpuhal_buffer_map(mapped, 0, PIECE, GPUHAL_ACCESS_WRITE, &bytes));
        assert_int_equal(gpuhal_copy(queue, to, 0, from, 0, PIECE), GPUHAL_ERROR_BUSY);
        assert_int_equal(gpuhal_copy(queue, to, 0, from, 0, PIECE), GPUHAL_ERROR_BUSY);
        assert_ok(gpuhal_buffer_unmap(mapped, bytes));
        assert_ok(gpuhal_copy(queue, to, 0, from, 0, PIECE));
        gpuhal_buffer_release(mapped);
    }
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(memory);
    close_clean(gpu);
}

/* A CPU queue waits until the test opens a gate. An event is recorded after the gate. */
TEST(a_batch_waits_behind_held_work_and_is_refused_during_native_access)
{
    unsigned char out[PIECE], wanted[PIECE];
    gate shut;
    gpuhal_native native = {.size = sizeof native};
    use_machine("devices 1");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0"), *cpu = select_or_fail(gpu, "cpu:0");
    gpuhal_buffer *slow = buffer_or_fail(cpu, GPUHAL_MEMORY_DEVICE, PIECE),
                  *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, PIECE);
    gpuhal_queue *queue = queue_or_fail(device, 0), *on_cpu = queue_or_fail(cpu, 0);
    gpuhal_event *event = event_or_fail(gpu, 0), *filled = event_or_fail(gpu, 0);
    enqueue_gate(&shut, on_cpu, slow);
    assert_ok(gpuhal_event_record(event, on_cpu));
    for (unsigned i = 0; i < 4; i++) {
        assert_ok(gpuhal_fill(queue, buffer, 0, PIECE, i, 1));
    }
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    assert_int_equal(gpuhal_fill(queue, buffer, 0, PIECE, 4, 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_wait(queue, filled), GPUHAL_ERROR_BUSY); /* the event was never recorded */
    assert_ok(gpuhal_queue_native_end(queue));
    assert_ok(gpuhal_fill(queue, buffer, 0, PIECE, 5, 1));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_ok(gpuhal_fill(queue, buffer, 0, PIECE, 5, 1));
    assert_ok(gpuhal_event_record(filled, queue));
    assert_ok(gpuhal_queue_wait(queue, event));
    for (unsigned i = 6; i < 10; i++) {
        assert_ok(gpuhal_fill(queue, buffer, 0, PIECE, i, 1));
    }
    assert_ok(gpuhal_event_wait(filled, PATIENCE_NS));
    assert_ok(gpuhal_read(NULL, out, buffer, 0, PIECE));
    memset(wanted, 5, PIECE);
    assert_memory_equal(out, wanted, PIECE);
    atomic_store(&shut.open, true);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_ok(gpuhal_read(NULL, out, buffer, 0, PIECE));
    memset(wanted, 9, PIECE);
    assert_memory_equal(out, wanted, PIECE);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(on_cpu);
    gpuhal_event_destroy(event);
    gpuhal_event_destroy(filled);
    gpuhal_buffer_release(slow);
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

/* An idle queue does not hold references to the buffers of a finished batch. */
TEST(the_buffers_of_a_batch_go_with_its_last_piece)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_buffer *from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES),
                  *to = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    const uint32_t with_both = fake_report_get()->allocations;
    for (unsigned i = 0; i < 10; i++) {
        assert_ok(gpuhal_copy(queue, to, i * PIECE, from, i * PIECE, PIECE));
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    assert_int_equal(fake_report_get()->allocations, with_both);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    for (unsigned i = 0; i < 20000 && fake_report_get()->allocations > with_both - 2; i++) {
        pause_ms(1);
    }
    assert_int_equal(fake_report_get()->allocations, with_both - 2);
    gpuhal_queue_destroy(queue);
    close_clean(gpu);
}

TEST(a_device_that_is_lost_in_the_middle_of_a_batch_ends_it_and_gives_everything_back)
{
    use_machine("devices 1; lose 0 cuMemcpyDtoDAsync_v2 6 719");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_buffer *from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES),
                  *to = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_status status = GPUHAL_OK;
    for (unsigned i = 0; i < THREADS * PIECES_EACH && !status; i++) {
        status = gpuhal_copy(queue, to, i * PIECE, from, i * PIECE, PIECE);
    }
    status = status ? status : gpuhal_queue_synchronize(queue, PATIENCE_NS);
    assert_int_equal(status, GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_copy(queue, to, 0, from, 0, PIECE), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    expect_no_violation();
    remove_reports();
}

typedef struct crowd {
    gpuhal_device *device;
    gpuhal_queue *queue;
    gpuhal_buffer *to, *from;
    gpuhal_event *event;
    _Atomic unsigned next;
    _Atomic bool over;
} crowd;

static void *enqueue_mine(void *user)
{
    crowd *c = user;
    uint64_t first = atomic_fetch_add(&c->next, 1) * (uint64_t)PIECES_EACH;
    for (uint64_t i = first; i < first + PIECES_EACH; i++) {
        assert_ok(gpuhal_copy(c->queue, c->to, i * PIECE, c->from, i * PIECE, PIECE));
    }
    return NULL;
}

static void *disturb(void *user)
{
    crowd *c = user;
    uint64_t bytes = 0, before = 0;
    while (!atomic_load(&c->over)) {
        assert_ok(gpuhal_event_record(c->event, c->queue));
        (void)gpuhal_event_poll(c->event);
        uint64_t now = copies_counted(c->device, &bytes);
        assert_true(now >= before);
        before = now;
        assert_ok(gpuhal_queue_flush(c->queue));
        assert_ok(gpuhal_queue_synchronize(c->queue, PATIENCE_NS));
        assert_ok(gpuhal_event_wait(c->event, PATIENCE_NS));
    }
    return NULL;
}

static void play_crowd(gpuhal *gpu, gpuhal_device *device)
{
    unsigned char *in = bytes_of_seed(5, BYTES), *out = bytes_of_seed(6, BYTES);
    uint64_t bytes = 0;
    crowd c = {.device = device, .queue = queue_or_fail(device, 0), .event = event_or_fail(gpu, 0)};
    c.from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    c.to = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    assert_ok(gpuhal_write(NULL, c.from, 0, in, BYTES));
    pthread_t threads[THREADS], other;
    assert_int_equal(pthread_create(&other, NULL, disturb, &c), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_mine, &c), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&c.over, true);
    pthread_join(other, NULL);
    assert_ok(gpuhal_read(c.queue, out, c.to, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(c.queue, PATIENCE_NS)); /* copies after a wait count once the worker submits */
    assert_int_equal(copies_counted(device, &bytes), THREADS * PIECES_EACH);
    assert_int_equal(bytes, BYTES);
    assert_memory_equal(out, in, BYTES);
    /* The queue releases the buffers with its last operation. */
    gpuhal_buffer_release(c.from);
    gpuhal_buffer_release(c.to);
    gpuhal_event_destroy(c.event);
    gpuhal_queue_destroy(c.queue);
    free(in);
    free(out);
}

TEST(threads_that_share_a_queue_lose_nothing_while_another_one_looks_at_it)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    play_crowd(gpu, select_or_fail(gpu, "cuda:0"));
    close_clean(gpu);
}

enum { STORM_PIECES = 1000, STORM_FAILURES = 6 };

/* The queue fails, is reset and enters native access at arbitrary moments. */
static void *enqueue_in_a_storm(void *user)
{
    crowd *c = user;
    const bool turned = atomic_fetch_add(&c->next, 1) % 2;
    for (uint64_t i = 0; i < STORM_PIECES; i++) {
        gpuhal_buffer *to = turned && i % 16 == 0 ? c->from : c->to, *from = to == c->to ? c->from : c->to;
        while (gpuhal_copy(c->queue, to, i * PIECE, from, i * PIECE, PIECE)) {
            pause_ms(0);
        }
    }
    return NULL;
}

static void *make_storm(void *user)
{
    crowd *c = user;
    for (unsigned turn = 0; !atomic_load(&c->over); turn++) {
        gpuhal_native native = {.size = sizeof native};
        if (turn % 2 == 0 && gpuhal_queue_native_begin(c->queue, PATIENCE_NS, &native) == GPUHAL_OK) {
            assert_ok(gpuhal_queue_native_end(c->queue));
        }
        (void)gpuhal_queue_reset(c->queue, PATIENCE_NS); /* the queue may already have failed again */
        if (gpuhal_event_record(c->event, c->queue) == GPUHAL_OK && turn % 3 == 0) {
            (void)gpuhal_event_wait(c->event, PATIENCE_NS);
        }
    }
    return NULL;
}

TEST(sections_failures_and_resets_in_the_middle_of_batches_leave_no_piece_uncounted_and_no_buffer_behind)
{
    static char script[512] = "devices 1";
    for (unsigned i = 1; i <= STORM_FAILURES; i++) {
        snprintf(script + strlen(script), sizeof script - strlen(script), "; fail cuMemcpyDtoDAsync_v2 %u 999",
                 i * 150);
    }
    use_machine(script);
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    uint64_t bytes = 0;
    crowd c = {.device = device, .queue = queue_or_fail(device, 0), .event = event_or_fail(gpu, 0)};
    c.from = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, STORM_PIECES * PIECE);
    c.to = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, STORM_PIECES * PIECE);
    pthread_t threads[THREADS], other;
    assert_int_equal(pthread_create(&other, NULL, make_storm, &c), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, enqueue_in_a_storm, &c), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&c.over, true);
    pthread_join(other, NULL);
    assert_ok(gpuhal_queue_reset(c.queue, PATIENCE_NS));
    gpuhal_buffer_release(c.from);
    gpuhal_buffer_release(c.to);
    gpuhal_event_destroy(c.event);
    gpuhal_queue_destroy(c.queue);
    assert_int_equal(calls_of("cuMemcpyDtoDAsync_v2"), THREADS * STORM_PIECES + STORM_FAILURES);
    assert_int_equal(copies_counted(device, &bytes), THREADS * STORM_PIECES);
    assert_int_equal(bytes, THREADS * STORM_PIECES * PIECE);
    close_clean(gpu);
}

/* The queue's own thread does the read, because the driver's call would block. */
TEST(a_deferred_read_comes_after_the_engines_own_work_in_an_adopted_stream)
{
    use_machine("devices 1; slow_us 100000");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    vendor_api api = load_api();
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, PIECE);
    gpuhal_native context = {.size = sizeof context}, memory = {.size = sizeof memory};
    CUstream stream = NULL;
    CUcontext popped = NULL;
    gpuhal_queue *queue = NULL;
    unsigned char got[PIECE] = {0}, wanted[PIECE];
    memset(wanted, 3, sizeof wanted);
    assert_ok(gpuhal_device_native(device, &context));
    assert_ok(gpuhal_buffer_native(buffer, &memory));
    assert_int_equal(api.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)context.values[0]), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamCreate(&stream, 1), CUDA_SUCCESS);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_STREAM, .values = {(uintptr_t)stream}};
    const gpuhal_queue_desc desc = {.size = sizeof desc, .adopt = &native};
    assert_ok(gpuhal_queue_create(device, &desc, &queue));
    for (unsigned char i = 1; i <= 3; i++) {
        assert_int_equal(api.cuMemsetD8Async(memory.values[0], i, PIECE, stream), CUDA_SUCCESS);
    }
    assert_ok(gpuhal_read(queue, got, buffer, 0, sizeof got));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_memory_equal(got, wanted, sizeof got);
    gpuhal_queue_destroy(queue);
    assert_int_equal(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

#include "test_main.h"
