/* launch.h: the kernel that group_size.c, workers.c and pipeline.c run, y = a x + y. */
#ifndef EXAMPLE_LAUNCH_H
#define EXAMPLE_LAUNCH_H

#include <gpuhal/gpuhal.h>

typedef struct saxpy_kernel {
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    uint32_t group_size; /* on this device */
} saxpy_kernel;

/* Loads the kernel in a format that the device accepts. The caller must call saxpy_finish(), even if this function
 * fails. */
gpuhal_status saxpy_create(gpuhal_device *device, saxpy_kernel *saxpy);
void saxpy_finish(saxpy_kernel *saxpy);

/* Enqueues y = a x + y for n floats. */
gpuhal_status saxpy_launch(gpuhal_queue *queue, const saxpy_kernel *saxpy, gpuhal_buffer *y, gpuhal_buffer *x, float a,
                           uint32_t n);

#endif
