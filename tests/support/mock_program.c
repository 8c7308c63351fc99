/* tests/support/mock_program.c: programs of the mock. Code is a string: "program" and the names of its kernels, then
 * a newline; "wrong …" does not compile. There are two kernels, for 32-bit numbers:
 *
 *     add(to: read and written, value)                to[i] += value, for each thread
 *     sum(out: written, in: read, count, local)       out[0] = the sum of in[0 … count - 1]
 *
 * The compiled form of a program is "compiled ", its code, and the names of the compiled kernels. */
#include "support/mock_device.h"

#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t last_mutex = PTHREAD_MUTEX_INITIALIZER; /* protects last_launch of all devices */

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    char *code;
    char kernels[32]; /* names of the compiled kernels, such as " add sum" */
};

struct gpuhal_plugin_kernel {
    gpuhal_plugin_program *program;
    bool adds;
};

static const gpuhal_parameter add_parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
static const gpuhal_parameter sum_parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_WRITE},
                                                  {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                                  {.kind = GPUHAL_PARAMETER_LOCAL}};

static gpuhal_status refuse(const gpuhal_plugin_device *device, gpuhal_status status, const char *call,
                            const char *text)
{
    return device->host->report(device->host, status, call, status, text);
}

static gpuhal_status check_code(const gpuhal_plugin_device *device, const gpuhal_code *code)
{
    if (code->target && strcmp(code->target, "mock9") != 0) {
        return refuse(device, GPUHAL_ERROR_INCOMPATIBLE, "mockLoad", "it is for another target than mock9");
    }
    if (code->bytes < 8 || strncmp(code->code, "program", 7) != 0) {
        return refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT, "mockLoad", "line 1: not a program");
    }
    return GPUHAL_OK;
}

static gpuhal_status program_load(gpuhal_plugin_device *device, const gpuhal_code *code, gpuhal_plugin_build *build,
                                  gpuhal_plugin_program **out_program)
{
    device->mock->loads++;
    build->log(build->user, "mock compiler, part 1\n");
    build->log(build->user, "mock compiler, part 2");
    gpuhal_status status = device->mock->fail_load ? refuse(device, device->mock->fail_load, "mockLoad", "made to fail")
                                                   : check_code(device, code);
    if (status) {
        return status;
    }
    static const char mark[] = "compiled ";
    const size_t length = sizeof mark - 1, kernels = length + (size_t)code->bytes;
    build->used_compiled = build->compiled_bytes >= kernels && memcmp(build->compiled, mark, length) == 0 &&
                           memcmp((const char *)build->compiled + length, code->code, (size_t)code->bytes) == 0;
    device->mock->compilations += !build->used_compiled;
    if (!build->used_compiled && device->mock->compiler && !device->mock->compiler_is_late) {
        assert_non_null(dlopen(device->mock->compiler, RTLD_NOW));
    }
    gpuhal_plugin_program *program = malloc(sizeof *program);
    char *copy = malloc((size_t)code->bytes + 1);
    if (!program || !copy) {
        free(program);
        free(copy);
        return refuse(device, GPUHAL_ERROR_HOST_MEMORY, "malloc", "no memory");
    }
    memcpy(copy, code->code, (size_t)code->bytes);
    copy[code->bytes] = 0;
    *program = (gpuhal_plugin_program){device, copy, ""};
    if (build->used_compiled) {
        snprintf(program->kernels, sizeof program->kernels, "%.*s", (int)(build->compiled_bytes - kernels),
                 (const char *)build->compiled + kernels);
    }
    device->mock->programs++;
    *out_program = program;
    return GPUHAL_OK;
}

static void program_unload(gpuhal_plugin_program *program)
{
    program->device->mock->programs--;
    free(program->code);
    free(program);
}

static gpuhal_status program_compiled(gpuhal_plugin_program *program, void *to, uint64_t *bytes)
{
    static const char mark[] = "compiled ";
    const uint64_t room = *bytes, front = sizeof mark - 1 + strlen(program->code);
    const uint64_t size = front + strlen(program->kernels);
    if (program->device->mock->compiler_is_late) {
        assert_non_null(dlopen(program->device->mock->compiler, RTLD_NOW));
    }
    const int64_t more = to ? program->device->mock->compiled_more : 0;
    *bytes = more < 0 ? 0 : size + (uint64_t)more;
    if (to && *bytes > 0 && room >= *bytes) {
        memcpy(to, mark, sizeof mark - 1);
        memcpy((char *)to + sizeof mark - 1, program->code, strlen(program->code));
        memcpy((char *)to + front, program->kernels, strlen(program->kernels));
    }
    return to ? program->device->mock->fail_compiled : GPUHAL_OK;
}

/* Not thread-safe; tests with kernel compilation create kernels on one thread only. */
static void compile_kernel(gpuhal_plugin_program *program, const char *name)
{
    if (program->device->mock->compiles_kernels && !strstr(program->kernels, name)) {
        const size_t length = strlen(program->kernels);
        snprintf(program->kernels + length, sizeof program->kernels - length, " %s", name);
        program->device->mock->compilations++;
    }
}

static gpuhal_status kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                   gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_plugin_device *device = program->device;
    const bool adds = strcmp(desc->name, "add") == 0;
    const uint32_t count = adds ? 2 : 4;
    if (device->mock->fail_kernel) {
        return refuse(device, device->mock->fail_kernel, "mockKernel", "made to fail");
    }
    if ((!adds && strcmp(desc->name, "sum") != 0) || !strstr(program->code, desc->name)) {
        return refuse(device, GPUHAL_ERROR_NOT_FOUND, "mockKernel", "the program has no such kernel");
    }
    if (desc->parameters && desc->parameter_count != count) {
        return refuse(device, GPUHAL_ERROR_INVALID_ARGUMENT, "mockKernel", "another number of parameters");
    }
    gpuhal_plugin_kernel *kernel = malloc(sizeof *kernel);
    if (!kernel) {
        return refuse(device, GPUHAL_ERROR_HOST_MEMORY, "malloc", "no memory");
    }
    out_info->parameters = desc->parameters ? desc->parameters : adds ? add_parameters : sum_parameters;
    out_info->parameter_count = count;
    for (uint32_t i = 0; i < 3; i++) {
        out_info->group_size[i] = device->mock->no_group_size ? 0
                                  : desc->group_size[i]       ? desc->group_size[i]
                                  : i == 0                    ? 8
                                                              : 1;
        out_info->groups_max[i] = i == 0 ? 1000 : 10;
    }
    out_info->local_bytes = 24;
    out_info->local_max_bytes = 1024;
    out_info->group_size_max = 64;
    out_info->flags = (adds ? 0 : GPUHAL_KERNEL_ADDS_LOCAL) | device->mock->launch_forms;
    compile_kernel(program, desc->name);
    *kernel = (gpuhal_plugin_kernel){program, adds};
    device->mock->kernels++;
    *out_kernel = kernel;
    return GPUHAL_OK;
}

static void kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    kernel->program->device->mock->kernels--;
    free(kernel);
}

static uint32_t *numbers(const gpuhal_plugin_device *device, const gpuhal_plugin_argument *argument)
{
    return (uint32_t *)(void *)gpuhal_mock_range(device->mock, argument->memory, argument->offset, argument->bytes);
}

static gpuhal_status kernel_prepare(gpuhal_plugin_kernel *kernel, const uint32_t group_size[3])
{
    gpuhal_plugin_device *device = kernel->program->device;
    if (group_size[0] > 64) {
        return refuse(device, GPUHAL_ERROR_DRIVER, "mockPrepare", "the core broke a rule of plugin.h");
    }
    device->mock->compilations++;
    return device->mock->fail_prepare ? refuse(device, device->mock->fail_prepare, "mockPrepare", "made to fail")
                                      : GPUHAL_OK;
}

static void run_add(const gpuhal_plugin_launch *launch, uint32_t *to)
{
    const uint64_t begin = (uint64_t)launch->offset[0] * launch->group_size[0];
    const uint64_t all = launch->threads[0] * launch->threads[1] * launch->threads[2];
    for (uint64_t i = begin; i < begin + all && i < launch->arguments[0].bytes / 4; i++) {
        to[i] += *(const uint32_t *)launch->arguments[1].value;
    }
}

static void run_sum(const gpuhal_plugin_launch *launch, uint32_t *out, const uint32_t *in)
{
    uint32_t count = 0, sum = 0;
    memcpy(&count, launch->arguments[2].value, sizeof count);
    for (uint32_t i = 0; i < count && i < launch->arguments[1].bytes / 4; i++) {
        sum += in[i];
    }
    out[0] = sum;
}

/* Reads groups from memory. Returns false if the core broke a rule. */
static bool read_groups(const gpuhal_plugin_device *device, gpuhal_plugin_launch *launch)
{
    const uint32_t *groups = launch->indirect ? (uint32_t *)(void *)gpuhal_mock_range(device->mock, launch->indirect,
                                                                                      launch->indirect_offset, 12)
                                              : launch->groups;
    for (uint32_t d = 0; groups && d < 3; d++) {
        launch->threads[d] = launch->indirect ? (uint64_t)groups[d] * launch->group_size[d] : launch->threads[d];
        launch->groups[d] = groups[d];
    }
    return groups != NULL;
}

static gpuhal_status launch_kernel(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    gpuhal_plugin_device *device = kernel->program->device;
    uint32_t none = 0;
    uint32_t *first = launch->arguments[0].memory ? numbers(device, &launch->arguments[0]) : &none;
    const uint32_t *second = kernel->adds ? first : numbers(device, &launch->arguments[1]);
    gpuhal_plugin_launch real = *launch;
    if (queue || !first || !second || !read_groups(device, &real)) {
        return refuse(device, GPUHAL_ERROR_DRIVER, "mockLaunch", "the core broke a rule of plugin.h");
    }
    device->mock->launches_held++;
    while (device->mock->hold_launches) {
        gpuhal_mock_pause(200);
    }
    device->mock->launches_held--;
    if (device->mock->fail_launch) {
        return refuse(device, device->mock->fail_launch, "mockLaunch", "made to fail");
    }
    device->mock->launches++;
    pthread_mutex_lock(&last_mutex);
    device->mock->last_launch = real;
    pthread_mutex_unlock(&last_mutex);
    if (kernel->adds) {
        run_add(&real, first);
    } else {
        run_sum(launch, first, second);
    }
    return GPUHAL_OK;
}

void gpuhal_mock_describe_programs(const gpuhal_mock_device *mock, gpuhal_ops *out_ops)
{
#define SLOTS                                                                                                          \
    .version = GPUHAL_PROGRAMS_VERSION, .program_load = program_load, .program_unload = program_unload,                \
    .kernel_create = kernel_create, .kernel_destroy = kernel_destroy, .launch = launch_kernel
    static const gpuhal_program_ops programs = {.size = GPUHAL_PROGRAM_OPS_MINIMUM, SLOTS};
    static const gpuhal_program_ops keeping = {
        .size = offsetof(gpuhal_program_ops, kernel_prepare), SLOTS, .program_compiled = program_compiled};
    static const gpuhal_program_ops preparing = {
        .size = sizeof preparing, SLOTS, .program_compiled = program_compiled, .kernel_prepare = kernel_prepare};
#undef SLOTS
    if (mock->formats) {
        const bool prepares = (mock->launch_forms & GPUHAL_KERNEL_PREPARED_SIZES) && !mock->no_prepare_slot;
        out_ops->programs = prepares ? &preparing : mock->keeps_compiled ? &keeping : &programs;
    }
}
