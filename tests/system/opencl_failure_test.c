/* Tests failures in queues of the OpenCL plugin with PoCL, and queues that belong to the caller. */
#include "direct_opencl.h"

#include <pthread.h>
#include <unistd.h>

static void expect_failure(const fixture *d, gpuhal_status status)
{
    assert_int_equal(status, GPUHAL_ERROR_DRIVER);
    (void)gpuhal_direct_failed(d->plugin, status, "copying");
    assert_true(strlen(gpuhal_last_error()->sentence) > 20);
}

/* A PoCL queue remains usable after its work has failed. In a rusticl queue all later work fails too. */
static bool queues_recover(const fixture *d)
{
    cl_platform_id platform = NULL;
    char name[64] = "";
    assert_int_equal(CL(clGetDeviceInfo)(d->id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL), CL_SUCCESS);
    assert_int_equal(CL(clGetPlatformInfo)(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL), CL_SUCCESS);
    return strcmp(name, "Portable Computing Language") == 0;
}

/* ---- work that fails */

TEST(the_error_of_the_work_is_that_of_the_events_behind_it_and_of_queues_that_wait)
{
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    gpuhal_plugin_queue *second = queue_or_fail(&d, 0);
    gpuhal_plugin_event *end = event_or_fail(&d, 0);
    const gate shut = close_gate(&d, d.queue);
    copy_all(&d, d.queue, &d.far, &d.near);
    record(&d, d.queue, d.event);
    expect_fine(&d, d.ops->queues->queue_wait(second, d.event), "queue_wait");
    copy_all(&d, second, &d.result, &d.far);
    record(&d, second, end);
    break_gate(shut);
    expect_failure(&d, d.ops->queues->event_block(d.event, 20 * second_ns));
    expect_failure(&d, d.ops->queues->event_query(d.event));
    expect_failure(&d, d.ops->queues->event_block(end, 20 * second_ns));
    assert_int_equal(((unsigned char *)d.result.host)[0], 0x22);
    expect_failure(&d, d.ops->queues->queue_wait(second, d.event));
    if (queues_recover(&d)) {
        copy_all(&d, second, &d.result, &d.far);
        synchronize(&d, second);
        assert_int_equal(((unsigned char *)d.result.host)[0], 0x33);
    }
    d.ops->queues->event_destroy(end);
    d.ops->queues->queue_destroy(second);
    close_fixture(&d);
}

typedef struct waiter {
    pthread_t thread;
    const fixture *d;
    gpuhal_plugin_event *event;
    gpuhal_status status;
} waiter;

static void *wait_for_it(void *user)
{
    waiter *w = user;
    w->status = w->d->ops->queues->event_block(w->event, 60 * second_ns);
    return NULL;
}

/* PoCL does not run callbacks for failed work. */
TEST(a_thread_that_sleeps_until_the_work_is_done_gets_its_failure)
{
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    const gate shut = close_gate(&d, d.queue);
    record(&d, d.queue, d.event);
    waiter w = {.d = &d, .event = d.event};
    assert_int_equal(pthread_create(&w.thread, NULL, wait_for_it, &w), 0);
    usleep(20000);
    break_gate(shut);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.status, GPUHAL_ERROR_DRIVER);
    close_fixture(&d);
}

/* When the second copy is enqueued, PoCL no longer has a command that waits for the first copy. */
static void fail_before_more_is_enqueued(bool handed_out)
{
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    gpuhal_plugin_queue *gated = queue_or_fail(&d, 0);
    gpuhal_plugin_event *first = event_or_fail(&d, 0);
    const gate shut = close_gate(&d, gated);
    record(&d, gated, first);
    if (handed_out) {
        (void)commands_of(&d, d.queue);
    }
    expect_fine(&d, d.ops->queues->queue_wait(d.queue, first), "queue_wait");
    copy_all(&d, d.queue, &d.far, &d.near);
    break_gate(shut);
    expect_failure(&d, d.ops->queues->event_block(first, 20 * second_ns));
    for (int i = 0; i < 40; i++) {
        copy_all(&d, d.queue, &d.result, &d.far);
    }
    record(&d, d.queue, d.event);
    expect_failure(&d, d.ops->queues->event_block(d.event, 20 * second_ns));
    /* A failure is cleared once it has been reported. */
    if (queues_recover(&d)) {
        copy_all(&d, d.queue, &d.far, &d.near);
        copy_all(&d, d.queue, &d.result, &d.far);
        record(&d, d.queue, d.event);
        await(&d, d.event);
        assert_memory_equal(d.result.host, d.near.host, BYTES);
    }
    d.ops->queues->event_destroy(first);
    d.ops->queues->queue_destroy(gated);
    close_fixture(&d);
}

TEST(a_failure_is_not_lost_when_more_is_enqueued_after_it)
{
    fail_before_more_is_enqueued(false);
}

TEST(a_failure_is_not_lost_in_a_queue_that_the_caller_uses_too)
{
    fail_before_more_is_enqueued(true);
}

/* ---- destroying */

static void *open_it_later(void *user)
{
    usleep(50000);
    open_gate(*(const gate *)user);
    return NULL;
}

TEST(a_queue_that_is_destroyed_with_work_in_it_gets_it_done_first)
{
    fixture d;
    pthread_t thread;
    open_fixture(&d, PTHREAD, 0);
    gpuhal_plugin_queue *queue = queue_or_fail(&d, 0);
    gate shut = close_gate(&d, queue);
    copy_all(&d, queue, &d.far, &d.near);
    copy_all(&d, queue, &d.result, &d.far);
    assert_int_equal(pthread_create(&thread, NULL, open_it_later, &shut), 0);
    d.ops->queues->queue_destroy(queue);
    assert_memory_equal(d.result.host, d.near.host, BYTES);
    pthread_join(thread, NULL);
    close_fixture(&d);
}

/* The plugin does not free objects that may still be in use. The variables are static, so that leak checkers find
 * pointers to these objects. */
TEST(work_that_never_ends_holds_up_destroying_for_seconds_alone_and_costs_the_device)
{
    static fixture d;
    static gpuhal_plugin_queue *second;
    static cl_command_queue kept[2];
    gpuhal_plugin_queue *more = NULL;
    open_fixture(&d, PTHREAD, 0);
    second = queue_or_fail(&d, 0);
    kept[0] = commands_of(&d, d.queue);
    kept[1] = commands_of(&d, second);
    const gate shut = close_gate(&d, d.queue);
    record(&d, d.queue, d.event);
    expect_fine(&d, d.ops->queues->queue_wait(second, d.event), "queue_wait");
    d.ops->queues->queue_destroy(d.queue);
    d.ops->queues->queue_destroy(second);
    assert_int_equal(d.ops->query_health(d.device), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(d.ops->queues->event_query(d.event), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(d.ops->queues->event_block(d.event, UINT64_MAX), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(d.ops->queues->queue_create(d.device, QUEUE_DESC(.flags = 0), &more), GPUHAL_ERROR_DEVICE_LOST);
    open_gate(shut);
    assert_int_equal(CL(clFinish)(kept[0]), CL_SUCCESS);
    assert_int_equal(CL(clFinish)(kept[1]), CL_SUCCESS);
    CL(clReleaseCommandQueue)(kept[0]);
    CL(clReleaseCommandQueue)(kept[1]);
    d.ops->queues->event_destroy(d.event);
    d.ops->release(d.device, &d.near);
    d.ops->release(d.device, &d.far);
    d.ops->release(d.device, &d.result);
    d.plugin->close(d.device);
}

/* ---- the caller's queues */

static gpuhal_status adopt(const fixture *d, uint32_t type, cl_command_queue commands)
{
    const gpuhal_native native = {.size = sizeof native, .type = type, .values = {(uintptr_t)commands}};
    gpuhal_plugin_queue *queue = NULL;
    const gpuhal_status status = d->ops->queues->queue_create(d->device, QUEUE_DESC(.adopt = &native), &queue);
    assert_null(queue);
    return status;
}

TEST(command_queues_that_do_not_fit_are_not_adopted)
{
    fixture d, other;
    cl_int code = CL_SUCCESS;
    open_fixture(&d, PTHREAD, 0);
    open_fixture(&other, PTHREAD, 0);
    cl_command_queue loose = CL(clCreateCommandQueue)(d.context, d.id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(adopt(&d, GPUHAL_NATIVE_OPENCL_QUEUE, loose), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(adopt(&d, GPUHAL_NATIVE_OPENCL_QUEUE, commands_of(&other, other.queue)),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(adopt(&d, GPUHAL_NATIVE_OPENCL_QUEUE, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(adopt(&d, GPUHAL_NATIVE_OPENCL_BUFFER, commands_of(&d, d.queue)), GPUHAL_ERROR_INVALID_ARGUMENT);
    CL(clReleaseCommandQueue)(loose);
    close_fixture(&other);
    close_fixture(&d);
}

/* Enqueues commands of the plugin, then of the caller, then of the plugin again. The commands must run in this order.
 * An event must also wait for the caller's later commands. */
static void take_turns(fixture *d, gpuhal_plugin_queue *queue)
{
    const unsigned char mark = 0x66;
    gpuhal_native native = {.size = sizeof native};
    expect_fine(d, d->ops->native->native_memory(d->device, &d->far, &native), "native_memory");
    const cl_mem mem = (cl_mem)(uintptr_t)native.values[0];
    const cl_command_queue commands = commands_of(d, queue);
    copy_all(d, queue, &d->far, &d->near);
    assert_int_equal(CL(clEnqueueFillBuffer)(commands, mem, &mark, 1, 10, 10, 0, NULL, NULL), CL_SUCCESS);
    copy_all(d, queue, &d->result, &d->far);
    /* the plugin's commands have ended; the caller's gate is still closed */
    assert_int_equal(CL(clFinish)(commands), CL_SUCCESS);
    const gate shut = close_gate(d, queue);
    record(d, queue, d->event);
    assert_int_equal(d->ops->queues->event_query(d->event), GPUHAL_NOT_READY);
    open_gate(shut);
    await(d, d->event);
    const unsigned char *got = d->result.host;
    assert_memory_equal(got + 9, "\x11\x66", 2);
    assert_memory_equal(got + 19, "\x66\x11", 2);
}

TEST(the_callers_own_commands_are_in_order_with_ours_in_a_queue_of_ours)
{
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    copy_all(&d, d.queue, &d.far, &d.near);
    take_turns(&d, d.queue);
    close_fixture(&d);
}

TEST(the_callers_own_commands_are_in_order_with_ours_in_a_queue_of_the_callers)
{
    fixture d;
    cl_int code = CL_SUCCESS;
    open_fixture(&d, PTHREAD, 0);
    cl_command_queue commands = CL(clCreateCommandQueue)(d.context, d.id, 0, &code);
    assert_int_equal(code, CL_SUCCESS);
    gpuhal_plugin_queue *queue = adopt_or_fail(&d, commands);
    assert_ptr_equal(commands_of(&d, queue), commands);
    CL(clReleaseCommandQueue)(commands); /* the library holds a reference */
    take_turns(&d, queue);
    d.ops->queues->queue_destroy(queue);
    close_fixture(&d);
}

TEST(the_cl_event_of_an_event_is_handed_out)
{
    fixture d;
    gpuhal_native native = {.size = sizeof native};
    open_fixture(&d, PTHREAD, 0);
    assert_int_equal(d.ops->native->native_event(d.event, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    copy_all(&d, d.queue, &d.far, &d.near);
    record(&d, d.queue, d.event);
    expect_fine(&d, d.ops->native->native_event(d.event, &native), "native_event");
    assert_int_equal(native.type, GPUHAL_NATIVE_OPENCL_EVENT);
    const cl_event event = (cl_event)(uintptr_t)native.values[0];
    assert_int_equal(CL(clWaitForEvents)(1, &event), CL_SUCCESS);
    assert_int_equal(d.ops->queues->event_query(d.event), GPUHAL_OK);
    close_fixture(&d);
}

#include "test_main.h"
