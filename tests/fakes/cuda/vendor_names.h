/* tests/fakes/cuda/vendor_names.h: CUDA names that differ from HIP's, for the sources that are built for both vendors
 * (../stream and tests/system/vendor_*_test.c). The table in the rocm folder has HIP's names. */
#ifndef FAKE_CUDA_VENDOR_NAMES_H
#define FAKE_CUDA_VENDOR_NAMES_H

#include "cuda_api.h"

/* VENDOR(name) is a CUDA function whose HIP name differs only in the prefix. CALLED(name) is the function's name in
 * machines and reports. */
#define VENDOR(name)      cu##name
#define CALLED(name)      CALLED_TEXT(VENDOR(name))
#define CALLED_TEXT(name) CALLED_AS(name)
#define CALLED_AS(name)   #name

/* CUDA's symbol or name, if it differs from the common name. */
#define cuDeviceTotalMem     cuDeviceTotalMem_v2
#define cuDeviceSynchronize  cuCtxSynchronize
#define cuEventDestroy       cuEventDestroy_v2
#define cuHostAlloc          cuMemHostAlloc
#define cuHostFree           cuMemFreeHost
#define cuHostRegister       cuMemHostRegister_v2
#define cuHostUnregister     cuMemHostUnregister
#define cuMemAlloc           cuMemAlloc_v2
#define cuMemFree            cuMemFree_v2
#define cuMemGetAddressRange cuMemGetAddressRange_v2
#define cuMemGetInfo         cuMemGetInfo_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuStreamDestroy      cuStreamDestroy_v2

/* The limits of a launch, and the driver's codes: for a block or grid that the device does not have, and for a block
 * that is larger than the code's limit. */
#define VENDOR_ATTRIBUTE_THREADS CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
#define VENDOR_ATTRIBUTE_BLOCK_X CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X
#define VENDOR_ATTRIBUTE_GRID_X  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X
#define VENDOR_THREADS_MAX       UINT64_MAX /* in one dimension of a grid */
#define VENDOR_ERROR_GROUPS      CUDA_ERROR_INVALID_VALUE
#define VENDOR_ERROR_BOUNDS      CUDA_ERROR_INVALID_VALUE

typedef CUdevice vendor_device;
typedef CUstream vendor_stream;
typedef CUevent vendor_event;
typedef CUgraph vendor_graph;
typedef CUgraphNode vendor_node;
typedef CUgraphExec vendor_executable;
typedef CUDA_KERNEL_NODE_PARAMS_v1 vendor_kernel_node;
typedef CUdeviceptr vendor_pointer;
typedef unsigned vendor_word; /* a fill of 32 bits */
typedef CUmodule vendor_module;
typedef CUfunction vendor_function;
typedef CUmemGenericAllocationHandle vendor_allocation;
typedef CUmemAllocationProp vendor_properties;
typedef CUmemAccessDesc vendor_access;
typedef CUexternalMemory vendor_external;
typedef CUDA_EXTERNAL_MEMORY_BUFFER_DESC vendor_external_buffer;

/* Functions that only tests call, in addition to the plugin's functions. */
#define FAKE_TEST_FUNCTIONS(FUNCTION)                                                                                 \
    FUNCTION(CUresult, cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device))                    \
    FUNCTION(CUresult, cuCtxDestroy_v2, (CUcontext context))                                                          \
    FUNCTION(CUresult, cuCtxSetCurrent, (CUcontext context))                                                          \
    FUNCTION(CUresult, cuCtxSynchronize, (void))                                                                      \
    FUNCTION(CUresult, cuStreamCreate, (CUstream * stream, unsigned int flags))                                       \
    FUNCTION(CUresult, cuDevicePrimaryCtxReset_v2, (CUdevice device))                                                 \
    FUNCTION(CUresult, cuStreamQuery, (CUstream stream))                                                              \
    FUNCTION(CUresult, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                          \
    FUNCTION(CUresult, cuStreamEndCapture, (CUstream stream, CUgraph * graph))

/* All functions that the fake exports: FUNCTION(type, name, parameters). */
#define FAKE_CUDA_FUNCTION(name, parameters) FAKE_FUNCTION(CUresult, name, parameters)
#define FAKE_FUNCTIONS                                                                                                \
    GPUHAL_CUDA_FUNCTIONS(FAKE_CUDA_FUNCTION, FAKE_CUDA_FUNCTION)                                                     \
    FAKE_TEST_FUNCTIONS(FAKE_FUNCTION)

#endif
