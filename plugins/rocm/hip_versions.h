/* rocm/hip_versions.h: the differences between HIP 5, 6 and 7. hip_api.h has the common declarations.
 *
 * Selected by version, below:
 *   memory types     hipMemoryTypeHost and hipMemoryTypeDevice are 0 and 1 before HIP 6, and 1 and 2 since
 *   attributes       hipDeviceAttributeVirtualMemoryManagementSupported (89) was added in HIP 5.3,
 *                    hipDeviceAttributeHostRegisterSupported (90) in HIP 6.0; those of hip_api.h before HIP 5
 *   mappings         before HIP 7 hipMemMap always returns success, and hipMemUnmap of an unmapped range may crash
 *   unknown memory   before HIP 6.2 querying its type dereferences its address as a pointer
 *   several pieces   copies before 6.2, also between devices, and fills before 6.3 end with the piece of physical
 *                    memory at their start; copies of rectangles do so in every version
 *   last errors      before HIP 7 every call replaces its thread's last error, since then only failed calls
 *   descriptors      hipMemImportFromShareableHandle takes a pointer to the descriptor, since HIP 7.1 the descriptor
 *                    in place of the pointer; before HIP 7.1 this would crash
 *   graphs           used since HIP 6.4 (hip_graph_internal.cpp). Before 6.3 graphs write a kernel's arguments, which
 *                    all threads share, without the lock that a launch holds. In 6.2 and 6.3 hipEventSynchronize of any
 *                    event frees destroyed executable graphs that still run. Since 6.2 a change of an executable graph
 *                    takes memory until the executable graph is destroyed, and may not reach the device before the next
 *                    launch
 *
 * Selected by whether the library has the function:
 *   hipDeviceGetUuid            since HIP 5.2
 *   hipStreamGetDevice          since HIP 5.6; hipGetStreamDeviceId is older
 *   hipMemCreate and others     since HIP 5.2; they return hipErrorNotSupported unless the attribute is 1
 *
 * Avoided:
 *   hipDeviceProp_t      has a different layout since HIP 6, with the same function name: attributes are queried
 *                        individually
 *   hipPointerAttribute_t, hip_Memcpy2D  contain memory types, whose numbers changed: hipPointerGetAttribute and
 *                        hipMemcpy2DAsync are used
 *   hipMemcpyHtoDAsync   takes void * or const void *, by version: hipMemcpyAsync has a direction instead
 *   hipCtx_t             deprecated since HIP 2; each thread has a current device
 *   hipLaunchHostFunc    missing before HIP 5.3, and stalls its stream: a thread waits for events instead
 *   hipMemAllocationProp has had this layout since HIP 5.3, with the attribute; its functions are not called before
 *   hipExternalMemoryHandleDesc, hipExternalMemoryBufferDesc  end with reserved words since HIP 6: the plugin's
 *                        structures always have them
 *   hipFuncSetAttribute  accepts only compiler-generated functions; HIP needs no permission for shared memory
 */
#ifndef GPUHAL_ROCM_HIP_VERSIONS_H
#define GPUHAL_ROCM_HIP_VERSIONS_H

#include "hip_api.h"

/* Each of these attributes was added after the last attribute of the previous version. */
enum { GPUHAL_ROCM_ATTRIBUTE_VIRTUAL_MEMORY = 89, GPUHAL_ROCM_ATTRIBUTE_HOST_REGISTER = 90 };

/* A version as hipRuntimeGetVersion returns it: major * 10000000 + minor * 100000 + patch. */
typedef struct gpuhal_rocm_version {
    int whole; /* 0 if unknown; the behaviour of the latest version is assumed */
    int major, minor, patch;
    unsigned int memory_type_device;  /* hipMemoryTypeDevice */
    int has_attribute_virtual_memory; /* whether the two attributes above may be queried */
    int has_attribute_host_register;
    int keeps_last_error;  /* a call that succeeds or returns hipErrorNotReady keeps the last error */
    int ends_with_pieces;  /* a copy or fill ends with the piece of physical memory at its start */
    int has_graphs;
    int takes_descriptors; /* imports take the descriptor in place of a pointer; false for an unknown version, which can
                            * only reject the pointer */
} gpuhal_rocm_version;

gpuhal_rocm_version gpuhal_rocm_version_of(int whole);

#endif
