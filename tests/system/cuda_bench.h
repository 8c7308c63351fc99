/* tests/system/cuda_bench.h: driving the CUDA plugin slot by slot, over the fake driver. */
#ifndef GPUHAL_TEST_CUDA_BENCH_H
#define GPUHAL_TEST_CUDA_BENCH_H

#include "cuda_fake.h"

#define GPUHAL_BENCH_PLUGIN GPUHAL_CUDA_PLUGIN
#include "bench.h"

#endif
