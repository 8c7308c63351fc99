/* tests/fakes/rocm/vendor_names.h: HIP names that differ from CUDA's, for the sources that are built for both vendors
 * (../stream and tests/system/vendor_*_test.c). The table in the cuda folder has CUDA's names. */
#ifndef FAKE_ROCM_VENDOR_NAMES_H
#define FAKE_ROCM_VENDOR_NAMES_H

#include "hip_api.h"

/* VENDOR(name) is a HIP function whose CUDA name differs only in the prefix. CALLED(name) is the function's name in
 * machines and reports. */
#define VENDOR(name)      hip##name
#define CALLED(name)      CALLED_TEXT(VENDOR(name))
#define CALLED_TEXT(name) CALLED_AS(name)
#define CALLED_AS(name)   #name

/* HIP's own name, if it differs from the common name. */
#define hipEventCreate     hipEventCreateWithFlags
#define hipHostAlloc       hipHostMalloc
#define hipLaunchKernel    hipModuleLaunchKernel
#define hipMemAlloc        hipMalloc
#define hipMemAllocManaged hipMallocManaged
#define hipMemFree         hipFree
#define hipStreamCreate    hipStreamCreateWithFlags

/* The limits of a launch, and the runtime's codes: for a block or grid that the device does not have, and for a block
 * that is larger than the code's launch bounds (ihipLaunchKernel_validate() of hip_module.cpp). */
#define VENDOR_ATTRIBUTE_THREADS hipDeviceAttributeMaxThreadsPerBlock
#define VENDOR_ATTRIBUTE_BLOCK_X hipDeviceAttributeMaxBlockDimX
#define VENDOR_ATTRIBUTE_GRID_X  hipDeviceAttributeMaxGridDimX
#define VENDOR_THREADS_MAX       UINT32_MAX /* in one dimension of a grid */
#define VENDOR_ERROR_GROUPS      hipErrorInvalidConfiguration
#define VENDOR_ERROR_BOUNDS      hipErrorLaunchFailure

typedef hipDevice_t vendor_device;
typedef hipStream_t vendor_stream;
typedef hipEvent_t vendor_event;
typedef hipGraph_t vendor_graph;
typedef hipGraphNode_t vendor_node;
typedef hipGraphExec_t vendor_executable;
typedef hipKernelNodeParams vendor_kernel_node;
typedef void *vendor_pointer;
typedef int vendor_word; /* a fill of 32 bits */
typedef hipModule_t vendor_module;
typedef hipFunction_t vendor_function;
typedef hipMemGenericAllocationHandle_t vendor_allocation;
typedef hipMemAllocationProp vendor_properties;
typedef hipMemAccessDesc vendor_access;
typedef hipExternalMemory_t vendor_external;
typedef hipExternalMemoryBufferDesc vendor_external_buffer;

/* Functions that only tests call, in addition to the plugin's functions. */
#define FAKE_TEST_FUNCTIONS(FUNCTION)                                                                                  \
    FUNCTION(hipError_t, hipPeekAtLastError, (void))                                                                   \
    FUNCTION(hipError_t, hipDeviceSynchronize, (void))                                                                 \
    FUNCTION(hipError_t, hipDeviceReset, (void))                                                                       \
    FUNCTION(hipError_t, hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode))                       \
    FUNCTION(hipError_t, hipStreamEndCapture, (hipStream_t stream, hipGraph_t * graph))                                \
    FUNCTION(hipError_t, hipStreamCreateWithFlags, (hipStream_t * stream, unsigned int flags))                         \
    FUNCTION(hipError_t, hipStreamQuery, (hipStream_t stream))

/* All functions that the fake exports: FAKE_FUNCTION(type, name, parameters). */
#define FAKE_FUNCTIONS                                                                                                 \
    GPUHAL_HIP_FUNCTIONS(FAKE_FUNCTION, FAKE_FUNCTION)                                                                 \
    FAKE_TEST_FUNCTIONS(FAKE_FUNCTION)

#endif
