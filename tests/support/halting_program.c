/* tests/support/halting_program.c: programs of the plugin in halting.h. Any code is a valid program, and any name is a
 * kernel with one buffer. The kernel "add" also has a value of four bytes, and adds it to each number of the buffer.
 * Other kernels have no effect. */
#include "support/halting.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_plugin_program {
    char unused;
};
struct gpuhal_plugin_kernel {
    bool adds;
};

static gpuhal_status load(gpuhal_plugin_device *device, const gpuhal_code *code, gpuhal_plugin_build *build,
                          gpuhal_plugin_program **out_program)
{
    (void)device, (void)code, (void)build;
    gpuhal_halting_pass("program_load");
    *out_program = malloc(sizeof **out_program);
    return *out_program ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void unload(gpuhal_plugin_program *program)
{
    gpuhal_halting_pass("program_unload");
    free(program);
}

static gpuhal_status kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                   gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = sizeof(uint32_t)}};
    const bool adds = strcmp(desc->name, "add") == 0;
    (void)program;
    gpuhal_halting_pass("kernel_create");
    out_info->parameters = parameters;
    out_info->parameter_count = adds ? 2 : 1;
    for (int i = 0; i < 3; i++) {
        out_info->group_size[i] = 1;
    }
    out_info->flags = GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_PREPARED_SIZES;
    *out_kernel = malloc(sizeof **out_kernel);
    if (*out_kernel) {
        (*out_kernel)->adds = adds;
    }
    return *out_kernel ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static gpuhal_status kernel_prepare(gpuhal_plugin_kernel *kernel, const uint32_t group_size[3])
{
    (void)kernel, (void)group_size;
    gpuhal_halting_pass("kernel_prepare");
    return GPUHAL_OK;
}

static void kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    gpuhal_halting_pass("kernel_destroy");
    free(kernel);
}

static gpuhal_status launch_kernel(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    if (queue && gpuhal_halting.no_queued_launch) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_halting_pass(queue ? "queued_launch" : "launch");
    const gpuhal_status says = gpuhal_halting.launch_says;
    if (queue && says && gpuhal_halting.launch_room-- == 0) {
        gpuhal_halting.launch_room = 0;
        return says;
    }
    gpuhal_halting.launches++;
    if (kernel->adds) {
        const gpuhal_plugin_argument *to = &launch->arguments[0];
        uint32_t *numbers = (uint32_t *)(void *)((char *)to->memory->host + to->offset);
        for (uint64_t i = 0; i < to->bytes / sizeof *numbers; i++) {
            numbers[i] += *(const uint32_t *)launch->arguments[1].value;
        }
    }
    if (queue && ++gpuhal_halting.unrecorded > gpuhal_halting.unrecorded_most) {
        gpuhal_halting.unrecorded_most = gpuhal_halting.unrecorded;
    }
    return GPUHAL_OK;
}

static gpuhal_status compiled(gpuhal_plugin_program *program, void *to, uint64_t *bytes)
{
    (void)program;
    gpuhal_halting_pass(to ? "program_compiled" : "program_compiled_bytes");
    if (to && *bytes > 0) {
        memset(to, 1, 1);
    }
    *bytes = 1;
    return gpuhal_halting.compiled_says;
}

void gpuhal_halting_describe_programs(gpuhal_ops *ops)
{
    static const gpuhal_program_ops programs = {
        .size = sizeof programs,
        .version = GPUHAL_PROGRAMS_VERSION,
        .program_load = load,
        .program_unload = unload,
        .kernel_create = kernel_create,
        .kernel_destroy = kernel_destroy,
        .launch = launch_kernel,
        .program_compiled = compiled,
        .kernel_prepare = kernel_prepare,
    };
    ops->programs = &programs;
}
