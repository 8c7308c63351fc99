/* program/launch.h: a launch as the files of this folder see it. */
#ifndef GPUHAL_PROGRAM_LAUNCH_H
#define GPUHAL_PROGRAM_LAUNCH_H

#include "memory/buffer.h"
#include "program/program.h"
#include "queue/queue.h"

/* A launch with its kernel and buffers. `uses` must be first, because the queue has a reference to it. */
typedef struct gpuhal_launch_record {
    gpuhal_uses uses;
    gpuhal_plugin_launch launch;
    bool uses_parts; /* a buffer is a part of a pool */
} gpuhal_launch_record;

/* ---- launch_refusal.c: sets the error detail */

/* Special argument numbers: the launch itself, its groups_buffer, and, combined with an index, an entry of `uses`. */
#define GPUHAL_LAUNCH_WHOLE  UINT32_MAX
#define GPUHAL_LAUNCH_GROUPS (UINT32_MAX - 1)
#define GPUHAL_LAUNCH_USES   (UINT32_C(1) << 31)

__attribute__((noinline, format(printf, 4, 5))) gpuhal_status
gpuhal_launch_refuse(const gpuhal_kernel *kernel, gpuhal_status status, uint32_t argument, const char *format, ...);
/* Refuses a buffer that kernels cannot use now. */
gpuhal_status gpuhal_launch_refuse_buffer(const gpuhal_kernel *kernel, const gpuhal_buffer *buffer, uint32_t argument);
/* Checks that the queue's device is the kernel's. */
gpuhal_status gpuhal_launch_check_device(const gpuhal_kernel *kernel, const gpuhal_device *device);

/* Checks that kernels can use the buffer now, or later if `recorded`. */
static inline gpuhal_status gpuhal_launch_check_used(const gpuhal_kernel *kernel, const gpuhal_buffer *buffer,
                                                     uint32_t argument, bool recorded)
{
    const bool usable = buffer->device == kernel->program->device &&
                        !(buffer->whole->memory.flags & GPUHAL_MEMORY_NO_KERNELS) &&
                        (recorded || !gpuhal_buffer_is_mapped(buffer->whole));
    return __builtin_expect(usable, 1) ? GPUHAL_OK : gpuhal_launch_refuse_buffer(kernel, buffer, argument);
}

/* ---- launch_check.c: sets the error detail */

/* Reads the members that this library version knows, and checks the launch. The result has the real group size and
 * number of groups; this number is 1 if the device reads it from a buffer. A launch with `recorded` runs later, so its
 * buffers may be mapped now. */
gpuhal_status gpuhal_launch_take(const gpuhal_kernel *kernel, const gpuhal_launch *given, bool recorded,
                                 gpuhal_launch *out);
/* Checks one argument of a recorded launch. Local memory is not checked against the device's limit. */
gpuhal_status gpuhal_launch_check_argument(const gpuhal_kernel *kernel, const gpuhal_argument *argument,
                                           uint32_t index);
/* Checks other groups of a launch that was taken. */
gpuhal_status gpuhal_launch_check_groups(const gpuhal_kernel *kernel, const gpuhal_launch *launch,
                                         const uint32_t groups[3]);
/* ---- launch_form.c */

gpuhal_status gpuhal_launch_take_form(const gpuhal_kernel *kernel, gpuhal_launch *launch, bool recorded);
/* Checks the offset and the number of threads. */
gpuhal_status gpuhal_launch_check_grid(const gpuhal_kernel *kernel, const gpuhal_launch *launch);

/* ---- launch.c */

/* `op->uses` is a gpuhal_launch_record. */
extern const gpuhal_op_kind gpuhal_launch_kind;
/* Fills in a record and its lists, which must be large enough. The record refers to the lists and to the launch's
 * values. */
void gpuhal_launch_fill_in(gpuhal_launch_record *own, gpuhal_kernel *kernel, const gpuhal_launch *launch,
                           struct gpuhal_use *buffers, gpuhal_plugin_argument *arguments,
                           const gpuhal_memory **memories);
/* Sets the groups and the threads, after the group size. If `threads` are 0, the groups are full. */
void gpuhal_launch_set_groups(gpuhal_plugin_launch *launch, const uint32_t groups[3], const uint32_t threads[3]);
/* Notifies pools of the queue, because a pool must know which queues use its parts. */
gpuhal_status gpuhal_launch_name_to_pools(gpuhal_queue *queue, const gpuhal_kernel *kernel,
                                          const gpuhal_launch *launch);
/* Records that the driver has launched the kernel with this grid. */
void gpuhal_launch_note(gpuhal_kernel *kernel, const gpuhal_plugin_launch *launch);

/* Returns the room of a value or a list in a block of several: a multiple of an alignment that suits any type. */
static inline size_t gpuhal_launch_padded(uint64_t bytes)
{
    return ((size_t)bytes + 15) / 16 * 16;
}

/* Returns the bit length of the number of threads in the grid's longest dimension. */
static inline uint32_t gpuhal_launch_width_bits(const gpuhal_plugin_launch *launch)
{
    const uint64_t width = launch->threads[0] | launch->threads[1] | launch->threads[2];
    return width ? 64u - (uint32_t)__builtin_clzll(width) : 0;
}

static inline bool gpuhal_launch_has_offset(const gpuhal_plugin_launch *launch)
{
    return (launch->offset[0] | launch->offset[1] | launch->offset[2]) != 0;
}

/* Returns whether the driver may compile the kernel for this launch. */
static inline bool gpuhal_launch_is_first(const gpuhal_kernel *kernel, const gpuhal_plugin_launch *launch)
{
    const gpuhal_group_size *size = gpuhal_group_size_find(kernel, launch->group_size);
    return !size ||
           gpuhal_launch_width_bits(launch) >
               atomic_load_explicit(&size->launched_bits[gpuhal_launch_has_offset(launch)], memory_order_relaxed);
}

#endif
