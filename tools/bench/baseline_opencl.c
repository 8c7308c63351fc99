/* baseline_opencl.c: OpenCL through the same library file that the plugin opened, so that handles mean the same on both sides. */
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "baseline_opencl.h"
#include "measure.h"

#include <CL/cl.h>

#include <stdlib.h>

typedef struct opencl_baseline {
    gpuhal_bench_baseline base;
    cl_context context;
    cl_command_queue queue;
    cl_event *events; /* Of what was enqueued. */
    uint64_t event_count;
    uint64_t event_space;
    /* clCreateCommandQueue is the one that every version has. */
    cl_command_queue(CL_API_CALL *create_queue)(cl_context, cl_device_id, cl_command_queue_properties, cl_int *);
    cl_int(CL_API_CALL *release_queue)(cl_command_queue);
    cl_int(CL_API_CALL *write)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *,
                               cl_event *);
    cl_int(CL_API_CALL *read)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *);
    cl_int(CL_API_CALL *copy)(cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *);
    cl_int(CL_API_CALL *flush)(cl_command_queue);
    cl_int(CL_API_CALL *wait)(cl_uint, const cl_event *);
    cl_int(CL_API_CALL *release_event)(cl_event);
    cl_mem(CL_API_CALL *create_buffer)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
    cl_int(CL_API_CALL *migrate)(cl_command_queue, cl_uint, const cl_mem *, cl_mem_migration_flags, cl_uint, const cl_event *,
                                 cl_event *);
    cl_int(CL_API_CALL *release_buffer)(cl_mem);
} opencl_baseline;

static opencl_baseline *opencl_of(gpuhal_bench_baseline *baseline)
{
    return (opencl_baseline *)baseline;
}

static bool failed(const char *call, cl_int code)
{
    return gpuhal_bench_failed("%s returned %d", call, (int)code);
}

static bool find_functions(opencl_baseline *cl, void *library)
{
    const gpuhal_bench_symbol functions[] = {
        {"clCreateCommandQueue", &cl->create_queue},
        {"clReleaseCommandQueue", &cl->release_queue},
        {"clEnqueueWriteBuffer", &cl->write},
        {"clEnqueueReadBuffer", &cl->read},
        {"clEnqueueCopyBuffer", &cl->copy},
        {"clFlush", &cl->flush},
        {"clWaitForEvents", &cl->wait},
        {"clReleaseEvent", &cl->release_event},
        {"clCreateBuffer", &cl->create_buffer},
        {"clEnqueueMigrateMemObjects", &cl->migrate},
        {"clReleaseMemObject", &cl->release_buffer},
    };
    return gpuhal_bench_find_symbols("OpenCL", library, functions, sizeof functions / sizeof *functions);
}

static cl_mem memory_of(const gpuhal_native *native)
{
    return (cl_mem)(uintptr_t)native->values[0];
}

static bool opencl_write(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const void *from, uint64_t bytes,
                         uint64_t count)
{
    const opencl_baseline *cl = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        const cl_int code = cl->write(cl->queue, memory_of(to), CL_TRUE, to->values[1], bytes, from, 0, NULL, NULL);
        if (code != CL_SUCCESS) {
            return failed("clEnqueueWriteBuffer", code);
        }
    }
    return true;
}

static bool opencl_read(gpuhal_bench_baseline *baseline, void *to, const gpuhal_native *from, uint64_t bytes, uint64_t count)
{
    const opencl_baseline *cl = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        const cl_int code = cl->read(cl->queue, memory_of(from), CL_TRUE, from->values[1], bytes, to, 0, NULL, NULL);
        if (code != CL_SUCCESS) {
            return failed("clEnqueueReadBuffer", code);
        }
    }
    return true;
}

/* Waits for the event: clFinish is quicker on some drivers, but does not report whether the copy failed, so a program that needs
 * to know cannot use it. */
static bool opencl_copy(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                        uint64_t count)
{
    const opencl_baseline *cl = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        cl_event event;
        cl_int code = cl->copy(cl->queue, memory_of(from), memory_of(to), from->values[1], to->values[1], bytes, 0, NULL, &event);
        if (code != CL_SUCCESS) {
            return failed("clEnqueueCopyBuffer", code);
        }
        code = cl->wait(1, &event);
        cl->release_event(event);
        if (code != CL_SUCCESS) {
            return failed("clWaitForEvents", code);
        }
    }
    return true;
}

static void release_events(opencl_baseline *cl)
{
    for (uint64_t i = 0; i < cl->event_count; i++) {
        cl->release_event(cl->events[i]);
    }
    cl->event_count = 0;
}

static bool grow_events(opencl_baseline *cl, uint64_t count)
{
    cl_event *grown = count > cl->event_space ? realloc(cl->events, count * sizeof *grown) : cl->events;
    if (grown == NULL) {
        return gpuhal_bench_failed("out of memory");
    }
    cl->event_space = count > cl->event_space ? count : cl->event_space;
    cl->events = grown;
    return true;
}

/* Keeps the event of each copy: drivers go on behind a copy that failed (PoCL), so that waiting for the last one alone hides what became
 * of the others. */
static bool opencl_enqueue(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                           uint64_t pieces)
{
    opencl_baseline *cl = opencl_of(baseline);
    release_events(cl);
    if (!grow_events(cl, pieces)) {
        return false;
    }
    for (uint64_t piece = 0; piece < pieces; piece++) {
        const size_t at = piece * bytes;
        const cl_int code = cl->copy(cl->queue, memory_of(from), memory_of(to), from->values[1] + at, to->values[1] + at, bytes,
                                     0, NULL, &cl->events[piece]);
        if (code != CL_SUCCESS) {
            return failed("clEnqueueCopyBuffer", code);
        }
        cl->event_count = piece + 1;
    }
    return true;
}

static bool opencl_submit(gpuhal_bench_baseline *baseline)
{
    const opencl_baseline *cl = opencl_of(baseline);
    const cl_int code = cl->flush(cl->queue);
    return code == CL_SUCCESS || failed("clFlush", code);
}

static bool opencl_await(gpuhal_bench_baseline *baseline)
{
    opencl_baseline *cl = opencl_of(baseline);
    const cl_int code = cl->wait((cl_uint)cl->event_count, cl->events);
    release_events(cl);
    return code == CL_SUCCESS || failed("clWaitForEvents", code);
}

/* By an event, as with a copy: clFinish does not report whether the memory was there. */
static cl_int commit(const opencl_baseline *cl, cl_mem memory)
{
    cl_event event;
    cl_int code = cl->migrate(cl->queue, 1, &memory, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, &event);
    if (code == CL_SUCCESS) {
        code = cl->wait(1, &event);
        cl->release_event(event);
    }
    return code;
}

static bool opencl_allocate(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count)
{
    const opencl_baseline *cl = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        cl_int code;
        cl_mem memory = cl->create_buffer(cl->context, CL_MEM_READ_WRITE, bytes, NULL, &code);
        if (memory == NULL) {
            return failed("clCreateBuffer", code);
        }
        code = commit(cl, memory);
        cl->release_buffer(memory);
        if (code != CL_SUCCESS) {
            return failed("clEnqueueMigrateMemObjects", code);
        }
    }
    return true;
}

static void opencl_destroy(gpuhal_bench_baseline *baseline)
{
    opencl_baseline *cl = opencl_of(baseline);
    release_events(cl);
    free(cl->events);
    cl->release_queue(cl->queue);
    free(cl);
}

static const gpuhal_bench_baseline_calls opencl_calls = {
    .destroy = opencl_destroy,
    .write = opencl_write,
    .read = opencl_read,
    .copy = opencl_copy,
    .enqueue = opencl_enqueue,
    .submit = opencl_submit,
    .await = opencl_await,
    .allocate = opencl_allocate,
};

gpuhal_bench_baseline *gpuhal_bench_opencl_create(void *library, const gpuhal_native *device)
{
    opencl_baseline *cl = calloc(1, sizeof *cl);
    if (cl == NULL) {
        gpuhal_bench_failed("out of memory");
        return NULL;
    }
    if (!find_functions(cl, library)) {
        free(cl);
        return NULL;
    }
    cl->base.calls = &opencl_calls;
    cl->context = (cl_context)(uintptr_t)device->values[2];
    cl_int code;
    cl->queue = cl->create_queue(cl->context, (cl_device_id)(uintptr_t)device->values[1], 0, &code);
    if (cl->queue == NULL) {
        failed("clCreateCommandQueue", code);
        free(cl);
        return NULL;
    }
    return &cl->base;
}
