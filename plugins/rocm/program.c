/* rocm/program.c: modules and launches.
 *
 * Formats are `hsaco` (a code object for one architecture) and `hip_fatbin` (a bundle of them, as the compiler embeds it). HIP
 * finds the end of an image by what stands in it, so that is compared with the bytes at hand first: a cut-off file would be read
 * beyond its end. A bundle that was compressed is HIP's to unpack: its length stands in its head.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENTS_MAX 1024u /* the compiler's arguments of a kernel are far fewer */

struct gpuhal_plugin_kernel {
    gpuhal_plugin_kernel *next;
    gpuhal_plugin_device *device;
    hipFunction_t function;
};

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    hipModule_t module;
    void *image;          /* what the module was loaded from */
    pthread_mutex_t lock; /* protects kernels */
    gpuhal_plugin_kernel *kernels;
};

/* ---- images */

static uint64_t number_at(const unsigned char *image, uint64_t offset, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)image[offset + i] << (8 * i);
    }
    return value;
}

/* A table of an ELF file that lies within the bytes. */
static bool has_table(uint64_t bytes, uint64_t offset, uint64_t entry, uint64_t count)
{
    return offset <= bytes && entry * count <= bytes - offset;
}

/* A code object is an ELF file of 64 bits for the machine AMDGPU: header, tables of segments and of sections, sections. */
static bool is_code_object(const unsigned char *image, uint64_t bytes)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    if (bytes < 64 || memcmp(image, magic, sizeof magic) != 0 || number_at(image, 18, 2) != 224) {
        return false;
    }
    const uint64_t table = number_at(image, 40, 8), entry = number_at(image, 58, 2), count = number_at(image, 60, 2);
    if (entry < 64 || !has_table(bytes, table, entry, count) ||
        !has_table(bytes, number_at(image, 32, 8), number_at(image, 54, 2), number_at(image, 56, 2))) {
        return false;
    }
    bool inside = true;
    for (uint64_t i = 0; i < count && inside; i++) {
        const unsigned char *header = image + table + i * entry;
        const uint64_t type = number_at(header, 4, 4);
        const bool in_file = type != 0 && type != 8; /* neither unused nor memory that is only zeroed */
        inside = !in_file || has_table(bytes, number_at(header, 24, 8), 1, number_at(header, 32, 8));
    }
    return inside;
}

/* "CCOB", version, method, then the length of all: 4 bytes in version 2, 8 in version 3; version 1 does not tell it. */
static bool is_compressed(const unsigned char *image, uint64_t bytes)
{
    if (bytes < 24 || memcmp(image, "CCOB", 4) != 0) {
        return false;
    }
    const uint64_t version = number_at(image, 4, 2);
    return version == 2 ? number_at(image, 8, 4) <= bytes : version == 3 && number_at(image, 8, 8) <= bytes;
}

/* A magic of 24 characters, the number of entries, and for each: where its code is, how long, and its name, length first. */
static bool is_bundle(const unsigned char *image, uint64_t bytes)
{
    static const char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    const uint64_t length = sizeof magic - 1;
    if (bytes < length + 8 || memcmp(image, magic, length) != 0) {
        return is_compressed(image, bytes);
    }
    const uint64_t count = number_at(image, length, 8);
    uint64_t at = length + 8;
    for (uint64_t i = 0; i < count; i++) {
        if (bytes - at < 24 || !has_table(bytes, number_at(image, at, 8), 1, number_at(image, at + 8, 8))) {
            return false;
        }
        const uint64_t name = number_at(image, at + 16, 8);
        at += 24;
        if (name > bytes - at) {
            return false;
        }
        at += name;
    }
    return count > 0;
}

/* HIP keeps no copy of what it is given: it reads the image again when a kernel is first asked for. NULL without memory or for a
 * format that does not fit. */
static void *copy_image(const char *format, const void *code, uint64_t bytes)
{
    const bool good = strcmp(format, "hsaco") == 0 ? is_code_object(code, bytes) : is_bundle(code, bytes);
    void *image = good && bytes < SIZE_MAX ? malloc((size_t)bytes) : NULL;
    if (image) {
        memcpy(image, code, (size_t)bytes);
    }
    return image;
}

static gpuhal_status load(gpuhal_plugin_program *program)
{
    gpuhal_plugin_device *device = program->device;
    gpuhal_rocm_visit visit;
    hipError_t code = gpuhal_rocm_enter(device, &visit);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipModuleLoadData(&program->module, program->image);
        gpuhal_rocm_leave(&visit);
    }
    return gpuhal_rocm_result(device, "hipModuleLoadData", code);
}

static gpuhal_status rocm_program_load(gpuhal_plugin_device *device, const char *format, const void *code, uint64_t bytes,
                                       const char *options, gpuhal_plugin_program **out_program)
{
    const gpuhal_host *host = device->host;
    *out_program = NULL;
    if (strcmp(format, "hsaco") != 0 && strcmp(format, "hip_fatbin") != 0) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "HIP loads hsaco and hip_fatbin");
    }
    if (options && *options) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the rocm plugin knows no options for programs");
    }
    void *image = copy_image(format, code, bytes);
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
    program->image = image;
    gpuhal_status status = load(program);
    if (status != GPUHAL_OK) {
        free(image);
        free(program);
        return status;
    }
    pthread_mutex_init(&program->lock, NULL);
    *out_program = program;
    return GPUHAL_OK;
}

static void rocm_program_unload(gpuhal_plugin_program *program)
{
    gpuhal_rocm_visit visit;
    if (gpuhal_rocm_enter_anyway(program->device, &visit) == hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipModuleUnload(program->module));
        gpuhal_rocm_leave(&visit);
    }
    while (program->kernels) {
        gpuhal_plugin_kernel *kernel = program->kernels;
        program->kernels = kernel->next;
        free(kernel);
    }
    pthread_mutex_destroy(&program->lock);
    free(program->image);
    free(program);
}

/* ---- kernels */

static gpuhal_status rocm_kernel(gpuhal_plugin_program *program, const char *name, gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_plugin_device *device = program->device;
    *out_kernel = NULL;
    gpuhal_plugin_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    kernel->device = device;
    gpuhal_rocm_visit visit;
    hipError_t code = gpuhal_rocm_enter(device, &visit);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipModuleGetFunction(&kernel->function, program->module, name);
        gpuhal_rocm_leave(&visit);
    }
    if (code != hipSuccess) {
        free(kernel);
        return gpuhal_rocm_result(device, "hipModuleGetFunction", code);
    }
    pthread_mutex_lock(&program->lock);
    kernel->next = program->kernels;
    program->kernels = kernel;
    pthread_mutex_unlock(&program->lock);
    *out_kernel = kernel;
    return GPUHAL_OK;
}

/* What the driver reads: one pointer for each parameter. Memory is passed by its address; local memory is no parameter, but adds
 * to the one block of shared memory that a launch has. */
typedef struct parameters {
    void *pointers[ARGUMENTS_MAX];
    uint64_t addresses[ARGUMENTS_MAX];
    uint64_t shared_bytes;
} parameters;

static bool gather(const gpuhal_launch *launch, parameters *out)
{
    uint32_t count = 0;
    out->shared_bytes = launch->local_bytes;
    if (launch->argument_count > ARGUMENTS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_argument *argument = &launch->arguments[i];
        switch (argument->kind) {
        case 0:
            out->pointers[count++] = (void *)(uintptr_t)argument->value;
            break;
        case 1:
            out->addresses[count] = argument->memory->address + argument->offset;
            out->pointers[count] = &out->addresses[count];
            count++;
            break;
        case 2:
            out->shared_bytes += argument->bytes;
            break;
        default:
            return false;
        }
    }
    return out->shared_bytes <= INT32_MAX;
}

static hipError_t enqueue(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel, const gpuhal_launch *launch, parameters *with)
{
    return gpuhal_rocm_api.hipModuleLaunchKernel(kernel->function, launch->groups[0], launch->groups[1], launch->groups[2],
                                                 launch->group_size[0], launch->group_size[1], launch->group_size[2],
                                                 (uint32_t)with->shared_bytes, queue->stream, with->pointers, NULL);
}

static gpuhal_status rocm_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel, const gpuhal_launch *launch)
{
    gpuhal_plugin_device *device = queue->device;
    parameters with; /* filled as far as it is read */
    if (!gather(launch, &with)) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "too many arguments, one of a kind that is none, or too much local memory");
    }
    gpuhal_rocm_visit visit;
    hipError_t code = gpuhal_rocm_enter(device, &visit);
    if (code == hipSuccess) {
        code = enqueue(queue, kernel, launch, &with);
        gpuhal_rocm_leave(&visit);
    }
    if (code == hipErrorInvalidValue || code == hipErrorInvalidConfiguration) {
        return gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "hipModuleLaunchKernel", code,
                                     "the kernel or the device does not take these groups, sizes or local memory");
    }
    return gpuhal_rocm_result(device, "hipModuleLaunchKernel", code);
}

void gpuhal_rocm_describe_program(gpuhal_ops *ops)
{
    ops->program_load = rocm_program_load;
    ops->program_unload = rocm_program_unload;
    ops->kernel = rocm_kernel;
    ops->launch = rocm_launch;
}
