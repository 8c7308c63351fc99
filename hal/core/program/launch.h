/* program/launch.h: a launch as the files of this folder see it. */
#ifndef GPUHAL_PROGRAM_LAUNCH_H
#define GPUHAL_PROGRAM_LAUNCH_H

#include "program/program.h"
#include "queue/queue.h"

/* A launch with its kernel and buffers. `uses` must be first, because the queue has a reference to it. */
typedef struct gpuhal_launch_record {
    gpuhal_uses uses;
    gpuhal_plugin_launch launch;
    bool uses_parts; /* a buffer is a part of a pool */
} gpuhal_launch_record;

/* ---- launch_check.c: sets the error detail */

/* Reads the members that this library version knows, and checks the launch. A launch with `recorded` runs later, so its
 * buffers may be mapped now. */
gpuhal_status gpuhal_launch_take(const gpuhal_kernel *kernel, const gpuhal_launch *given, bool recorded,
                                 gpuhal_launch *out);
/* Checks one argument of a recorded launch. Local memory is not checked against the device's limit. */
gpuhal_status gpuhal_launch_check_argument(const gpuhal_kernel *kernel, const gpuhal_argument *argument,
                                           uint32_t index);
gpuhal_status gpuhal_launch_check_groups(const gpuhal_kernel *kernel, const uint32_t groups[3]);
/* Checks that the queue's device is the kernel's. */
gpuhal_status gpuhal_launch_check_device(const gpuhal_kernel *kernel, const gpuhal_device *device);

/* ---- launch.c */

/* `op->uses` is a gpuhal_launch_record. */
extern const gpuhal_op_kind gpuhal_launch_kind;
/* Fills in a record and its lists, which must be large enough. The record refers to the lists and to the launch's
 * values. */
void gpuhal_launch_fill_in(gpuhal_launch_record *own, gpuhal_kernel *kernel, const gpuhal_launch *launch,
                           struct gpuhal_use *buffers, gpuhal_plugin_argument *arguments,
                           const gpuhal_memory **memories);
/* Notifies pools of the queue, because a pool must know which queues use its parts. */
gpuhal_status gpuhal_launch_name_to_pools(gpuhal_queue *queue, const gpuhal_kernel *kernel,
                                          const gpuhal_launch *launch);
/* Records that the driver has launched the kernel with this grid. */
void gpuhal_launch_note(gpuhal_kernel *kernel, const uint32_t *groups);

/* Returns the room of a value or a list in a block of several: a multiple of an alignment that suits any type. */
static inline size_t gpuhal_launch_padded(uint64_t bytes)
{
    return ((size_t)bytes + 15) / 16 * 16;
}

/* Returns the bit length of the number of threads in the grid's longest dimension. */
static inline uint32_t gpuhal_launch_width_bits(const gpuhal_kernel *kernel, const uint32_t *groups)
{
    uint64_t width = 0;
    for (uint32_t d = 0; d < 3; d++) {
        width |= (uint64_t)groups[d] * kernel->info.group_size[d];
    }
    return width ? 64u - (uint32_t)__builtin_clzll(width) : 0;
}

/* Returns whether the driver may compile the kernel for this launch. */
static inline bool gpuhal_launch_is_first(const gpuhal_kernel *kernel, const uint32_t *groups)
{
    return gpuhal_launch_width_bits(kernel, groups) >
           atomic_load_explicit(&kernel->launched_bits, memory_order_relaxed);
}

#endif
