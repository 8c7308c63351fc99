/* cuda/nvml_jobs.h: NVML, which tells of devices without opening them, and without which everything else works.
 *
 * NVML calls have been seen to hang for good when a GPU has fallen off the bus. So all of them run as a job on a thread of its
 * own, one job at a time, with a deadline. A job that overruns it is left behind, and until it returns every later one is
 * answered with "timed out" at once: the process keeps at most one such thread. A job touches nothing but its own copy of the
 * request.
 */
#ifndef GPUHAL_CUDA_NVML_JOBS_H
#define GPUHAL_CUDA_NVML_JOBS_H

#include "device.h"
#include "nvml_api.h"

#define GPUHAL_CUDA_NVML_MEMBER(name, arguments) nvmlReturn_t(*name) arguments;
typedef struct gpuhal_cuda_nvml_functions {
    GPUHAL_NVML_FUNCTIONS(GPUHAL_CUDA_NVML_MEMBER, GPUHAL_CUDA_NVML_MEMBER)
} gpuhal_cuda_nvml_functions;
#undef GPUHAL_CUDA_NVML_MEMBER

extern gpuhal_cuda_nvml_functions gpuhal_cuda_nvml;

/* Why NVML did not answer: reason 0 says that it did. */
typedef struct gpuhal_cuda_why {
    gpuhal_missing reason;
    char text[112];
} gpuhal_cuda_why;

/* Opens the library, if there is one. */
void gpuhal_cuda_nvml_open(const gpuhal_host *host);

/* Runs work(request) as a job, once NVML is initialised. @p request, of @p bytes, is copied there and back, so it holds no
 * pointer to memory that does not live as long as the process. Unless reason 0 comes back it is unchanged. */
gpuhal_cuda_why gpuhal_cuda_nvml_run(void (*work)(void *request), void *request, size_t bytes);

/* Inside a job: the device, matched by its UUID, else by its PCI address, never by an index. For a MIG device @p out_board is the
 * whole GPU, which alone has a temperature; else both are the same. */
nvmlReturn_t gpuhal_cuda_nvml_find(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device, nvmlDevice_t *out_board);

/* What a code means for a value. */
gpuhal_cuda_why gpuhal_cuda_nvml_why(nvmlReturn_t code);

#endif
