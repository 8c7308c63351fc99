/* rocm/hip_api.h: the part of HIP (libamdhip64.so) that this plugin uses, declared from AMD's documentation.
 *
 * All declarations are list macros, because they have several users. The plugin generates its function table from the
 * lists, the fake library generates its prototypes, and a test compiles the lists against the vendor's header. With
 * GPUHAL_HIP_LISTS_ONLY this file omits its types, so that the names in the lists refer to the vendor's types.
 *
 * Only declarations that are the same in HIP 5, 6 and 7 are listed here. hip_versions.h lists the other declarations,
 * and the functions that are avoided because they differ between versions. The required functions are those of HIP 5.0.
 * Functions that are newer or may be missing are optional.
 */
#ifndef GPUHAL_HIP_API_H
#define GPUHAL_HIP_API_H

#include <stddef.h>
#include <stdint.h>

#define GPUHAL_HIP_FUNCTIONS(REQUIRED, OPTIONAL) \
    REQUIRED(hipError_t, hipInit, (unsigned int flags)) \
    REQUIRED(hipError_t, hipRuntimeGetVersion, (int *version)) \
    REQUIRED(const char *, hipGetErrorName, (hipError_t code)) \
    REQUIRED(const char *, hipGetErrorString, (hipError_t code)) \
    REQUIRED(hipError_t, hipGetLastError, (void)) \
    REQUIRED(hipError_t, hipGetDeviceCount, (int *count)) \
    REQUIRED(hipError_t, hipGetDevice, (int *device)) \
    REQUIRED(hipError_t, hipSetDevice, (int device)) \
    REQUIRED(hipError_t, hipDeviceGet, (hipDevice_t *device, int ordinal)) \
    REQUIRED(hipError_t, hipDeviceGetName, (char *name, int length, hipDevice_t device)) \
    REQUIRED(hipError_t, hipDeviceTotalMem, (size_t *bytes, hipDevice_t device)) \
    REQUIRED(hipError_t, hipDeviceGetAttribute, (int *value, hipDeviceAttribute_t attribute, int device)) \
    REQUIRED(hipError_t, hipDeviceGetPCIBusId, (char *address, int length, int device)) \
    OPTIONAL(hipError_t, hipDeviceGetUuid, (hipUUID *uuid, hipDevice_t device)) \
    REQUIRED(hipError_t, hipDeviceGetStreamPriorityRange, (int *least, int *greatest)) \
    REQUIRED(hipError_t, hipMemGetInfo, (size_t *free_bytes, size_t *total_bytes)) \
    REQUIRED(hipError_t, hipMalloc, (void **address, size_t bytes)) \
    REQUIRED(hipError_t, hipFree, (void *address)) \
    OPTIONAL(hipError_t, hipMallocManaged, (void **memory, size_t bytes, unsigned int flags)) \
    REQUIRED(hipError_t, hipHostMalloc, (void **memory, size_t bytes, unsigned int flags)) \
    REQUIRED(hipError_t, hipHostFree, (void *memory)) \
    REQUIRED(hipError_t, hipHostGetDevicePointer, (void **address, void *memory, unsigned int flags)) \
    REQUIRED(hipError_t, hipHostRegister, (void *memory, size_t bytes, unsigned int flags)) \
    REQUIRED(hipError_t, hipHostUnregister, (void *memory)) \
    REQUIRED(hipError_t, hipPointerGetAttribute, (void *value, hipPointer_attribute attribute, \
                                                  hipDeviceptr_t address)) \
    REQUIRED(hipError_t, hipMemGetAddressRange, (hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t address)) \
    REQUIRED(hipError_t, hipMemcpyAsync, (void *to, const void *from, size_t bytes, hipMemcpyKind kind, \
                                          hipStream_t stream)) \
    REQUIRED(hipError_t, hipMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, \
                                            size_t width, \
                                            size_t height, hipMemcpyKind kind, hipStream_t stream)) \
    REQUIRED(hipError_t, hipMemcpyPeerAsync, (void *to, int to_device, const void *from, int from_device, \
                                              size_t bytes, \
                                              hipStream_t stream)) \
    REQUIRED(hipError_t, hipMemsetD8Async, (hipDeviceptr_t to, unsigned char value, size_t count, \
                                            hipStream_t stream)) \
    REQUIRED(hipError_t, hipMemsetD16Async, (hipDeviceptr_t to, unsigned short value, size_t count, \
                                             hipStream_t stream)) \
    REQUIRED(hipError_t, hipMemsetD32Async, (hipDeviceptr_t to, int value, size_t count, hipStream_t stream)) \
    REQUIRED(hipError_t, hipStreamCreateWithPriority, (hipStream_t *stream, unsigned int flags, int priority)) \
    REQUIRED(hipError_t, hipStreamDestroy, (hipStream_t stream)) \
    REQUIRED(hipError_t, hipStreamSynchronize, (hipStream_t stream)) \
    REQUIRED(hipError_t, hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned int flags)) \
    OPTIONAL(hipError_t, hipStreamGetDevice, (hipStream_t stream, hipDevice_t *device)) \
    OPTIONAL(int, hipGetStreamDeviceId, (hipStream_t stream)) \
    OPTIONAL(hipError_t, hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status)) \
    OPTIONAL(hipError_t, hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode *mode)) \
    REQUIRED(hipError_t, hipEventCreateWithFlags, (hipEvent_t *event, unsigned flags)) \
    REQUIRED(hipError_t, hipEventDestroy, (hipEvent_t event)) \
    REQUIRED(hipError_t, hipEventRecord, (hipEvent_t event, hipStream_t stream)) \
    REQUIRED(hipError_t, hipEventQuery, (hipEvent_t event)) \
    REQUIRED(hipError_t, hipEventSynchronize, (hipEvent_t event)) \
    REQUIRED(hipError_t, hipEventElapsedTime, (float *milliseconds, hipEvent_t from, hipEvent_t to)) \
    REQUIRED(hipError_t, hipDeviceCanAccessPeer, (int *can, int device, int peer)) \
    REQUIRED(hipError_t, hipDeviceEnablePeerAccess, (int peer, unsigned int flags)) \
    REQUIRED(hipError_t, hipDeviceDisablePeerAccess, (int peer)) \
    OPTIONAL(hipError_t, hipExtGetLinkTypeAndHopCount, (int from, int to, uint32_t *type, uint32_t *hops)) \
    REQUIRED(hipError_t, hipModuleLoadData, (hipModule_t *module, const void *image)) \
    REQUIRED(hipError_t, hipModuleUnload, (hipModule_t module)) \
    REQUIRED(hipError_t, hipModuleGetFunction, (hipFunction_t *function, hipModule_t module, const char *name)) \
    OPTIONAL(hipError_t, hipFuncGetAttribute, (int *value, hipFunction_attribute attribute, hipFunction_t function)) \
    REQUIRED(hipError_t, hipModuleLaunchKernel, (hipFunction_t function, unsigned int grid_x, unsigned int grid_y, \
                                                 unsigned int grid_z, unsigned int block_x, unsigned int block_y, \
                                                 unsigned int block_z, unsigned int shared_bytes, hipStream_t stream, \
                                                 void **parameters, void **extra)) \
    OPTIONAL(hipError_t, hipGraphCreate, (hipGraph_t *graph, unsigned int flags)) \
    OPTIONAL(hipError_t, hipGraphDestroy, (hipGraph_t graph)) \
    OPTIONAL(hipError_t, hipGraphAddKernelNode, (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, \
                                                 size_t count, const hipKernelNodeParams *parameters)) \
    OPTIONAL(hipError_t, hipGraphAddMemcpyNode1D, (hipGraphNode_t *node, hipGraph_t graph, \
                                                   const hipGraphNode_t *after, size_t count, void *to, \
                                                   const void *from, size_t bytes, hipMemcpyKind kind)) \
    OPTIONAL(hipError_t, hipGraphAddMemsetNode, (hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, \
                                                 size_t count, const hipMemsetParams *parameters)) \
    OPTIONAL(hipError_t, hipGraphKernelNodeSetParams, (hipGraphNode_t node, const hipKernelNodeParams *parameters)) \
    OPTIONAL(hipError_t, hipGraphInstantiateWithFlags, (hipGraphExec_t *executable, hipGraph_t graph, \
                                                        unsigned long long flags)) \
    OPTIONAL(hipError_t, hipGraphExecKernelNodeSetParams, (hipGraphExec_t executable, hipGraphNode_t node, \
                                                           const hipKernelNodeParams *parameters)) \
    OPTIONAL(hipError_t, hipGraphLaunch, (hipGraphExec_t executable, hipStream_t stream)) \
    OPTIONAL(hipError_t, hipGraphExecDestroy, (hipGraphExec_t executable)) \
    OPTIONAL(hipError_t, hipMemGetAllocationGranularity, (size_t *bytes, const hipMemAllocationProp *properties, \
                                                          hipMemAllocationGranularity_flags which)) \
    OPTIONAL(hipError_t, hipMemAddressReserve, (void **address, size_t bytes, size_t alignment, void *wanted, \
                                                unsigned long long flags)) \
    OPTIONAL(hipError_t, hipMemAddressFree, (void *address, size_t bytes)) \
    OPTIONAL(hipError_t, hipMemCreate, (hipMemGenericAllocationHandle_t *handle, size_t bytes, \
                                        const hipMemAllocationProp *properties, unsigned long long flags)) \
    OPTIONAL(hipError_t, hipMemRelease, (hipMemGenericAllocationHandle_t handle)) \
    OPTIONAL(hipError_t, hipMemMap, (void *address, size_t bytes, size_t offset, \
                                     hipMemGenericAllocationHandle_t handle, \
                                     unsigned long long flags)) \
    OPTIONAL(hipError_t, hipMemUnmap, (void *address, size_t bytes)) \
    OPTIONAL(hipError_t, hipMemSetAccess, (void *address, size_t bytes, const hipMemAccessDesc *access, \
                                           size_t count)) \
    OPTIONAL(hipError_t, hipMemExportToShareableHandle, (void *out_handle, hipMemGenericAllocationHandle_t handle, \
                                                         hipMemAllocationHandleType type, unsigned long long flags)) \
    OPTIONAL(hipError_t, hipMemImportFromShareableHandle, (hipMemGenericAllocationHandle_t *handle, void *os_handle, \
                                                           hipMemAllocationHandleType type)) \
    OPTIONAL(hipError_t, hipImportExternalMemory, (hipExternalMemory_t *memory, \
                                                   const hipExternalMemoryHandleDesc *handle)) \
    OPTIONAL(hipError_t, hipDestroyExternalMemory, (hipExternalMemory_t memory)) \
    OPTIONAL(hipError_t, hipExternalMemoryGetMappedBuffer, (void **address, hipExternalMemory_t memory, \
                                                            const hipExternalMemoryBufferDesc *buffer))

/* All codes of HIP 5 to 7. If a code has two names, the list contains the name that is not deprecated. */
#define GPUHAL_HIP_RESULTS(VALUE) \
    VALUE(hipSuccess, 0) \
    VALUE(hipErrorInvalidValue, 1) \
    VALUE(hipErrorOutOfMemory, 2) \
    VALUE(hipErrorNotInitialized, 3) \
    VALUE(hipErrorDeinitialized, 4) \
    VALUE(hipErrorProfilerDisabled, 5) \
    VALUE(hipErrorProfilerNotInitialized, 6) \
    VALUE(hipErrorProfilerAlreadyStarted, 7) \
    VALUE(hipErrorProfilerAlreadyStopped, 8) \
    VALUE(hipErrorInvalidConfiguration, 9) \
    VALUE(hipErrorInvalidPitchValue, 12) \
    VALUE(hipErrorInvalidSymbol, 13) \
    VALUE(hipErrorInvalidDevicePointer, 17) \
    VALUE(hipErrorInvalidMemcpyDirection, 21) \
    VALUE(hipErrorInsufficientDriver, 35) \
    VALUE(hipErrorMissingConfiguration, 52) \
    VALUE(hipErrorPriorLaunchFailure, 53) \
    VALUE(hipErrorInvalidDeviceFunction, 98) \
    VALUE(hipErrorNoDevice, 100) \
    VALUE(hipErrorInvalidDevice, 101) \
    VALUE(hipErrorInvalidImage, 200) \
    VALUE(hipErrorInvalidContext, 201) \
    VALUE(hipErrorContextAlreadyCurrent, 202) \
    VALUE(hipErrorMapFailed, 205) \
    VALUE(hipErrorUnmapFailed, 206) \
    VALUE(hipErrorArrayIsMapped, 207) \
    VALUE(hipErrorAlreadyMapped, 208) \
    VALUE(hipErrorNoBinaryForGpu, 209) \
    VALUE(hipErrorAlreadyAcquired, 210) \
    VALUE(hipErrorNotMapped, 211) \
    VALUE(hipErrorNotMappedAsArray, 212) \
    VALUE(hipErrorNotMappedAsPointer, 213) \
    VALUE(hipErrorECCNotCorrectable, 214) \
    VALUE(hipErrorUnsupportedLimit, 215) \
    VALUE(hipErrorContextAlreadyInUse, 216) \
    VALUE(hipErrorPeerAccessUnsupported, 217) \
    VALUE(hipErrorInvalidKernelFile, 218) \
    VALUE(hipErrorInvalidGraphicsContext, 219) \
    VALUE(hipErrorInvalidSource, 300) \
    VALUE(hipErrorFileNotFound, 301) \
    VALUE(hipErrorSharedObjectSymbolNotFound, 302) \
    VALUE(hipErrorSharedObjectInitFailed, 303) \
    VALUE(hipErrorOperatingSystem, 304) \
    VALUE(hipErrorInvalidHandle, 400) \
    VALUE(hipErrorIllegalState, 401) \
    VALUE(hipErrorNotFound, 500) \
    VALUE(hipErrorNotReady, 600) \
    VALUE(hipErrorIllegalAddress, 700) \
    VALUE(hipErrorLaunchOutOfResources, 701) \
    VALUE(hipErrorLaunchTimeOut, 702) \
    VALUE(hipErrorPeerAccessAlreadyEnabled, 704) \
    VALUE(hipErrorPeerAccessNotEnabled, 705) \
    VALUE(hipErrorSetOnActiveProcess, 708) \
    VALUE(hipErrorContextIsDestroyed, 709) \
    VALUE(hipErrorAssert, 710) \
    VALUE(hipErrorHostMemoryAlreadyRegistered, 712) \
    VALUE(hipErrorHostMemoryNotRegistered, 713) \
    VALUE(hipErrorLaunchFailure, 719) \
    VALUE(hipErrorCooperativeLaunchTooLarge, 720) \
    VALUE(hipErrorNotSupported, 801) \
    VALUE(hipErrorStreamCaptureUnsupported, 900) \
    VALUE(hipErrorStreamCaptureInvalidated, 901) \
    VALUE(hipErrorStreamCaptureMerge, 902) \
    VALUE(hipErrorStreamCaptureUnmatched, 903) \
    VALUE(hipErrorStreamCaptureUnjoined, 904) \
    VALUE(hipErrorStreamCaptureIsolation, 905) \
    VALUE(hipErrorStreamCaptureImplicit, 906) \
    VALUE(hipErrorCapturedEvent, 907) \
    VALUE(hipErrorStreamCaptureWrongThread, 908) \
    VALUE(hipErrorGraphExecUpdateFailure, 910) \
    VALUE(hipErrorInvalidChannelDescriptor, 911) \
    VALUE(hipErrorInvalidTexture, 912) \
    VALUE(hipErrorUnknown, 999) \
    VALUE(hipErrorRuntimeMemory, 1052) \
    VALUE(hipErrorRuntimeOther, 1053)

/* In AMD's header some of these values are macros and others are enumerators. */
#define GPUHAL_HIP_VALUES(VALUE) \
    VALUE(hipDeviceAttributeAsyncEngineCount, 2) \
    VALUE(hipDeviceAttributeCanMapHostMemory, 3) \
    VALUE(hipDeviceAttributeClockRate, 5) \
    VALUE(hipDeviceAttributeComputeMode, 6) \
    VALUE(hipDeviceAttributeConcurrentManagedAccess, 9) \
    VALUE(hipDeviceAttributeIntegrated, 16) \
    VALUE(hipDeviceAttributeComputeCapabilityMajor, 23) \
    VALUE(hipDeviceAttributeManagedMemory, 24) \
    VALUE(hipDeviceAttributeMaxBlockDimX, 26) \
    VALUE(hipDeviceAttributeMaxBlockDimY, 27) \
    VALUE(hipDeviceAttributeMaxBlockDimZ, 28) \
    VALUE(hipDeviceAttributeMaxGridDimX, 29) \
    VALUE(hipDeviceAttributeMaxGridDimY, 30) \
    VALUE(hipDeviceAttributeMaxGridDimZ, 31) \
    VALUE(hipDeviceAttributeMaxThreadsPerBlock, 56) \
    VALUE(hipDeviceAttributeMaxPitch, 58) \
    VALUE(hipDeviceAttributeMemoryBusWidth, 59) \
    VALUE(hipDeviceAttributeMemoryClockRate, 60) \
    VALUE(hipDeviceAttributeComputeCapabilityMinor, 61) \
    VALUE(hipDeviceAttributeMultiprocessorCount, 63) \
    VALUE(hipDeviceAttributePageableMemoryAccess, 65) \
    VALUE(hipDeviceAttributeMaxSharedMemoryPerBlock, 74) \
    VALUE(hipDeviceAttributeWarpSize, 87) \
    VALUE(hipComputeModeDefault, 0) \
    VALUE(hipComputeModeExclusive, 1) \
    VALUE(hipComputeModeProhibited, 2) \
    VALUE(hipComputeModeExclusiveProcess, 3) \
    VALUE(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, 2) \
    VALUE(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0) \
    VALUE(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1) \
    VALUE(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3) \
    VALUE(HIP_FUNC_ATTRIBUTE_NUM_REGS, 4) \
    VALUE(HIP_POINTER_ATTRIBUTE_BUFFER_ID, 7) \
    VALUE(HIP_POINTER_ATTRIBUTE_IS_MANAGED, 8) \
    VALUE(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9) \
    VALUE(hipMemcpyHostToHost, 0) \
    VALUE(hipMemcpyHostToDevice, 1) \
    VALUE(hipMemcpyDeviceToHost, 2) \
    VALUE(hipMemcpyDeviceToDevice, 3) \
    VALUE(hipMemcpyDefault, 4) \
    VALUE(hipMemAttachGlobal, 1) \
    VALUE(hipHostMallocPortable, 1) \
    VALUE(hipHostMallocMapped, 2) \
    VALUE(hipHostRegisterPortable, 1) \
    VALUE(hipHostRegisterMapped, 2) \
    VALUE(hipExtHostRegisterCoarseGrained, 8) \
    VALUE(hipStreamCaptureModeRelaxed, 2) \
    VALUE(hipStreamCaptureStatusNone, 0) \
    VALUE(hipStreamNonBlocking, 1) \
    VALUE(hipEventBlockingSync, 1) \
    VALUE(hipEventDisableTiming, 2) \
    VALUE(hipMemHandleTypeNone, 0) \
    VALUE(hipMemHandleTypePosixFileDescriptor, 1) \
    VALUE(hipMemAllocationTypePinned, 1) \
    VALUE(hipMemLocationTypeDevice, 1) \
    VALUE(hipMemAccessFlagsProtReadWrite, 3) \
    VALUE(hipMemAllocationGranularityMinimum, 0) \
    VALUE(hipMemAllocationGranularityRecommended, 1) \
    VALUE(hipExternalMemoryHandleTypeOpaqueFd, 1)

/* Types whose size matters, and the members of the structures. The structures for external memory are larger in later
 * versions (hip_versions.h), so only their members are the same in all versions. */
#define GPUHAL_HIP_TYPES(TYPE) \
    TYPE(hipError_t) \
    TYPE(hipDevice_t) \
    TYPE(hipDeviceAttribute_t) \
    TYPE(hipPointer_attribute) \
    TYPE(hipFunction_attribute) \
    TYPE(hipStreamCaptureMode) \
    TYPE(hipStreamCaptureStatus) \
    TYPE(hipMemcpyKind) \
    TYPE(hipDeviceptr_t) \
    TYPE(hipStream_t) \
    TYPE(hipEvent_t) \
    TYPE(hipModule_t) \
    TYPE(hipFunction_t) \
    TYPE(hipGraph_t) \
    TYPE(hipGraphNode_t) \
    TYPE(hipGraphExec_t) \
    TYPE(hipKernelNodeParams) \
    TYPE(hipMemsetParams) \
    TYPE(hipExternalMemory_t) \
    TYPE(hipMemGenericAllocationHandle_t) \
    TYPE(hipMemAllocationGranularity_flags) \
    TYPE(hipMemAllocationHandleType) \
    TYPE(hipUUID) \
    TYPE(hipMemLocation) \
    TYPE(hipMemAllocationProp) \
    TYPE(hipMemAccessDesc)

#define GPUHAL_HIP_FIELDS(FIELD) \
    FIELD(hipUUID, bytes) \
    FIELD(hipKernelNodeParams, blockDim) \
    FIELD(hipKernelNodeParams, extra) \
    FIELD(hipKernelNodeParams, func) \
    FIELD(hipKernelNodeParams, gridDim) \
    FIELD(hipKernelNodeParams, kernelParams) \
    FIELD(hipKernelNodeParams, sharedMemBytes) \
    FIELD(hipMemsetParams, dst) \
    FIELD(hipMemsetParams, elementSize) \
    FIELD(hipMemsetParams, height) \
    FIELD(hipMemsetParams, pitch) \
    FIELD(hipMemsetParams, value) \
    FIELD(hipMemsetParams, width) \
    FIELD(hipMemLocation, type) \
    FIELD(hipMemLocation, id) \
    FIELD(hipMemAccessDesc, location) \
    FIELD(hipMemAccessDesc, flags) \
    FIELD(hipExternalMemoryHandleDesc, type) \
    FIELD(hipExternalMemoryHandleDesc, handle.fd) \
    FIELD(hipExternalMemoryHandleDesc, size) \
    FIELD(hipExternalMemoryHandleDesc, flags) \
    FIELD(hipExternalMemoryBufferDesc, offset) \
    FIELD(hipExternalMemoryBufferDesc, size) \
    FIELD(hipExternalMemoryBufferDesc, flags)

/* Members whose offset is different in headers that lack the last identifier of the line. The structure is not used
 * with runtimes of these versions. */
#define GPUHAL_HIP_LATER_FIELDS(LATER) \
    LATER(hipMemAllocationProp, type, hipDeviceAttributeVirtualMemoryManagementSupported) \
    LATER(hipMemAllocationProp, requestedHandleType, hipDeviceAttributeVirtualMemoryManagementSupported) \
    LATER(hipMemAllocationProp, location, hipDeviceAttributeVirtualMemoryManagementSupported) \
    LATER(hipMemAllocationProp, win32HandleMetaData, hipDeviceAttributeVirtualMemoryManagementSupported)

#ifndef GPUHAL_HIP_LISTS_ONLY

#define GPUHAL_HIP_ENUMERATOR(name, value) name = value,
enum { GPUHAL_HIP_RESULTS(GPUHAL_HIP_ENUMERATOR) GPUHAL_HIP_VALUES(GPUHAL_HIP_ENUMERATOR) };
#undef GPUHAL_HIP_ENUMERATOR

/* Vendor enumerations, declared as integers so that the compiler assumes nothing about a later runtime's values. */
typedef unsigned int hipError_t;
typedef unsigned int hipDeviceAttribute_t;
typedef unsigned int hipFunction_attribute;
typedef unsigned int hipPointer_attribute;
typedef unsigned int hipStreamCaptureMode;
typedef unsigned int hipStreamCaptureStatus;
typedef unsigned int hipMemcpyKind;
typedef unsigned int hipMemAllocationType;
typedef unsigned int hipMemAllocationHandleType;
typedef unsigned int hipMemAllocationGranularity_flags;
typedef unsigned int hipMemLocationType;
typedef unsigned int hipMemAccessFlags;
typedef unsigned int hipExternalMemoryHandleType;

typedef int hipDevice_t; /* the ordinal */
typedef void *hipDeviceptr_t;
typedef void *hipExternalMemory_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;

typedef struct hipUUID {
    char bytes[16];
} hipUUID;

typedef struct hipKernelNodeParams {
    struct {
        uint32_t x, y, z;
    } blockDim;
    void **extra;
    void *func;
    struct {
        uint32_t x, y, z;
    } gridDim;
    void **kernelParams;
    unsigned int sharedMemBytes;
} hipKernelNodeParams;

typedef struct hipMemsetParams {
    void *dst;
    unsigned int elementSize; /* 1, 2 or 4 */
    size_t height;
    size_t pitch; /* unused if there is one row */
    unsigned int value;
    size_t width; /* in elements */
} hipMemsetParams;

typedef struct hipMemLocation {
    hipMemLocationType type;
    int id;
} hipMemLocation;

typedef struct hipMemAllocationProp {
    hipMemAllocationType type;
    hipMemAllocationHandleType requestedHandleType;
    hipMemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
    } allocFlags;
} hipMemAllocationProp;

typedef struct hipMemAccessDesc {
    hipMemLocation location;
    hipMemAccessFlags flags;
} hipMemAccessDesc;

/* Includes the reserved words of HIP 6 and 7. These words are zero, and HIP 5 does not read them. */
typedef struct hipExternalMemoryHandleDesc {
    hipExternalMemoryHandleType type;
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
} hipExternalMemoryHandleDesc;

typedef struct hipExternalMemoryBufferDesc {
    unsigned long long offset;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} hipExternalMemoryBufferDesc;

#endif
#endif
