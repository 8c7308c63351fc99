/* rocm/smi.h: AMD SMI and ROCm SMI. These libraries report values that the system's files do not contain. Everything
 * else works without them. Only one thread at a time calls a library (../stream/management.c).
 */
#ifndef GPUHAL_ROCM_SMI_H
#define GPUHAL_ROCM_SMI_H

#include "amd_smi_api.h"
#include "device.h"
#include "rocm_smi_api.h"

#define GPUHAL_ROCM_AMD_MEMBER(name, arguments) amdsmi_status_t(*name) arguments;
typedef struct gpuhal_rocm_amd_smi_functions {
    GPUHAL_AMD_SMI_FUNCTIONS(GPUHAL_ROCM_AMD_MEMBER, GPUHAL_ROCM_AMD_MEMBER)
} gpuhal_rocm_amd_smi_functions;
#undef GPUHAL_ROCM_AMD_MEMBER

#define GPUHAL_ROCM_RSMI_MEMBER(name, arguments) rsmi_status_t(*name) arguments;
typedef struct gpuhal_rocm_rocm_smi_functions {
    GPUHAL_ROCM_SMI_FUNCTIONS(GPUHAL_ROCM_RSMI_MEMBER, GPUHAL_ROCM_RSMI_MEMBER)
} gpuhal_rocm_rocm_smi_functions;
#undef GPUHAL_ROCM_RSMI_MEMBER

extern gpuhal_rocm_amd_smi_functions gpuhal_rocm_amd_smi;
extern gpuhal_rocm_rocm_smi_functions gpuhal_rocm_rocm_smi;

/* Only one library is opened: AMD SMI, which is newer, or ROCm SMI if AMD SMI is not usable. */
typedef enum { GPUHAL_ROCM_SMI_NONE, GPUHAL_ROCM_SMI_AMD, GPUHAL_ROCM_SMI_ROCM } gpuhal_rocm_smi_library;

/* Codes that neither library returns. NO_FUNCTION means that the library has no function for the value. */
#define GPUHAL_ROCM_SMI_NO_FUNCTION 0xfffffff0u
/* OTHER_MEMORY means that the library reported memory that HIP does not allocate from. */
#define GPUHAL_ROCM_SMI_OTHER_MEMORY 0xfffffff1u

typedef struct gpuhal_rocm_smi_device {
    uint32_t index;                    /* ROCm SMI */
    amdsmi_processor_handle processor; /* AMD SMI */
} gpuhal_rocm_smi_device;

/* Opens one of the libraries, if available. No function of the library is called until one of its values is
 * requested. */
void gpuhal_rocm_smi_open(const gpuhal_host *host);
gpuhal_rocm_smi_library gpuhal_rocm_smi_which(void);

/* Runs work(request) when it is this thread's turn and the library is initialized. If the work fails because the
 * application has shut the library down, initializes the library and runs the work once more. A reason other than 0
 * means that the work did not complete. */
gpuhal_stream_why gpuhal_rocm_smi_run(uint32_t (*work)(void *request), void *request);

/* Called inside gpuhal_rocm_smi_run(). Finds the device by its PCI address, never by its index. Returns a code of the
 * open library. */
uint32_t gpuhal_rocm_smi_find(const gpuhal_rocm_entry *entry, gpuhal_rocm_smi_device *out_device);

/* Translates a code of the open library to the reason why a value is missing. */
gpuhal_stream_why gpuhal_rocm_smi_why(uint32_t code);

#endif
