/* cuda/cuda_api.h: the part of the CUDA driver API (libcuda.so.1) that this plugin uses, written by us from NVIDIA's
 * documentation.
 *
 * All declarations are list macros, because they have several users. The plugin builds its function table from the
 * lists, the fake library builds its prototypes, and a test compiles the lists against the vendor's own header. With
 * GPUHAL_CUDA_LISTS_ONLY only the lists are defined, without our types, so that the names in the lists refer to the
 * vendor's types.
 *
 * A name in the list of functions is the symbol that the library exports. NVIDIA's header renames some symbols
 * (cuMemAlloc is cuMemAlloc_v2), and an old symbol keeps its old meaning forever: every driver has cuEventElapsedTime
 * as declared here, although the CUDA 13 header uses this name for another function. The same applies to the functions
 * for kernel nodes of graphs, whose names in the header take a larger structure since CUDA 12. Every function returns
 * CUresult.
 *
 * The required functions are those of CUDA 11.0 (driver 450); later functions are optional.
 */
#ifndef GPUHAL_CUDA_API_H
#define GPUHAL_CUDA_API_H

#include <stddef.h>

#define GPUHAL_CUDA_FUNCTIONS(REQUIRED, OPTIONAL) \
    REQUIRED(cuInit, (unsigned int flags)) \
    REQUIRED(cuDriverGetVersion, (int *version)) \
    REQUIRED(cuGetErrorString, (CUresult code, const char **text)) \
    REQUIRED(cuDeviceGetCount, (int *count)) \
    REQUIRED(cuDeviceGet, (CUdevice *device, int ordinal)) \
    REQUIRED(cuDeviceGetName, (char *name, int length, CUdevice device)) \
    REQUIRED(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device)) \
    REQUIRED(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device)) \
    REQUIRED(cuDeviceGetPCIBusId, (char *address, int length, CUdevice device)) \
    REQUIRED(cuDeviceGetUuid, (CUuuid *uuid, CUdevice device)) \
    OPTIONAL(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device)) \
    REQUIRED(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device)) \
    REQUIRED(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) \
    REQUIRED(cuCtxGetCurrent, (CUcontext *context)) \
    REQUIRED(cuCtxPushCurrent_v2, (CUcontext context)) \
    REQUIRED(cuCtxPopCurrent_v2, (CUcontext *context)) \
    REQUIRED(cuCtxGetDevice, (CUdevice *device)) \
    REQUIRED(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) \
    REQUIRED(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode)) \
    REQUIRED(cuMemGetInfo_v2, (size_t *free_bytes, size_t *total_bytes)) \
    REQUIRED(cuMemAlloc_v2, (CUdeviceptr *address, size_t bytes)) \
    REQUIRED(cuMemFree_v2, (CUdeviceptr address)) \
    OPTIONAL(cuMemAllocManaged, (CUdeviceptr *address, size_t bytes, unsigned int flags)) \
    REQUIRED(cuMemHostAlloc, (void **memory, size_t bytes, unsigned int flags)) \
    REQUIRED(cuMemFreeHost, (void *memory)) \
    REQUIRED(cuMemHostGetDevicePointer_v2, (CUdeviceptr *address, void *memory, unsigned int flags)) \
    REQUIRED(cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned int flags)) \
    REQUIRED(cuMemHostUnregister, (void *memory)) \
    REQUIRED(cuPointerGetAttribute, (void *value, CUpointer_attribute attribute, CUdeviceptr address)) \
    REQUIRED(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *bytes, CUdeviceptr address)) \
    REQUIRED(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
    REQUIRED(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    REQUIRED(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    REQUIRED(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    REQUIRED(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream)) \
    REQUIRED(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, \
                                 CUcontext from_context, size_t bytes, \
                                 CUstream stream)) \
    REQUIRED(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t count, CUstream stream)) \
    REQUIRED(cuMemsetD16Async, (CUdeviceptr to, unsigned short value, size_t count, CUstream stream)) \
    REQUIRED(cuMemsetD32Async, (CUdeviceptr to, unsigned int value, size_t count, CUstream stream)) \
    REQUIRED(cuStreamCreateWithPriority, (CUstream *stream, unsigned int flags, int priority)) \
    REQUIRED(cuStreamDestroy_v2, (CUstream stream)) \
    REQUIRED(cuStreamSynchronize, (CUstream stream)) \
    REQUIRED(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags)) \
    REQUIRED(cuStreamGetCtx, (CUstream stream, CUcontext *context)) \
    REQUIRED(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status)) \
    REQUIRED(cuEventCreate, (CUevent *event, unsigned int flags)) \
    REQUIRED(cuEventDestroy_v2, (CUevent event)) \
    REQUIRED(cuEventRecord, (CUevent event, CUstream stream)) \
    REQUIRED(cuEventQuery, (CUevent event)) \
    REQUIRED(cuEventSynchronize, (CUevent event)) \
    REQUIRED(cuEventElapsedTime, (float *milliseconds, CUevent from, CUevent to)) \
    REQUIRED(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) \
    REQUIRED(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags)) \
    REQUIRED(cuCtxDisablePeerAccess, (CUcontext peer)) \
    REQUIRED(cuModuleLoadDataEx, (CUmodule *module, const void *image, unsigned int count, CUjit_option *options, \
                                  void **values)) \
    REQUIRED(cuModuleUnload, (CUmodule module)) \
    REQUIRED(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name)) \
    REQUIRED(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function)) \
    REQUIRED(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value)) \
    OPTIONAL(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *bytes)) \
    OPTIONAL(cuFuncLoad, (CUfunction function)) \
    REQUIRED(cuLaunchKernel, (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
                              unsigned int block_x, unsigned int block_y, unsigned int block_z, \
                              unsigned int shared_bytes, \
                              CUstream stream, void **parameters, void **extra)) \
    OPTIONAL(cuGraphCreate, (CUgraph *graph, unsigned int flags)) \
    OPTIONAL(cuGraphDestroy, (CUgraph graph)) \
    OPTIONAL(cuGraphAddKernelNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, \
                                    const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
    OPTIONAL(cuGraphAddMemcpyNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, \
                                    const CUDA_MEMCPY3D *copy, CUcontext context)) \
    OPTIONAL(cuGraphAddMemsetNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, \
                                    const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext context)) \
    OPTIONAL(cuGraphKernelNodeSetParams, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
    OPTIONAL(cuGraphInstantiateWithFlags, (CUgraphExec *executable, CUgraph graph, unsigned long long flags)) \
    OPTIONAL(cuGraphExecKernelNodeSetParams, (CUgraphExec executable, CUgraphNode node, \
                                              const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)) \
    OPTIONAL(cuGraphLaunch, (CUgraphExec executable, CUstream stream)) \
    OPTIONAL(cuGraphExecDestroy, (CUgraphExec executable)) \
    OPTIONAL(cuMemGetAllocationGranularity, (size_t *bytes, const CUmemAllocationProp *properties, \
                                             CUmemAllocationGranularity_flags which)) \
    OPTIONAL(cuMemAddressReserve, (CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wanted, \
                                   unsigned long long flags)) \
    OPTIONAL(cuMemAddressFree, (CUdeviceptr address, size_t bytes)) \
    OPTIONAL(cuMemCreate, (CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties, \
                           unsigned long long flags)) \
    OPTIONAL(cuMemRelease, (CUmemGenericAllocationHandle handle)) \
    OPTIONAL(cuMemMap, (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, \
                        unsigned long long flags)) \
    OPTIONAL(cuMemUnmap, (CUdeviceptr address, size_t bytes)) \
    OPTIONAL(cuMemSetAccess, (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)) \
    OPTIONAL(cuMemExportToShareableHandle, (void *out_handle, CUmemGenericAllocationHandle handle, \
                                            CUmemAllocationHandleType type, unsigned long long flags)) \
    OPTIONAL(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle *handle, void *os_handle, \
                                              CUmemAllocationHandleType type)) \
    OPTIONAL(cuImportExternalMemory, (CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle)) \
    OPTIONAL(cuDestroyExternalMemory, (CUexternalMemory memory)) \
    OPTIONAL(cuExternalMemoryGetMappedBuffer, (CUdeviceptr *address, CUexternalMemory memory, \
                                               const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer))

/* All codes in the CUDA 13.0 documentation. */
#define GPUHAL_CUDA_RESULTS(VALUE) \
    VALUE(CUDA_SUCCESS, 0) \
    VALUE(CUDA_ERROR_INVALID_VALUE, 1) \
    VALUE(CUDA_ERROR_OUT_OF_MEMORY, 2) \
    VALUE(CUDA_ERROR_NOT_INITIALIZED, 3) \
    VALUE(CUDA_ERROR_DEINITIALIZED, 4) \
    VALUE(CUDA_ERROR_PROFILER_DISABLED, 5) \
    VALUE(CUDA_ERROR_PROFILER_NOT_INITIALIZED, 6) \
    VALUE(CUDA_ERROR_PROFILER_ALREADY_STARTED, 7) \
    VALUE(CUDA_ERROR_PROFILER_ALREADY_STOPPED, 8) \
    VALUE(CUDA_ERROR_STUB_LIBRARY, 34) \
    VALUE(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36) \
    VALUE(CUDA_ERROR_DEVICE_UNAVAILABLE, 46) \
    VALUE(CUDA_ERROR_NO_DEVICE, 100) \
    VALUE(CUDA_ERROR_INVALID_DEVICE, 101) \
    VALUE(CUDA_ERROR_DEVICE_NOT_LICENSED, 102) \
    VALUE(CUDA_ERROR_INVALID_IMAGE, 200) \
    VALUE(CUDA_ERROR_INVALID_CONTEXT, 201) \
    VALUE(CUDA_ERROR_CONTEXT_ALREADY_CURRENT, 202) \
    VALUE(CUDA_ERROR_MAP_FAILED, 205) \
    VALUE(CUDA_ERROR_UNMAP_FAILED, 206) \
    VALUE(CUDA_ERROR_ARRAY_IS_MAPPED, 207) \
    VALUE(CUDA_ERROR_ALREADY_MAPPED, 208) \
    VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU, 209) \
    VALUE(CUDA_ERROR_ALREADY_ACQUIRED, 210) \
    VALUE(CUDA_ERROR_NOT_MAPPED, 211) \
    VALUE(CUDA_ERROR_NOT_MAPPED_AS_ARRAY, 212) \
    VALUE(CUDA_ERROR_NOT_MAPPED_AS_POINTER, 213) \
    VALUE(CUDA_ERROR_ECC_UNCORRECTABLE, 214) \
    VALUE(CUDA_ERROR_UNSUPPORTED_LIMIT, 215) \
    VALUE(CUDA_ERROR_CONTEXT_ALREADY_IN_USE, 216) \
    VALUE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217) \
    VALUE(CUDA_ERROR_INVALID_PTX, 218) \
    VALUE(CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, 219) \
    VALUE(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220) \
    VALUE(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221) \
    VALUE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222) \
    VALUE(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223) \
    VALUE(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, 224) \
    VALUE(CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, 225) \
    VALUE(CUDA_ERROR_CONTAINED, 226) \
    VALUE(CUDA_ERROR_INVALID_SOURCE, 300) \
    VALUE(CUDA_ERROR_FILE_NOT_FOUND, 301) \
    VALUE(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302) \
    VALUE(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303) \
    VALUE(CUDA_ERROR_OPERATING_SYSTEM, 304) \
    VALUE(CUDA_ERROR_INVALID_HANDLE, 400) \
    VALUE(CUDA_ERROR_ILLEGAL_STATE, 401) \
    VALUE(CUDA_ERROR_LOSSY_QUERY, 402) \
    VALUE(CUDA_ERROR_NOT_FOUND, 500) \
    VALUE(CUDA_ERROR_NOT_READY, 600) \
    VALUE(CUDA_ERROR_ILLEGAL_ADDRESS, 700) \
    VALUE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701) \
    VALUE(CUDA_ERROR_LAUNCH_TIMEOUT, 702) \
    VALUE(CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, 703) \
    VALUE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) \
    VALUE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705) \
    VALUE(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708) \
    VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709) \
    VALUE(CUDA_ERROR_ASSERT, 710) \
    VALUE(CUDA_ERROR_TOO_MANY_PEERS, 711) \
    VALUE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
    VALUE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713) \
    VALUE(CUDA_ERROR_HARDWARE_STACK_ERROR, 714) \
    VALUE(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715) \
    VALUE(CUDA_ERROR_MISALIGNED_ADDRESS, 716) \
    VALUE(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717) \
    VALUE(CUDA_ERROR_INVALID_PC, 718) \
    VALUE(CUDA_ERROR_LAUNCH_FAILED, 719) \
    VALUE(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720) \
    VALUE(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721) \
    VALUE(CUDA_ERROR_NOT_PERMITTED, 800) \
    VALUE(CUDA_ERROR_NOT_SUPPORTED, 801) \
    VALUE(CUDA_ERROR_SYSTEM_NOT_READY, 802) \
    VALUE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803) \
    VALUE(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
    VALUE(CUDA_ERROR_MPS_CONNECTION_FAILED, 805) \
    VALUE(CUDA_ERROR_MPS_RPC_FAILURE, 806) \
    VALUE(CUDA_ERROR_MPS_SERVER_NOT_READY, 807) \
    VALUE(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808) \
    VALUE(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, 809) \
    VALUE(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810) \
    VALUE(CUDA_ERROR_CDP_NOT_SUPPORTED, 811) \
    VALUE(CUDA_ERROR_CDP_VERSION_MISMATCH, 812) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906) \
    VALUE(CUDA_ERROR_CAPTURED_EVENT, 907) \
    VALUE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) \
    VALUE(CUDA_ERROR_TIMEOUT, 909) \
    VALUE(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910) \
    VALUE(CUDA_ERROR_EXTERNAL_DEVICE, 911) \
    VALUE(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912) \
    VALUE(CUDA_ERROR_FUNCTION_NOT_LOADED, 913) \
    VALUE(CUDA_ERROR_INVALID_RESOURCE_TYPE, 914) \
    VALUE(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 915) \
    VALUE(CUDA_ERROR_KEY_ROTATION, 916) \
    VALUE(CUDA_ERROR_UNKNOWN, 999)

/* In NVIDIA's header some of these values are macros and others are enumerators. */
#define GPUHAL_CUDA_VALUES(VALUE) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8) \
    VALUE(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11) \
    VALUE(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13) \
    VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16) \
    VALUE(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18) \
    VALUE(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19) \
    VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20) \
    VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36) \
    VALUE(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37) \
    VALUE(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40) \
    VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
    VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
    VALUE(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83) \
    VALUE(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89) \
    VALUE(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91) \
    VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    VALUE(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99) \
    VALUE(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 100) \
    VALUE(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102) \
    VALUE(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103) \
    VALUE(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 113) \
    VALUE(CU_COMPUTEMODE_DEFAULT, 0) \
    VALUE(CU_COMPUTEMODE_PROHIBITED, 2) \
    VALUE(CU_COMPUTEMODE_EXCLUSIVE_PROCESS, 3) \
    VALUE(CU_MEM_ATTACH_GLOBAL, 1) \
    VALUE(CU_MEMHOSTALLOC_PORTABLE, 1) \
    VALUE(CU_MEMHOSTALLOC_DEVICEMAP, 2) \
    VALUE(CU_MEMHOSTREGISTER_PORTABLE, 1) \
    VALUE(CU_MEMHOSTREGISTER_DEVICEMAP, 2) \
    VALUE(CU_MEMHOSTREGISTER_READ_ONLY, 8) \
    VALUE(CU_POINTER_ATTRIBUTE_CONTEXT, 1) \
    VALUE(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2) \
    VALUE(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7) \
    VALUE(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8) \
    VALUE(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9) \
    VALUE(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11) \
    VALUE(CU_MEMORYTYPE_HOST, 1) \
    VALUE(CU_MEMORYTYPE_DEVICE, 2) \
    VALUE(CU_STREAM_CAPTURE_MODE_RELAXED, 2) \
    VALUE(CU_STREAM_CAPTURE_STATUS_NONE, 0) \
    VALUE(CU_STREAM_NON_BLOCKING, 1) \
    VALUE(CU_EVENT_BLOCKING_SYNC, 1) \
    VALUE(CU_EVENT_DISABLE_TIMING, 2) \
    VALUE(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
    VALUE(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
    VALUE(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3) \
    VALUE(CU_FUNC_ATTRIBUTE_NUM_REGS, 4) \
    VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
    VALUE(CU_JIT_MAX_REGISTERS, 0) \
    VALUE(CU_JIT_INFO_LOG_BUFFER, 3) \
    VALUE(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4) \
    VALUE(CU_JIT_ERROR_LOG_BUFFER, 5) \
    VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6) \
    VALUE(CU_JIT_OPTIMIZATION_LEVEL, 7) \
    VALUE(CU_JIT_GENERATE_DEBUG_INFO, 11) \
    VALUE(CU_JIT_LOG_VERBOSE, 12) \
    VALUE(CU_JIT_GENERATE_LINE_INFO, 13) \
    VALUE(CU_MEM_HANDLE_TYPE_NONE, 0) \
    VALUE(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1) \
    VALUE(CU_MEM_ALLOCATION_TYPE_PINNED, 1) \
    VALUE(CU_MEM_LOCATION_TYPE_DEVICE, 1) \
    VALUE(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3) \
    VALUE(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0) \
    VALUE(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1) \
    VALUE(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, 1)

/* Types whose sizes matter, and structure members. */
#define GPUHAL_CUDA_TYPES(TYPE) \
    TYPE(CUresult) \
    TYPE(CUdevice) \
    TYPE(CUdevice_attribute) \
    TYPE(CUpointer_attribute) \
    TYPE(CUfunction_attribute) \
    TYPE(CUstreamCaptureMode) \
    TYPE(CUstreamCaptureStatus) \
    TYPE(CUjit_option) \
    TYPE(CUmemorytype) \
    TYPE(CUdeviceptr) \
    TYPE(CUcontext) \
    TYPE(CUstream) \
    TYPE(CUevent) \
    TYPE(CUmodule) \
    TYPE(CUfunction) \
    TYPE(CUgraph) \
    TYPE(CUgraphNode) \
    TYPE(CUgraphExec) \
    TYPE(CUexternalMemory) \
    TYPE(CUmemGenericAllocationHandle) \
    TYPE(CUmemAllocationGranularity_flags) \
    TYPE(CUmemAllocationHandleType) \
    TYPE(CUuuid) \
    TYPE(CUDA_MEMCPY2D) \
    TYPE(CUDA_MEMCPY3D) \
    TYPE(CUDA_KERNEL_NODE_PARAMS_v1) \
    TYPE(CUDA_MEMSET_NODE_PARAMS) \
    TYPE(CUmemLocation) \
    TYPE(CUmemAllocationProp) \
    TYPE(CUmemAccessDesc) \
    TYPE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC) \
    TYPE(CUDA_EXTERNAL_MEMORY_BUFFER_DESC)

#define GPUHAL_CUDA_FIELDS(FIELD) \
    FIELD(CUuuid, bytes) \
    FIELD(CUDA_MEMCPY2D, srcXInBytes) \
    FIELD(CUDA_MEMCPY2D, srcY) \
    FIELD(CUDA_MEMCPY2D, srcMemoryType) \
    FIELD(CUDA_MEMCPY2D, srcHost) \
    FIELD(CUDA_MEMCPY2D, srcDevice) \
    FIELD(CUDA_MEMCPY2D, srcArray) \
    FIELD(CUDA_MEMCPY2D, srcPitch) \
    FIELD(CUDA_MEMCPY2D, dstXInBytes) \
    FIELD(CUDA_MEMCPY2D, dstY) \
    FIELD(CUDA_MEMCPY2D, dstMemoryType) \
    FIELD(CUDA_MEMCPY2D, dstHost) \
    FIELD(CUDA_MEMCPY2D, dstDevice) \
    FIELD(CUDA_MEMCPY2D, dstArray) \
    FIELD(CUDA_MEMCPY2D, dstPitch) \
    FIELD(CUDA_MEMCPY2D, WidthInBytes) \
    FIELD(CUDA_MEMCPY2D, Height) \
    FIELD(CUDA_MEMCPY3D, srcXInBytes) \
    FIELD(CUDA_MEMCPY3D, srcY) \
    FIELD(CUDA_MEMCPY3D, srcZ) \
    FIELD(CUDA_MEMCPY3D, srcLOD) \
    FIELD(CUDA_MEMCPY3D, srcMemoryType) \
    FIELD(CUDA_MEMCPY3D, srcHost) \
    FIELD(CUDA_MEMCPY3D, srcDevice) \
    FIELD(CUDA_MEMCPY3D, srcArray) \
    FIELD(CUDA_MEMCPY3D, reserved0) \
    FIELD(CUDA_MEMCPY3D, srcPitch) \
    FIELD(CUDA_MEMCPY3D, srcHeight) \
    FIELD(CUDA_MEMCPY3D, dstXInBytes) \
    FIELD(CUDA_MEMCPY3D, dstY) \
    FIELD(CUDA_MEMCPY3D, dstZ) \
    FIELD(CUDA_MEMCPY3D, dstLOD) \
    FIELD(CUDA_MEMCPY3D, dstMemoryType) \
    FIELD(CUDA_MEMCPY3D, dstHost) \
    FIELD(CUDA_MEMCPY3D, dstDevice) \
    FIELD(CUDA_MEMCPY3D, dstArray) \
    FIELD(CUDA_MEMCPY3D, reserved1) \
    FIELD(CUDA_MEMCPY3D, dstPitch) \
    FIELD(CUDA_MEMCPY3D, dstHeight) \
    FIELD(CUDA_MEMCPY3D, WidthInBytes) \
    FIELD(CUDA_MEMCPY3D, Height) \
    FIELD(CUDA_MEMCPY3D, Depth) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, func) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, gridDimX) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, gridDimY) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, gridDimZ) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, blockDimX) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, blockDimY) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, blockDimZ) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, sharedMemBytes) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams) \
    FIELD(CUDA_KERNEL_NODE_PARAMS_v1, extra) \
    FIELD(CUDA_MEMSET_NODE_PARAMS, dst) \
    FIELD(CUDA_MEMSET_NODE_PARAMS, pitch) \
    FIELD(CUDA_MEMSET_NODE_PARAMS, value) \
    FIELD(CUDA_MEMSET_NODE_PARAMS, elementSize) \
    FIELD(CUDA_MEMSET_NODE_PARAMS, width) \
    FIELD(CUDA_MEMSET_NODE_PARAMS, height) \
    FIELD(CUmemLocation, type) \
    FIELD(CUmemLocation, id) \
    FIELD(CUmemAllocationProp, type) \
    FIELD(CUmemAllocationProp, requestedHandleTypes) \
    FIELD(CUmemAllocationProp, location) \
    FIELD(CUmemAllocationProp, win32HandleMetaData) \
    FIELD(CUmemAllocationProp, allocFlags) \
    FIELD(CUmemAllocationProp, allocFlags.compressionType) \
    FIELD(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable) \
    FIELD(CUmemAllocationProp, allocFlags.usage) \
    FIELD(CUmemAccessDesc, location) \
    FIELD(CUmemAccessDesc, flags) \
    FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, type) \
    FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle.fd) \
    FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size) \
    FIELD(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, flags) \
    FIELD(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, offset) \
    FIELD(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size) \
    FIELD(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, flags)

#ifndef GPUHAL_CUDA_LISTS_ONLY

#define GPUHAL_CUDA_ENUMERATOR(name, value) name = value,
enum { GPUHAL_CUDA_RESULTS(GPUHAL_CUDA_ENUMERATOR) GPUHAL_CUDA_VALUES(GPUHAL_CUDA_ENUMERATOR) };
#undef GPUHAL_CUDA_ENUMERATOR

/* The vendor's enumerations. They are integers here, so that the compiler assumes nothing about a later driver's
 * values. */
typedef unsigned int CUresult;
typedef unsigned int CUdevice_attribute;
typedef unsigned int CUpointer_attribute;
typedef unsigned int CUfunction_attribute;
typedef unsigned int CUstreamCaptureMode;
typedef unsigned int CUstreamCaptureStatus;
typedef unsigned int CUjit_option;
typedef unsigned int CUmemorytype;
typedef unsigned int CUmemAllocationType;
typedef unsigned int CUmemAllocationHandleType;
typedef unsigned int CUmemAllocationGranularity_flags;
typedef unsigned int CUmemLocationType;
typedef unsigned int CUmemAccess_flags;
typedef unsigned int CUexternalMemoryHandleType;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr; /* on every 64-bit system */
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUarray_st *CUarray;
typedef struct CUextMemory_st *CUexternalMemory;

typedef struct CUuuid {
    char bytes[16];
} CUuuid;

typedef struct CUDA_MEMCPY2D {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    void *reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    void *reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUDA_KERNEL_NODE_PARAMS_v1 {
    CUfunction func;
    unsigned int gridDimX, gridDimY, gridDimZ;
    unsigned int blockDimX, blockDimY, blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;

typedef struct CUDA_MEMSET_NODE_PARAMS {
    CUdeviceptr dst;
    size_t pitch; /* unused if there is one row */
    unsigned int value;
    unsigned int elementSize; /* 1, 2 or 4 */
    size_t width;             /* in elements */
    size_t height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct CUmemLocation {
    CUmemLocationType type;
    int id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
    CUexternalMemoryHandleType type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
    } handle;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
    unsigned long long offset;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

#endif
#endif
