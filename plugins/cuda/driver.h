/* cuda/driver.h: the functions of the CUDA driver that this plugin calls, and the meaning of their error codes.
 *
 * The library is opened at run time through the host. The plugin calls functions through its table alone, so it links
 * no CUDA. The first start() of the process that succeeds writes the table, which is constant afterwards.
 */
#ifndef GPUHAL_CUDA_DRIVER_H
#define GPUHAL_CUDA_DRIVER_H

#include "cuda_api.h"

#include <gpuhal/plugin.h>

/* The runtime API's code, which is not in the driver's list; libraries that stand in for libcuda pass it on. */
#define GPUHAL_CUDA_INSUFFICIENT_DRIVER 35u

#define GPUHAL_CUDA_MEMBER(name, arguments) CUresult(*name) arguments;
typedef struct gpuhal_cuda_functions {
    GPUHAL_CUDA_FUNCTIONS(GPUHAL_CUDA_MEMBER, GPUHAL_CUDA_MEMBER)
} gpuhal_cuda_functions;
#undef GPUHAL_CUDA_MEMBER

extern gpuhal_cuda_functions gpuhal_cuda_api;

gpuhal_status gpuhal_cuda_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);

/* Returns the status of a code for the caller of gpuhal. DEVICE_LOST stands for codes that leave the context
 * unusable.
 */
gpuhal_status gpuhal_cuda_status(CUresult code);
/* Drops a code that is not reported: CUDA, unlike HIP, keeps no last error that would have to be taken back. */
static inline void gpuhal_cuda_ignore(CUresult code)
{
    (void)code;
}
/* Reports an error to the host, with its name and the driver's description, and returns its status. */
gpuhal_status gpuhal_cuda_report(const gpuhal_host *host, const char *call, CUresult code);
/* Does the same with a status and a sentence of our own. */
gpuhal_status gpuhal_cuda_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, CUresult code,
                                    const char *sentence);
/* "CUDA_ERROR_NO_DEVICE"; static. */
const char *gpuhal_cuda_result_name(CUresult code);

#endif
