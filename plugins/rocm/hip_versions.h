/* rocm/hip_versions.h: the differences of HIP 5, 6 and 7, in one place. hip_api.h has the common declarations.
 *
 * Asked per version, below:
 *   kinds of memory  hipMemoryTypeHost and hipMemoryTypeDevice are 0 and 1 before HIP 6, and 1 and 2 from then on
 *   attributes       hipDeviceAttributeVirtualMemoryManagementSupported (89) came with HIP 5.3
 *   more of them     hipDeviceAttributeHostRegisterSupported (90) came with HIP 6.0; those of hip_api.h are older than
 *                    HIP 5
 *   mappings         before HIP 7 hipMemMap returns success in any case, and hipMemUnmap of nothing may end the process
 *   kinds of memory  before HIP 6.2 a question for the kind of unknown memory follows its address as a pointer
 *   several pieces   copies before 6.2, between devices too, and fills before 6.3 end with the piece of physical
 *                    memory at their beginning; rectangles always do
 *   last errors      before HIP 7 every call replaces the last error of its thread; from then on only failed calls do
 *   descriptors      hipMemImportFromShareableHandle takes a pointer to one, and HIP 7.1 the descriptor in place of the
 *                    pointer; before HIP 7.1 a descriptor in that place ends the process
 *
 * Asked of the library, by whether it has the function:
 *   hipDeviceGetUuid            came with HIP 5.2
 *   hipStreamGetDevice          came with HIP 5.6; hipGetStreamDeviceId was there before
 *   hipMemCreate and its like   came with HIP 5.2, and say hipErrorNotSupported until the attribute says yes
 *
 * Avoided:
 *   hipDeviceProp_t      has another layout since HIP 6, under the same name of the function: attributes are asked one
 *                        by one
 *   hipPointerAttribute_t, hip_Memcpy2D  name kinds of memory, whose numbers moved: hipPointerGetAttribute and
 *                        hipMemcpy2DAsync
 *   hipMemcpyHtoDAsync   takes void * or const void *, by version: hipMemcpyAsync names the direction
 *   hipCtx_t             deprecated since HIP 2; each thread has a current device
 *   hipLaunchHostFunc    missing before HIP 5.3, and stalls its stream: events are waited for on a thread
 *   hipMemAllocationProp has had this layout since HIP 5.3, with the attribute; before, its functions are not called
 *   hipExternalMemoryHandleDesc, hipExternalMemoryBufferDesc  end with reserved words since HIP 6: ours have them
 *                        always
 *   hipFuncSetAttribute  takes functions of the compiler's making only; HIP needs no permission for shared memory
 */
#ifndef GPUHAL_ROCM_HIP_VERSIONS_H
#define GPUHAL_ROCM_HIP_VERSIONS_H

#include "hip_api.h"

/* Each was added after the last attribute of its predecessor. */
enum { GPUHAL_ROCM_ATTRIBUTE_VIRTUAL_MEMORY = 89, GPUHAL_ROCM_ATTRIBUTE_HOST_REGISTER = 90 };

/* A version as hipRuntimeGetVersion returns it: major * 10000000 + minor * 100000 + patch. */
typedef struct gpuhal_rocm_version {
    int whole; /* 0: not known; the behaviour of the latest version is assumed */
    int major, minor, patch;
    unsigned int memory_type_device;  /* hipMemoryTypeDevice */
    int has_attribute_virtual_memory; /* whether the attributes above may be queried */
    int has_attribute_host_register;
    int keeps_last_error;  /* through calls that succeed, and through those that return hipErrorNotReady */
    int ends_with_pieces;  /* copies or fills end there, though more physical memory is mapped after it */
    int takes_descriptors; /* in place of a pointer; an unknown version does not: a pointer is then only refused */
} gpuhal_rocm_version;

gpuhal_rocm_version gpuhal_rocm_version_of(int whole);

#endif
