/* cuda/program.c: modules and launches.
 *
 * Formats are `ptx`, `cubin` and `fatbin`. The driver finds the end of an image by what stands in it, so that is compared with
 * the bytes at hand first: a cut-off file would be read beyond its end.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES     2048u
#define ARGUMENTS_MAX 1024u /* CUDA passes at most 4 KiB, or 32 KiB on late devices */

struct gpuhal_plugin_kernel {
    gpuhal_plugin_kernel *next;
    gpuhal_plugin_program *program;
    CUfunction function;
    _Atomic uint32_t shared_bytes; /* that a launch may ask for, as far as the driver has been told. Raised under the lock */
};

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    CUmodule module;
    pthread_mutex_t lock; /* protects kernels, and telling the driver about one */
    gpuhal_plugin_kernel *kernels;
};

/* ---- images */

static uint64_t number_at(const unsigned char *image, size_t offset, size_t bytes)
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

/* Neither unused nor memory that the file has no bytes for: zeroed, or, in code that can be linked further, what NVIDIA calls
 * global, local and shared. */
static bool is_in_file(uint64_t type)
{
    return type != 0 && type != 8 && type != 0x70000007 && type != 0x70000009 && type != 0x7000000a;
}

/* A cubin is an ELF file of 64 bits: header, tables of segments and of sections, sections. */
static bool is_cubin(const unsigned char *image, uint64_t bytes)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    if (bytes < 64 || memcmp(image, magic, sizeof magic) != 0) {
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
        inside = !is_in_file(number_at(header, 4, 4)) || has_table(bytes, number_at(header, 24, 8), 1, number_at(header, 32, 8));
    }
    return inside;
}

/* A header of 16 bytes: magic, version, its own size, and the size of what follows. */
static bool is_fatbin(const unsigned char *image, uint64_t bytes)
{
    if (bytes < 16 || number_at(image, 0, 4) != 0xba55ed50u) {
        return false;
    }
    const uint64_t header = number_at(image, 6, 2), rest = number_at(image, 8, 8);
    return header <= bytes && rest <= bytes - header;
}

/* The image to load: PTX is a text that the driver wants ended by a zero. NULL without memory or for a format that does not fit.
 */
static void *copy_image(const char *format, const void *code, uint64_t bytes)
{
    const bool ptx = strcmp(format, "ptx") == 0;
    const bool good = ptx || (strcmp(format, "cubin") == 0 ? is_cubin(code, bytes) : is_fatbin(code, bytes));
    char *image = good && bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (image) {
        memcpy(image, code, (size_t)bytes);
        image[bytes] = '\0';
    }
    return image;
}

/* The compiler's words in one line. */
static void make_line(char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        text[i] = text[i] < 0x20 || text[i] >= 0x7f ? ' ' : text[i];
    }
    while (length > 0 && text[length - 1] == ' ') {
        text[--length] = '\0';
    }
}

static gpuhal_status load(gpuhal_plugin_program *program, const void *image)
{
    gpuhal_plugin_device *device = program->device;
    char log[LOG_BYTES] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)}; /* a size goes where a pointer goes */
    gpuhal_cuda_visit visit;
    CUresult code = gpuhal_cuda_enter(device, &visit);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuModuleLoadDataEx(&program->module, image, 2, options, values);
        gpuhal_cuda_leave(&visit);
    }
    log[sizeof log - 1] = '\0';
    make_line(log);
    gpuhal_status status = gpuhal_cuda_result(device, "cuModuleLoadDataEx", code);
    if (status != GPUHAL_OK && log[0] != '\0') {
        status = gpuhal_cuda_report_as(device->host, status, "cuModuleLoadDataEx", code, log);
    }
    return status;
}

static gpuhal_status cuda_program_load(gpuhal_plugin_device *device, const char *format, const void *code, uint64_t bytes,
                                       const char *options, gpuhal_plugin_program **out_program)
{
    const gpuhal_host *host = device->host;
    *out_program = NULL;
    if (strcmp(format, "ptx") != 0 && strcmp(format, "cubin") != 0 && strcmp(format, "fatbin") != 0) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "CUDA loads ptx, cubin and fatbin");
    }
    if (options && *options) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the cuda plugin knows no options for programs");
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
    gpuhal_status status = load(program, image);
    free(image);
    if (status != GPUHAL_OK) {
        free(program);
        return status;
    }
    pthread_mutex_init(&program->lock, NULL);
    *out_program = program;
    return GPUHAL_OK;
}

static void cuda_program_unload(gpuhal_plugin_program *program)
{
    gpuhal_cuda_visit visit;
    if (gpuhal_cuda_enter_anyway(program->device, &visit) == CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuModuleUnload(program->module);
        gpuhal_cuda_leave(&visit);
    }
    while (program->kernels) {
        gpuhal_plugin_kernel *kernel = program->kernels;
        program->kernels = kernel->next;
        free(kernel);
    }
    pthread_mutex_destroy(&program->lock);
    free(program);
}

/* ---- kernels */

/* 48 KiB less what the kernel has of its own. */
static uint32_t ordinary_shared_bytes(CUfunction function)
{
    int bytes = 0;
    const CUresult code = gpuhal_cuda_api.cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
    return code == CUDA_SUCCESS && bytes > 0 ? (uint32_t)bytes : 0;
}

/* The driver has one function for a name, and one limit of its shared memory: whoever asks twice has the same kernel. */
static gpuhal_plugin_kernel *keep(gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_program *program = kernel->program;
    pthread_mutex_lock(&program->lock);
    gpuhal_plugin_kernel *known = program->kernels;
    while (known && known->function != kernel->function) {
        known = known->next;
    }
    if (!known) {
        kernel->next = program->kernels;
        program->kernels = kernel;
    }
    pthread_mutex_unlock(&program->lock);
    if (known) {
        free(kernel);
    }
    return known ? known : kernel;
}

static gpuhal_status cuda_kernel(gpuhal_plugin_program *program, const char *name, gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_plugin_device *device = program->device;
    *out_kernel = NULL;
    gpuhal_plugin_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    kernel->program = program;
    gpuhal_cuda_visit visit;
    CUresult code = gpuhal_cuda_enter(device, &visit);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuModuleGetFunction(&kernel->function, program->module, name);
        atomic_init(&kernel->shared_bytes, code == CUDA_SUCCESS ? ordinary_shared_bytes(kernel->function) : 0);
        gpuhal_cuda_leave(&visit);
    }
    if (code != CUDA_SUCCESS) {
        free(kernel);
        return gpuhal_cuda_result(device, "cuModuleGetFunction", code);
    }
    *out_kernel = keep(kernel);
    return GPUHAL_OK;
}

/* What the driver reads: one pointer for each parameter. Memory is passed by its address; local memory is no parameter, but adds
 * to the one block of shared memory that a launch has. */
typedef struct parameters {
    void *pointers[ARGUMENTS_MAX];
    CUdeviceptr addresses[ARGUMENTS_MAX];
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

/* Of two launches at once the one that needs less must not have the last word. */
static CUresult allow_shared(gpuhal_plugin_kernel *kernel, uint32_t bytes)
{
    CUresult code = CUDA_SUCCESS;
    if (bytes <= atomic_load(&kernel->shared_bytes)) {
        return code;
    }
    pthread_mutex_lock(&kernel->program->lock);
    if (bytes > atomic_load(&kernel->shared_bytes)) {
        code = gpuhal_cuda_api.cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
        atomic_store(&kernel->shared_bytes, code == CUDA_SUCCESS ? bytes : atomic_load(&kernel->shared_bytes));
    }
    pthread_mutex_unlock(&kernel->program->lock);
    return code;
}

static CUresult enqueue(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel, const gpuhal_launch *launch, parameters *with)
{
    const uint32_t shared = (uint32_t)with->shared_bytes;
    const CUresult code = allow_shared(kernel, shared);
    return code != CUDA_SUCCESS
               ? code
               : gpuhal_cuda_api.cuLaunchKernel(kernel->function, launch->groups[0], launch->groups[1], launch->groups[2],
                                                launch->group_size[0], launch->group_size[1], launch->group_size[2], shared,
                                                queue->stream, with->pointers, NULL);
}

static gpuhal_status cuda_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel, const gpuhal_launch *launch)
{
    gpuhal_plugin_device *device = queue->device;
    parameters with; /* filled as far as it is read */
    if (!gather(launch, &with)) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "too many arguments, one of a kind that is none, or too much local memory");
    }
    gpuhal_cuda_visit visit;
    CUresult code = gpuhal_cuda_enter(device, &visit);
    if (code == CUDA_SUCCESS) {
        code = enqueue(queue, kernel, launch, &with);
        gpuhal_cuda_leave(&visit);
    }
    if (code == CUDA_ERROR_INVALID_VALUE) {
        return gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "cuLaunchKernel", code,
                                     "the kernel or the device does not take these groups, sizes or local memory");
    }
    return gpuhal_cuda_result(device, "cuLaunchKernel", code);
}

void gpuhal_cuda_describe_program(gpuhal_ops *ops)
{
    ops->program_load = cuda_program_load;
    ops->program_unload = cuda_program_unload;
    ops->kernel = cuda_kernel;
    ops->launch = cuda_launch;
}
