/* program/kernel.c: prepares a function of a program for launches. */
#include "program/program.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The size is limited because launches copy values. */
#define VALUE_BYTES_MAX 65536u

static __attribute__((format(printf, 2, 3))) gpuhal_status bad_desc(const char *name, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_create: kernel %s: %s", name, what);
}

static gpuhal_status check_parameter(const char *name, const gpuhal_parameter *parameter, uint32_t i)
{
    const bool is_value = parameter->kind == GPUHAL_PARAMETER_VALUE;
    if (parameter->kind < GPUHAL_PARAMETER_BUFFER || parameter->kind > GPUHAL_PARAMETER_LOCAL) {
        return bad_desc(name, "parameter %u: kind is %u, and must be GPUHAL_PARAMETER_BUFFER, _VALUE or _LOCAL", i,
                        parameter->kind);
    }
    if (is_value && (parameter->bytes == 0 || parameter->bytes > VALUE_BYTES_MAX)) {
        return bad_desc(name, "parameter %u: bytes is %u; a value can have 1 to %u", i, parameter->bytes,
                        VALUE_BYTES_MAX);
    }
    if (!is_value && parameter->bytes != 0) {
        return bad_desc(name, "parameter %u: bytes is %u, and is for values: a buffer or local memory has 0", i,
                        parameter->bytes);
    }
    if (parameter->kind != GPUHAL_PARAMETER_BUFFER && parameter->access != 0) {
        return bad_desc(name, "parameter %u: access is %u, and is for buffers: a value or local memory has 0", i,
                        parameter->access);
    }
    if (parameter->access & ~(uint32_t)(GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE)) {
        return bad_desc(name, "parameter %u: access is %u, and must be GPUHAL_ACCESS_READ, _WRITE, both, or 0", i,
                        parameter->access);
    }
    return parameter->flags == 0 ||
                   (parameter->flags == GPUHAL_PARAMETER_OPTIONAL && parameter->kind == GPUHAL_PARAMETER_BUFFER)
               ? GPUHAL_OK
               : bad_desc(name, "parameter %u: flags is %#x, and must be 0, or GPUHAL_PARAMETER_OPTIONAL for a buffer",
                          i, parameter->flags);
}

static gpuhal_status check_constants(const gpuhal_kernel_desc *desc)
{
    for (uint32_t i = 0; i < desc->constant_count; i++) {
        const gpuhal_constant *constant = &desc->constants[i];
        if (constant->bytes != 0 && constant->bytes != 4 && constant->bytes != 8) {
            return bad_desc(desc->name, "constant %u: bytes is %u, and must be 4, 8, or 0 for 4", i, constant->bytes);
        }
        for (uint32_t j = 0; j < i; j++) {
            if (desc->constants[j].id == constant->id) {
                return bad_desc(desc->name, "constants %u and %u have the same id, %u", j, i, constant->id);
            }
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status take_desc(const gpuhal_device *device, const gpuhal_kernel_desc *given, gpuhal_kernel_desc *out)
{
    *out = (gpuhal_kernel_desc){0};
    if (given->size < offsetof(gpuhal_kernel_desc, parameters)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_kernel_create: size is %u, and must be sizeof(gpuhal_kernel_desc), %zu",
                                given->size, sizeof *given);
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (!out->name || !*out->name) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_create: name is %s",
                                out->name ? "empty" : "NULL");
    }
    if (out->parameter_count > GPUHAL_PARAMETERS_MAX) {
        return bad_desc(out->name, "parameter_count is %u; a kernel can have %u", out->parameter_count,
                        GPUHAL_PARAMETERS_MAX);
    }
    if (out->parameter_count > 0 && !out->parameters) {
        return bad_desc(out->name, "parameter_count is %u, and parameters is NULL", out->parameter_count);
    }
    if (out->constant_count > 0 && !out->constants) {
        return bad_desc(out->name, "constant_count is %u, and constants is NULL", out->constant_count);
    }
    gpuhal_status status =
        out->reserved ? bad_desc(out->name, "reserved is %u, and must be 0", out->reserved) : check_constants(out);
    for (uint32_t i = 0; i < out->parameter_count && !status; i++) {
        status = check_parameter(out->name, &out->parameters[i], i);
    }
    return status || (!out->group_size[0] && !out->group_size[1] && !out->group_size[2])
               ? status
               : gpuhal_group_size_take(device, out->name, out->group_size);
}

/* ---- plugin calls */

static void destroy_in_plugin(gpuhal_device *device, gpuhal_plugin_kernel *handle)
{
    if (gpuhal_device_is_reachable(device)) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->programs.kernel_destroy(handle);
        gpuhal_call_end(call);
    }
}

static gpuhal_status create_in_plugin(gpuhal_program *program, const gpuhal_kernel_desc *desc,
                                      gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_handle)
{
    gpuhal_device *device = program->device;
    *out_info = (gpuhal_kernel_info){.size = sizeof *out_info};
    const gpuhal_call call = gpuhal_device_begin_compiling(device);
    const gpuhal_status status = gpuhal_device_end_compiling(
        device, call, device->programs.kernel_create(program->handle, desc, out_info, out_handle));
    if (status) {
        return gpuhal_device_failed(device, status, "creating kernel %s", desc->name);
    }
    const bool kept = out_info->group_size[0] && out_info->group_size[1] && out_info->group_size[2] &&
                      out_info->parameter_count <= GPUHAL_PARAMETERS_MAX &&
                      (out_info->parameters || out_info->parameter_count == 0) &&
                      (!desc->parameters || out_info->parameter_count == desc->parameter_count);
    const bool prepares = !(out_info->flags & GPUHAL_KERNEL_PREPARED_SIZES) || device->programs.kernel_prepare;
    if (!kept || !prepares) {
        destroy_in_plugin(device, *out_handle);
        gpuhal_error_report(GPUHAL_ERROR_DRIVER, "kernel_create", 0,
                            kept ? "the plugin has no slot kernel_prepare, and set GPUHAL_KERNEL_PREPARED_SIZES"
                                 : "the plugin left parameters or group_size out");
        return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER, "creating kernel %s", desc->name);
    }
    return GPUHAL_OK;
}

/* Copies the parameters and the name, because launches compare arguments with the parameters, and messages contain the
 * name. */
static gpuhal_kernel *make(gpuhal_program *program, const gpuhal_kernel_desc *desc, const gpuhal_kernel_info *info,
                           gpuhal_plugin_kernel *handle)
{
    const gpuhal_facts *facts = &gpuhal_device_current(program->device)->facts;
    const size_t bytes = info->parameter_count * sizeof(gpuhal_parameter);
    gpuhal_kernel *kernel = malloc(sizeof *kernel + bytes);
    char *copy = gpuhal_text_copy(desc->name);
    if (!kernel || !copy) {
        free(kernel);
        free(copy);
        return NULL;
    }
    *kernel = (gpuhal_kernel){.program = gpuhal_program_retain(program),
                              .handle = handle,
                              .info = *info,
                              .binding_mask = gpuhal_facts_u64(facts, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 1) - 1,
                              .binding_max = gpuhal_facts_u64(facts, GPUHAL_FACT_BINDING_MAX_BYTES, UINT64_MAX),
                              .name = copy};
    atomic_init(&kernel->references, 1);
    memcpy(kernel->own_size.threads, info->group_size, sizeof kernel->own_size.threads);
    atomic_init(&kernel->own_size.launched_bits[0], 0);
    atomic_init(&kernel->own_size.launched_bits[1], 0);
    atomic_init(&kernel->other_sizes, NULL);
    kernel->local_bytes = !info->local_max_bytes                      ? UINT64_MAX
                          : info->local_max_bytes < info->local_bytes ? 0
                                                                      : info->local_max_bytes - info->local_bytes;
    for (uint32_t i = 0; i < info->parameter_count; i++) {
        kernel->parameters[i] = info->parameters[i];
        kernel->parameters[i].flags = desc->parameters ? desc->parameters[i].flags : 0;
        if (kernel->parameters[i].kind == GPUHAL_PARAMETER_BUFFER && kernel->parameters[i].access == 0) {
            kernel->parameters[i].access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE;
        }
    }
    kernel->info.parameters = kernel->parameters;
    return kernel;
}

gpuhal_status gpuhal_kernel_create(gpuhal_program *program, const gpuhal_kernel_desc *given, gpuhal_kernel **out_kernel)
{
    if (out_kernel) {
        *out_kernel = NULL;
    }
    if (!program || !given || !out_kernel) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_create: %s is NULL",
                                !program ? "program"
                                : !given ? "desc"
                                         : "out_kernel");
    }
    gpuhal_kernel_desc desc;
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *handle = NULL;
    gpuhal_status status = gpuhal_device_check(program->device);
    status = status ? status : take_desc(program->device, given, &desc);
    status = status ? status : create_in_plugin(program, &desc, &info, &handle);
    if (status) {
        return status;
    }
    *out_kernel = make(program, &desc, &info, handle);
    if (!*out_kernel) {
        destroy_in_plugin(program->device, handle);
        return gpuhal_error_host_memory();
    }
    status = gpuhal_program_cache_put(program);
    if (status) {
        gpuhal_kernel_release(*out_kernel);
        *out_kernel = NULL;
    }
    return status;
}

/* Relaxed, because the caller has a reference. */
gpuhal_kernel *gpuhal_kernel_retain(gpuhal_kernel *kernel)
{
    if (kernel) {
        atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
    }
    return kernel;
}

void gpuhal_kernel_release(gpuhal_kernel *kernel)
{
    if (!kernel || gpuhal_is_inherited(kernel->program->device->gpu) ||
        atomic_fetch_sub_explicit(&kernel->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    gpuhal_program *program = kernel->program;
    destroy_in_plugin(program->device, kernel->handle);
    gpuhal_group_size_free_all(kernel);
    free(kernel->name);
    free(kernel);
    gpuhal_program_release(program);
}

gpuhal_status gpuhal_kernel_get_info(const gpuhal_kernel *kernel, gpuhal_kernel_info *out_info)
{
    if (!kernel || !out_info || out_info->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_get_info: %s",
                                !kernel     ? "kernel is NULL"
                                : !out_info ? "out_info is NULL"
                                            : "size of out_info is 0: set it to sizeof(gpuhal_kernel_info) first");
    }
    gpuhal_kernel_info info = kernel->info;
    const uint32_t size = out_info->size;
    info.size = size;
    memcpy(out_info, &info, size < sizeof info ? size : sizeof info);
    return GPUHAL_OK;
}
