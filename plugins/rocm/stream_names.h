/* rocm/stream_names.h: the names in plugins/stream for objects that HIP and CUDA name differently.
 *
 * The cuda plugin has the same table with CUDA's names. If HIP and CUDA differ in more than a name, each plugin has a
 * function in its calls.c, declared in ../stream/stream.h.
 */
#ifndef GPUHAL_ROCM_STREAM_NAMES_H
#define GPUHAL_ROCM_STREAM_NAMES_H

#include "driver.h"

/* These macros name, in this order, a function or type of this plugin, a HIP function whose name differs from CUDA's
 * name only in the prefix, and such a function in messages. */
#define GPUHAL_OWN(name)         gpuhal_rocm_##name
#define GPUHAL_VENDOR(name)      gpuhal_rocm_api.hip##name
#define GPUHAL_VENDOR_CALL(name) "hip" #name

typedef hipError_t vendor_code;
typedef hipStream_t vendor_stream;
typedef hipEvent_t vendor_event;
typedef int vendor_context; /* ordinal of a thread's current device */
typedef void *vendor_pointer;
typedef hipMemGenericAllocationHandle_t vendor_allocation;
typedef hipMemAllocationProp vendor_properties;
typedef hipMemAccessDesc vendor_access;
typedef hipExternalMemory_t vendor_external;
typedef hipExternalMemoryHandleDesc vendor_external_handle;
typedef hipExternalMemoryBufferDesc vendor_external_buffer;
typedef hipModule_t vendor_module;
typedef hipFunction_t vendor_function;
typedef hipGraph_t vendor_graph;
typedef hipGraphNode_t vendor_node;
typedef hipGraphExec_t vendor_executable;
typedef hipKernelNodeParams vendor_kernel_node;

#define GPUHAL_VENDOR_OK              hipSuccess
#define GPUHAL_VENDOR_AT(address)     gpuhal_rocm_at(address)
#define GPUHAL_VENDOR_NUMBER(pointer) ((uint64_t)(uintptr_t)(pointer))
#define GPUHAL_VENDOR_CONTEXT(opened) ((opened)->entry->device)
/* The code of the device's loss, or hipSuccess. The macro first checks whether the device was reset, because HIP would
 * use the device's freed objects. */
#define GPUHAL_VENDOR_LOST(opened) gpuhal_rocm_check_reset(opened)

/* rect.c and peer.c */
#define GPUHAL_VENDOR_REFUSES_PITCH(code) ((code) == hipErrorInvalidValue || (code) == hipErrorInvalidPitchValue)
#define GPUHAL_VENDOR_ENABLE_PEER         gpuhal_rocm_api.hipDeviceEnablePeerAccess
#define GPUHAL_VENDOR_ENABLE_PEER_CALL    "hipDeviceEnablePeerAccess"
#define GPUHAL_VENDOR_DISABLE_PEER        gpuhal_rocm_api.hipDeviceDisablePeerAccess
#define GPUHAL_VENDOR_PEER_IS_ENABLED     hipErrorPeerAccessAlreadyEnabled

/* context.c: for a destroyed context or a device that was reset */
#define GPUHAL_VENDOR_GONE hipErrorContextIsDestroyed

/* queue.c */
#define GPUHAL_VENDOR_PRIORITY_RANGE          gpuhal_rocm_api.hipDeviceGetStreamPriorityRange
#define GPUHAL_VENDOR_NON_BLOCKING            hipStreamNonBlocking
#define GPUHAL_VENDOR_MAY_ADOPT_STREAM(value) ((value) != 0 && (value) != GPUHAL_ROCM_LEGACY)
#define GPUHAL_VENDOR_STREAM_SENTENCE                                                                                  \
    "GPUHAL_NATIVE_HIP_STREAM; 0 and 1 stand for the default stream, which cannot be adopted"
#define GPUHAL_VENDOR_PER_THREAD          GPUHAL_ROCM_PER_THREAD
#define GPUHAL_VENDOR_PER_THREAD_NAME     "hipStreamPerThread"
#define GPUHAL_VENDOR_EVENT_CALL          "hipEventCreateWithFlags"
#define GPUHAL_VENDOR_SLEPT_FOR(recorded) ((recorded)->twin)

/* memory.c */
#define GPUHAL_VENDOR_MEMORY_INFO           gpuhal_rocm_api.hipMemGetInfo
#define GPUHAL_VENDOR_ALLOCATE              gpuhal_rocm_api.hipMalloc
#define GPUHAL_VENDOR_ALLOCATE_CALL         "hipMalloc"
#define GPUHAL_VENDOR_ALLOCATE_HOST         gpuhal_rocm_api.hipHostMalloc
#define GPUHAL_VENDOR_ALLOCATE_HOST_FLAGS   (hipHostMallocPortable | hipHostMallocMapped)
#define GPUHAL_VENDOR_ALLOCATE_HOST_CALL    "hipHostMalloc"
#define GPUHAL_VENDOR_ALLOCATE_MANAGED      gpuhal_rocm_api.hipMallocManaged
#define GPUHAL_VENDOR_ALLOCATE_MANAGED_CALL "hipMallocManaged"
#define GPUHAL_VENDOR_MANAGED_FOR_ALL       hipMemAttachGlobal
#define GPUHAL_VENDOR_FREE_HOST             gpuhal_rocm_api.hipHostFree
#define GPUHAL_VENDOR_HOST_ADDRESS_CALL     "hipHostGetDevicePointer"
#define GPUHAL_VENDOR_MEMORY_TYPE           "GPUHAL_NATIVE_HIP_MEMORY"

/* virtual_memory.c and share.c */
#define GPUHAL_VENDOR_FREE                gpuhal_rocm_api.hipFree
#define GPUHAL_VENDOR_GRANULARITY_MINIMUM hipMemAllocationGranularityMinimum
#define GPUHAL_VENDOR_FILE_DESCRIPTOR     hipMemHandleTypePosixFileDescriptor
#define GPUHAL_VENDOR_OPAQUE_FD           hipExternalMemoryHandleTypeOpaqueFd
/* HIP does not document who owns the descriptor after an import of external memory. At least up to HIP 6.2, HIP leaves
 * the descriptor open. So the plugin closes the descriptor, if it is still open, when the memory is released. */
#define GPUHAL_VENDOR_OWNS_DESCRIPTORS false
#define GPUHAL_VENDOR_UNKNOWN          hipErrorUnknown
#define GPUHAL_VENDOR_NOT_READY        hipErrorNotReady
#define GPUHAL_VENDOR_INVALID_VALUE    hipErrorInvalidValue
#define GPUHAL_VENDOR_NOT_SUPPORTED    hipErrorNotSupported
#define GPUHAL_VENDOR_OPERATING_SYSTEM hipErrorOperatingSystem
#define GPUHAL_VENDOR_PROPERTIES(ordinal, exported)                                                                    \
    {                                                                                                                  \
        .type = hipMemAllocationTypePinned,                                                                            \
        .requestedHandleType = (exported) ? GPUHAL_VENDOR_FILE_DESCRIPTOR : hipMemHandleTypeNone,                      \
        .location = {.type = hipMemLocationTypeDevice, .id = (ordinal)},                                               \
    }
#define GPUHAL_VENDOR_READ_WRITE(ordinal)                                                                              \
    {                                                                                                                  \
        .location = {.type = hipMemLocationTypeDevice, .id = (ordinal)}, .flags = hipMemAccessFlagsProtReadWrite,      \
    }

/* registration.c */
#define GPUHAL_VENDOR_ADOPTED(opened)   ((void)(opened), false) /* registrations do not depend on a context */
#define GPUHAL_VENDOR_OUT_OF_MEMORY     hipErrorOutOfMemory
#define GPUHAL_VENDOR_IS_REGISTERED     hipErrorHostMemoryAlreadyRegistered
#define GPUHAL_VENDOR_IS_NOT_REGISTERED hipErrorHostMemoryNotRegistered
#define GPUHAL_VENDOR_UNREGISTER_CALL   "hipHostUnregister"

/* program.c */
#define GPUHAL_VENDOR_FORMATS             "hsaco hip-fatbin"
#define GPUHAL_VENDOR_OPTIONS             "HIP compiles nothing, so there are none"
#define GPUHAL_VENDOR_LOAD_CALL           "hipModuleLoadData"
#define GPUHAL_VENDOR_PARAMETER_CALL      "hipModuleGetFunction"
#define GPUHAL_VENDOR_FUNCTION(attribute) HIP_FUNC_ATTRIBUTE_##attribute
/* Maximum number of threads of a launch in one dimension: HIP passes it on in 32 bits (hipModuleLaunchKernel in its
 * manual). */
#define GPUHAL_VENDOR_THREADS_MAX UINT32_MAX
/* HIP does not copy the image, and reads it when a kernel is first requested. */
#define GPUHAL_VENDOR_READS_IMAGE_LATER    true
#define GPUHAL_VENDOR_LAUNCH               gpuhal_rocm_api.hipModuleLaunchKernel
#define GPUHAL_VENDOR_LAUNCH_CALL          "hipModuleLaunchKernel"
#define GPUHAL_VENDOR_REFUSES_LAUNCH(code) ((code) == hipErrorInvalidValue || (code) == hipErrorInvalidConfiguration)

/* recording.c */
#define GPUHAL_VENDOR_COPY_NODE_CALL "hipGraphAddMemcpyNode1D"
/* Updates of an executable graph before it is instantiated again: none, see hip_versions.h. */
#define GPUHAL_VENDOR_UPDATES_MAX 0u

/* facts.c and plugin.c */
#define GPUHAL_VENDOR_PLUGIN                 "rocm"
#define GPUHAL_VENDOR_API                    "HIP"
#define GPUHAL_VENDOR_SPEAKER                "HIP"
#define GPUHAL_VENDOR_COMPANY                "AMD"
#define GPUHAL_VENDOR_PCI_ID                 0x1002
#define GPUHAL_VENDOR_NATIVE(kind)           GPUHAL_NATIVE_HIP_##kind
#define GPUHAL_VENDOR_NO_DRIVER_VERSION      "neither the kernel's amdgpu driver nor HIP reports a version"
#define GPUHAL_VENDOR_ATTRIBUTE_MAJOR        hipDeviceAttributeComputeCapabilityMajor
#define GPUHAL_VENDOR_ATTRIBUTE_MINOR        hipDeviceAttributeComputeCapabilityMinor
#define GPUHAL_VENDOR_ATTRIBUTE_WARP         hipDeviceAttributeWarpSize
#define GPUHAL_VENDOR_ATTRIBUTE_GROUP_SIZE   hipDeviceAttributeMaxThreadsPerBlock
#define GPUHAL_VENDOR_ATTRIBUTE_GROUP_MEMORY hipDeviceAttributeMaxSharedMemoryPerBlock
#define GPUHAL_VENDOR_ATTRIBUTE_GROUPS_X     hipDeviceAttributeMaxGridDimX
#define GPUHAL_VENDOR_ATTRIBUTE_INTEGRATED   hipDeviceAttributeIntegrated
#define GPUHAL_VENDOR_ATTRIBUTE_COMPUTE_MODE hipDeviceAttributeComputeMode
#define GPUHAL_VENDOR_ATTRIBUTE_PAGEABLE     hipDeviceAttributePageableMemoryAccess

#endif
