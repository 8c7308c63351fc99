/** gpuhal/code.h: programs and kernels as applications (program.h) and plugins (plugin.h) see them.
 *
 *  A program is code for a device; a kernel is one function of it, which many threads of the device run. A launch runs
 *  `groups` groups of `group_size` threads each; both have three dimensions, and both are counts, never products.
 *
 *  Formats of code, and how each passes the parameters of a kernel, in the order of its description:
 *
 *  - `cubin`, `fatbin`, `ptx` (CUDA), `hsaco`, `hip-fatbin` (HIP): each buffer and value is a parameter, a buffer by
 *    its address; local memory is added to the shared memory of the launch.
 *  - `spirv` with entry points GLCompute (Vulkan): the k-th buffer is binding k of set 0, and buffers of the
 *    description beyond the last binding of the code are not used (compilers leave out bindings that a variant does not
 *    need); values are push constants, in order at their natural alignment, or the members of a uniform block at the
 *    binding after the last buffer; there are no parameters for local memory, which the code declares.
 *  - `spirv` with entry points Kernel (OpenCL with IL), `opencl-c`: each parameter is an argument.
 *  - `host-library`, `host-function` (processors): pointers to the buffer's bytes, to a copy of the value, and to
 *    memory for this group only.
 *
 *  Values with Vulkan: each lies at the next multiple of the largest power of two that divides its size, 16 at most,
 *  from 0 on, in push constants and in uniform blocks; if no member of the block begins there the kernel is refused. If
 *  the description leaves out the parameters (NULL), the kernel has one value for each member, at the member's offset.
 *
 *  A value may be a whole structure, laid out as the code has it: one parameter, and one argument of a launch, for all
 *  numbers that a kernel takes, as a structure of OpenCL C, CUDA and HIP, or all of the push constants or the uniform
 *  block of Vulkan code.
 */
#ifndef GPUHAL_CODE_H
#define GPUHAL_CODE_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One form of a program that a device can load. */
typedef struct gpuhal_code {
    uint32_t size;       /**< sizeof(gpuhal_code). */
    uint32_t flags;      /**< 0. */
    const char *format;  /**< `spirv`, …: of the table above, or a vendor's own. */
    /** The target that it was compiled for, as in GPUHAL_FACT_TARGET_ARCHITECTURE (`sm_90`, `gfx942`); NULL: any device
     *  that has the format. With OpenCL and Vulkan, a device without that fact takes only code without a target. */
    const char *target;
    /** The code. Format `host-library`: a shared object, or with 0 bytes its path, ended by a zero. Format
     *  `host-function`: an array of gpuhal_host_function. */
    const void *code;
    uint64_t bytes;
    const char *options; /**< Of the driver's compiler (`-DTILE=16`), for formats that are compiled; NULL: none. */
} gpuhal_code;

/** One group of a launch on the processor. */
typedef struct gpuhal_host_group {
    uint32_t size;
    uint32_t group[3];      /**< Which one: from 0 up to `groups`. */
    uint32_t groups[3];
    uint32_t group_size[3]; /**< From the kernel's description; the function does the work of all these threads. */
    /** gpuhal_launch.local_bytes of memory, a multiple of 64, that no other group uses at the time; NULL without. */
    void *local;
} gpuhal_host_group;

/** A kernel for the processor: does the work of one group. It is called by several threads at once. It must not call
 *  functions of this library, throw, or longjmp out. A group that never ends cannot be stopped, and one that reads or
 *  writes outside of its arguments does so in the application's process.
 *  @p arguments in the order of the parameters: the address of a buffer's bytes, of a copy of a value, or of local
 *  memory. */
typedef void gpuhal_host_kernel_fn(void *const *arguments, const gpuhal_host_group *group);

/** One kernel of format `host-function`; the array ends with a NULL name. A `host-library` exports functions of this
 *  type by their kernels' names. Array, names and functions must stay valid as long as the program. */
typedef struct gpuhal_host_function {
    const char *name;
    gpuhal_host_kernel_fn *run;
} gpuhal_host_function;

/** The kind of a parameter of a kernel. */
typedef uint32_t gpuhal_parameter_kind;
enum {
    GPUHAL_PARAMETER_BUFFER = 1, /**< Memory of the device. */
    GPUHAL_PARAMETER_VALUE = 2,  /**< Bytes that are copied when the launch is enqueued. */
    GPUHAL_PARAMETER_LOCAL = 3   /**< Memory that the threads of a group share during the launch. */
};

/** One parameter. */
typedef struct gpuhal_parameter {
    gpuhal_parameter_kind kind;
    uint32_t bytes;  /**< Of a value, which may be a structure; else 0. */
    /** Of a buffer: GPUHAL_ACCESS_READ, GPUHAL_ACCESS_WRITE, or both; 0 counts as both. A launch that only reads may
     *  overlap others that only read. Writing to a buffer that the description declares as read-only is a data race. */
    uint32_t access;
    uint32_t reserved;
} gpuhal_parameter;

/** A constant of the code that is fixed when the kernel is created: a specialization constant of SPIR-V. Code without
 *  such a constant ignores it. */
typedef struct gpuhal_constant {
    uint32_t id;
    uint32_t bytes;  /**< 4 or 8; 0 counts as 4. */
    uint64_t value;  /**< The bytes of the constant, in the low half if there are 4: bool, integer or float. */
} gpuhal_constant;

/** Which kernel, and all the information that an API needs before its launch. */
typedef struct gpuhal_kernel_desc {
    uint32_t size; /**< sizeof(gpuhal_kernel_desc). */
    uint32_t parameter_count;
    const char *name;
    /** In the order of the code. NULL: as the driver, or the code, lists them; NOT_SUPPORTED if neither does. A kernel
     *  without parameters has a count of 0 and any pointer but NULL. */
    const gpuhal_parameter *parameters;
    /** Threads in a group, by dimension. All 0: the size in the code; INVALID_ARGUMENT if the code has none. If only
     *  some dimensions are 0, these count as 1. */
    uint32_t group_size[3];
    /** Threads that run in step (warp, wavefront); 0: any. NOT_SUPPORTED for a size that this kernel cannot have on the
     *  device. */
    uint32_t subgroup_size;
    uint32_t constant_count;
    uint32_t reserved;
    const gpuhal_constant *constants;
} gpuhal_kernel_desc;

/** Flags of gpuhal_kernel_info. */
enum {
    GPUHAL_KERNEL_ADDS_LOCAL = 1u /**< A launch may have local memory beside that of its arguments. */
};

/** A kernel as it was created. Members that the driver does not report are 0. */
typedef struct gpuhal_kernel_info {
    uint32_t size;
    uint32_t parameter_count;
    const gpuhal_parameter *parameters; /**< As in the description, or reflected; valid as long as the kernel. */
    uint32_t group_size[3];
    uint32_t group_size_max;  /**< The most threads, in all, that a group of this kernel can have on this device. */
    uint32_t group_multiple;  /**< The threads of a group should be a multiple of this. */
    uint32_t subgroup_size;
    uint32_t groups_max[3];   /**< Of a launch. */
    uint32_t registers;       /**< Of one thread. */
    uint64_t local_bytes;     /**< Used by the code of the kernel itself, for each group. */
    uint64_t local_max_bytes; /**< Of a group in all, with the bytes that a launch adds. */
    uint64_t private_bytes;   /**< Of one thread, in memory (spilled registers, arrays). */
    uint32_t flags;           /**< GPUHAL_KERNEL_ bits. */
    uint32_t reserved;
} gpuhal_kernel_info;

#ifdef __cplusplus
}
#endif
#endif
