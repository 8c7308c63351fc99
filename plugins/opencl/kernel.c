/* opencl/kernel.c: kernels and their launches.
 *
 * A cl_kernel stores the arguments of its next launch, so only one thread may use it at a time. A plugin kernel
 * therefore has several cl_kernels. A launch takes an idle cl_kernel or creates one, and afterwards marks it as idle.
 * Setting an argument takes a few nanoseconds (PoCL), so every launch sets all arguments.
 *
 * No OpenCL call makes a driver compile completely before the first launch. PoCL compiles a kernel for a group size
 * when the first launch with this size runs, in the process or since the on-disk cache was emptied. It compiles the
 * kernel again for the first grid of 65535 threads in a dimension, and for the first offset. A launch without threads
 * does not cause a compilation. Querying the program's binary causes a compilation, but only for the group size in
 * POCL_BINARY_SPECIALIZE_WG (PoCL 3.1), and only the user may set this variable.
 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDLE_MAX 8u

/* One cl_kernel, with the sub-buffers that are its arguments during a launch. */
typedef struct instance {
    cl_kernel kernel;
    uint32_t part_count;
    cl_mem parts[]; /* room for one sub-buffer per parameter */
} instance;

struct gpuhal_plugin_kernel {
    gpuhal_plugin_program *program;
    char *name;                         /* stored after the parameters */
    _Atomic(instance *) idle[IDLE_MAX]; /* NULL if the instance is used by a launch, or not created yet */
    uint32_t parameter_count;
    gpuhal_parameter parameters[];
};

/* ---- instances */

static void instance_release(instance *one)
{
    gpuhal_opencl_api.clReleaseKernel(one->kernel);
    free(one);
}

/* If the plugin itself is out of memory, @p out_code is CL_OUT_OF_HOST_MEMORY. */
static instance *instance_create(const gpuhal_plugin_program *program, const char *name, uint32_t parameter_count,
                                 cl_int *out_code)
{
    instance *made = calloc(1, sizeof *made + parameter_count * sizeof made->parts[0]);
    *out_code = CL_OUT_OF_HOST_MEMORY;
    if (made && !(made->kernel = gpuhal_opencl_api.clCreateKernel(program->program, name, out_code))) {
        *out_code = *out_code != CL_SUCCESS ? *out_code : CL_OUT_OF_HOST_MEMORY;
        free(made);
        return NULL;
    }
    return made;
}

/* Skips an empty slot after a plain load. Acquire order pairs with the release in give(), so the previous user's calls
 * with this cl_kernel happen before this thread's calls. */
static instance *take(gpuhal_plugin_kernel *kernel, cl_int *out_code)
{
    for (uint32_t i = 0; i < IDLE_MAX; i++) {
        if (atomic_load_explicit(&kernel->idle[i], memory_order_relaxed)) {
            instance *found = atomic_exchange_explicit(&kernel->idle[i], NULL, memory_order_acquire);
            if (found) {
                return found;
            }
        }
    }
    return instance_create(kernel->program, kernel->name, kernel->parameter_count, out_code);
}

static void give(gpuhal_plugin_kernel *kernel, instance *one)
{
    while (one->part_count > 0) {
        gpuhal_opencl_api.clReleaseMemObject(one->parts[--one->part_count]);
    }
    for (uint32_t i = 0; i < IDLE_MAX; i++) {
        instance *none = NULL;
        if (!atomic_load_explicit(&kernel->idle[i], memory_order_relaxed) &&
            atomic_compare_exchange_strong_explicit(&kernel->idle[i], &none, one, memory_order_release,
                                                    memory_order_relaxed)) {
            return;
        }
    }
    instance_release(one);
}

/* ---- kernels */

static gpuhal_status kernel_failed(const gpuhal_plugin_program *program, const char *name, cl_int code)
{
    const gpuhal_host *host = program->device->host;
    char names[256] = "", text[400];
    size_t bytes = 0;
    if (code != CL_INVALID_KERNEL_NAME) {
        return gpuhal_opencl_result(program->device, "clCreateKernel", code);
    }
    const bool lists =
        gpuhal_opencl_api.clGetProgramInfo(program->program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &bytes) == CL_SUCCESS &&
        bytes <= sizeof names &&
        gpuhal_opencl_api.clGetProgramInfo(program->program, CL_PROGRAM_KERNEL_NAMES, bytes, names, NULL) == CL_SUCCESS;
    for (char *at = names; (at = strchr(at, ';')) != NULL;) {
        *at = ' ';
    }
    snprintf(text, sizeof text, "CL_INVALID_KERNEL_NAME: the program has no kernel %.64s%s%s", name,
             lists ? "; its kernels: " : "", names);
    return host->report(host, GPUHAL_ERROR_NOT_FOUND, "clCreateKernel", code, text);
}

void gpuhal_opencl_kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    for (uint32_t i = 0; i < IDLE_MAX; i++) {
        instance *one = atomic_load(&kernel->idle[i]);
        if (one) {
            instance_release(one);
        }
    }
    free(kernel);
}

/* Counts the arguments; a description must have the same number of parameters. */
static gpuhal_status count_parameters(const gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                      uint32_t *out_count)
{
    cl_uint count = 0;
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = gpuhal_opencl_api.clCreateKernel(program->program, desc->name, &code);
    if (!kernel) {
        return kernel_failed(program, desc->name, code);
    }
    code = gpuhal_opencl_api.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    gpuhal_opencl_api.clReleaseKernel(kernel);
    *out_count = count;
    if (code == CL_SUCCESS && desc->parameters && desc->parameter_count != count) {
        return gpuhal_opencl_refuse(program->device, GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "the description has %u parameters; the kernel has %u arguments",
                                    desc->parameter_count, count);
    }
    return gpuhal_opencl_result(program->device, "clGetKernelInfo", code);
}

gpuhal_status gpuhal_opencl_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                          gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    uint32_t count = 0;
    *out_kernel = NULL;
    if (program->spirv && desc->constant_count > 0) {
        return gpuhal_opencl_refuse(
            program->device, GPUHAL_ERROR_NOT_SUPPORTED,
            "the opencl plugin fixes no specialization constants of SPIR-V: leave constants out");
    }
    gpuhal_status status = count_parameters(program, desc, &count);
    if (status != GPUHAL_OK) {
        return status;
    }
    const size_t parameters = count * sizeof(gpuhal_parameter), name = strlen(desc->name) + 1;
    gpuhal_plugin_kernel *kernel = calloc(1, sizeof *kernel + parameters + name);
    if (!kernel) {
        return program->device->host->report(program->device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    kernel->program = program;
    kernel->parameter_count = count;
    kernel->name = (char *)kernel->parameters + parameters;
    memcpy(kernel->name, desc->name, name);
    cl_int code = CL_SUCCESS;
    instance *first = take(kernel, &code);
    if (!first) {
        free(kernel);
        return kernel_failed(program, desc->name, code);
    }
    give(kernel, first);
    /* Query the limits before arguments are set, because drivers include the local memory of arguments. */
    status = gpuhal_opencl_fill_limits(program, first->kernel, desc, out_info);
    status = status ? status : gpuhal_opencl_fill_parameters(program, first->kernel, desc, kernel->parameters, count);
    if (status != GPUHAL_OK) {
        gpuhal_opencl_kernel_destroy(kernel);
        return status;
    }
    out_info->parameters = kernel->parameters;
    out_info->parameter_count = count;
    *out_kernel = kernel;
    return GPUHAL_OK;
}

/* ---- launches */

/* Sets the address of memory that host and device share. For other memory, sets a sub-buffer, or the whole buffer if
 * the offset is 0, since a kernel is not passed a size. */
static cl_int set_buffer(instance *own, uint32_t index, const gpuhal_plugin_argument *argument, const char **out_call)
{
    gpuhal_opencl_buffer *buffer = argument->memory ? argument->memory->object : NULL;
    cl_mem mem = buffer ? buffer->mem : NULL; /* the kernel's pointer is NULL, too */
    if (buffer && buffer->shared) {
        *out_call = "clSetKernelArgSVMPointer";
        return gpuhal_opencl_api.clSetKernelArgSVMPointer(own->kernel, index,
                                                          (char *)argument->memory->host + argument->offset);
    }
    if (argument->offset > 0) {
        cl_int code = CL_SUCCESS;
        *out_call = "clCreateSubBuffer";
        mem = gpuhal_opencl_take_part(buffer, argument->offset, argument->bytes, &code);
        if (!mem) {
            return code != CL_SUCCESS ? code : CL_OUT_OF_RESOURCES;
        }
        own->parts[own->part_count++] = mem;
    }
    *out_call = "clSetKernelArg";
    return gpuhal_opencl_api.clSetKernelArg(own->kernel, index, sizeof mem, &mem);
}

static cl_int set_arguments(instance *own, const gpuhal_plugin_launch *launch, const char **out_call)
{
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; i < launch->argument_count && code == CL_SUCCESS; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        if (argument->kind == GPUHAL_PARAMETER_BUFFER) {
            code = set_buffer(own, i, argument, out_call);
        } else {
            const void *value = argument->kind == GPUHAL_PARAMETER_VALUE ? argument->value : NULL;
            *out_call = "clSetKernelArg";
            code = gpuhal_opencl_api.clSetKernelArg(own->kernel, i, (size_t)argument->bytes, value);
        }
    }
    return code;
}

/* For the driver, all numbers are threads. A kernel's get_group_id() does not include the offset.
 *
 * The driver retains the objects that an enqueued kernel uses, including sub-buffers, so the instance can be released
 * immediately. Only memory that host and device share is set by address. It requires no clSetKernelExecInfo(), because
 * on the CPU nothing has to be made resident. In PoCL 3.1 this function also writes beyond an array if it gets more
 * pointers than the kernel has arguments. */
gpuhal_status gpuhal_opencl_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    gpuhal_plugin_device *device = kernel->program->device;
    const char *call = "clCreateKernel";
    size_t offset[3], threads[3], group_size[3];
    for (int i = 0; i < 3; i++) {
        group_size[i] = launch->group_size[i];
        threads[i] = (size_t)launch->threads[i];
        offset[i] = launch->offset[i] * group_size[i];
    }
    cl_int code = CL_SUCCESS;
    instance *own = take(kernel, &code);
    if (!own || (code = set_arguments(own, launch, &call)) != CL_SUCCESS) {
        if (own) {
            give(kernel, own);
        }
        return gpuhal_opencl_result(device, call, code);
    }
    gpuhal_opencl_track t = gpuhal_opencl_begin(device, queue);
    if (!gpuhal_opencl_take_turn(device, t.commands, queue == NULL)) {
        give(kernel, own);
        return GPUHAL_NOT_READY;
    }
    code = gpuhal_opencl_api.clEnqueueNDRangeKernel(t.commands, own->kernel, 3, offset, threads, group_size, 0, NULL,
                                                    &t.last);
    gpuhal_opencl_give_turn(device, t.commands, t.last);
    give(kernel, own);
    return gpuhal_opencl_end(device, &t, "clEnqueueNDRangeKernel", code);
}
