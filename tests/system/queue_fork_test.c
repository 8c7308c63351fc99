/* Tests that the child of a fork can release inherited busy queues and events without a call to the driver and without
 * hanging, and that new CPU queues work in the child. */
#include "cuda_fake.h"
#include "queues.h"

#include <sys/wait.h>

enum { BYTES = 65536 };

static void never(void *user, gpuhal_status status)
{
    count_call(user, status);
}

static int child(gpuhal *gpu, gpuhal_queue *queue, gpuhal_queue *on_cpu, gpuhal_event *event, gpuhal_buffer *buffer)
{
    static calls seen;
    gpuhal_event *mine = NULL;
    gpuhal_queue *fresh = NULL;
    gpuhal_os_handle descriptor = -1;
    void *user = NULL;
    gpuhal_status ended = GPUHAL_OK;
    bool fine = gpuhal_queue_flush(queue) == GPUHAL_ERROR_FORKED &&
                gpuhal_queue_synchronize(queue, UINT64_MAX) == GPUHAL_ERROR_FORKED &&
                gpuhal_event_wait(event, UINT64_MAX) == GPUHAL_ERROR_FORKED &&
                gpuhal_queue_flush(on_cpu) == GPUHAL_ERROR_FORKED &&
                gpuhal_queue_reset(queue, UINT64_MAX) == GPUHAL_ERROR_FORKED;
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(on_cpu);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    fine = fine && report_of_backend(gpu).state == GPUHAL_PLUGIN_FORKED &&
           !gpuhal_queue_create(select_or_fail(gpu, "cpu:0"), NULL, &fresh) && !gpuhal_event_create(gpu, 0, &mine) &&
           !gpuhal_event_record(mine, fresh) && !gpuhal_event_on_completion(mine, never, &seen) &&
           !gpuhal_event_watch(mine, &seen) && !gpuhal_completion_descriptor(gpu, &descriptor) &&
           is_readable(descriptor, 10000) && !gpuhal_next_completion(gpu, &user, &ended) && user == &seen;
    for (int i = 0; fine && i < 10000 && atomic_load(&seen.count) == 0; i++) {
        pause_ms(1);
    }
    fine = fine && atomic_load(&seen.count) == 1;
    gpuhal_event_destroy(mine);
    gpuhal_queue_destroy(fresh);
    gpuhal_close(gpu);
    return fine ? 0 : 1;
}

TEST(a_child_gives_up_queues_and_events_that_are_at_work)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("the sanitizers' own allocators may be locked for ever in the child of a threaded process");
#endif
    static calls seen;
    use_machine("slow_us 400000");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0), *on_cpu = queue_or_fail(select_or_fail(gpu, "cpu:0"), 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_os_handle all = -1, one = -1;
    void *user = NULL;
    gpuhal_status ended = GPUHAL_NOT_READY;
    int state = 0;
    assert_ok(gpuhal_completion_descriptor(gpu, &all));
    assert_ok(gpuhal_event_descriptor(event, &one));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 1, 4));
    assert_ok(gpuhal_event_record(event, queue));
    assert_ok(gpuhal_event_on_completion(event, count_call, &seen));
    assert_ok(gpuhal_event_watch(event, &seen));
    assert_ok(gpuhal_queue_wait(on_cpu, event));
    fflush(NULL);
    pid_t other = fork();
    if (other == 0) {
        alarm(50);
        _exit(child(gpu, queue, on_cpu, event, buffer));
    }
    assert_int_equal(waitpid(other, &state, 0), other);
    assert_int_equal(state, 0);
    assert_ok(gpuhal_event_wait(event, PATIENCE_NS));
    expect_called_once(&seen, GPUHAL_OK);
    assert_true(is_readable(one, 10000));
    assert_true(is_readable(all, 10000));
    assert_ok(gpuhal_next_completion(gpu, &user, &ended));
    assert_ok(ended);
    assert_ok(gpuhal_queue_synchronize(on_cpu, PATIENCE_NS));
    close((int)one);
    close((int)all);
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(on_cpu);
    close_clean(gpu);
}

#include "test_main.h"
