/* rows_step_opencl.h: the row about an engine's step, for devices of OpenCL. */
#ifndef GPUHAL_BENCH_ROWS_STEP_OPENCL_H
#define GPUHAL_BENCH_ROWS_STEP_OPENCL_H

#include "bench.h"

/* False with gpuhal_bench_failure(). */
bool gpuhal_bench_step_opencl(gpuhal_bench *bench, gpuhal_device *device);

#endif
