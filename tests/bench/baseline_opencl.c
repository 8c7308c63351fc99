/* baseline_opencl.c: direct calls of OpenCL. The calls use the library file that the plugin has opened, so that both
 * sides can use the same handles. */
#include "measure.h"
#include "members.h"
#include "opencl_calls.h"

#include <stdlib.h>

static gpuhal_bench_opencl *opencl_of(gpuhal_bench_baseline *baseline)
{
    return (gpuhal_bench_opencl *)baseline;
}

bool gpuhal_bench_opencl_good(const char *call, cl_int code)
{
    return code == CL_SUCCESS || gpuhal_bench_failed("%s returned %d", call, (int)code);
}

bool gpuhal_bench_opencl_find(void *library, gpuhal_bench_opencl_functions *out_cl)
{
#define SYMBOL(name) {#name, &out_cl->name},
    const gpuhal_bench_symbol functions[] = {GPUHAL_BENCH_OPENCL_FUNCTIONS(SYMBOL)};
#undef SYMBOL
    return gpuhal_bench_find_symbols("OpenCL", library, functions, sizeof functions / sizeof *functions);
}

static cl_mem memory_of(const gpuhal_native *native)
{
    return (cl_mem)(uintptr_t)native->values[0];
}

static size_t offset_of(const gpuhal_native *native)
{
    return (size_t)native->values[1];
}

static bool opencl_write(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const void *from, uint64_t bytes,
                         uint64_t count)
{
    const gpuhal_bench_opencl *o = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        const cl_int code = o->cl.clEnqueueWriteBuffer(o->queue, memory_of(to), CL_TRUE, offset_of(to), (size_t)bytes,
                                                       from, 0, NULL, NULL);
        if (!gpuhal_bench_opencl_good("clEnqueueWriteBuffer", code)) {
            return false;
        }
    }
    return true;
}

static bool opencl_read(gpuhal_bench_baseline *baseline, void *to, const gpuhal_native *from, uint64_t bytes,
                        uint64_t count)
{
    const gpuhal_bench_opencl *o = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        const cl_int code = o->cl.clEnqueueReadBuffer(o->queue, memory_of(from), CL_TRUE, offset_of(from),
                                                      (size_t)bytes, to, 0, NULL, NULL);
        if (!gpuhal_bench_opencl_good("clEnqueueReadBuffer", code)) {
            return false;
        }
    }
    return true;
}

/* Waits for the event. clFinish is faster on some drivers, but does not report whether the copy failed, so a program
 * that checks for errors cannot use it. */
static bool opencl_copy(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from,
                        uint64_t bytes, uint64_t count)
{
    const gpuhal_bench_opencl *o = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        cl_event event;
        cl_int code = o->cl.clEnqueueCopyBuffer(o->queue, memory_of(from), memory_of(to), offset_of(from),
                                                offset_of(to), (size_t)bytes, 0, NULL, &event);
        if (!gpuhal_bench_opencl_good("clEnqueueCopyBuffer", code)) {
            return false;
        }
        code = o->cl.clWaitForEvents(1, &event);
        o->cl.clReleaseEvent(event);
        if (!gpuhal_bench_opencl_good("clWaitForEvents", code)) {
            return false;
        }
    }
    return true;
}

static void release_events(gpuhal_bench_opencl *o)
{
    for (cl_uint i = 0; i < o->event_count; i++) {
        o->cl.clReleaseEvent(o->events[i]);
    }
    o->event_count = 0;
}

/* Keeps the event of each copy. Some drivers (PoCL) continue after a failed copy, so a wait for only the last copy
 * would miss failures of the earlier copies. */
static bool opencl_enqueue(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from,
                           uint64_t bytes, uint64_t pieces)
{
    gpuhal_bench_opencl *o = opencl_of(baseline);
    release_events(o);
    for (uint64_t piece = 0; piece < pieces; piece++) {
        const size_t at = (size_t)(piece * bytes);
        const cl_int code = o->cl.clEnqueueCopyBuffer(o->queue, memory_of(from), memory_of(to), offset_of(from) + at,
                                                      offset_of(to) + at, (size_t)bytes, 0, NULL, &o->events[piece]);
        if (!gpuhal_bench_opencl_good("clEnqueueCopyBuffer", code)) {
            return false;
        }
        o->event_count++;
    }
    return true;
}

static bool opencl_submit(gpuhal_bench_baseline *baseline)
{
    const gpuhal_bench_opencl *o = opencl_of(baseline);
    const cl_int code = o->cl.clFlush(o->queue);
    return gpuhal_bench_opencl_good("clFlush", code);
}

static bool opencl_await(gpuhal_bench_baseline *baseline)
{
    gpuhal_bench_opencl *o = opencl_of(baseline);
    const cl_int code = o->cl.clWaitForEvents(o->event_count, o->events);
    release_events(o);
    return gpuhal_bench_opencl_good("clWaitForEvents", code);
}

/* Waits for the event, because clFinish does not report whether the memory could be committed. */
static cl_int commit(const gpuhal_bench_opencl *o, cl_mem memory)
{
    cl_event event;
    cl_int code = o->cl.clEnqueueMigrateMemObjects(o->queue, 1, &memory, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0,
                                                   NULL, &event);
    if (code == CL_SUCCESS) {
        code = o->cl.clWaitForEvents(1, &event);
        o->cl.clReleaseEvent(event);
    }
    return code;
}

static bool opencl_allocate(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count)
{
    const gpuhal_bench_opencl *o = opencl_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        cl_int code;
        cl_mem memory = o->cl.clCreateBuffer(o->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &code);
        if (memory == NULL) {
            return gpuhal_bench_opencl_good("clCreateBuffer", code);
        }
        code = commit(o, memory);
        o->cl.clReleaseMemObject(memory);
        if (!gpuhal_bench_opencl_good("clEnqueueMigrateMemObjects", code)) {
            return false;
        }
    }
    return true;
}

static void opencl_destroy(gpuhal_bench_baseline *baseline)
{
    gpuhal_bench_opencl *o = opencl_of(baseline);
    release_events(o);
    o->cl.clReleaseCommandQueue(o->queue);
    free(o);
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
    gpuhal_bench_opencl *o = calloc(1, sizeof *o);
    if (o == NULL) {
        gpuhal_bench_failed("out of memory");
        return NULL;
    }
    if (!gpuhal_bench_opencl_find(library, &o->cl)) {
        free(o);
        return NULL;
    }
    o->base.calls = &opencl_calls;
    o->device = (cl_device_id)(uintptr_t)device->values[1];
    o->context = (cl_context)(uintptr_t)device->values[2];
    cl_int code;
    o->queue = o->cl.clCreateCommandQueue(o->context, o->device, 0, &code);
    if (o->queue == NULL) {
        gpuhal_bench_opencl_good("clCreateCommandQueue", code);
        free(o);
        return NULL;
    }
    return &o->base;
}
