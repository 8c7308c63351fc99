/* stream/program.c: modules and launches.
 *
 * The driver finds the end of an image by what stands in it, so that is compared with the bytes at hand first: a
 * cut-off file would be read beyond its end. Which formats there are, and how each ends, is in the plugin's module.c.
 *
 * No public function reaches these slots yet.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

/* CUDA passes at most 4 KiB, or 32 KiB on late devices; HIP's compiler makes far fewer. */
#define ARGUMENTS_MAX 1024u

struct gpuhal_plugin_kernel {
    gpuhal_plugin_program *program;
    uint32_t group_size[3];
    vendor_function function;
};

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    vendor_module module;
    void *image; /* what the module was loaded from, while the driver may read it */
};

/* The image to load, ended by a zero, since PTX is a text. NULL without memory or for a format that does not fit. */
static void *copy_image(const char *format, const void *code, uint64_t bytes)
{
    const bool good = GPUHAL_OWN(is_image)(format, code, bytes);
    char *image = good && bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (image) {
        memcpy(image, code, (size_t)bytes);
        image[bytes] = '\0';
    }
    return image;
}

static gpuhal_status program_load(gpuhal_plugin_device *device, const gpuhal_code *code, gpuhal_plugin_build *build,
                                  gpuhal_plugin_program **out_program)
{
    const gpuhal_host *host = device->host;
    (void)build;
    *out_program = NULL;
    if (!GPUHAL_OWN(is_format)(code->format)) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                            GPUHAL_VENDOR_API " loads " GPUHAL_VENDOR_FORMATS);
    }
    if (code->options && *code->options) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the " GPUHAL_VENDOR_PLUGIN " plugin knows no options for programs");
    }
    void *image = copy_image(code->format, code->code, code->bytes);
    if (!image) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the code is not in the format named, is cut off, or does not fit into memory");
    }
    gpuhal_plugin_program *program = calloc(1, sizeof *program);
    if (!program) {
        free(image);
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    program->device = device;
    gpuhal_status status = GPUHAL_OWN(load_module)(device, image, &program->module);
    if (status != GPUHAL_OK || !GPUHAL_VENDOR_READS_IMAGE_LATER) {
        free(image);
        image = NULL;
    }
    if (status != GPUHAL_OK) {
        free(program);
        return status;
    }
    program->image = image;
    *out_program = program;
    return GPUHAL_OK;
}

static void program_unload(gpuhal_plugin_program *program)
{
    gpuhal_stream_scope scope;
    if (GPUHAL_OWN(enter_to_release)(program->device, &scope) == GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR(ModuleUnload)(program->module));
        GPUHAL_OWN(leave)(&scope);
    }
    free(program->image);
    free(program);
}

/* ---- kernels */

static gpuhal_status kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                   gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_plugin_device *device = program->device;
    *out_kernel = NULL;
    gpuhal_plugin_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    kernel->program = program;
    gpuhal_stream_scope scope;
    vendor_code code = GPUHAL_OWN(enter)(device, &scope);
    if (code == GPUHAL_VENDOR_OK) {
        code = GPUHAL_VENDOR(ModuleGetFunction)(&kernel->function, program->module, desc->name);
        if (code == GPUHAL_VENDOR_OK) {
            GPUHAL_OWN(allow_shared)(device, kernel->function);
        }
        GPUHAL_OWN(leave)(&scope);
    }
    if (code != GPUHAL_VENDOR_OK) {
        free(kernel);
        return GPUHAL_OWN(result)(device, GPUHAL_VENDOR_CALL(ModuleGetFunction), code);
    }
    memcpy(kernel->group_size, desc->group_size, sizeof kernel->group_size);
    out_info->parameters = desc->parameters;
    out_info->parameter_count = desc->parameter_count;
    *out_kernel = kernel;
    return GPUHAL_OK;
}

static void kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    free(kernel);
}

/* What the driver reads: one pointer for each parameter. Memory is passed by its address; local memory is no
 * parameter, but adds to the one block of shared memory that a launch has. */
typedef struct parameters {
    void *pointers[ARGUMENTS_MAX];
    uint64_t addresses[ARGUMENTS_MAX];
    uint64_t shared_bytes;
} parameters;

/* Some of the pointers lead into @p out itself, so it must stay where it is until the launch has returned. The sum of
 * shared bytes cannot overflow: it has at most ARGUMENTS_MAX + 1 terms of 32 bits. */
static bool gather(const gpuhal_plugin_launch *launch, parameters *out)
{
    uint32_t count = 0;
    out->shared_bytes = launch->local_bytes;
    if (launch->argument_count > ARGUMENTS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        switch (argument->kind) {
        case GPUHAL_PARAMETER_VALUE:
            out->pointers[count++] = (void *)(uintptr_t)argument->value;
            break;
        case GPUHAL_PARAMETER_BUFFER:
            out->addresses[count] = argument->memory->address + argument->offset;
            out->pointers[count] = &out->addresses[count];
            count++;
            break;
        case GPUHAL_PARAMETER_LOCAL:
            out->shared_bytes += argument->bytes;
            break;
        default:
            return false;
        }
    }
    return out->shared_bytes <= INT32_MAX;
}

static gpuhal_status launch_kernel(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    gpuhal_plugin_device *device = queue->device;
    parameters with; /* filled as far as it is read */
    if (!gather(launch, &with)) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "too many arguments, one of an unknown kind, or too much local memory");
    }
    gpuhal_stream_scope scope;
    vendor_code code = GPUHAL_OWN(enter)(device, &scope);
    if (code == GPUHAL_VENDOR_OK) {
        code = GPUHAL_VENDOR_LAUNCH(kernel->function, launch->groups[0], launch->groups[1], launch->groups[2],
                                    kernel->group_size[0], kernel->group_size[1], kernel->group_size[2],
                                    (uint32_t)with.shared_bytes, queue->stream, with.pointers, NULL);
        GPUHAL_OWN(leave)(&scope);
    }
    if (GPUHAL_VENDOR_REFUSES_LAUNCH(code)) {
        return GPUHAL_OWN(report_as)(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_VENDOR_LAUNCH_CALL, code,
                                     "the kernel or the device does not take these groups, sizes or local memory");
    }
    return GPUHAL_OWN(result)(device, GPUHAL_VENDOR_LAUNCH_CALL, code);
}

void GPUHAL_OWN(describe_program)(gpuhal_ops *ops)
{
    ops->program_load = program_load;
    ops->program_unload = program_unload;
    ops->kernel_create = kernel_create;
    ops->kernel_destroy = kernel_destroy;
    ops->launch = launch_kernel;
}
