/* Tests the fast path of a queue if a submission ends at a particular moment. Timing alone cannot produce this case, so
 * the core is linked into the test. */
#include "memory/buffer.h"
#include "queue/queue.h"
#include "test.h"

#include <gpuhal/trace.h>

extern const gpuhal_plugin *gpuhal_opencl_plugin_query(uint32_t host_abi, const gpuhal_host *host);

static bool ends_early;
static const gpuhal_observer *trace;

/* The core's function may unlock the mutex for a moment. This function unlocks the mutex until the work has ended.
 * The poll that notices the end retires the work, as another thread might do at this moment. */
static void submitted_unlocks(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    trace->submitted_unlocks(queue, op, status);
    if (ends_early) {
        gpuhal_timepoint *end = gpuhal_timepoint_retain(((gpuhal_traced *)op->observed)->end);
        gpuhal_mutex_unlock(&queue->mutex);
        assert_non_null(end);
        while (gpuhal_timepoint_poll(end) == GPUHAL_NOT_READY) {
            gpuhal_os_sleep(1000000);
        }
        gpuhal_timepoint_release(end);
        gpuhal_queue_lock(queue);
        assert_int_equal(queue->submission_count, 0);
    }
}

TEST(work_behind_a_submission_that_was_retired_under_a_trace_keeps_its_buffer)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_opencl_plugin_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .registry = "none",
                                  .backends = "opencl",
                                  .builtins = builtins};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64};
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_queue *queue = NULL;
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_open(&config, &gpu));
    if (gpuhal_select(gpu, "opencl:0", 0, &device, NULL)) {
        gpuhal_close(gpu);
        SKIP_TEST("no OpenCL");
    }
    assert_ok(gpuhal_trace_start(gpu, NULL));
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    trace = queue->observer;
    gpuhal_observer observer = *trace;
    observer.submitted_unlocks = submitted_unlocks;
    queue->observer = &observer;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    ends_early = true;
    assert_ok(gpuhal_fill(queue, buffer, 0, 64, 1, 4));
    ends_early = false;
    assert_ok(gpuhal_trace_stop(gpu, GPUHAL_TRACE_QUEUES));
    assert_int_equal(buffer->references, 1);
    assert_ok(gpuhal_fill(queue, buffer, 0, 64, 2, 4));
    assert_int_equal(buffer->references, 2);
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    assert_int_equal(buffer->references, 1);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

#include "test_main.h"
