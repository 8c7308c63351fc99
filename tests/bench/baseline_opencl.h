/* baseline_opencl.h: OpenCL's own calls. */
#ifndef GPUHAL_BENCH_BASELINE_OPENCL_H
#define GPUHAL_BENCH_BASELINE_OPENCL_H

#include "baselines.h"

/* A queue of our own in the context of the device, with the functions of @library. NULL with gpuhal_bench_failure(). */
gpuhal_bench_baseline *gpuhal_bench_opencl_create(void *library, const gpuhal_native *device);

/* Lists the devices, as baseline.h says. */
bool gpuhal_bench_opencl_list(void *library, uint32_t *out_count);

/* Rows beside its own launches. */
void gpuhal_bench_opencl_rows_launch(struct gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_opencl_rows_step(struct gpuhal_bench *bench, gpuhal_device *device);

#endif
