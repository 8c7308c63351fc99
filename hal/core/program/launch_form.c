/* program/launch_form.c: the forms that a launch may have beside its number of groups: another group size, a number of
 * threads, an offset, and groups that are read from a buffer. */
#include "program/launch.h"

#include "memory/buffer.h"

#include <inttypes.h>
#include <string.h>

static bool is_zero(const uint32_t three[3])
{
    return !three[0] && !three[1] && !three[2];
}

static gpuhal_status refuse(const gpuhal_kernel *kernel, gpuhal_status status, const char *why)
{
    return gpuhal_launch_refuse(kernel, status, GPUHAL_LAUNCH_WHOLE, "%s", why);
}

static gpuhal_status lacks(const gpuhal_kernel *kernel, const char *form)
{
    return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_LAUNCH_WHOLE,
                                "the kernel cannot have %s (flags of gpuhal_kernel_info)", form);
}

static gpuhal_status take_group_size(const gpuhal_kernel *kernel, gpuhal_launch *launch)
{
    if (is_zero(launch->group_size)) {
        memcpy(launch->group_size, kernel->info.group_size, sizeof launch->group_size);
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_group_size_take(kernel->program->device, kernel->name, launch->group_size);
    status = status ? status : gpuhal_group_size_check(kernel, launch->group_size);
    return status || !(kernel->info.flags & GPUHAL_KERNEL_PREPARED_SIZES) ||
                   gpuhal_group_size_find(kernel, launch->group_size)
               ? status
               : gpuhal_launch_refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_LAUNCH_WHOLE,
                                      "groups of %u x %u x %u threads were not prepared: call gpuhal_kernel_prepare() "
                                      "first",
                                      launch->group_size[0], launch->group_size[1], launch->group_size[2]);
}

static gpuhal_status take_threads(const gpuhal_kernel *kernel, gpuhal_launch *launch)
{
    if (is_zero(launch->threads)) {
        return GPUHAL_OK;
    }
    if (!is_zero(launch->groups)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT,
                      "both groups and threads are given: one of them must be 0");
    }
    if (launch->threads[0] == 0 || launch->threads[1] == 0 || launch->threads[2] == 0) {
        return GPUHAL_OK; /* without groups, nothing is launched */
    }
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t threads = launch->threads[d], size = launch->group_size[d];
        if (threads % size != 0 && !(kernel->info.flags & GPUHAL_KERNEL_THREADS)) {
            return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_LAUNCH_WHOLE,
                                        "threads[%u] is %u, no multiple of the group size %u, which the kernel needs: "
                                        "launch more threads, and pass their number as a value",
                                        d, threads, size);
        }
        launch->groups[d] = threads / size + (threads % size != 0);
    }
    return GPUHAL_OK;
}

static gpuhal_status check_offset(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    if (is_zero(launch->offset)) {
        return GPUHAL_OK;
    }
    if (!(kernel->info.flags & GPUHAL_KERNEL_OFFSET)) {
        return lacks(kernel, "an offset");
    }
    for (uint32_t d = 0; d < 3; d++) {
        const uint32_t most = kernel->info.groups_max[d] ? kernel->info.groups_max[d] : UINT32_MAX;
        const uint32_t groups = launch->groups[d] ? launch->groups[d] : 1; /* recordings prepare one group for none */
        if (groups > most || launch->offset[d] > most - groups) {
            return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_LAUNCH_WHOLE,
                                        "offset[%u] is %u, and with %u groups leaves the kernel's %u on this device", d,
                                        launch->offset[d], groups, most);
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status take_buffer(const gpuhal_kernel *kernel, gpuhal_launch *launch, bool recorded)
{
    const gpuhal_buffer *buffer = launch->groups_buffer;
    const uint64_t needed = 3 * sizeof(uint32_t);
    if (!buffer) {
        return launch->groups_offset == 0
                   ? GPUHAL_OK
                   : refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, "groups_offset is given without a groups_buffer");
    }
    if (!is_zero(launch->groups) || !is_zero(launch->threads) || !is_zero(launch->offset)) {
        return refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT,
                      "beside a groups_buffer, groups, threads and offset must be 0");
    }
    if (!(kernel->info.flags & GPUHAL_KERNEL_INDIRECT)) {
        return lacks(kernel, "its groups in a buffer");
    }
    const gpuhal_status status = gpuhal_launch_check_used(kernel, buffer, GPUHAL_LAUNCH_GROUPS, recorded);
    if (status) {
        return status;
    }
    if (buffer->whole->memory.flags & GPUHAL_MEMORY_NO_INDIRECT) {
        return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_LAUNCH_GROUPS,
                                    "the device cannot read groups from this memory");
    }
    if (buffer->bytes < needed || launch->groups_offset > buffer->bytes - needed) {
        return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_OUT_OF_RANGE, GPUHAL_LAUNCH_GROUPS,
                                    "12 bytes from offset %" PRIu64 " on leave the buffer, which has %" PRIu64 " bytes",
                                    launch->groups_offset, buffer->bytes);
    }
    if ((buffer->begin + launch->groups_offset) % sizeof(uint32_t) != 0) {
        return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_LAUNCH_GROUPS,
                                    "offset %" PRIu64 " is not a multiple of 4", launch->groups_offset);
    }
    for (uint32_t d = 0; d < 3; d++) {
        launch->groups[d] = 1;
    }
    return GPUHAL_OK;
}

/* Plugins get 64 bits, but most APIs count the threads of a dimension, with those before the offset, in 32 bits.
 * groups_max is the limit for the kernel's own size. */
static gpuhal_status check_width(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    for (uint32_t d = 0; d < 3; d++) {
        const uint64_t size = launch->group_size[d];
        const uint64_t threads = launch->threads[d] ? launch->threads[d] : launch->groups[d] * size;
        if (launch->offset[d] * size + threads > UINT32_MAX && size > kernel->info.group_size[d]) {
            return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_LAUNCH_WHOLE,
                                        "%u groups of %u threads in dimension %u: with another group size than the "
                                        "kernel's there can be %u threads, with those before the offset",
                                        launch->groups[d], launch->group_size[d], d, UINT32_MAX);
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_launch_check_grid(const gpuhal_kernel *kernel, const gpuhal_launch *launch)
{
    const gpuhal_status status = check_offset(kernel, launch);
    return status ? status : check_width(kernel, launch);
}

gpuhal_status gpuhal_launch_take_form(const gpuhal_kernel *kernel, gpuhal_launch *launch, bool recorded)
{
    if (launch->reserved2) {
        return gpuhal_launch_refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_LAUNCH_WHOLE,
                                    "reserved2 is %u, and must be 0", launch->reserved2);
    }
    gpuhal_status status = take_group_size(kernel, launch);
    status = status ? status : take_threads(kernel, launch);
    return status ? status : take_buffer(kernel, launch, recorded);
}
