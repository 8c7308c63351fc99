/* cuda/stream_names.h: the names in plugins/stream for objects that CUDA and HIP name differently.
 *
 * The rocm plugin has the same table with HIP's names. If the two APIs differ in more than a name, each plugin has a
 * function in its calls.c, declared in ../stream/stream.h.
 */
#ifndef GPUHAL_CUDA_STREAM_NAMES_H
#define GPUHAL_CUDA_STREAM_NAMES_H

#include "driver.h"

/* These macros name, in this order, a function or type of this plugin, a CUDA function whose name differs from HIP's
 * name only in the prefix, and such a function in messages. */
#define GPUHAL_OWN(name)         gpuhal_cuda_##name
#define GPUHAL_VENDOR(name)      gpuhal_cuda_api.cu##name
#define GPUHAL_VENDOR_CALL(name) "cu" #name

typedef CUresult vendor_code;
typedef CUstream vendor_stream;
typedef CUevent vendor_event;
typedef CUcontext vendor_context;
typedef CUdeviceptr vendor_pointer;
typedef CUmemGenericAllocationHandle vendor_allocation;
typedef CUmemAllocationProp vendor_properties;
typedef CUmemAccessDesc vendor_access;
typedef CUexternalMemory vendor_external;
typedef CUDA_EXTERNAL_MEMORY_HANDLE_DESC vendor_external_handle;
typedef CUDA_EXTERNAL_MEMORY_BUFFER_DESC vendor_external_buffer;
typedef CUmodule vendor_module;
typedef CUfunction vendor_function;
typedef CUgraph vendor_graph;
typedef CUgraphNode vendor_node;
typedef CUgraphExec vendor_executable;
typedef CUDA_KERNEL_NODE_PARAMS_v1 vendor_kernel_node;

#define GPUHAL_VENDOR_OK              CUDA_SUCCESS
#define GPUHAL_VENDOR_AT(address)     ((CUdeviceptr)(address))
#define GPUHAL_VENDOR_NUMBER(pointer) ((uint64_t)(pointer))
#define GPUHAL_VENDOR_CONTEXT(opened) ((opened)->context)
#define GPUHAL_VENDOR_LOST(opened)    gpuhal_cuda_lost_code(opened)

/* rect.c and peer.c */
#define GPUHAL_VENDOR_REFUSES_PITCH(code) ((code) == CUDA_ERROR_INVALID_VALUE)
#define GPUHAL_VENDOR_ENABLE_PEER         gpuhal_cuda_api.cuCtxEnablePeerAccess
#define GPUHAL_VENDOR_ENABLE_PEER_CALL    "cuCtxEnablePeerAccess"
#define GPUHAL_VENDOR_DISABLE_PEER        gpuhal_cuda_api.cuCtxDisablePeerAccess
#define GPUHAL_VENDOR_PEER_IS_ENABLED     CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED

/* context.c: for a context that was destroyed, or a device that was reset */
#define GPUHAL_VENDOR_GONE CUDA_ERROR_CONTEXT_IS_DESTROYED

/* queue.c */
#define GPUHAL_VENDOR_PRIORITY_RANGE          gpuhal_cuda_api.cuCtxGetStreamPriorityRange
#define GPUHAL_VENDOR_NON_BLOCKING            CU_STREAM_NON_BLOCKING
#define GPUHAL_VENDOR_MAY_ADOPT_STREAM(value) ((value) != 0)
#define GPUHAL_VENDOR_STREAM_SENTENCE         "GPUHAL_NATIVE_CUDA_STREAM; the default stream is CU_STREAM_LEGACY, 1"
#define GPUHAL_VENDOR_PER_THREAD              GPUHAL_CUDA_PER_THREAD
#define GPUHAL_VENDOR_PER_THREAD_NAME         "CU_STREAM_PER_THREAD"
#define GPUHAL_VENDOR_EVENT_CALL              "cuEventCreate"
#define GPUHAL_VENDOR_SLEPT_FOR(recorded)     ((recorded)->event)

/* memory.c */
#define GPUHAL_VENDOR_MEMORY_INFO           gpuhal_cuda_api.cuMemGetInfo_v2
#define GPUHAL_VENDOR_ALLOCATE              gpuhal_cuda_api.cuMemAlloc_v2
#define GPUHAL_VENDOR_ALLOCATE_CALL         "cuMemAlloc"
#define GPUHAL_VENDOR_ALLOCATE_HOST         gpuhal_cuda_api.cuMemHostAlloc
#define GPUHAL_VENDOR_ALLOCATE_HOST_FLAGS   (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
#define GPUHAL_VENDOR_ALLOCATE_HOST_CALL    "cuMemHostAlloc"
#define GPUHAL_VENDOR_ALLOCATE_MANAGED      gpuhal_cuda_api.cuMemAllocManaged
#define GPUHAL_VENDOR_ALLOCATE_MANAGED_CALL "cuMemAllocManaged"
#define GPUHAL_VENDOR_MANAGED_FOR_ALL       CU_MEM_ATTACH_GLOBAL
#define GPUHAL_VENDOR_FREE_HOST             gpuhal_cuda_api.cuMemFreeHost
#define GPUHAL_VENDOR_HOST_ADDRESS_CALL     "cuMemHostGetDevicePointer"
#define GPUHAL_VENDOR_MEMORY_TYPE           "GPUHAL_NATIVE_CUDA_MEMORY"

/* virtual_memory.c and share.c */
#define GPUHAL_VENDOR_FREE                gpuhal_cuda_api.cuMemFree_v2
#define GPUHAL_VENDOR_GRANULARITY_MINIMUM CU_MEM_ALLOC_GRANULARITY_MINIMUM
#define GPUHAL_VENDOR_FILE_DESCRIPTOR     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
#define GPUHAL_VENDOR_OPAQUE_FD           CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
/* After a successful import of external memory the driver owns the descriptor. */
#define GPUHAL_VENDOR_OWNS_DESCRIPTORS true
#define GPUHAL_VENDOR_UNKNOWN          CUDA_ERROR_UNKNOWN
#define GPUHAL_VENDOR_NOT_READY        CUDA_ERROR_NOT_READY
#define GPUHAL_VENDOR_INVALID_VALUE    CUDA_ERROR_INVALID_VALUE
#define GPUHAL_VENDOR_NOT_SUPPORTED    CUDA_ERROR_NOT_SUPPORTED
#define GPUHAL_VENDOR_OPERATING_SYSTEM CUDA_ERROR_OPERATING_SYSTEM
#define GPUHAL_VENDOR_PROPERTIES(ordinal, exported)                                                                    \
    {                                                                                                                  \
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,                                                                         \
        .requestedHandleTypes = (exported) ? GPUHAL_VENDOR_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,                  \
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (ordinal)},                                            \
    }
#define GPUHAL_VENDOR_READ_WRITE(ordinal)                                                                              \
    {                                                                                                                  \
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (ordinal)},                                            \
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,                                                                   \
    }

/* registration.c */
#define GPUHAL_VENDOR_ADOPTED(opened)   ((opened)->adopted) /* the context belongs to the caller */
#define GPUHAL_VENDOR_OUT_OF_MEMORY     CUDA_ERROR_OUT_OF_MEMORY
#define GPUHAL_VENDOR_IS_REGISTERED     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
#define GPUHAL_VENDOR_IS_NOT_REGISTERED CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
#define GPUHAL_VENDOR_UNREGISTER_CALL   "cuMemHostUnregister"

/* program.c */
#define GPUHAL_VENDOR_FORMATS              "cubin fatbin ptx"
#define GPUHAL_VENDOR_OPTIONS              "known are, for PTX, -O0 to -O4, -g, -lineinfo and -maxrregcount=N"
#define GPUHAL_VENDOR_READS_IMAGE_LATER    false
#define GPUHAL_VENDOR_LOAD_CALL            "cuModuleLoadDataEx"
#define GPUHAL_VENDOR_PARAMETER_CALL       "cuFuncGetParamInfo"
#define GPUHAL_VENDOR_FUNCTION(attribute)  CU_FUNC_ATTRIBUTE_##attribute
#define GPUHAL_VENDOR_THREADS_MAX          UINT64_MAX /* per dimension of a launch; CUDA limits only the groups */
#define GPUHAL_VENDOR_LAUNCH               gpuhal_cuda_api.cuLaunchKernel
#define GPUHAL_VENDOR_LAUNCH_CALL          "cuLaunchKernel"
#define GPUHAL_VENDOR_REFUSES_LAUNCH(code) ((code) == CUDA_ERROR_INVALID_VALUE)

/* recording.c */
#define GPUHAL_VENDOR_COPY_NODE_CALL "cuGraphAddMemcpyNode"
#define GPUHAL_VENDOR_UPDATES_MAX    UINT32_MAX /* updates of an executable graph before it is instantiated again */

/* facts.c and plugin.c */
#define GPUHAL_VENDOR_PLUGIN                 "cuda"
#define GPUHAL_VENDOR_API                    "CUDA"
#define GPUHAL_VENDOR_SPEAKER                "the driver"
#define GPUHAL_VENDOR_COMPANY                "NVIDIA"
#define GPUHAL_VENDOR_PCI_ID                 0x10de
#define GPUHAL_VENDOR_NATIVE(kind)           GPUHAL_NATIVE_CUDA_##kind
#define GPUHAL_VENDOR_NO_DRIVER_VERSION      "neither NVML nor the system reports it"
#define GPUHAL_VENDOR_ATTRIBUTE_MAJOR        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
#define GPUHAL_VENDOR_ATTRIBUTE_MINOR        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
#define GPUHAL_VENDOR_ATTRIBUTE_WARP         CU_DEVICE_ATTRIBUTE_WARP_SIZE
#define GPUHAL_VENDOR_ATTRIBUTE_GROUP_SIZE   CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
#define GPUHAL_VENDOR_ATTRIBUTE_GROUP_MEMORY CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
#define GPUHAL_VENDOR_ATTRIBUTE_GROUPS_X     CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X
#define GPUHAL_VENDOR_ATTRIBUTE_INTEGRATED   CU_DEVICE_ATTRIBUTE_INTEGRATED
#define GPUHAL_VENDOR_ATTRIBUTE_COMPUTE_MODE CU_DEVICE_ATTRIBUTE_COMPUTE_MODE
/* If the kernel moves pages to the device only on access (HMM), the driver stages copies as usual. */
#define GPUHAL_VENDOR_ATTRIBUTE_PAGEABLE CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES

#endif
