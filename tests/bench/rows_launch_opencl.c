/* rows_launch_opencl.c: measures a launch with two buffers and two values on an application's queue. The other side is
 * a program that sets the four arguments, enqueues the kernel with an event, and queries the event once. If the launch
 * has ended, the program releases the event, as the library does. The program waits for all other events outside the
 * measured time. In one row the result goes to several buffers in turn; in the others each launch uses the same buffers
 * as the previous one. On PoCL's device `basic` both sides run the kernel inside the call. */
#include "launcher.h"
#include "members.h"
#include "opencl_calls.h"

#include <math.h>

enum { COUNT = 64, OFFSET = 4096, RESULTS = 4 };

static const double launch_budget = 1 / 1.25;
static const double offset_budget = 1 / 1.4; /* in OpenCL a range of a buffer is a separate object */

typedef struct pair {
    gpuhal_bench_launcher gpuhal; /* its y is one of the results */
    gpuhal_buffer *results[RESULTS];
    uint32_t result_count;
    gpuhal_bench_opencl *direct; /* NULL if there is no comparison */
    cl_program program;
    cl_kernel kernel;
    cl_mem x, memory[RESULTS];
    bool parts; /* x and memory[] are sub-buffers, which must be released */
} pair;

static bool launch_gpuhal(void *user, uint64_t count)
{
    pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        p->gpuhal.y = p->results[i % p->result_count];
        if (!gpuhal_bench_launcher_enqueue(&p->gpuhal, p->gpuhal.queue)) {
            return false;
        }
    }
    return true;
}

static bool settle_gpuhal(void *user)
{
    const pair *p = user;
    return gpuhal_bench_launcher_await(&p->gpuhal);
}

static bool launch_directly(pair *p, cl_mem y)
{
    gpuhal_bench_opencl *o = p->direct;
    const size_t group = GPUHAL_BENCH_GROUP_SIZE, threads = COUNT;
    cl_int status = CL_SUCCESS;
    cl_int code = o->cl.clSetKernelArg(p->kernel, 0, sizeof y, &y);
    code = code == CL_SUCCESS ? o->cl.clSetKernelArg(p->kernel, 1, sizeof p->x, &p->x) : code;
    code = code == CL_SUCCESS ? o->cl.clSetKernelArg(p->kernel, 2, sizeof p->gpuhal.a, &p->gpuhal.a) : code;
    code = code == CL_SUCCESS ? o->cl.clSetKernelArg(p->kernel, 3, sizeof p->gpuhal.count, &p->gpuhal.count) : code;
    if (!gpuhal_bench_opencl_good("clSetKernelArg", code)) {
        return false;
    }
    code = o->cl.clEnqueueNDRangeKernel(o->queue, p->kernel, 1, NULL, &threads, &group, 0, NULL,
                                        &o->events[o->event_count]);
    if (!gpuhal_bench_opencl_good("clEnqueueNDRangeKernel", code)) {
        return false;
    }
    cl_event event = o->events[o->event_count];
    code = o->cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    if (code == CL_SUCCESS && status == CL_COMPLETE) {
        code = o->cl.clReleaseEvent(event);
    } else {
        o->event_count++;
    }
    return gpuhal_bench_opencl_good("clGetEventInfo, clReleaseEvent", code);
}

static bool launch_direct(void *user, uint64_t count)
{
    pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!launch_directly(p, p->memory[i % p->result_count])) {
            return false;
        }
    }
    return true;
}

static bool settle_direct(void *user)
{
    const pair *p = user;
    gpuhal_bench_baseline *base = &p->direct->base;
    return base->calls->submit(base) && (p->direct->event_count == 0 || base->calls->await(base));
}

/* Gets the memory object of the library's buffer, or creates a sub-buffer of it. */
static bool take_memory(pair *p, gpuhal_buffer *buffer, cl_mem *out_memory)
{
    gpuhal_native native;
    cl_int code;
    if (!gpuhal_bench_native_of(buffer, &native)) {
        return false;
    }
    const cl_buffer_region region = {.origin = (size_t)(native.values[1] + p->gpuhal.offset),
                                     .size = COUNT * sizeof(float)};
    if (region.origin == 0) {
        *out_memory = (cl_mem)(uintptr_t)native.values[0];
        return true;
    }
    *out_memory = p->direct->cl.clCreateSubBuffer((cl_mem)(uintptr_t)native.values[0], CL_MEM_READ_WRITE,
                                                  CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    p->parts = true;
    return gpuhal_bench_opencl_good("clCreateSubBuffer", code);
}

static bool open_direct(gpuhal_bench *bench, gpuhal_device *device, pair *p)
{
    const char *text = gpuhal_bench_saxpy_source;
    cl_int code;
    p->direct = (gpuhal_bench_opencl *)gpuhal_bench_baseline_create(bench->gpu, device);
    if (p->direct == NULL) {
        return false;
    }
    const gpuhal_bench_opencl *o = p->direct;
    p->program = o->cl.clCreateProgramWithSource(o->context, 1, &text, NULL, &code);
    if (!gpuhal_bench_opencl_good("clCreateProgramWithSource", code) ||
        !gpuhal_bench_opencl_good("clBuildProgram", o->cl.clBuildProgram(p->program, 1, &o->device, "", NULL, NULL))) {
        return false;
    }
    p->kernel = o->cl.clCreateKernel(p->program, "saxpy", &code);
    bool good = gpuhal_bench_opencl_good("clCreateKernel", code) && take_memory(p, p->gpuhal.x, &p->x);
    for (uint32_t i = 0; i < p->result_count && good; i++) {
        good = take_memory(p, p->results[i], &p->memory[i]);
    }
    return good;
}

static bool open_gpuhal(gpuhal_device *device, uint64_t offset, pair *p)
{
    bool good = gpuhal_bench_launcher_open(device, COUNT, offset, &p->gpuhal);
    p->results[0] = p->gpuhal.y;
    for (uint32_t i = 1; i < p->result_count && good; i++) {
        good = gpuhal_bench_buffer(device, offset + COUNT * sizeof(float), &p->results[i]);
    }
    return good;
}

static void close_pair(pair *p)
{
    for (int i = 0; i < RESULTS && p->parts; i++) {
        if (p->memory[i] != NULL) {
            p->direct->cl.clReleaseMemObject(p->memory[i]);
        }
    }
    if (p->parts && p->x != NULL) {
        p->direct->cl.clReleaseMemObject(p->x);
    }
    if (p->kernel != NULL) {
        p->direct->cl.clReleaseKernel(p->kernel);
    }
    if (p->program != NULL) {
        p->direct->cl.clReleaseProgram(p->program);
    }
    gpuhal_bench_baseline_destroy(&p->direct->base);
    p->gpuhal.y = p->results[0];
    for (uint32_t i = 1; i < RESULTS; i++) {
        gpuhal_buffer_release(p->results[i]);
    }
    gpuhal_bench_launcher_close(&p->gpuhal);
}

static bool prove(pair *p, const gpuhal_bench_side *side)
{
    bool good = true;
    for (uint32_t i = 0; i < p->result_count && good; i++) {
        p->gpuhal.y = p->results[i];
        good = gpuhal_bench_launcher_clear(&p->gpuhal);
    }
    good = good && side->run(p, 3 * p->result_count) && side->settle(p);
    for (uint32_t i = 0; i < p->result_count && good; i++) {
        p->gpuhal.y = p->results[i];
        good = gpuhal_bench_launcher_prove(&p->gpuhal, 3);
    }
    return good;
}

static bool measure(gpuhal_bench *bench, gpuhal_device *device, const gpuhal_bench_row *row, uint64_t offset, pair *p)
{
    const gpuhal_bench_side sides[] = {{launch_gpuhal, p, settle_gpuhal}, {launch_direct, p, settle_direct}};
    gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    plan.max_count = GPUHAL_BENCH_PIECES;
    return open_gpuhal(device, offset, p) && prove(p, &sides[0]) &&
           (!bench->options->baseline || (open_direct(bench, device, p) && prove(p, &sides[1]))) &&
           gpuhal_bench_measure_row(bench, *row, sides, bench->options->baseline ? 2 : 1, &plan);
}

void gpuhal_bench_opencl_rows_launch(gpuhal_bench *bench, gpuhal_device *device)
{
    static const struct {
        const char *test;
        uint64_t offset;
        uint32_t result_count;
        const double *budget;
    } rows[] = {{"launch", 0, 1, &launch_budget},
                {"launch_changing", 0, RESULTS, &launch_budget},
                {"launch_offsets", OFFSET, 1, &offset_budget}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pair p = {.result_count = rows[i].result_count};
        gpuhal_bench_row row = gpuhal_bench_row_of(device, rows[i].test, GPUHAL_BENCH_TIMES);
        row.budget = gpuhal_bench_is_inline(device) ? *rows[i].budget : NAN;
        gpuhal_bench_begin(bench->output, &row);
        if (!measure(bench, device, &row, rows[i].offset, &p)) {
            gpuhal_bench_not_measured(bench);
        }
        close_pair(&p);
    }
}
