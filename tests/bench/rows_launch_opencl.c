/* rows_launch_opencl.c: measures a launch with two buffers and two values on an application's queue. The other side is
 * a program that sets the four arguments, enqueues the kernel with an event, and queries the event once. If the launch
 * has ended, the program releases the event, as the library does. The program waits for all other events outside the
 * measured time. In one row the result goes to several buffers in turn; in the others each launch uses the same buffers
 * as the previous one. In the row `launch_recorded` the library runs a recording of as many launches as the program
 * enqueues, and both wait. The times are processor time of the calling thread. On PoCL's device `basic` both sides run
 * the kernel inside the call. */
#include "launcher.h"
#include "members.h"
#include "opencl_calls.h"

#include <math.h>

enum { COUNT = 64, OFFSET = 4096, RESULTS = 4 };

static const double launch_budget = 1 / 1.25;
static const double threaded_budget = 1 / 1.15; /* on PoCL's devices that wake a thread */
static const double recorded_budget = 1 / 1.05;
static const double offset_budget = 1 / 1.4; /* in OpenCL a range of a buffer is a separate object */

typedef struct pair {
    gpuhal_bench_launcher gpuhal; /* its y is one of the results */
    gpuhal_recording *recording;
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

static bool run_recording(void *user, uint64_t count)
{
    const pair *p = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_recording_run(p->gpuhal.queue, p->recording, NULL, 0) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_recording_run");
        }
        if (!settle_gpuhal(user)) {
            return false;
        }
    }
    return true;
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

static bool launch_all_direct(void *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!launch_direct(user, GPUHAL_BENCH_PIECES) || !settle_direct(user)) {
            return false;
        }
    }
    return true;
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
    gpuhal_recording_release(p->recording);
    p->gpuhal.y = p->results[0];
    for (uint32_t i = 1; i < RESULTS; i++) {
        gpuhal_buffer_release(p->results[i]);
    }
    gpuhal_bench_launcher_close(&p->gpuhal);
}

static bool record_gpuhal(gpuhal_device *device, pair *p)
{
    bool good = gpuhal_recording_create(device, NULL, &p->recording) == GPUHAL_OK ||
                gpuhal_bench_failed_call("gpuhal_recording_create");
    for (uint32_t i = 0; good && i < GPUHAL_BENCH_PIECES; i++) {
        p->gpuhal.y = p->results[i % p->result_count];
        good = gpuhal_bench_launcher_record(&p->gpuhal, p->recording);
    }
    return good &&
           (gpuhal_recording_finish(p->recording) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_recording_finish"));
}

/* Runs the side @count times. Each result then has @launches launches. */
static bool prove(pair *p, const gpuhal_bench_side *side, uint64_t count, uint64_t launches)
{
    bool good = true;
    for (uint32_t i = 0; i < p->result_count && good; i++) {
        p->gpuhal.y = p->results[i];
        good = gpuhal_bench_launcher_clear(&p->gpuhal);
    }
    good = good && side->run(p, count) && (side->settle == NULL || side->settle(p));
    for (uint32_t i = 0; i < p->result_count && good; i++) {
        p->gpuhal.y = p->results[i];
        good = gpuhal_bench_launcher_prove(&p->gpuhal, launches);
    }
    return good;
}

static bool measure(gpuhal_bench *bench, gpuhal_device *device, const gpuhal_bench_row *row, uint64_t offset,
                    bool recorded, pair *p)
{
    const gpuhal_bench_side each[] = {{launch_gpuhal, p, settle_gpuhal}, {launch_direct, p, settle_direct}};
    const gpuhal_bench_side together[] = {{run_recording, p, NULL}, {launch_all_direct, p, NULL}};
    const gpuhal_bench_side *sides = recorded ? together : each;
    const uint64_t count = recorded ? 1 : 3 * p->result_count;
    const uint64_t launches = recorded ? GPUHAL_BENCH_PIECES / p->result_count : 3;
    gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    plan.max_count = recorded ? 0 : GPUHAL_BENCH_PIECES;
    plan.thread_time = true;
    return open_gpuhal(device, offset, p) && (!recorded || record_gpuhal(device, p)) &&
           prove(p, &sides[0], count, launches) &&
           (!bench->options->baseline || (open_direct(bench, device, p) && prove(p, &sides[1], count, launches))) &&
           gpuhal_bench_measure_row(bench, *row, sides, bench->options->baseline ? 2 : 1, &plan);
}

void gpuhal_bench_opencl_rows_launch(gpuhal_bench *bench, gpuhal_device *device)
{
    static const struct {
        const char *test;
        uint64_t offset;
        uint32_t result_count;
        bool recorded;
        const double *inline_budget, *threaded_budget;
    } rows[] = {{"launch", 0, 1, false, &launch_budget, &threaded_budget},
                {"launch_changing", 0, RESULTS, false, &launch_budget, &threaded_budget},
                {"launch_offsets", OFFSET, 1, false, &offset_budget, NULL},
                {"launch_recorded", 0, RESULTS, true, &recorded_budget, &recorded_budget}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pair p = {.result_count = rows[i].result_count};
        gpuhal_bench_row row = gpuhal_bench_row_of(device, rows[i].test, GPUHAL_BENCH_TIMES);
        const double *budget = gpuhal_bench_is_inline(device)     ? rows[i].inline_budget
                               : gpuhal_bench_is_threaded(device) ? rows[i].threaded_budget
                                                                  : NULL;
        row.budget = budget != NULL ? *budget : NAN;
        gpuhal_bench_begin(bench->output, &row);
        if (!measure(bench, device, &row, rows[i].offset, rows[i].recorded, &p)) {
            gpuhal_bench_not_measured(bench);
        }
        close_pair(&p);
    }
}
