/* cuda/nvml.h: NVML, which reports values of devices without opening them, and without which everything else works.
 *
 * NVML calls have been seen to hang for good when a GPU has fallen off the bus. The core abandons a thread that hangs
 * in sample() or link(), so NVML is asked in those alone, and while listing only where no file of the kernel has the
 * driver's version
 * (../stream/management.c).
 */
#ifndef GPUHAL_CUDA_NVML_H
#define GPUHAL_CUDA_NVML_H

#include "device.h"
#include "nvml_api.h"

#define GPUHAL_CUDA_NVML_MEMBER(name, arguments) nvmlReturn_t(*name) arguments;
typedef struct gpuhal_cuda_nvml_functions {
    GPUHAL_NVML_FUNCTIONS(GPUHAL_CUDA_NVML_MEMBER, GPUHAL_CUDA_NVML_MEMBER)
} gpuhal_cuda_nvml_functions;
#undef GPUHAL_CUDA_NVML_MEMBER

extern gpuhal_cuda_nvml_functions gpuhal_cuda_nvml;

/* Opens the library, if there is one. */
void gpuhal_cuda_nvml_open(const gpuhal_host *host);

/* Runs work(request) once it is this thread's turn and NVML is initialised. Where the work returns that NVML is not,
 * since the engine has shut it down once too often, it runs a second time after another initialisation. Unless reason
 * 0 comes back it did not run to its end. */
gpuhal_stream_why gpuhal_cuda_nvml_run(nvmlReturn_t (*work)(void *request), void *request);

/* Inside of that: the device, matched by its UUID, else by its PCI address, never by an index. For a MIG device @p
 * out_board is the whole GPU, which alone has a temperature; else both are the same. */
nvmlReturn_t gpuhal_cuda_nvml_find(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device, nvmlDevice_t *out_board);

/* What a code means for a value. */
gpuhal_stream_why gpuhal_cuda_nvml_why(nvmlReturn_t code);

#endif
