/* kernel.h: the command line's kernel on an opened device. Each step fails the check if the plugin refuses it,
 * unless the step returns a status.
 *
 * All buffers of a launch are in one memory, with gaps between them that no launch may change. The reference result is
 * the result of a single launch of the same kernel on the same bytes, without a queue. The kernel must therefore have
 * the same result for every schedule of its threads, and must change a buffer.
 */
#ifndef GPUHAL_CHECK_KERNEL_H
#define GPUHAL_CHECK_KERNEL_H

#include "area.h"
#include "given.h"

typedef struct gpuhal_given_kernel {
    const gpuhal_context *context;
    const gpuhal_slots *slots;
    gpuhal_plugin_device *device;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *kernel;
    gpuhal_kernel_info info;
    gpuhal_given_parameter parameters[GIVEN_MAX];
    uint32_t parameter_count;
    uint64_t offsets[GIVEN_MAX]; /* the buffers' offsets in their memory, whose size is `bytes` */
    uint64_t bytes;
} gpuhal_given_kernel;

/* Returns whether a program was given and the device accepts its format. */
bool gpuhal_given_fits(const gpuhal_context *context);
/* Like gpuhal_given_fits(), but skips the check if the result is false. */
bool gpuhal_given_offered(const gpuhal_context *context);
gpuhal_code gpuhal_given_code(const gpuhal_context *context);
/* Returns the kernel's description for kernel_create. @p room receives its parameters. */
gpuhal_kernel_desc gpuhal_given_desc(const gpuhal_context *context, gpuhal_parameter room[GIVEN_MAX]);
gpuhal_status gpuhal_given_create(const gpuhal_given_kernel *own, const gpuhal_kernel_desc *desc,
                                  gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel);

/* Loads the program and creates the kernel. */
void gpuhal_given_init(gpuhal_given_kernel *own, const gpuhal_context *context);
void gpuhal_given_finish(gpuhal_given_kernel *own);

/* Makes the arguments for buffers in @p memory, whose size is `own->bytes`. */
void gpuhal_given_arguments(const gpuhal_given_kernel *own, const gpuhal_memory *memory,
                            gpuhal_plugin_argument out_arguments[GIVEN_MAX]);
/* A launch with its arguments and their values. */
typedef struct gpuhal_packed_launch {
    gpuhal_plugin_launch launch;
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    _Alignas(16) unsigned char values[GIVEN_MAX][GIVEN_VALUE_BYTES];
} gpuhal_packed_launch;
void gpuhal_given_pack(const gpuhal_given_kernel *own, const gpuhal_plugin_argument arguments[GIVEN_MAX],
                       gpuhal_packed_launch *out_packed);
/* How a launch differs from the given one. In each array, zeros mean no difference. */
typedef struct gpuhal_launch_form {
    uint32_t groups[3], group_size[3], offset[3];
    uint32_t fewer[3]; /* so many threads fewer than groups times group size */
    const gpuhal_memory *indirect;
    uint64_t indirect_offset;
    bool without_optional; /* no buffer for each parameter that is optional */
} gpuhal_launch_form;
/* @p form may be NULL. */
void gpuhal_given_apply(gpuhal_packed_launch *packed, const gpuhal_given_kernel *own, const gpuhal_launch_form *form);
/* Calls the slot launch. The values are overwritten after it returns, so a queue must have copied them. */
gpuhal_status gpuhal_given_launch(const gpuhal_given_kernel *own, gpuhal_plugin_queue *queue,
                                  const gpuhal_plugin_argument arguments[GIVEN_MAX]);
gpuhal_status gpuhal_given_launch_as(const gpuhal_given_kernel *own, gpuhal_plugin_queue *queue,
                                     const gpuhal_plugin_argument arguments[GIVEN_MAX], const gpuhal_launch_form *form);
/* Launches without a queue; the buffers are in @p memory. */
void gpuhal_given_run(const gpuhal_given_kernel *own, const gpuhal_memory *memory);
/* Creates an area for the buffers, filled with the pattern of @p seed. */
void gpuhal_given_area(const gpuhal_given_kernel *own, gpuhal_area *area, uint64_t seed);
/* Returns the result of a launch on the pattern of @p seed; the caller frees it. Without a form it is the reference
 * result. */
unsigned char *gpuhal_given_result(const gpuhal_given_kernel *own, uint64_t seed);
unsigned char *gpuhal_given_result_as(const gpuhal_given_kernel *own, uint64_t seed, const gpuhal_launch_form *form);
void gpuhal_given_expect(gpuhal_area *area, const unsigned char *result, const char *what);

/* Returns whether launches of the kernel can have one of these forms (GPUHAL_KERNEL_ bits). */
bool gpuhal_given_has(const gpuhal_given_kernel *own, uint32_t flags);
/* Returns whether a launch may omit a buffer. */
bool gpuhal_given_has_optional(const gpuhal_given_kernel *own);
/* Launches with the form on the pattern of seed 1, without a queue and in one, and compares the bytes with this
 * result. */
void gpuhal_given_expect_form(const gpuhal_given_kernel *own, const gpuhal_launch_form *form,
                              const unsigned char *result, const char *what);

/* ---- other group sizes */

/* Finds a smaller group size; returns false if the kernel's own groups have one thread. */
bool gpuhal_given_smaller(const gpuhal_given_kernel *own, uint32_t out_size[3]);
/* Calls the slot kernel_prepare if launches with another group size need that. */
void gpuhal_given_prepare(const gpuhal_given_kernel *own, const uint32_t size[3]);
/* Creates a kernel of the same function with another group size. The caller destroys it before @p own. */
gpuhal_status gpuhal_given_resize(const gpuhal_given_kernel *own, const uint32_t size[3],
                                  gpuhal_given_kernel *out_kernel);
void gpuhal_given_destroy(const gpuhal_given_kernel *own);

#endif
