/* tests/system/direct_opencl.h: the OpenCL plugin's slots with PoCL, or with the only device of another driver. Also
 * the driver's own functions.
 *
 * A gate is a barrier in the caller's queue that waits for a user event. Commands that are enqueued after the gate
 * begin when the gate opens, and fail when the user event fails. Gates work only on PoCL's `pthread` device. The
 * `basic` device runs commands inside the enqueuing call, so a gate would deadlock. */
#ifndef GPUHAL_TEST_DIRECT_OPENCL_H
#define GPUHAL_TEST_DIRECT_OPENCL_H

#include "system.h"

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <gpuhal/direct.h>
#include <gpuhal/plugin.h>

enum { BASIC = 0, PTHREAD = 1, BYTES = 40000 };
static const uint64_t second_ns = UINT64_C(1000000000);

/* An opened device with a queue and an event, host-visible memory (near and result), and device memory (far). */
typedef struct fixture {
    const gpuhal_plugin *plugin;
    gpuhal_plugin_instance *instance;
    gpuhal_plugin_device *device;
    gpuhal_ops *ops;
    gpuhal_ops slots;
    cl_device_id id;
    cl_context context;
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    gpuhal_memory near, far, result;
} fixture;

static inline void *opencl_function(const char *name)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *function = dlsym(library, name);
    assert_non_null(function);
    return function;
}

#define CL(function) ((__typeof__(function) *)opencl_function(#function))

static inline void expect_fine(const fixture *d, gpuhal_status status, const char *what)
{
    if (status) {
        (void)gpuhal_direct_failed(d->plugin, status, what);
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
}

static inline gpuhal_memory memory_or_fail(const fixture *d, gpuhal_memory_kind kind, uint64_t bytes)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = kind, .bytes = bytes};
    gpuhal_memory memory = {.size = sizeof memory};
    expect_fine(d, d->ops->allocate(d->device, &alloc, &memory), "allocate");
    return memory;
}

static inline gpuhal_plugin_queue *queue_or_fail(const fixture *d, uint32_t flags)
{
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(d, d->ops->queues->queue_create(d->device, QUEUE_DESC(.flags = flags), &queue), "queue_create");
    return queue;
}

static inline gpuhal_plugin_queue *adopt_or_fail(const fixture *d, cl_command_queue commands)
{
    const gpuhal_native adopt = {
        .size = sizeof adopt, .type = GPUHAL_NATIVE_OPENCL_QUEUE, .values = {(uintptr_t)commands}};
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(d, d->ops->queues->queue_create(d->device, QUEUE_DESC(.adopt = &adopt), &queue), "queue_create");
    return queue;
}

static inline gpuhal_plugin_event *event_or_fail(const fixture *d, uint32_t flags)
{
    gpuhal_plugin_event *event = NULL;
    expect_fine(d, d->ops->queues->event_create(d->device, EVENT_DESC(.flags = flags), &event), "event_create");
    return event;
}

static inline void count_device(void *user, uint32_t index)
{
    (void)index;
    ++*(uint32_t *)user;
}

static inline void open_fixture_of(fixture *d, const gpuhal_plugin *plugin, uint32_t index, uint32_t flags)
{
    uint32_t count = 0;
    const gpuhal_direct_listener listener = {.user = &count, .device = count_device};
    gpuhal_native native = {.size = sizeof native};
    *d = (fixture){.plugin = plugin};
    d->ops = &d->slots;
    expect_fine(d, d->plugin->start(gpuhal_direct_host(), &d->instance), "start");
    expect_fine(d, gpuhal_direct_enumerate(d->plugin, d->instance, &listener), "enumerate");
    index = index < count ? index : 0;
    d->ops->size = sizeof *d->ops;
    expect_fine(d, d->plugin->describe(gpuhal_direct_host(), d->instance, index, d->ops), "describe");
    expect_fine(d, d->plugin->open(gpuhal_direct_host(), d->instance, index, NULL, &d->device, d->ops), "open");
    expect_fine(d, d->ops->native->native_device(d->device, &native), "native_device");
    d->id = (cl_device_id)(uintptr_t)native.values[1];
    d->context = (cl_context)(uintptr_t)native.values[2];
    d->queue = queue_or_fail(d, flags);
    d->event = event_or_fail(d, flags);
    d->near = memory_or_fail(d, GPUHAL_MEMORY_UPLOAD, BYTES);
    d->far = memory_or_fail(d, GPUHAL_MEMORY_DEVICE, BYTES);
    d->result = memory_or_fail(d, GPUHAL_MEMORY_READBACK, BYTES);
    memset(d->near.host, 0x11, BYTES);
    memset(d->result.host, 0x22, BYTES);
    expect_fine(d, d->ops->fill(d->device, NULL, &d->far, 0, BYTES, 0x33, 1), "fill");
}

static inline void open_fixture(fixture *d, uint32_t index, uint32_t flags)
{
    const gpuhal_plugin *plugin = NULL;
    assert_non_null(getenv("GPUHAL_OPENCL_PLUGIN_FILE"));
    assert_ok(gpuhal_direct_load(getenv("GPUHAL_OPENCL_PLUGIN_FILE"), &plugin, NULL));
    open_fixture_of(d, plugin, index, flags);
}

/* The fixture's queue must be idle. */
static inline void close_fixture(fixture *d)
{
    d->ops->queues->event_destroy(d->event);
    d->ops->queues->queue_destroy(d->queue);
    d->ops->release(d->device, &d->near);
    d->ops->release(d->device, &d->far);
    d->ops->release(d->device, &d->result);
    d->plugin->close(d->device);
}

static inline void copy_all(const fixture *d, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                            const gpuhal_memory *from)
{
    expect_fine(d, d->ops->copy(d->device, queue, to, 0, from, 0, BYTES), "copy");
}

static inline void record(const fixture *d, gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    expect_fine(d, d->ops->queues->event_record(queue, event), "event_record");
}

static inline void await(const fixture *d, gpuhal_plugin_event *event)
{
    expect_fine(d, d->ops->queues->event_block(event, 20 * second_ns), "event_block");
}

static inline void synchronize(const fixture *d, gpuhal_plugin_queue *queue)
{
    gpuhal_plugin_event *end = event_or_fail(d, 0);
    record(d, queue, end);
    await(d, end);
    d->ops->queues->event_destroy(end);
}

static inline cl_command_queue commands_of(const fixture *d, gpuhal_plugin_queue *queue)
{
    gpuhal_native native = {.size = sizeof native};
    expect_fine(d, d->ops->native->native_queue(queue, &native), "native_queue");
    assert_int_equal(native.type, GPUHAL_NATIVE_OPENCL_QUEUE);
    return (cl_command_queue)(uintptr_t)native.values[0];
}

/* Holds a reference to the barrier's event. PoCL 3.1 aborts if a command fails and its event has no reference. */
typedef struct gate {
    cl_event user, barrier;
} gate;

static inline gate close_gate(const fixture *d, gpuhal_plugin_queue *queue)
{
    cl_int code = CL_SUCCESS;
    gate g = {.user = CL(clCreateUserEvent)(d->context, &code)};
    assert_int_equal(code, CL_SUCCESS);
    assert_int_equal(CL(clEnqueueBarrierWithWaitList)(commands_of(d, queue), 1, &g.user, &g.barrier), CL_SUCCESS);
    return g;
}

static inline void end_gate(gate g, cl_int status)
{
    assert_int_equal(CL(clSetUserEventStatus)(g.user, status), CL_SUCCESS);
    (void)CL(clWaitForEvents)(1, &g.barrier);
    assert_int_equal(CL(clReleaseEvent)(g.user), CL_SUCCESS);
    assert_int_equal(CL(clReleaseEvent)(g.barrier), CL_SUCCESS);
}

static inline void open_gate(gate g)
{
    end_gate(g, CL_COMPLETE);
}

static inline void break_gate(gate g)
{
    /* work after the gate fails with this code, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, or -1 (PoCL) */
    end_gate(g, CL_INVALID_OPERATION);
}

#endif
