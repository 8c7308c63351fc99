/* cuda/stream_names.h: the names that the sources in plugins/stream have for what CUDA calls otherwise than HIP.
 *
 * The rocm plugin has the same table with HIP's names. Where the two differ in more than a name, each has a function
 * in its calls.c, which ../stream/stream.h declares.
 */
#ifndef GPUHAL_CUDA_STREAM_NAMES_H
#define GPUHAL_CUDA_STREAM_NAMES_H

#include "driver.h"

/* A function or type of this plugin; a function of CUDA's with the name that HIP has too, but for the prefix; how
 * messages call it. */
#define GPUHAL_OWN(name)         gpuhal_cuda_##name
#define GPUHAL_VENDOR(name)      gpuhal_cuda_api.cu##name
#define GPUHAL_VENDOR_CALL(name) "cu" #name

typedef CUresult vendor_code;
typedef CUstream vendor_stream;
typedef CUcontext vendor_peer; /* what access between two devices is given to */

#define GPUHAL_VENDOR_OK           CUDA_SUCCESS
#define GPUHAL_VENDOR_AT(address)  ((CUdeviceptr)(address))
#define GPUHAL_VENDOR_PEER(opened) ((opened)->context)
/* The code with which the device was lost, 0 while it works. */
#define GPUHAL_VENDOR_LOST(opened) gpuhal_cuda_lost_code(opened)

/* Where messages name another call than HIP's. */
#define GPUHAL_VENDOR_ENTER "cuCtxPushCurrent"
#define GPUHAL_VENDOR_WRITE "cuMemcpyHtoDAsync"
#define GPUHAL_VENDOR_READ  "cuMemcpyDtoHAsync"
#define GPUHAL_VENDOR_COPY  "cuMemcpyDtoDAsync"

/* rect.c and peer.c */
#define GPUHAL_VENDOR_REFUSES_PITCH(code) ((code) == CUDA_ERROR_INVALID_VALUE)
#define GPUHAL_VENDOR_ENABLE_PEER         gpuhal_cuda_api.cuCtxEnablePeerAccess
#define GPUHAL_VENDOR_ENABLE_PEER_CALL    "cuCtxEnablePeerAccess"
#define GPUHAL_VENDOR_DISABLE_PEER        gpuhal_cuda_api.cuCtxDisablePeerAccess
#define GPUHAL_VENDOR_PEER_IS_ENABLED     CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED

/* facts.c and plugin.c */
#define GPUHAL_VENDOR_PLUGIN               "cuda"
#define GPUHAL_VENDOR_API                  "CUDA"
#define GPUHAL_VENDOR_SPEAKER              "the driver"
#define GPUHAL_VENDOR_COMPANY              "NVIDIA"
#define GPUHAL_VENDOR_PCI_ID               0x10de
#define GPUHAL_VENDOR_NATIVE(kind)         GPUHAL_NATIVE_CUDA_##kind
#define GPUHAL_VENDOR_NO_DRIVER_VERSION    "NVML does not tell it, and the system neither"
#define GPUHAL_VENDOR_ATTRIBUTE_MAJOR      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
#define GPUHAL_VENDOR_ATTRIBUTE_MINOR      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
#define GPUHAL_VENDOR_ATTRIBUTE_INTEGRATED CU_DEVICE_ATTRIBUTE_INTEGRATED
/* Where the kernel only moves pages to the device when they are touched (HMM) the driver stages copies as ever. */
#define GPUHAL_VENDOR_ATTRIBUTE_PAGEABLE CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES

#endif
