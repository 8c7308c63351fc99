/* tests/system/rocm_bench.h: driving the ROCm plugin slot by slot, over the fake runtime. */
#ifndef GPUHAL_TEST_ROCM_BENCH_H
#define GPUHAL_TEST_ROCM_BENCH_H

#include "rocm_fake.h"

#define GPUHAL_BENCH_PLUGIN GPUHAL_ROCM_PLUGIN
#include "bench.h"

#endif
