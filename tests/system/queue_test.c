/* Tests queues and events as applications use them, on the library's own queues (cpu) and on queues of OpenCL and
 * Vulkan. */
#include "exercise.h"
#include "support/random.h"
#include "queues.h"

#define BYTES (1u << 20)

static const char *const selectors[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};
enum { DEVICES = sizeof selectors / sizeof *selectors };

/* Each of these operations depends on the previous one: write, fill, copies and read. In any other order the bytes
 * would be wrong. */
static void enqueue_chain(gpuhal_queue *queue, gpuhal_buffer *one, gpuhal_buffer *two, const unsigned char *in,
                          unsigned char *out)
{
    assert_ok(gpuhal_write(queue, one, 0, in, BYTES));
    assert_ok(gpuhal_fill(queue, one, 4096, 4096, 0xabu, 1));
    assert_ok(gpuhal_copy(queue, two, 0, one, 0, BYTES));
    assert_ok(gpuhal_write(queue, two, 100, in, 1001));
    for (unsigned i = 0; i < 8; i++) {
        assert_ok(gpuhal_copy(queue, one, (i + 1) * 65536, two, i * 65536, 65536));
        assert_ok(gpuhal_copy(queue, two, (i + 1) * 65536, one, (i + 1) * 65536, 65536));
    }
    const gpuhal_rect to = {.buffer = one, .offset = 12288, .row_pitch = 256},
                      from = {.buffer = two, .offset = 0, .row_pitch = 128};
    const uint64_t extent[3] = {64, 16, 1};
    assert_ok(gpuhal_copy_rect(queue, &to, &from, extent));
    assert_ok(gpuhal_read(queue, out, one, 0, BYTES));
}

static void model_chain(const unsigned char *in, unsigned char *out)
{
    static unsigned char one[BYTES], two[BYTES];
    memcpy(one, in, BYTES);
    memset(one + 4096, 0xab, 4096);
    memcpy(two, one, BYTES);
    memcpy(two + 100, in, 1001);
    for (unsigned i = 0; i < 8; i++) {
        memcpy(one + (i + 1) * 65536, two + i * 65536, 65536);
        memcpy(two + (i + 1) * 65536, one + (i + 1) * 65536, 65536);
    }
    for (unsigned row = 0; row < 16; row++) {
        memcpy(one + 12288 + row * 256, two + row * 128, 64);
    }
    memcpy(out, one, BYTES);
}

TEST(work_of_a_queue_is_done_in_order_on_every_device)
{
    gpuhal *gpu = open_or_fail(NULL);
    unsigned char *in = malloc(BYTES), *out = malloc(BYTES), *expected = malloc(BYTES);
    fill_randomly(in, BYTES, 3);
    model_chain(in, expected);
    for (size_t d = 0; d < DEVICES; d++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        gpuhal_queue *queue = queue_or_fail(device, 0);
        gpuhal_event *event = event_or_fail(gpu, 0);
        gpuhal_buffer *one = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES),
                      *two = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
        memset(out, 0, BYTES);
        enqueue_chain(queue, one, two, in, out);
        assert_ok(gpuhal_event_record(event, queue));
        assert_ok(gpuhal_event_wait(event, PATIENCE_NS));
        assert_int_equal(gpuhal_event_poll(event), GPUHAL_OK);
        assert_memory_equal(out, expected, BYTES);
        gpuhal_buffer_release(one);
        gpuhal_buffer_release(two);
        gpuhal_event_destroy(event);
        gpuhal_queue_destroy(queue);
    }
    free(in);
    free(out);
    free(expected);
    gpuhal_close(gpu);
}

TEST(a_queue_that_is_destroyed_with_work_in_it_still_does_it)
{
    gpuhal *gpu = open_or_fail(NULL);
    unsigned char *in = malloc(BYTES), *out = malloc(BYTES), *expected = malloc(BYTES);
    fill_randomly(in, BYTES, 4);
    model_chain(in, expected);
    for (size_t d = 0; d < DEVICES; d++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        gpuhal_queue *queue = queue_or_fail(device, 0);
        gpuhal_event *event = event_or_fail(gpu, 0);
        gpuhal_buffer *one = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES),
                      *two = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
        enqueue_chain(queue, one, two, in, out);
        assert_ok(gpuhal_event_record(event, queue));
        gpuhal_buffer_release(one);
        gpuhal_buffer_release(two);
        gpuhal_queue_destroy(queue);
        assert_ok(gpuhal_event_wait(event, PATIENCE_NS));
        assert_memory_equal(out, expected, BYTES);
        gpuhal_event_destroy(event);
    }
    free(in);
    free(out);
    free(expected);
    gpuhal_close(gpu);
}

/* A value is copied from device to device. Each device waits for the previous device, and the host does not wait in
 * between. */
TEST(queues_of_different_backends_wait_for_each_other)
{
    enum { ROUNDS = 50, PIECE = 4096 };
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_queue *queues[DEVICES];
    gpuhal_event *events[DEVICES];
    gpuhal_buffer *buffers[DEVICES];
    for (size_t d = 0; d < DEVICES; d++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        queues[d] = queue_or_fail(device, 0);
        events[d] = event_or_fail(gpu, 0);
        buffers[d] = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, PIECE);
    }
    unsigned char in[PIECE], out[PIECE];
    fill_randomly(in, PIECE, 5);
    assert_ok(gpuhal_write(queues[0], buffers[0], 0, in, PIECE));
    assert_ok(gpuhal_event_record(events[0], queues[0]));
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t d = 0; d < DEVICES; d++) {
            size_t next = (d + 1) % DEVICES;
            assert_ok(gpuhal_queue_wait(queues[next], events[d]));
            assert_ok(gpuhal_copy(queues[next], buffers[next], 0, buffers[d], 0, PIECE));
            assert_ok(gpuhal_fill(queues[next], buffers[next], round, 1, (uint32_t)d, 1));
            assert_ok(gpuhal_event_record(events[next], queues[next]));
        }
    }
    assert_ok(gpuhal_queue_synchronize(queues[0], PATIENCE_NS));
    assert_ok(gpuhal_read(NULL, out, buffers[0], 0, PIECE));
    memset(in, (int)DEVICES - 1, ROUNDS);
    assert_memory_equal(in, out, PIECE);
    for (size_t d = 0; d < DEVICES; d++) {
        gpuhal_buffer_release(buffers[d]);
        gpuhal_event_destroy(events[d]);
        gpuhal_queue_destroy(queues[d]);
    }
    gpuhal_close(gpu);
}

typedef struct last_call {
    gpuhal_event *event;
    _Atomic int count, status;
} last_call;

static void destroy_and_count(void *user, gpuhal_status status)
{
    last_call *seen = user;
    atomic_store(&seen->status, status);
    gpuhal_event_destroy(seen->event);
    atomic_fetch_add(&seen->count, 1);
}

TEST(descriptors_callbacks_and_watches_report_the_end)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_os_handle all = -1;
    void *user = NULL;
    gpuhal_status ended = GPUHAL_NOT_READY;
    assert_ok(gpuhal_completion_descriptor(gpu, &all));
    for (size_t d = 0; d < DEVICES; d++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        gpuhal_queue *queue = queue_or_fail(device, 0);
        gpuhal_event *event = event_or_fail(gpu, 0);
        gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
        gpuhal_os_handle descriptor = -1;
        last_call seen = {.event = event};
        assert_ok(gpuhal_event_descriptor(event, &descriptor));
        assert_true(is_readable(descriptor, 1000));
        for (unsigned again = 0; again < 3; again++) {
            assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, again, 4));
            assert_ok(gpuhal_event_record(event, queue));
            assert_true(is_readable(descriptor, 60000));
            assert_int_equal(gpuhal_event_poll(event), GPUHAL_OK);
        }
        assert_int_equal(gpuhal_next_completion(gpu, &user, &ended), GPUHAL_NOT_READY);
        assert_ok(gpuhal_event_watch(event, &seen));
        assert_true(is_readable(all, 60000));
        assert_ok(gpuhal_next_completion(gpu, &user, &ended));
        assert_ptr_equal(user, &seen);
        assert_int_equal(ended, GPUHAL_OK);
        assert_false(is_readable(all, 0));
        assert_ok(gpuhal_event_on_completion(event, destroy_and_count, &seen)); /* destroys the event */
        for (unsigned i = 0; i < 6000 && atomic_load(&seen.count) == 0; i++) {
            nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
        }
        assert_int_equal(atomic_load(&seen.count), 1);
        assert_int_equal(atomic_load(&seen.status), GPUHAL_OK);
        close((int)descriptor);
        gpuhal_buffer_release(buffer);
        gpuhal_queue_destroy(queue);
    }
    close((int)all);
    gpuhal_close(gpu);
}

TEST(mistakes_are_named)
{
    gpuhal *gpu = open_or_fail(NULL), *other = open_or_fail(NULL);
    gpuhal_device *cpu = select_or_fail(gpu, "cpu:0");
    gpuhal_queue *queue = queue_or_fail(cpu, 0), *foreign = queue_or_fail(select_or_fail(other, "cpu:0"), 0);
    gpuhal_event *event = event_or_fail(gpu, 0), *timed = event_or_fail(gpu, GPUHAL_EVENT_TIMED);
    gpuhal_buffer *buffer = buffer_or_fail(cpu, GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_queue *opencl = queue_or_fail(select_or_fail(gpu, "opencl:0"), 0);
    char byte = 0;
    assert_int_equal(gpuhal_queue_wait(queue, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_queue_call(queue, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_queue_keep(queue, &(gpuhal_buffer *){NULL}, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_event_record(event, foreign), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_event_record(timed, queue), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_write(opencl, buffer, 0, &byte, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_write(queue, buffer, 64, &byte, 1), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(gpuhal_copy(queue, buffer, 0, buffer, 1, 8), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_queue_native_end(queue), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_queue_synchronize(queue, 0), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    gpuhal_event_destroy(timed);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(opencl);
    gpuhal_queue_destroy(foreign);
    gpuhal_close(other);
    gpuhal_close(gpu);
}

TEST(timed_events_report_how_long_the_work_took)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (size_t d = 0; d < DEVICES; d++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        gpuhal_queue *queue = queue_or_fail(device, GPUHAL_QUEUE_TIMED);
        gpuhal_event *from = event_or_fail(gpu, GPUHAL_EVENT_TIMED), *to = event_or_fail(gpu, GPUHAL_EVENT_TIMED);
        gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 16 * BYTES);
        uint64_t ns = UINT64_MAX;
        assert_ok(gpuhal_event_record(from, queue));
        assert_ok(gpuhal_fill(queue, buffer, 0, 16 * BYTES, 1, 4));
        assert_ok(gpuhal_event_record(to, queue));
        assert_ok(gpuhal_event_wait(to, PATIENCE_NS));
        gpuhal_status status = gpuhal_event_elapsed(from, to, &ns);
        if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
            assert_ok(status);
            assert_in_range(ns, 1000, PATIENCE_NS);
            assert_int_equal(gpuhal_event_elapsed(to, from, &ns), GPUHAL_ERROR_INVALID_ARGUMENT);
        }
        gpuhal_buffer_release(buffer);
        gpuhal_event_destroy(from);
        gpuhal_event_destroy(to);
        gpuhal_queue_destroy(queue);
    }
    gpuhal_close(gpu);
}

/* Vulkan's plugin returns NOT_READY while too many operations of a queue are unfinished. */
TEST(thousands_of_rectangles_behind_slow_copies_are_copied)
{
    enum { RECTANGLES = 6000, COPIES = 40, LARGE = 16 << 20, SIDE = 64 };
    gpuhal *gpu = open_or_fail(NULL);
    for (size_t d = 0; d < DEVICES; d++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        gpuhal_queue *queue = queue_or_fail(device, 0);
        gpuhal_buffer *one = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, LARGE),
                      *two = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, LARGE);
        unsigned char got[SIDE];
        assert_ok(gpuhal_fill(queue, one, 0, LARGE, 7, 1));
        for (int i = 0; i < COPIES; i++) {
            assert_ok(gpuhal_copy(queue, two, 0, one, 0, LARGE));
        }
        assert_ok(gpuhal_fill(queue, two, 0, LARGE, 0, 1));
        for (uint64_t i = 0; i < RECTANGLES; i++) {
            const gpuhal_rect to = {.buffer = two, .offset = i % 100 * 4096, .row_pitch = 1024},
                              from = {.buffer = one, .row_pitch = 512};
            assert_ok(gpuhal_copy_rect(queue, &to, &from, (const uint64_t[]){SIDE, 4, 1}));
        }
        assert_ok(gpuhal_read(queue, got, two, 99 * 4096 + 3 * 1024, SIDE));
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
        for (int i = 0; i < SIDE; i++) {
            assert_int_equal(got[i], 7);
        }
        gpuhal_queue_destroy(queue);
        gpuhal_buffer_release(one);
        gpuhal_buffer_release(two);
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
