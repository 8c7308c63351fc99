/* rocm/driver.h: the HIP functions that this plugin calls, and the meaning of their error codes.
 *
 * The host opens the library at run time, and all functions are called through this table, so the plugin does not link
 * HIP. The first successful start() of the process writes the table. The version is written when the device list is
 * created. Table and version never change afterwards.
 *
 * HIP stores the last error of each thread, and applications read it after launches. So the plugin clears an error of
 * its own calls (hipGetLastError) before it returns. An application's unread error is lost if a call of the plugin
 * fails, and before HIP 7 after any call of the plugin. No HIP call can restore it.
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

/* DEVICE_LOST means that the code leaves the device unusable in this process. */
gpuhal_status gpuhal_rocm_status(hipError_t code);
/* Clears this thread's last error, which the previous HIP call stored. Returns @p code. */
hipError_t gpuhal_rocm_forget(hipError_t code);
/* Like gpuhal_rocm_forget(), for a code that is not reported. */
void gpuhal_rocm_ignore(hipError_t code);
/* Reports an error to the host, with its name and HIP's description, and returns its status. Clears the error. */
gpuhal_status gpuhal_rocm_report(const gpuhal_host *host, const char *call, hipError_t code);
gpuhal_status gpuhal_rocm_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, hipError_t code,
                                    const char *sentence);
/* Returns a static string such as "hipErrorNoDevice". */
const char *gpuhal_rocm_result_name(hipError_t code);
/* Returns HIP's description of a code; never NULL. */
const char *gpuhal_rocm_error_text(hipError_t code);

#endif
