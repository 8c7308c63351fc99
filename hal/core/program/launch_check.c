/* program/launch_check.c: checks a launch's arguments against the kernel's parameters. All messages name the kernel and
 * the wrong argument. */
#include "program/launch.h"

#include "base/error.h"
#include "memory/buffer.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define WHOLE  GPUHAL_LAUNCH_WHOLE
#define USES   GPUHAL_LAUNCH_USES
#define refuse gpuhal_launch_refuse

static inline __attribute__((always_inline)) gpuhal_status
check_buffer(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index, bool recorded)
{
    const gpuhal_buffer *buffer = argument->buffer;
    const gpuhal_status status = gpuhal_launch_check_used(kernel, buffer, index, recorded);
    if (__builtin_expect(status != GPUHAL_OK, 0)) {
        return status;
    }
    if (__builtin_expect(argument->offset >= buffer->bytes || argument->bytes > buffer->bytes - argument->offset, 0)) {
        return argument->offset >= buffer->bytes
                   ? refuse(kernel, GPUHAL_ERROR_OUT_OF_RANGE, index,
                            "offset %" PRIu64 " is not inside the buffer, which has %" PRIu64 " bytes",
                            argument->offset, buffer->bytes)
                   : refuse(kernel, GPUHAL_ERROR_OUT_OF_RANGE, index,
                            "%" PRIu64 " bytes from offset %" PRIu64 " on leave the buffer, which has %" PRIu64
                            " bytes",
                            argument->bytes, argument->offset, buffer->bytes);
    }
    const uint64_t bytes = argument->bytes ? argument->bytes : buffer->bytes - argument->offset;
    if (__builtin_expect(((buffer->begin + argument->offset) & kernel->binding_mask) != 0, 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "offset %" PRIu64 ", byte %" PRIu64 " of its memory, is not a multiple of %" PRIu64
                      " (binding_alignment_bytes of the device)",
                      argument->offset, buffer->begin + argument->offset, kernel->binding_mask + 1);
    }
    if (__builtin_expect(bytes > kernel->binding_max, 0)) {
        return refuse(kernel, GPUHAL_ERROR_TOO_LARGE, index,
                      "%" PRIu64 " bytes are more than %" PRIu64 " (binding_max_bytes of the device)", bytes,
                      kernel->binding_max);
    }
    if (__builtin_expect(buffer->read_only, 0) && (kernel->parameters[index].access & GPUHAL_ACCESS_WRITE)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "the buffer is host memory that was imported read-only, and the parameter is written");
    }
    return GPUHAL_OK;
}

static gpuhal_status check_addressed(const gpuhal_kernel *kernel, const gpuhal_buffer *buffer, uint32_t index,
                                     bool recorded)
{
    if (!buffer) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, USES | index, "the buffer is NULL");
    }
    const gpuhal_status status = gpuhal_launch_check_used(kernel, buffer, USES | index, recorded);
    return status || buffer->whole->memory.address
               ? status
               : refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, USES | index,
                        "the buffer has no address that kernels can use: make it an argument");
}

static const char *kind_name(const gpuhal_argument *argument)
{
    return argument->buffer && argument->value ? "a buffer and a value"
           : argument->buffer                  ? "a buffer"
           : argument->value                   ? "a value"
                                               : "neither a buffer nor a value";
}

static gpuhal_status refuse_kind(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index)
{
    const gpuhal_parameter_kind kind = kernel->parameters[index].kind;
    return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index, "the parameter is %s; the argument has %s",
                  kind == GPUHAL_PARAMETER_BUFFER  ? "a buffer"
                  : kind == GPUHAL_PARAMETER_VALUE ? "a value"
                                                   : "local memory",
                  kind_name(argument));
}

static gpuhal_status check_null(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index)
{
    if (!(kernel->parameters[index].flags & GPUHAL_PARAMETER_OPTIONAL)) {
        return refuse_kind(kernel, argument, index);
    }
    if (!(kernel->info.flags & GPUHAL_KERNEL_NULL_BUFFERS)) {
        return refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, index,
                      "the buffer is NULL, and on this device each parameter needs a buffer: pass any buffer that the "
                      "code then does not use");
    }
    return argument->offset == 0 && argument->bytes == 0
               ? GPUHAL_OK
               : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                        "the buffer is NULL, and offset and bytes are %" PRIu64 " and %" PRIu64 ": both must be 0",
                        argument->offset, argument->bytes);
}

/* Checks an argument, and adds its local memory size to *local. Inline, because each launch calls it for each
 * argument. */
static inline __attribute__((always_inline)) gpuhal_status check_argument(const gpuhal_kernel *kernel,
                                                                          const gpuhal_argument *argument,
                                                                          uint32_t index, bool recorded,
                                                                          uint64_t *local)
{
    const gpuhal_parameter *parameter = &kernel->parameters[index];
    const bool is_buffer = parameter->kind == GPUHAL_PARAMETER_BUFFER,
               is_value = parameter->kind == GPUHAL_PARAMETER_VALUE;
    if (__builtin_expect(is_buffer != (argument->buffer != NULL) || is_value != (argument->value != NULL), 0)) {
        return is_buffer && !argument->buffer && !argument->value ? check_null(kernel, argument, index)
                                                                  : refuse_kind(kernel, argument, index);
    }
    if (is_buffer) {
        return check_buffer(kernel, argument, index, recorded);
    }
    if (__builtin_expect(argument->offset != 0, 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "offset is %" PRIu64 ", and is for buffers: a %s has 0", argument->offset,
                      is_value ? "value" : "parameter for local memory");
    }
    if (is_value) {
        return argument->bytes == parameter->bytes
                   ? GPUHAL_OK
                   : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                            "the value has %" PRIu64 " bytes, the parameter %u", argument->bytes, parameter->bytes);
    }
    if (argument->bytes == 0 || argument->bytes > UINT32_MAX) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, index,
                      "%" PRIu64 " bytes of local memory: it can have 1 to %u", argument->bytes, UINT32_MAX);
    }
    *local += argument->bytes;
    return GPUHAL_OK;
}

static gpuhal_status check_lists(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    if (launch->argument_count != kernel->info.parameter_count) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "%u arguments; the kernel has %u parameters",
                      launch->argument_count, kernel->info.parameter_count);
    }
    if (launch->argument_count > 0 && !launch->arguments) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "argument_count is %u, and arguments is NULL",
                      launch->argument_count);
    }
    if (launch->uses_count > 0 && !launch->uses) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "uses_count is %u, and uses is NULL",
                      launch->uses_count);
    }
    return launch->reserved
               ? refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE, "reserved is %u, and must be 0", launch->reserved)
               : GPUHAL_OK;
}

static inline __attribute__((always_inline)) gpuhal_status check_groups(const gpuhal_kernel *kernel,
                                                                        const uint32_t groups[3])
{
    const uint32_t *most = kernel->info.groups_max;
    for (uint32_t d = 0; d < 3; d++) {
        if (most[d] && groups[d] > most[d]) {
            return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                          "groups[%u] is %u; the kernel can have %u on this device", d, groups[d], most[d]);
        }
    }
    return groups[2] > 0 && (uint64_t)groups[0] * groups[1] > UINT32_MAX / groups[2]
               ? refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                        "%u x %u x %u groups are more than a launch can have in all, %u", groups[0], groups[1],
                        groups[2], UINT32_MAX)
               : GPUHAL_OK;
}

/* Most launches have only groups. */
static inline bool has_form(const gpuhal_launch *launch)
{
    const uint32_t *size = launch->group_size, *threads = launch->threads, *offset = launch->offset;
    return (size[0] | size[1] | size[2] | threads[0] | threads[1] | threads[2] | offset[0] | offset[1] | offset[2] |
            launch->reserved2) != 0 ||
           launch->groups_offset != 0 || launch->groups_buffer != NULL;
}

static gpuhal_status check_launch(const gpuhal_kernel *kernel, gpuhal_launch *launch, bool recorded)
{
    uint64_t local = launch->local_bytes;
    gpuhal_status status = check_lists(kernel, launch);
    const bool form = has_form(launch);
    if (__builtin_expect(form, 0)) {
        status = status ? status : gpuhal_launch_take_form(kernel, launch, recorded);
    } else {
        memcpy(launch->group_size, kernel->info.group_size, sizeof launch->group_size);
    }
    for (uint32_t i = 0; i < launch->argument_count && !status; i++) {
        status = check_argument(kernel, &launch->arguments[i], i, recorded, &local);
    }
    for (uint32_t i = 0; i < launch->uses_count && !status; i++) {
        status = check_addressed(kernel, launch->uses[i], i, recorded);
    }
    status = status ? status : check_groups(kernel, launch->groups);
    if (__builtin_expect(form, 0)) {
        status = status ? status : gpuhal_launch_check_grid(kernel, launch);
    }
    if (!status && launch->local_bytes > 0 && !(kernel->info.flags & GPUHAL_KERNEL_ADDS_LOCAL)) {
        status = refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                        "local_bytes is %u, and with %s must be 0: the parameters and the code state the local memory",
                        launch->local_bytes, kernel->program->format);
    }
    if (!status && local > kernel->local_bytes) {
        status = refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                        "%" PRIu64 " bytes of local memory; beside that of its code the kernel can have %" PRIu64,
                        local, kernel->local_bytes);
    }
    return status;
}

gpuhal_status gpuhal_launch_take(const gpuhal_kernel *kernel, const gpuhal_launch *given, bool recorded,
                                 gpuhal_launch *out)
{
    if (__builtin_expect(given->size < offsetof(gpuhal_launch, local_bytes), 0)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, WHOLE,
                      "size is %u, and must be sizeof(gpuhal_launch), %zu", given->size, sizeof *given);
    }
    if (__builtin_expect(given->size >= sizeof *out, 1)) {
        *out = *given;
    } else {
        *out = (gpuhal_launch){0};
        memcpy(out, given, given->size);
        out->groups_buffer = NULL; /* may be half a pointer */
    }
    const gpuhal_status status = gpuhal_device_check(kernel->program->device);
    return status ? status : check_launch(kernel, out, recorded);
}

gpuhal_status gpuhal_launch_check_argument(const gpuhal_kernel *kernel, const gpuhal_argument *argument, uint32_t index)
{
    uint64_t local = 0;
    return check_argument(kernel, argument, index, true, &local);
}

gpuhal_status gpuhal_launch_check_groups(const gpuhal_kernel *kernel, const gpuhal_launch *launch,
                                         const uint32_t groups[3])
{
    gpuhal_launch other = *launch;
    memcpy(other.groups, groups, sizeof other.groups);
    const gpuhal_status status = check_groups(kernel, groups);
    return status ? status : gpuhal_launch_check_grid(kernel, &other);
}
