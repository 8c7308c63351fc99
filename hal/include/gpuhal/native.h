/** gpuhal/native.h: the contents of a gpuhal_native for every vendor object that can be obtained, adopted or wrapped.
 *
 *  A handle obtained through gpuhal_device_native(), gpuhal_buffer_native() or gpuhal_queue_native_begin() is owned by
 *  the library: use it only while its gpuhal object exists, and never release it. docs/kernels.md shows how to launch
 *  your own kernels. Types of events come from plugins; no public call returns them. This header includes no vendor
 *  header; values are the vendor's handles as integers (`(cl_mem)(uintptr_t)native.values[0]`).
 */
#ifndef GPUHAL_NATIVE_H
#define GPUHAL_NATIVE_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The type of vendor object in a gpuhal_native. It is also the bit number in GPUHAL_FACT_ADOPT_KINDS. */
typedef uint32_t gpuhal_native_type;
enum {
    /** values[0] cl_platform_id, [1] cl_device_id, [2] cl_context, [3] a cl_command_queue of that context. The
     *  library's own copies run on several queues and are not ordered with that queue, so call clFinish on it first. To
     *  adopt a context, set [0] to [2]; [3] is ignored. The library retains the context as long as it needs the
     *  context. */
    GPUHAL_NATIVE_OPENCL_DEVICE = 1,
    /** values[0] cl_mem, [1] offset in bytes of the buffer inside it. For wrapping, [0] is a buffer of the device's
     *  context, which the library retains, and [1] is 0 or a multiple of binding_alignment_bytes. */
    GPUHAL_NATIVE_OPENCL_BUFFER = 2,
    /** values[0] cl_command_queue. For adoption, this is an in-order queue of the device and of its context. The
     *  library retains the queue. */
    GPUHAL_NATIVE_OPENCL_QUEUE = 3,

    /** `typed` is a gpuhal_vulkan_device, both when obtained and for adoption. values[0] VkInstance, [1]
     *  VkPhysicalDevice, [2] VkDevice, [3] 0. */
    GPUHAL_NATIVE_VULKAN_DEVICE = 4,
    /** values[0] VkBuffer, [1] VkDeviceMemory, [2] offset in bytes of the buffer inside it, [3] the VkBufferUsageFlags
     *  that it was created with. The VkBuffer starts at the first byte of the gpuhal buffer, or, for a pool's buffer,
     *  gpuhal_buffer_offset() bytes before it. A VkBuffer to wrap must have transfer usage in both directions, and, if
     *  the device's queues are of several families, sharing mode CONCURRENT for all of these families. [1] may be 0 if
     *  other code does not need it. */
    GPUHAL_NATIVE_VULKAN_BUFFER = 5,
    /** values[0] VkQueue, [1] family, [2] index in the family. Submit to a VkQueue of the library only during native
     *  access (gpuhal_queue_native_begin()): several queues of the library may share one VkQueue. */
    GPUHAL_NATIVE_VULKAN_QUEUE = 6,
    /** For an event, values[0] is a timeline VkSemaphore, and [1] is the semaphore's value once the event is done. */
    GPUHAL_NATIVE_VULKAN_SEMAPHORE = 7,

    /** values[0] CUcontext, [1] CUdevice, [2] CUstream, [3] 0. When obtained, [0] is the context that the library uses:
     *  the device's primary context, which the runtime API also uses, unless another context was adopted. [2] is the
     *  adopted stream or 0; the library's own copies run on several streams. For adoption, [0] is any context of the
     *  device, which the caller keeps. If [2] is a stream of that context, blocking calls of the library are ordered
     *  after the stream's earlier work; with 0 they are not ordered. */
    GPUHAL_NATIVE_CUDA_DEVICE = 8,
    /** values[0] CUdeviceptr of the first byte. Device or managed memory of the device can be wrapped, even from
     *  the middle of an allocation. */
    GPUHAL_NATIVE_CUDA_MEMORY = 9,
    /** values[0] CUstream of the device's context. CU_STREAM_LEGACY (1) can be adopted; 0 and CU_STREAM_PER_THREAD (2,
     *  a different stream on each thread) cannot. While the stream is captured into a graph, recording an event in it
     *  returns BUSY. */
    GPUHAL_NATIVE_CUDA_STREAM = 10,
    /** values[0] CUevent, without timing unless it was created with timing. */
    GPUHAL_NATIVE_CUDA_EVENT = 11,

    /** values[0] HIP's number of the device in this process, [1] 0, [2] hipStream_t, [3] 0. A HIP device is a
     *  number, not an object, so only the stream in [2] is adopted: blocking calls of the library are ordered after the
     *  stream's earlier work; with 0 they are not ordered. When obtained, [2] is the adopted stream or 0. */
    GPUHAL_NATIVE_HIP_DEVICE = 12,
    /** values[0] address of the first byte. Device or managed memory of the device can be wrapped, even from the
     *  middle of an allocation. */
    GPUHAL_NATIVE_HIP_MEMORY = 13,
    /** values[0] hipStream_t of the device, never 0. */
    GPUHAL_NATIVE_HIP_STREAM = 14,
    /** values[0] hipEvent_t, without timing unless it was created with timing. */
    GPUHAL_NATIVE_HIP_EVENT = 15,

    /** For an event, values[0] is the cl_event of its latest recording; the next recording releases the cl_event. */
    GPUHAL_NATIVE_OPENCL_EVENT = 16
};

/** One VkQueue of a gpuhal_vulkan_device. */
typedef struct gpuhal_vulkan_queue {
    void *queue;     /**< VkQueue. */
    uint32_t family;
    uint32_t index;  /**< Index in the queue family. */
} gpuhal_vulkan_queue;

/** A VkDevice with the data that its users need to share it. Handles are Vulkan handles, declared as `void *`
 *  because this header includes no vendor header. The structure is read only during the adopting call; the handles
 *  and @p user must exist until the gpuhal object is closed and its last buffer is released. */
typedef struct gpuhal_vulkan_device {
    uint32_t size;                 /**< sizeof(gpuhal_vulkan_device). */
    uint32_t api_version;          /**< VkApplicationInfo.apiVersion of the instance: VK_API_VERSION_1_1 or later. */
    void *instance;                /**< VkInstance. */
    void *physical_device;         /**< VkPhysicalDevice. */
    void *device;                  /**< VkDevice. */
    void (*get_instance_proc_addr)(void); /**< PFN_vkGetInstanceProcAddr, cast. */
    const char *const *extensions; /**< Enabled device extensions. */
    uint32_t extension_count;
    uint32_t queue_count;
    /** Queues of the device that may be used, at least one; families in any order. */
    const gpuhal_vulkan_queue *queues;
    /** VkPhysicalDeviceFeatures2 with the chain that was passed to vkCreateDevice; NULL means that no feature is
     *  enabled. */
    const void *features;
    /** Called around every submission to a queue; both are NULL if no other code submits to these queues, and in a
     *  structure that the library returned. May be called from any thread; `unlock` is called on another thread than
     *  `lock` if native access ends on that thread. The caller must hold the lock no longer than a submission takes:
     *  otherwise the library's waits exceed their timeouts. */
    void (*lock)(void *user, void *queue);
    void (*unlock)(void *user, void *queue);
    void *user;
} gpuhal_vulkan_device;

#ifdef __cplusplus
}
#endif
#endif
