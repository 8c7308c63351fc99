/* launch.h: the kernel that workers.c and pipeline.c run, y = a x + y. */
#ifndef EXAMPLE_LAUNCH_H
#define EXAMPLE_LAUNCH_H

#include <gpuhal/gpuhal.h>

typedef struct saxpy_kernel {
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    uint32_t group_size; /* as it is on this device */
} saxpy_kernel;

/* Loads the form of the kernel that the device takes. On failure, too, the caller calls saxpy_finish(). */
gpuhal_status saxpy_create(gpuhal_device *device, saxpy_kernel *saxpy);
void saxpy_finish(saxpy_kernel *saxpy);

/* Enqueues y = a x + y for n floats. */
gpuhal_status saxpy_launch(gpuhal_queue *queue, const saxpy_kernel *saxpy, gpuhal_buffer *y, gpuhal_buffer *x, float a,
                           uint32_t n);

#endif
