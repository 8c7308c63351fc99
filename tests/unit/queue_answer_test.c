/* Results of queues and events: failures, marks, pending memory, descriptors for event loops, and fill patterns. */
#include "pool_support.h"

#include "queue/queue.h"

#include <poll.h>
#include <sys/resource.h>

static gpuhal_status fail_inside(void *user)
{
    (void)user;
    assert_int_equal(gpuhal_queue_create(NULL, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    return GPUHAL_OK;
}

static gpuhal_status fail_silently(void *user)
{
    (void)user;
    return GPUHAL_ERROR_INVALID_ARGUMENT;
}

TEST(a_failing_function_does_not_quote_the_failure_of_an_earlier_one)
{
    gpuhal *gpu = open_one();
    gpuhal_queue *queue = queue_or_fail(gpu);
    assert_ok(gpuhal_queue_call(queue, fail_inside, NULL));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_ok(gpuhal_queue_call(queue, fail_silently, NULL));
    assert_int_equal(gpuhal_queue_synchronize(queue, PATIENCE_NS), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "a function that the queue called returned"));
    assert_null(strstr(gpuhal_last_error()->sentence, "gpuhal_queue_create"));
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
}

TEST(a_mark_is_made_in_each_queue_with_work_and_in_no_other)
{
    gpuhal *gpu = open_one();
    gpuhal_queue_marks marks;
    assert_ok(gpuhal_queues_mark(gpu, &marks));
    assert_int_equal(marks.count, 0);
    gpuhal_queue_marks_free(&marks);
    gpuhal_queue *idle = queue_or_fail(gpu), *busy = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, busy);
    assert_ok(gpuhal_queues_mark(gpu, &marks));
    assert_int_equal(marks.count, 1);
    assert_ptr_equal(marks.list[0]->queue, busy);
    gpuhal_queue_marks_free(&marks);
    open_gate(gate);
    gpuhal_queue_destroy(idle);
    gpuhal_queue_destroy(busy);
    gpuhal_close(gpu);
}

TEST(memory_that_only_queued_work_keeps_is_pending_once)
{
    enum { ONE = 4096, OTHER = 8192 };
    gpuhal *gpu = open_one();
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_buffer *one = gpuhal_mock_buffer(gpu, 0, ONE), *other = gpuhal_mock_buffer(gpu, 0, OTHER), *refused = NULL;
    for (int i = 0; i < 4; i++) {
        assert_ok(gpuhal_copy(queue, one, 0, other, 0, 1));
        assert_ok(gpuhal_copy(queue, other, 0, one, 0, 1));
    }
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(other);
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_ERROR_OUT_OF_MEMORY;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = ONE};
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &refused), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_pending, ONE + OTHER);
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_OK;
    open_gate(gate);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

TEST(a_descriptor_of_an_event_that_the_system_does_not_give_is_an_error)
{
    gpuhal *gpu = open_one();
    gpuhal_event *event = NULL;
    gpuhal_os_handle descriptor = -1, other = 0;
    struct rlimit before, none;
    assert_ok(gpuhal_event_create(gpu, GPUHAL_EVENT_HOST, &event));
    assert_ok(gpuhal_event_descriptor(event, &descriptor));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const gpuhal_status status = gpuhal_event_descriptor(event, &other);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, GPUHAL_ERROR_DRIVER);
    assert_int_equal(other, -1);
    gpuhal_os_handle_close(descriptor);
    gpuhal_event_destroy(event);
    gpuhal_close(gpu);
}

TEST(a_descriptor_of_an_event_is_readable_after_the_end_of_each_recording)
{
    gpuhal *gpu = open_one();
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *event = NULL;
    gpuhal_os_handle descriptor = -1;
    assert_ok(gpuhal_event_create(gpu, 0, &event));
    assert_ok(gpuhal_event_descriptor(event, &descriptor));
    for (int i = 0; i < 3; i++) {
        gpuhal_event *gate = close_gate(gpu, queue);
        struct pollfd poller = {.fd = (int)descriptor, .events = POLLIN};
        assert_ok(gpuhal_event_record(event, queue));
        assert_int_equal(poll(&poller, 1, 0), 0);
        open_gate(gate);
        assert_int_equal(poll(&poller, 1, 20000), 1);
    }
    gpuhal_os_handle_close(descriptor);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
}

TEST(a_descriptor_of_completions_that_comes_after_the_first_of_them_is_readable)
{
    gpuhal *gpu = open_one();
    gpuhal_event *event = NULL;
    gpuhal_os_handle descriptor = -1;
    gpuhal_status status = GPUHAL_NOT_READY;
    void *user = NULL;
    assert_ok(gpuhal_event_create(gpu, GPUHAL_EVENT_HOST, &event));
    assert_ok(gpuhal_event_watch(event, &event));
    assert_ok(gpuhal_event_signal(event, GPUHAL_OK));
    assert_ok(gpuhal_completion_descriptor(gpu, &descriptor));
    struct pollfd poller = {.fd = (int)descriptor, .events = POLLIN};
    assert_int_equal(poll(&poller, 1, 20000), 1);
    assert_ok(gpuhal_next_completion(gpu, &user, &status));
    assert_ptr_equal(user, &event);
    assert_ok(status);
    gpuhal_os_handle_close(descriptor);
    gpuhal_event_destroy(event);
    gpuhal_close(gpu);
}

TEST(a_queue_fills_with_patterns_of_1_2_and_4_bytes_alone)
{
    static const uint32_t pattern = 0x44332211;
    gpuhal *gpu = open_one();
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 24);
    for (uint32_t bytes = 0; bytes <= 8; bytes++) {
        unsigned char got[24] = {0};
        const gpuhal_status status = gpuhal_fill(queue, buffer, 0, sizeof got, pattern, bytes);
        if (bytes != 1 && bytes != 2 && bytes != 4) {
            assert_int_equal(status, GPUHAL_ERROR_INVALID_ARGUMENT);
            continue;
        }
        assert_ok(status);
        assert_ok(gpuhal_read(queue, got, buffer, 0, sizeof got));
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
        for (size_t i = 0; i < sizeof got; i++) {
            assert_int_equal(got[i], (unsigned char)(pattern >> 8 * (i % bytes)));
        }
    }
    gpuhal_buffer_release(buffer);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
}

#include "test_main.h"
