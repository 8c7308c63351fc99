/* cuda/driver.h: the functions of the CUDA driver that this plugin calls, and what their error codes mean.
 *
 * The library is opened at run time through the host; the functions come from its table alone, so the plugin links no
 * CUDA. The table is written once, by the first start() of the process, and is constant afterwards.
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

/* What a code means to the caller of gpuhal. DEVICE_LOST stands for codes after which the context is of no more use.
 */
gpuhal_status gpuhal_cuda_status(CUresult code);
/* Where a code is not reported: CUDA, unlike HIP, keeps no last error that would have to be taken back. */
static inline void gpuhal_cuda_ignore(CUresult code)
{
    (void)code;
}
/* Hands an error to the host, with its name and the driver's description, and returns its status. */
gpuhal_status gpuhal_cuda_report(const gpuhal_host *host, const char *call, CUresult code);
/* The same with a status and a sentence of our own. */
gpuhal_status gpuhal_cuda_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, CUresult code,
                                    const char *sentence);
/* "CUDA_ERROR_NO_DEVICE"; static. */
const char *gpuhal_cuda_result_name(CUresult code);

#endif
