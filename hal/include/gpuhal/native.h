/** gpuhal/native.h: what stands in a gpuhal_native for every vendor object that can be got, adopted or wrapped.
 *
 *  A handle obtained through gpuhal_device_native() or gpuhal_buffer_native() stays owned by the library: use it while the
 *  object it came from lives, never release it. This header includes no vendor header; values are the vendor's handles as
 *  integers (`(cl_mem)(uintptr_t)native.values[0]`).
 */
#ifndef GPUHAL_NATIVE_H
#define GPUHAL_NATIVE_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Which vendor object a gpuhal_native holds. The value is also the bit number in GPUHAL_FACT_ADOPT_KINDS. */
typedef uint32_t gpuhal_native_type;
enum {
    /** values[0] cl_platform_id, [1] cl_device_id, [2] cl_context, [3] a cl_command_queue of that context.
     *  The library's own copies run on several queues and are not ordered with it: clFinish it first. */
    GPUHAL_NATIVE_OPENCL_DEVICE = 1,
    /** values[0] cl_mem, [1] offset in bytes at which the buffer starts inside it. */
    GPUHAL_NATIVE_OPENCL_BUFFER = 2,
    /** values[0] cl_command_queue. */
    GPUHAL_NATIVE_OPENCL_QUEUE = 3
};

#ifdef __cplusplus
}
#endif
#endif
