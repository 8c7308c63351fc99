/* cuda/driver.h: the CUDA driver functions that this plugin calls, and the meaning of their error codes.
 *
 * The library is opened at run time through the host. The plugin calls functions only through its table, so it does not
 * link CUDA. The process's first successful start() writes the table, which is constant afterwards.
 */
#ifndef GPUHAL_CUDA_DRIVER_H
#define GPUHAL_CUDA_DRIVER_H

#include "cuda_api.h"

#include <gpuhal/plugin.h>

/* A code of the runtime API that the driver API does not define. Libraries that replace libcuda may return it. */
#define GPUHAL_CUDA_INSUFFICIENT_DRIVER 35u

#define GPUHAL_CUDA_MEMBER(name, arguments) CUresult(*name) arguments;
typedef struct gpuhal_cuda_functions {
    GPUHAL_CUDA_FUNCTIONS(GPUHAL_CUDA_MEMBER, GPUHAL_CUDA_MEMBER)
} gpuhal_cuda_functions;
#undef GPUHAL_CUDA_MEMBER

extern gpuhal_cuda_functions gpuhal_cuda_api;

gpuhal_status gpuhal_cuda_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);

/* DEVICE_LOST means that the context is unusable. */
gpuhal_status gpuhal_cuda_status(CUresult code);
/* For a code that is not reported. Unlike HIP, CUDA has no last error that would have to be cleared. */
static inline void gpuhal_cuda_ignore(CUresult code)
{
    (void)code;
}
/* Reports an error to the host, with its name and the driver's description, and returns its status. */
gpuhal_status gpuhal_cuda_report(const gpuhal_host *host, const char *call, CUresult code);
gpuhal_status gpuhal_cuda_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, CUresult code,
                                    const char *sentence);
/* Returns a static string such as "CUDA_ERROR_NO_DEVICE". */
const char *gpuhal_cuda_result_name(CUresult code);

#endif
