/* launcher.c: see launcher.h. */
#include "launcher.h"
#include "saxpy_spirv.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t timeout_ns = UINT64_C(10000000000);

const char gpuhal_bench_saxpy_source[] = "kernel void saxpy(global float *y, global const float *x, float a, uint n)\n"
                                         "{\n"
                                         "    const size_t i = get_global_id(0);\n"
                                         "    if (i < n) {\n"
                                         "        y[i] = a * x[i] + y[i];\n"
                                         "    }\n"
                                         "}\n";

static void saxpy(void *const *arguments, const gpuhal_host_group *group)
{
    float *restrict y = arguments[0], a;
    const float *restrict x = arguments[1];
    uint32_t n;
    memcpy(&a, arguments[2], sizeof a);
    memcpy(&n, arguments[3], sizeof n);
    const uint32_t begin = group->group[0] * group->full_size[0], room = group->group_size[0];
    const uint32_t end = begin + room < n ? begin + room : n;
    for (uint32_t i = begin; i < end; i++) {
        y[i] = a * x[i] + y[i];
    }
}

bool gpuhal_bench_launcher_make(gpuhal_device *device, gpuhal_program **out_program, gpuhal_kernel **out_kernel)
{
    static const gpuhal_host_function functions[] = {{"saxpy", saxpy}, {NULL, NULL}};
    static const gpuhal_parameter parameters[] = {
        {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE},
        {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
        {.kind = GPUHAL_PARAMETER_VALUE, .bytes = sizeof(float)},
        {.kind = GPUHAL_PARAMETER_VALUE, .bytes = sizeof(uint32_t)}};
    const gpuhal_code codes[] = {
        {.size = sizeof codes[0],
         .format = "opencl-c",
         .code = gpuhal_bench_saxpy_source,
         .bytes = strlen(gpuhal_bench_saxpy_source)},
        {.size = sizeof codes[0],
         .format = "spirv",
         .code = gpuhal_bench_saxpy_spirv,
         .bytes = sizeof gpuhal_bench_saxpy_spirv},
        {.size = sizeof codes[0], .format = "host-function", .code = functions, .bytes = sizeof functions}};
    const gpuhal_program_desc program = {.size = sizeof program, .codes = codes, .code_count = 3};
    const bool is_vulkan = strcmp(gpuhal_device_backend(device), "vulkan") == 0;
    const gpuhal_kernel_desc kernel = {.size = sizeof kernel,
                                       .name = is_vulkan ? "main" : "saxpy",
                                       .parameters = parameters,
                                       .parameter_count = 4,
                                       .group_size = {GPUHAL_BENCH_GROUP_SIZE}};
    if (gpuhal_program_create(device, &program, out_program) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_program_create");
    }
    return gpuhal_kernel_create(*out_program, &kernel, out_kernel) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_kernel_create");
}

static bool fill(const gpuhal_bench_launcher *launcher, bool with_x)
{
    const uint64_t bytes = launcher->count * sizeof(float);
    float *numbers = calloc(launcher->count, sizeof *numbers);
    if (numbers == NULL) {
        return gpuhal_bench_failed("out of memory");
    }
    bool good = gpuhal_write(NULL, launcher->y, launcher->offset, numbers, bytes) == GPUHAL_OK;
    for (uint32_t i = 0; i < launcher->count; i++) {
        numbers[i] = (float)(i % 1000);
    }
    good = good && (!with_x || gpuhal_write(NULL, launcher->x, launcher->offset, numbers, bytes) == GPUHAL_OK);
    free(numbers);
    return good || gpuhal_bench_failed_call("gpuhal_write");
}

bool gpuhal_bench_launcher_open(gpuhal_device *device, uint32_t count, uint64_t offset,
                                gpuhal_bench_launcher *out_launcher)
{
    const uint64_t bytes = offset + count * sizeof(float);
    *out_launcher = (gpuhal_bench_launcher){.a = 1, .count = count, .offset = offset};
    if (gpuhal_queue_create(device, NULL, &out_launcher->queue) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_queue_create");
    }
    return gpuhal_bench_launcher_make(device, &out_launcher->program, &out_launcher->kernel) &&
           gpuhal_bench_buffer(device, bytes, &out_launcher->y) &&
           gpuhal_bench_buffer(device, bytes, &out_launcher->x) && fill(out_launcher, true);
}

bool gpuhal_bench_launcher_clear(const gpuhal_bench_launcher *launcher)
{
    return fill(launcher, false);
}

void gpuhal_bench_launcher_close(gpuhal_bench_launcher *launcher)
{
    gpuhal_queue_destroy(launcher->queue);
    gpuhal_kernel_release(launcher->kernel);
    gpuhal_program_release(launcher->program);
    gpuhal_buffer_release(launcher->y);
    gpuhal_buffer_release(launcher->x);
}

/* Launches the kernel in the recording, or if that is NULL, in the queue. */
static gpuhal_status launch(const gpuhal_bench_launcher *launcher, gpuhal_queue *queue, gpuhal_recording *recording)
{
    const gpuhal_argument arguments[] = {{.buffer = launcher->y, .offset = launcher->offset},
                                         {.buffer = launcher->x, .offset = launcher->offset},
                                         {.value = &launcher->a, .bytes = sizeof launcher->a},
                                         {.value = &launcher->count, .bytes = sizeof launcher->count}};
    const uint32_t groups = (launcher->count + GPUHAL_BENCH_GROUP_SIZE - 1) / GPUHAL_BENCH_GROUP_SIZE;
    const gpuhal_launch values = {
        .size = sizeof values, .argument_count = 4, .arguments = arguments, .groups = {groups, 1, 1}};
    return recording != NULL ? gpuhal_recording_launch(recording, launcher->kernel, &values, NULL)
                             : gpuhal_kernel_launch(queue, launcher->kernel, &values);
}

bool gpuhal_bench_launcher_enqueue(const gpuhal_bench_launcher *launcher, gpuhal_queue *queue)
{
    return launch(launcher, queue, NULL) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_kernel_launch");
}

bool gpuhal_bench_launcher_record(const gpuhal_bench_launcher *launcher, gpuhal_recording *recording)
{
    return launch(launcher, NULL, recording) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_recording_launch");
}

bool gpuhal_bench_launcher_await(const gpuhal_bench_launcher *launcher)
{
    return gpuhal_queue_synchronize(launcher->queue, timeout_ns) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_queue_synchronize");
}

bool gpuhal_bench_launcher_prove(const gpuhal_bench_launcher *launcher, uint64_t launches)
{
    float *numbers = malloc(launcher->count * sizeof *numbers);
    if (numbers == NULL) {
        return gpuhal_bench_failed("out of memory");
    }
    bool good =
        gpuhal_read(NULL, numbers, launcher->y, launcher->offset, launcher->count * sizeof *numbers) == GPUHAL_OK ||
        gpuhal_bench_failed_call("gpuhal_read");
    for (uint32_t i = 0; good && i < launcher->count; i++) {
        const float right = (float)(i % 1000) * (float)launches;
        good = numbers[i] == right ||
               gpuhal_bench_failed("number %u of the result is %g, not %g", i, (double)numbers[i], (double)right);
    }
    free(numbers);
    return good && gpuhal_bench_launcher_clear(launcher);
}
