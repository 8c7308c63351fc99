/* kernel.h: the kernel of the command line on an opened device. Each step fails the check when the plugin refuses it.
 *
 * All buffers of a launch lie in one memory with gaps between them, which no launch may touch. What is right is what
 * the kernel makes of the same bytes when it is launched alone and without a queue. So it must come to one result
 * however its threads are scheduled, and change a buffer.
 */
#ifndef GPUHAL_CHECK_KERNEL_H
#define GPUHAL_CHECK_KERNEL_H

#include "area.h"
#include "given.h"

typedef struct gpuhal_given_kernel {
    const gpuhal_context *context;
    const gpuhal_ops *ops;
    gpuhal_plugin_device *device;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *kernel;
    gpuhal_kernel_info info;
    gpuhal_given_parameter parameters[GIVEN_MAX];
    uint32_t parameter_count;
    uint64_t offsets[GIVEN_MAX]; /* of the buffers in their memory, which has */
    uint64_t bytes;
} gpuhal_given_kernel;

/* Whether there is a program, and the device takes its format. */
bool gpuhal_given_fits(const gpuhal_context *context);
/* The same; skips the check where that is not so. */
bool gpuhal_given_offered(const gpuhal_context *context);
gpuhal_code gpuhal_given_code(const gpuhal_context *context);
/* What kernel_create gets for the kernel; @p room takes its parameters. */
gpuhal_kernel_desc gpuhal_given_desc(const gpuhal_context *context, gpuhal_parameter room[GIVEN_MAX]);
/* The slot kernel_create, as the core calls it. */
gpuhal_status gpuhal_given_create(const gpuhal_given_kernel *own, const gpuhal_kernel_desc *desc,
                                  gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel);

/* Loads the program and makes the kernel. */
void gpuhal_given_init(gpuhal_given_kernel *own, const gpuhal_context *context);
void gpuhal_given_finish(gpuhal_given_kernel *own);

/* The arguments over one memory with @p bytes of `own`. */
void gpuhal_given_arguments(const gpuhal_given_kernel *own, const gpuhal_memory *memory,
                            gpuhal_plugin_argument out_arguments[GIVEN_MAX]);
/* The slot launch. Values are overwritten once it returns: a queue has to have copied them. */
gpuhal_status gpuhal_given_launch(const gpuhal_given_kernel *own, gpuhal_plugin_queue *queue,
                                  const gpuhal_plugin_argument arguments[GIVEN_MAX]);
/* Launches without a queue on the whole memory. */
void gpuhal_given_run(const gpuhal_given_kernel *own, const gpuhal_memory *memory);
/* An area for the buffers, with the pattern of @p seed. */
void gpuhal_given_area(const gpuhal_given_kernel *own, gpuhal_area *area, uint64_t seed);
/* What is right after a launch on the pattern of @p seed; the caller frees it. */
unsigned char *gpuhal_given_result(const gpuhal_given_kernel *own, uint64_t seed);
/* The area should hold this now. */
void gpuhal_given_expect(gpuhal_area *area, const unsigned char *result, const char *what);

#endif
