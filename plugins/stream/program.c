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
    gpuhal_plugin_kernel *next;
    gpuhal_plugin_program *program;
    vendor_function function;
    _Atomic uint32_t shared_bytes; /* that a launch may ask for, as far as the driver allows. Raised under the lock */
};

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    vendor_module module;
    void *image;          /* what the module was loaded from, while the driver may read it */
    pthread_mutex_t lock; /* protects kernels, and changes of one in the driver */
    gpuhal_plugin_kernel *kernels;
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

static gpuhal_status program_load(gpuhal_plugin_device *device, const char *format, const void *code, uint64_t bytes,
                                  const char *options, gpuhal_plugin_program **out_program)
{
    const gpuhal_host *host = device->host;
    *out_program = NULL;
    if (!GPUHAL_OWN(is_format)(format)) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                            GPUHAL_VENDOR_API " loads " GPUHAL_VENDOR_FORMATS);
    }
    if (options && *options) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the " GPUHAL_VENDOR_PLUGIN " plugin knows no options for programs");
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
    pthread_mutex_init(&program->lock, NULL);
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
    /* Without the lock: the core unloads what no call uses any more. */
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

/* The driver has one function for a name, and CUDA one limit of its shared memory: a second request returns the
 * same kernel. */
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

static gpuhal_status get_kernel(gpuhal_plugin_program *program, const char *name, gpuhal_plugin_kernel **out_kernel)
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
        code = GPUHAL_VENDOR(ModuleGetFunction)(&kernel->function, program->module, name);
        atomic_init(&kernel->shared_bytes, code == GPUHAL_VENDOR_OK ? GPUHAL_OWN(shared_bytes)(kernel->function) : 0);
        GPUHAL_OWN(leave)(&scope);
    }
    if (code != GPUHAL_VENDOR_OK) {
        free(kernel);
        return GPUHAL_OWN(result)(device, GPUHAL_VENDOR_CALL(ModuleGetFunction), code);
    }
    *out_kernel = keep(kernel);
    return GPUHAL_OK;
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

/* Of two launches at once the one that needs less must not undo the limit of the other. A value read before the lock
 * may be old, which only costs taking the lock: the limit never sinks. */
static vendor_code allow_shared(gpuhal_plugin_kernel *kernel, uint32_t bytes)
{
    vendor_code code = GPUHAL_VENDOR_OK;
    if (bytes <= atomic_load(&kernel->shared_bytes)) {
        return code;
    }
    pthread_mutex_lock(&kernel->program->lock);
    if (bytes > atomic_load(&kernel->shared_bytes)) {
        code = GPUHAL_OWN(allow_shared)(kernel->function, bytes);
        atomic_store(&kernel->shared_bytes, code == GPUHAL_VENDOR_OK ? bytes : atomic_load(&kernel->shared_bytes));
    }
    pthread_mutex_unlock(&kernel->program->lock);
    return code;
}

static vendor_code enqueue(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel, const gpuhal_launch *launch,
                           parameters *with)
{
    const uint32_t shared = (uint32_t)with->shared_bytes;
    const vendor_code code = allow_shared(kernel, shared);
    return code != GPUHAL_VENDOR_OK
               ? code
               : GPUHAL_VENDOR_LAUNCH(kernel->function, launch->groups[0], launch->groups[1], launch->groups[2],
                                      launch->group_size[0], launch->group_size[1], launch->group_size[2], shared,
                                      queue->stream, with->pointers, NULL);
}

static gpuhal_status launch_kernel(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_launch *launch)
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
        code = enqueue(queue, kernel, launch, &with);
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
    ops->kernel = get_kernel;
    ops->launch = launch_kernel;
}
