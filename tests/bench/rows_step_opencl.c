/* rows_step_opencl.c: measures one step of a small engine, and the same step on an OpenCL command queue. The engine
 * copies a vector to the device, launches six of its own kernels, copies the result back, and waits for the queue. */
#include "bench.h"
#include "members.h"
#include "opencl_calls.h"

#include <math.h>
#include <string.h>

enum { LAYERS = 6, WIDTH = 64, VECTOR_BYTES = WIDTH * sizeof(float), MATRIX_BYTES = WIDTH * VECTOR_BYTES };

static const double step_budget = 1 / 1.10; /* not for PoCL's `basic`, which executes everything synchronously */
static const uint64_t timeout_ns = UINT64_C(10000000000);

static const char source[] = "kernel void layer(global const float *matrix, global const float *x, global float *y)\n"
                             "{\n"
                             "    const size_t row = get_global_id(0), width = get_global_size(0);\n"
                             "    float sum = 0;\n"
                             "    for (size_t i = 0; i < width; i++) {\n"
                             "        sum += matrix[row * width + i] * x[i];\n"
                             "    }\n"
                             "    y[row] = sum;\n"
                             "}\n";

typedef struct step {
    gpuhal_queue *queue;
    gpuhal_buffer *matrix;
    gpuhal_buffer
        *vectors[2]; /* each layer reads one and writes the other; LAYERS is even, so vectors[0] has the result */
    gpuhal_bench_opencl *direct;
    gpuhal_native first; /* vectors[0] as a cl_mem and an offset */
    cl_program program;
    cl_kernel layers[2]; /* from each vector to the other */
    float x[WIDTH];
    float y[WIDTH];
} step;

static bool launch(const step *s, cl_command_queue queue)
{
    const size_t width = WIDTH;
    for (int i = 0; i < LAYERS; i++) {
        const cl_int code =
            s->direct->cl.clEnqueueNDRangeKernel(queue, s->layers[i % 2], 1, NULL, &width, NULL, 0, NULL, NULL);
        if (!gpuhal_bench_opencl_good("clEnqueueNDRangeKernel", code)) {
            return false;
        }
    }
    return true;
}

static bool launch_natively(const step *s)
{
    gpuhal_native native = {.size = sizeof native};
    if (gpuhal_queue_native_begin(s->queue, timeout_ns, &native) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_queue_native_begin");
    }
    const bool launched = launch(s, (cl_command_queue)(uintptr_t)native.values[0]);
    return (gpuhal_queue_native_end(s->queue) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_queue_native_end")) &&
           launched;
}

static bool run_gpuhal(void *user, uint64_t count)
{
    step *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_write(s->queue, s->vectors[0], 0, s->x, VECTOR_BYTES) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_write");
        }
        if (!launch_natively(s)) {
            return false;
        }
        if (gpuhal_read(s->queue, s->y, s->vectors[0], 0, VECTOR_BYTES) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_read");
        }
        if (gpuhal_queue_synchronize(s->queue, timeout_ns) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_queue_synchronize");
        }
    }
    return true;
}

/* Uses an event for each transfer, because otherwise its failure is not reported. */
static bool step_directly(step *s)
{
    const gpuhal_bench_opencl *o = s->direct;
    const cl_mem memory = (cl_mem)(uintptr_t)s->first.values[0];
    const size_t offset = (size_t)s->first.values[1];
    cl_event events[2];
    cl_int code =
        o->cl.clEnqueueWriteBuffer(o->queue, memory, CL_FALSE, offset, VECTOR_BYTES, s->x, 0, NULL, &events[0]);
    if (!gpuhal_bench_opencl_good("clEnqueueWriteBuffer", code)) {
        return false;
    }
    bool good = launch(s, o->queue);
    cl_uint count = 1;
    if (good) {
        code = o->cl.clEnqueueReadBuffer(o->queue, memory, CL_FALSE, offset, VECTOR_BYTES, s->y, 0, NULL, &events[1]);
        good = gpuhal_bench_opencl_good("clEnqueueReadBuffer", code);
        count += good ? 1 : 0;
    }
    code = o->cl.clFlush(o->queue);
    good = gpuhal_bench_opencl_good("clFlush", code) && good;
    code = o->cl.clWaitForEvents(count, events);
    for (cl_uint i = 0; i < count; i++) {
        o->cl.clReleaseEvent(events[i]);
    }
    return gpuhal_bench_opencl_good("clWaitForEvents", code) && good;
}

static bool run_direct(void *user, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!step_directly(user)) {
            return false;
        }
    }
    return true;
}

/* Returns whether the driver has a compiler. */
static bool compiles(const gpuhal_bench_opencl *o)
{
    cl_bool available = CL_FALSE;
    const cl_int code =
        o->cl.clGetDeviceInfo(o->device, CL_DEVICE_COMPILER_AVAILABLE, sizeof available, &available, NULL);
    return code == CL_SUCCESS && available;
}

/* Each layer shifts the elements by one position, so the result shows whether every layer has run on the right
 * vector. */
static bool write_matrix(step *s)
{
    float matrix[WIDTH * WIDTH] = {0};
    for (int row = 0; row < WIDTH; row++) {
        matrix[row * WIDTH + (row + 1) % WIDTH] = 1;
    }
    return gpuhal_write(NULL, s->matrix, 0, matrix, MATRIX_BYTES) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_write");
}

static bool make_layer(step *s, int from)
{
    gpuhal_buffer *arguments[] = {s->matrix, s->vectors[from], s->vectors[1 - from]};
    const gpuhal_bench_opencl *o = s->direct;
    cl_int code;
    s->layers[from] = o->cl.clCreateKernel(s->program, "layer", &code);
    if (!gpuhal_bench_opencl_good("clCreateKernel", code)) {
        return false;
    }
    for (cl_uint i = 0; i < 3; i++) {
        gpuhal_native native;
        if (!gpuhal_bench_native_of(arguments[i], &native)) {
            return false;
        }
        const cl_mem memory = (cl_mem)(uintptr_t)native.values[0];
        if (native.values[1] != 0) {
            return gpuhal_bench_failed("a kernel's argument cannot begin inside a cl_mem");
        }
        code = o->cl.clSetKernelArg(s->layers[from], i, sizeof memory, &memory);
        if (!gpuhal_bench_opencl_good("clSetKernelArg", code)) {
            return false;
        }
    }
    return true;
}

static bool build(step *s)
{
    const gpuhal_bench_opencl *o = s->direct;
    const char *text = source;
    cl_int code;
    s->program = o->cl.clCreateProgramWithSource(o->context, 1, &text, NULL, &code);
    return gpuhal_bench_opencl_good("clCreateProgramWithSource", code) &&
           gpuhal_bench_opencl_good("clBuildProgram", o->cl.clBuildProgram(s->program, 1, &o->device, "", NULL, NULL));
}

static bool open_step(gpuhal_device *device, step *s)
{
    if (!gpuhal_bench_buffer(device, MATRIX_BYTES, &s->matrix) ||
        !gpuhal_bench_buffer(device, VECTOR_BYTES, &s->vectors[0]) ||
        !gpuhal_bench_buffer(device, VECTOR_BYTES, &s->vectors[1]) || !write_matrix(s)) {
        return false;
    }
    if (gpuhal_queue_create(device, NULL, &s->queue) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_queue_create");
    }
    return build(s) && gpuhal_bench_native_of(s->vectors[0], &s->first) && make_layer(s, 0) && make_layer(s, 1);
}

static void close_step(step *s)
{
    for (int i = 0; i < 2; i++) {
        if (s->layers[i] != NULL) {
            s->direct->cl.clReleaseKernel(s->layers[i]);
        }
    }
    if (s->program != NULL) {
        s->direct->cl.clReleaseProgram(s->program);
    }
    gpuhal_bench_baseline_destroy(&s->direct->base);
    gpuhal_queue_destroy(s->queue);
    gpuhal_buffer_release(s->vectors[0]);
    gpuhal_buffer_release(s->vectors[1]);
    gpuhal_buffer_release(s->matrix);
}

static bool prove(step *s, bool (*run)(void *, uint64_t), float first)
{
    for (int i = 0; i < WIDTH; i++) {
        s->x[i] = first + (float)i;
    }
    memset(s->y, 0, sizeof s->y);
    if (!run(s, 1)) {
        return false;
    }
    for (int i = 0; i < WIDTH; i++) {
        if (s->y[i] != s->x[(i + LAYERS) % WIDTH]) {
            return gpuhal_bench_failed("element %d of the result is %g, not %g", i, (double)s->y[i],
                                       (double)s->x[(i + LAYERS) % WIDTH]);
        }
    }
    return true;
}

/* Engines launch kernels with the vendor's own calls, so this row is specific to one API. */
void gpuhal_bench_opencl_rows_step(gpuhal_bench *bench, gpuhal_device *device)
{
    step s = {.queue = NULL};
    const gpuhal_bench_side sides[] = {{run_gpuhal, &s, NULL}, {run_direct, &s, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "step", GPUHAL_BENCH_TIMES);
    row.budget = gpuhal_bench_is_inline(device) ? NAN : step_budget;
    gpuhal_bench_begin(bench->output, &row);
    s.direct = (gpuhal_bench_opencl *)gpuhal_bench_baseline_create(bench->gpu, device);
    if (s.direct == NULL) {
        gpuhal_bench_not_measured(bench);
        return;
    }
    if (!compiles(s.direct)) {
        gpuhal_bench_note_row(bench->output, "the driver has no compiler");
        gpuhal_bench_baseline_destroy(&s.direct->base);
        return;
    }
    if (!open_step(device, &s) || !prove(&s, run_gpuhal, 1) || !prove(&s, run_direct, 1000) ||
        !gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline ? 2 : 1, &plan)) {
        gpuhal_bench_not_measured(bench);
    }
    close_step(&s);
}
