/* program/launch_refusal.c: the messages of launches that are refused, and the check of their queue. */
#include "program/launch.h"

#include "base/error.h"
#include "memory/buffer.h"

#include <stdarg.h>
#include <stdio.h>

gpuhal_status gpuhal_launch_refuse(const gpuhal_kernel *kernel, gpuhal_status status, uint32_t argument,
                                   const char *format, ...)
{
    char where[32] = "", why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    if (argument == GPUHAL_LAUNCH_GROUPS) {
        snprintf(where, sizeof where, ", groups_buffer");
    } else if (argument != GPUHAL_LAUNCH_WHOLE) {
        snprintf(where, sizeof where, argument < GPUHAL_LAUNCH_USES ? ", argument %u" : ", uses[%u]",
                 argument & ~GPUHAL_LAUNCH_USES);
    }
    const gpuhal_device *device = kernel->program->device;
    gpuhal_error_set(status, "%s: kernel %s%s: %s", device->id, kernel->name, where, why);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

static gpuhal_status refuse_foreign(const gpuhal_kernel *kernel, const gpuhal_device *device, uint32_t argument)
{
    const char *what = argument == GPUHAL_LAUNCH_WHOLE ? "queue" : "buffer";
    return device->gpu == kernel->program->device->gpu
               ? gpuhal_launch_refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, argument, "the %s is of %s", what,
                                      device->id)
           : gpuhal_is_inherited(device->gpu) ? gpuhal_error_forked()
                                              : gpuhal_launch_refuse(kernel, GPUHAL_ERROR_INVALID_ARGUMENT, argument,
                                                                     "the %s is of another gpuhal object", what);
}

gpuhal_status gpuhal_launch_check_device(const gpuhal_kernel *kernel, const gpuhal_device *device)
{
    return __builtin_expect(device == kernel->program->device, 1) ? GPUHAL_OK
                                                                  : refuse_foreign(kernel, device, GPUHAL_LAUNCH_WHOLE);
}

gpuhal_status gpuhal_launch_refuse_buffer(const gpuhal_kernel *kernel, const gpuhal_buffer *buffer, uint32_t argument)
{
    if (buffer->device != kernel->program->device) {
        return refuse_foreign(kernel, buffer->device, argument);
    }
    return buffer->whole->memory.flags & GPUHAL_MEMORY_NO_KERNELS
               ? gpuhal_launch_refuse(kernel, GPUHAL_ERROR_NOT_SUPPORTED, argument,
                                      "kernels cannot use this memory: pass memory of a kind that the fact "
                                      "kernel_kinds names")
               : gpuhal_launch_refuse(kernel, GPUHAL_ERROR_BUSY, argument, "the buffer is mapped: unmap it first");
}
