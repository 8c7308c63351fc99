/** gpuhal/program.h: loads code on a device, and launches it in order with all other work of a queue.
 *
 *  A program consists of alternatives (code.h): the same functions in each format that the application can compile to.
 *  The library loads the first usable alternative in the device's order of formats, exact machine code before portable
 *  code (gpuhal_device_formats()). A kernel fixes a function's parameters, group size and constants, so that no launch
 *  compiles. There are two exceptions: PoCL and lavapipe compile a kernel at its first launch, and again for each
 *  other group size; PoCL also for the first wide grid. Launches may have another group size
 *  (gpuhal_kernel_prepare()), and other forms (gpuhal_launch). docs/programs.md shows the same kernel on every backend.
 *
 *  Programs and kernels have a reference count, like buffers. A kernel keeps its program, an enqueued launch keeps its
 *  kernel and its buffers, and a program keeps its device open and its gpuhal object alive.
 *
 *  Code is trusted. Before code is passed to a driver, the library checks that a binary is complete and has the stated
 *  format, and that the instructions, operands, ids and blocks of SPIR-V for Vulkan conform to its specification. The
 *  compiler is responsible for types, control flow and everything else that a validator (spirv-val) checks: a driver
 *  may terminate the process if code violates these rules.
 *
 *  Compiled code is cached between runs, next to the registry; GPUHAL_PROGRAM_CACHE (docs/environment.md) moves, limits
 *  or disables it. Code that may read other files (`#include`) is not cached. Creating a program or kernel reads the
 *  environment. If another thread changes the environment at the same time (setenv(), putenv()), the behaviour is
 *  undefined, as with getenv().
 *
 *      static const char text[] = "kernel void add(global float *x, float y) { x[get_global_id(0)] += y; }";
 *      gpuhal_code code = {.size = sizeof code, .format = "opencl-c", .code = text, .bytes = sizeof text - 1,
 *                          .options = "-cl-kernel-arg-info"};    // the driver lists the parameters
 *      gpuhal_program_desc program_desc = {.size = sizeof program_desc, .codes = &code, .code_count = 1};
 *      gpuhal_kernel_desc kernel_desc = {.size = sizeof kernel_desc, .name = "add", .group_size = {64, 1, 1}};
 *      gpuhal_program *program = NULL;
 *      gpuhal_kernel *kernel = NULL;
 *      gpuhal_status status = gpuhal_program_create(device, &program_desc, &program);
 *      status = status ? status : gpuhal_kernel_create(program, &kernel_desc, &kernel);
 *      float y = 1;
 *      gpuhal_argument arguments[] = {{.buffer = buffer}, {.value = &y, .bytes = sizeof y}};
 *      gpuhal_launch launch = {.size = sizeof launch, .arguments = arguments, .argument_count = 2,
 *                              .groups = {16, 1, 1}};
 *      status = status ? status : gpuhal_kernel_launch(queue, kernel, &launch);
 *      gpuhal_kernel_release(kernel);                   // the queue keeps it until the launch has ended
 *      gpuhal_program_release(program);
 */
#ifndef GPUHAL_PROGRAM_H
#define GPUHAL_PROGRAM_H

#include <gpuhal/buffer.h>
#include <gpuhal/code.h>
#include <gpuhal/device.h>
#include <gpuhal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Code that was loaded on a device. */
typedef struct gpuhal_program gpuhal_program;

/** One function of a program, ready to be launched. */
typedef struct gpuhal_kernel gpuhal_kernel;

/** Receives the log of a build: a line for each alternative that was considered, with the reason if it was skipped,
 *  and the full output of the driver's compiler. Called once, during the call that builds, on its thread. @p text is
 *  valid until the callback returns. */
typedef void gpuhal_build_log_fn(void *user, const char *text);

/** The program to load. */
typedef struct gpuhal_program_desc {
    uint32_t size; /**< sizeof(gpuhal_program_desc). */
    uint32_t flags; /**< GPUHAL_PROGRAM_ bits. */
    const gpuhal_code *codes; /**< The alternatives, all with the same size. Only read during the call. */
    uint32_t code_count;
    uint32_t reserved; /**< 0. */
    gpuhal_build_log_fn *log; /**< Called even after a successful build; NULL for no log. */
    void *user;
} gpuhal_program_desc;

/** Flags of programs. */
enum { GPUHAL_PROGRAM_NO_CACHE = 1u /**< Neither look up the program in the cache nor store it there. */ };

/** Returns the code formats that the device accepts, best first, separated by blanks, such as "cubin fatbin ptx". Reads
 *  facts only, and loads no driver.
 *  @return the formats; "" for a device without programs, or for NULL
 *  Owner: the device. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_device_formats(const gpuhal_device *device);

/** Loads a program, and opens the device if needed. Alternatives in the same format are tried in the caller's order. An
 *  alternative that the device or its driver does not accept, or that does not compile, is skipped.
 *  @return GPUHAL_OK; NOT_SUPPORTED when the device accepts none of the formats; INCOMPATIBLE when all alternatives are
 *  for other targets; INVALID_ARGUMENT for code that is found to be damaged (above) or does not compile, with the
 *  compiler's output in vendor_text, or for an invalid description; DRIVER when the compiler fails for a reason other
 *  than the code; HOST_MEMORY; OUT_OF_MEMORY; FORKED; the errors of gpuhal_device_open(). The detail names each
 *  alternative and why it was skipped
 *  Owner: caller, gpuhal_program_release(). Threads: any. Blocks: yes, it may compile. */
GPUHAL_API gpuhal_status gpuhal_program_create(gpuhal_device *device, const gpuhal_program_desc *desc,
                                               gpuhal_program **out_program);

/** Adds a reference.
 *  @return @p program
 *  Owner: caller, one more gpuhal_program_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_program *gpuhal_program_retain(gpuhal_program *program);

/** Drops a reference; the last one unloads the program. NULL does nothing.
 *  Owner: the caller's reference ends. Threads: any. Blocks: with the last reference. */
GPUHAL_API void gpuhal_program_release(gpuhal_program *program);

/** Returns which alternative was loaded, counted from 0 in the caller's order.
 *  @return the number; UINT32_MAX for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_program_choice(const gpuhal_program *program);

/** Returns whether all code of the program, and of its kernels so far, came from the cache, so that nothing was
 *  compiled. This does not include the first launch, when PoCL and lavapipe always compile.
 *  @return 1 or 0; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API int32_t gpuhal_program_is_cached(const gpuhal_program *program);

/** Prepares a function of the program for launching. Afterwards no launch compiles, except the first launch with PoCL
 *  and lavapipe (docs/programs.md, "The first launch").
 *  @return GPUHAL_OK; NOT_FOUND when the program has no such function; INVALID_ARGUMENT for parameters that the
 *  function does not have, a group size that is missing or contradicts the code, or an invalid description; TOO_LARGE
 *  when a group, its memory, the values, the buffers or their descriptor sets exceed the device's limits; NOT_SUPPORTED
 *  for images and samplers, arrays without a length, arrays of uniform blocks, sets from 32 and bindings from 128 on
 *  (Vulkan), parameters that the driver does not report, or a subgroup size or local memory that the
 *  device does not offer; HOST_MEMORY; OUT_OF_MEMORY; DEVICE_LOST; FORKED; DRIVER
 *  Owner: caller, gpuhal_kernel_release(). Threads: any. Blocks: yes, it may compile. */
GPUHAL_API gpuhal_status gpuhal_kernel_create(gpuhal_program *program, const gpuhal_kernel_desc *desc,
                                              gpuhal_kernel **out_kernel);

/** Adds a reference.
 *  @return @p kernel
 *  Owner: caller, one more gpuhal_kernel_release(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_kernel *gpuhal_kernel_retain(gpuhal_kernel *kernel);

/** Drops a reference. NULL does nothing.
 *  Owner: the caller's reference ends. Threads: any. Blocks: with the last reference. */
GPUHAL_API void gpuhal_kernel_release(gpuhal_kernel *kernel);

/** Describes the kernel: its parameters and its limits. Set the size of @p out_info first.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, also for a size of 0
 *  Owner: the kernel owns the parameters. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_kernel_get_info(const gpuhal_kernel *kernel, gpuhal_kernel_info *out_info);

/** Prepares another group size for launches (gpuhal_launch.group_size). If a size has to be compiled
 *  (GPUHAL_KERNEL_PREPARED_SIZES), the call compiles it, and launches with a size that was not prepared are rejected.
 *  Otherwise the call only checks the size. If all members are 0, the call returns INVALID_ARGUMENT; if only some are,
 *  these count as 1. A size stays prepared as long as the kernel exists.
 *  @return GPUHAL_OK; NOT_SUPPORTED when the kernel has no GPUHAL_KERNEL_GROUP_SIZE, or the code fixes a dimension,
 *  unless it is the kernel's own size; TOO_LARGE when the group, or its memory, exceeds the limits of the kernel or the
 *  device; INVALID_ARGUMENT; HOST_MEMORY; OUT_OF_MEMORY; DEVICE_LOST; FORKED; DRIVER
 *  Owner: nothing. Threads: any. Blocks: yes, it may compile. */
GPUHAL_API gpuhal_status gpuhal_kernel_prepare(gpuhal_kernel *kernel, const uint32_t group_size[3]);

/** One argument: a range of a buffer, a value, or local memory, depending on the parameter. */
typedef struct gpuhal_argument {
    /** A buffer of the kernel's device. NULL only for a parameter with GPUHAL_PARAMETER_OPTIONAL, with an offset and a
     *  size of 0. */
    gpuhal_buffer *buffer;
    uint64_t offset;       /**< Offset in the buffer, a multiple of GPUHAL_FACT_BINDING_ALIGNMENT_BYTES. */
    /** Size of the range (0 for all bytes up to the buffer's end), of the value, or of local memory. */
    uint64_t bytes;
    const void *value;     /**< Copied during the call: a number, a vector, or a whole structure (code.h). */
} gpuhal_argument;

/** One launch. */
typedef struct gpuhal_launch {
    uint32_t size; /**< sizeof(gpuhal_launch). */
    uint32_t argument_count;
    const gpuhal_argument *arguments; /**< One for each parameter, in their order. */
    /** Number of groups in each dimension. If any of them is 0, nothing is launched, except with `threads` or
     *  `groups_buffer`. */
    uint32_t groups[3];
    /** Bytes of local memory in addition to the arguments' local memory. Must be 0 unless the kernel has
     *  GPUHAL_KERNEL_ADDS_LOCAL (with CUDA, HIP and CPUs). */
    uint32_t local_bytes;
    /** Buffers that the kernel accesses through addresses in values or in memory. The launch keeps them, and they
     *  count as read and written. NOT_SUPPORTED for a buffer whose gpuhal_buffer_address() is 0. */
    gpuhal_buffer *const *uses;
    uint32_t uses_count;
    uint32_t reserved; /**< 0. */

    /* The members below are forms that need a flag of gpuhal_kernel_info. */

    /** Threads in a group, for each dimension. If all are 0, the kernel's size is used. If only some are 0, these count
     *  as 1. GPUHAL_KERNEL_GROUP_SIZE, except for the kernel's own size. */
    uint32_t group_size[3];
    /** Number of threads in each dimension, in place of `groups`, which must then be 0. As with groups, if only some
     *  are 0, nothing is launched. The last group of a dimension has fewer threads if the number is not a multiple of
     *  the group size; only this needs a flag, GPUHAL_KERNEL_THREADS. */
    uint32_t threads[3];
    /** Number of the first group: the first thread's index is offset times group size. GPUHAL_KERNEL_OFFSET. */
    uint32_t offset[3];
    uint32_t reserved2;     /**< 0. */
    uint64_t groups_offset; /**< Offset in `groups_buffer`, a multiple of 4. */
    /** A buffer with three uint32_t, the numbers of groups, which the device reads when it begins the launch. `groups`,
     *  `threads` and `offset` must then be 0. The library cannot check the numbers: they must not exceed the groups_max
     *  of gpuhal_kernel_info. GPUHAL_KERNEL_INDIRECT. */
    gpuhal_buffer *groups_buffer;
} gpuhal_launch;

/** Enqueues a launch, in order with all other work of the queue. All arguments are checked first. With a NULL queue the
 *  call returns when the kernel has ended, however long that takes, and is not ordered with any queue.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for arguments that differ from the parameters in number, kind or size, a buffer
 *  or queue of another device, memory imported read-only that the kernel writes, an offset that is not aligned, or more
 *  groups or local memory than the kernel can have, or a group size that was not prepared; OUT_OF_RANGE for a range
 *  outside its buffer; TOO_LARGE for a range above GPUHAL_FACT_BINDING_MAX_BYTES, or a group above the limits; BUSY for
 *  a mapped buffer, or during native access to the queue; NOT_SUPPORTED for memory that kernels cannot use (kinds
 *  UPLOAD and READBACK with OpenCL, a caller's VkBuffer without storage usage) or cannot access by its address, and for
 *  a form of launch that the kernel does not have; HOST_MEMORY; the cause of the queue's failure; DEVICE_LOST; FORKED;
 *  DRIVER. If an argument is wrong, the detail names the kernel and the argument
 *  Owner: the queue keeps kernel and buffers until the launch has ended. Threads: any. Blocks: with a NULL queue. */
GPUHAL_API gpuhal_status gpuhal_kernel_launch(gpuhal_queue *queue, gpuhal_kernel *kernel, const gpuhal_launch *launch);

#ifdef __cplusplus
}
#endif
#endif
