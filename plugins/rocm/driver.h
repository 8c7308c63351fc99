/* rocm/driver.h: the functions of HIP that this plugin calls, and what their error codes mean.
 *
 * The library is opened at run time through the host; the functions come from its table alone, so the plugin links no
 * HIP. The table and the version are written once, by the first start() of the process, and are constant afterwards.
 *
 * HIP keeps the last error of each thread, and engines ask for it after their launches: an error of one of our calls
 * is taken back (hipGetLastError) before we return, so that the engine does not find it there. An error of the
 * engine's own that it has not asked for is gone after one of our calls that fails, and before HIP 7 after every other
 * one too: nothing can put it back.
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

/* What a code means to the caller of gpuhal. DEVICE_LOST stands for codes after which the device is of no more use
 * here. */
gpuhal_status gpuhal_rocm_status(hipError_t code);
/* Takes the error of the call before back from this thread. Returns @p code. */
hipError_t gpuhal_rocm_forget(hipError_t code);
/* The same where the code is not reported. */
void gpuhal_rocm_ignore(hipError_t code);
/* Hands an error to the host, with its name and HIP's description, and returns its status. Forgets it. */
gpuhal_status gpuhal_rocm_report(const gpuhal_host *host, const char *call, hipError_t code);
/* The same with a status and a sentence of our own. */
gpuhal_status gpuhal_rocm_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, hipError_t code,
                                    const char *sentence);
/* "hipErrorNoDevice"; static. */
const char *gpuhal_rocm_result_name(hipError_t code);
/* HIP's own sentence for a code; never NULL. */
const char *gpuhal_rocm_error_text(hipError_t code);

#endif
