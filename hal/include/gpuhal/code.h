/** gpuhal/code.h: descriptions of programs and kernels that applications (program.h) and plugins (plugin.h) share.
 *
 *  A program is code for a device. A kernel is a function of a program, run by many threads of the device. A launch
 *  runs `groups` groups of `group_size` threads each; both are counts in each of three dimensions, never products.
 *
 *  Code formats pass the kernel's parameters, in the order of the kernel's description, as follows:
 *
 *  - `cubin`, `fatbin`, `ptx` (CUDA), `hsaco`, `hip-fatbin` (HIP): each buffer and value is a parameter, and a buffer
 *    is passed as its address; local memory is added to the launch's shared memory.
 *  - `spirv` with entry points GLCompute (Vulkan): buffers are in the order of set, binding and array element. So the
 *    k-th buffer is binding k if the code has one set, no arrays and no uniform blocks. Each element of an array is one
 *    buffer. A number below a set's last binding that the code does not use counts as one buffer, too (compilers omit
 *    bindings that a variant does not need), even if an array was there: a variant without an array that others have
 *    needs a description of its own. Buffers of the description beyond the last binding are not used; the code must
 *    then have no uniform block and no set but set 0. Values fill the uniform blocks in the order of set and
 *    binding, then the push constants. Local memory is not a parameter; the code declares it. Images and samplers are
 *    not supported.
 *  - `spirv` with entry points Kernel (OpenCL with IL), `opencl-c`: each parameter is an argument.
 *  - `host-library`, `host-function` (CPUs): pointers to the buffer's bytes, to a copy of the value, and to memory for
 *    this group only.
 *
 *  Layout of Vulkan values in push constants and in uniform blocks: starting at offset 0, each value is at the next
 *  multiple of the largest power of two that divides the value's size, but at most 16. The value after the last member
 *  of a block is at offset 0 of the next block. If no member of the block begins there, the kernel is rejected. If the
 *  description omits the parameters (NULL), the kernel has one value for each member, at the member's offset.
 *
 *  A value may be a whole structure, with the layout that the code declares. A kernel can then take all its numbers as
 *  one parameter, and a launch passes them as one argument: a structure in OpenCL C, CUDA and HIP, or all push
 *  constants or a whole uniform block in Vulkan.
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
    uint64_t bytes; /**< Size of `code` in bytes; for text without the NUL, for `host-function` of the whole array. */
    const char *format;  /**< `spirv`, …: one of the formats above, or a vendor's own. */
    /** The target that the code was compiled for, as in GPUHAL_FACT_TARGET_ARCHITECTURE (`sm_90`, `gfx942`). NULL means
     *  any device that supports the format. The plugin compares it, and refuses code for another target with
     *  INCOMPATIBLE; the core then tries the program's next alternative. A device without this fact accepts only code
     *  without a target, except with CUDA, HIP and CPUs, where the driver or the loader then decides. */
    const char *target;
    /** The code. With format `host-library`, this is a shared object, or, if `bytes` is 0, the zero-terminated path of
     *  a shared object. With format `host-function`, this is an array of gpuhal_host_function. */
    const void *code;
    /** Options for the driver's compiler (`-DTILE=16`), for formats that are compiled, or NULL for none. */
    const char *options;
} gpuhal_code;

/** One group of a launch on the CPU. */
typedef struct gpuhal_host_group {
    uint32_t size;
    /** Index of the group in each dimension, from `offset` to `offset` + `groups` - 1. */
    uint32_t group[3];
    uint32_t groups[3];
    /** Size of this group; the function does the work of all these threads. With gpuhal_launch.threads, the last group
     *  in a dimension may have fewer threads than the others. */
    uint32_t group_size[3];
    /** Memory of gpuhal_launch.local_bytes bytes, which no other group uses at the same time. The address is a multiple
     *  of 64. NULL if local_bytes is 0. */
    void *local;
    uint32_t offset[3];    /**< gpuhal_launch.offset. */
    uint32_t full_size[3]; /**< Group size of the launch; the first thread's index is `group` times `full_size`. */
} gpuhal_host_group;

/** A kernel for the CPU, which does the work of one group. Several threads call it concurrently. It must not call
 *  functions of this library, throw, or longjmp out. A group that never ends cannot be stopped. An access outside the
 *  arguments happens in the application's process, and may corrupt or crash the process. @p arguments are in the order
 *  of the parameters: the address of a buffer's bytes, of a copy of a value, or of local memory. */
typedef void GPUHAL_CALL gpuhal_host_kernel_fn(void *const *arguments, const gpuhal_host_group *group);

/** One kernel of format `host-function`. The array ends with a NULL name. A `host-library` exports functions of this
 *  type by their kernels' names. Array, names and functions must stay valid as long as the program exists. */
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

/** Flags of a parameter. */
enum {
    /** A launch may pass no buffer for this parameter, if the kernel has GPUHAL_KERNEL_NULL_BUFFERS; the code then gets
     *  a null pointer. Only for buffers. */
    GPUHAL_PARAMETER_OPTIONAL = 1u
};

/** One parameter. */
typedef struct gpuhal_parameter {
    gpuhal_parameter_kind kind;
    uint32_t bytes;  /**< Size of a value, which may be a structure; otherwise 0. */
    /** For a buffer: GPUHAL_ACCESS_READ, GPUHAL_ACCESS_WRITE, or both; 0 counts as both. Launches that only read the
     *  buffer may overlap each other. Writing to a buffer that the description declares as read-only is a data race. */
    uint32_t access;
    uint32_t flags;  /**< 0 or GPUHAL_PARAMETER_OPTIONAL. */
} gpuhal_parameter;

/** A constant of the code that is fixed when the kernel is created (a specialization constant of SPIR-V). If the code
 *  has no constant with this id, the value is ignored. */
typedef struct gpuhal_constant {
    uint32_t id;
    uint32_t bytes;  /**< 4 or 8; 0 counts as 4. */
    uint64_t value;  /**< The constant's bytes (bool, integer or float); 4-byte constants are in the low half. */
} gpuhal_constant;

/** Identifies a kernel, and contains all the information that an API needs before the launch. */
typedef struct gpuhal_kernel_desc {
    uint32_t size; /**< sizeof(gpuhal_kernel_desc). */
    uint32_t parameter_count;
    const char *name;
    /** The parameters in the order of the code. With NULL, the library uses the list that the driver reports or the
     *  code contains; the call returns NOT_SUPPORTED if there is no such list. OpenCL drivers report a list if the
     *  program was built with the option `-cl-kernel-arg-info`. Host functions have no list, so the library cannot
     *  compare this description with the function. A kernel without parameters has a count of 0 and any pointer but
     *  NULL. */
    const gpuhal_parameter *parameters;
    /** Threads in a group, for each dimension. If all are 0, the size in the code is used; the call returns
     *  INVALID_ARGUMENT if the code has no size. If only some dimensions are 0, these count as 1. With Vulkan, sets the
     *  specialization constants of the size (`local_size_x_id`); a size that `constants` sets cannot change. */
    uint32_t group_size[3];
    /** Number of threads that run in lockstep (warp, wavefront), or 0 for any number. The call returns NOT_SUPPORTED
     *  for a size that this kernel cannot have on the device. */
    uint32_t subgroup_size;
    uint32_t constant_count;
    uint32_t reserved;
    const gpuhal_constant *constants;
} gpuhal_kernel_desc;

/** Flags of gpuhal_kernel_info: what a launch of the kernel may have. docs/programs.md has a table of the backends. */
enum {
    GPUHAL_KERNEL_ADDS_LOCAL = 1u, /**< Local memory in addition to its arguments' local memory. */
    GPUHAL_KERNEL_GROUP_SIZE = 2u, /**< Another group size than the kernel's. */
    /** Only with GROUP_SIZE: each size is compiled, so a launch may have only sizes that gpuhal_kernel_prepare() has
     *  prepared. */
    GPUHAL_KERNEL_PREPARED_SIZES = 4u,
    GPUHAL_KERNEL_THREADS = 8u,       /**< A number of threads that is not a multiple of the group size. */
    GPUHAL_KERNEL_OFFSET = 16u,       /**< Groups that are counted from an offset. */
    GPUHAL_KERNEL_INDIRECT = 32u,     /**< The number of groups in a buffer. */
    GPUHAL_KERNEL_NULL_BUFFERS = 64u /**< No buffer for a parameter with GPUHAL_PARAMETER_OPTIONAL. */
};

/** A kernel as it was created. Members that the driver does not report are 0; a limit of 0 is not checked. A limit of
 *  UINT32_MAX means that the device has none. */
typedef struct gpuhal_kernel_info {
    uint32_t size;
    uint32_t parameter_count;
    uint64_t local_bytes;     /**< Bytes of local memory per group that the kernel's code itself uses. */
    uint64_t local_max_bytes; /**< Maximum bytes of local memory per group, including the bytes that a launch adds. */
    uint64_t private_bytes;   /**< Bytes of private memory per thread (spilled registers, arrays). */
    uint32_t group_size[3];
    uint32_t group_size_max;  /**< Maximum total number of threads in a group of this kernel on this device. */
    uint32_t group_multiple;  /**< The number of threads in a group should be a multiple of this number. */
    uint32_t subgroup_size;
    uint32_t groups_max[3];   /**< Maximum number of groups of a launch, for each dimension. */
    uint32_t registers;       /**< Registers per thread. */
    uint32_t flags;           /**< GPUHAL_KERNEL_ bits. */
    uint32_t reserved;
    const gpuhal_parameter *parameters; /**< As in the description, or reflected; valid as long as the kernel exists. */
} gpuhal_kernel_info;

#ifdef __cplusplus
}
#endif
#endif
