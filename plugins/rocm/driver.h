/* rocm/driver.h: the functions of HIP that this plugin calls, and the meaning of their error codes.
 *
 * The library is opened at run time through the host. The plugin calls functions through its table alone, so it links
 * no HIP. The first start() of the process that succeeds writes the table, and making the list of devices writes the
 * version. Both are constant afterwards.
 *
 * HIP keeps the last error of each thread, and engines read it after their launches: an error of one of our calls is
 * taken back (hipGetLastError) before we return, so that the engine does not find it. An error of the engine that it
 * has not read yet is lost after one of our calls that fails, and before HIP 7 after every other one too: no call can
 * restore it.
 */
#ifndef GPUHAL_ROCM_DRIVER_H
#define GPUHAL_ROCM_DRIVER_H

#include "hip_versions.h"

#include <gpuhal/plugin.h>

#define GPUHAL_ROCM_MEMBER(type, name, arguments) type(*name) arguments;
typedef struct gpuhal_rocm_functions {
    GPUHAL_HIP_FUNCTIONS(GPUHAL_ROCM_MEMBER, GPUHAL_ROCM_MEMBER)
} gpuhal_rocm_functions;
#undef GPUHAL_ROCM_MEMBER

extern gpuhal_rocm_functions gpuhal_rocm_api;
extern gpuhal_rocm_version gpuhal_rocm_runtime;

gpuhal_status gpuhal_rocm_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);

/* Returns the status of a code for the caller of gpuhal. DEVICE_LOST stands for codes that leave the device unusable
 * here. */
gpuhal_status gpuhal_rocm_status(hipError_t code);
/* Takes the error of the previous call back from this thread. Returns @p code. */
hipError_t gpuhal_rocm_forget(hipError_t code);
/* Does the same for a code that is not reported. */
void gpuhal_rocm_ignore(hipError_t code);
/* Reports an error to the host, with its name and HIP's description, and returns its status. Forgets it. */
gpuhal_status gpuhal_rocm_report(const gpuhal_host *host, const char *call, hipError_t code);
/* Does the same with a status and a sentence of our own. */
gpuhal_status gpuhal_rocm_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, hipError_t code,
                                    const char *sentence);
/* "hipErrorNoDevice"; static. */
const char *gpuhal_rocm_result_name(hipError_t code);
/* HIP's own sentence for a code; never NULL. */
const char *gpuhal_rocm_error_text(hipError_t code);

#endif
