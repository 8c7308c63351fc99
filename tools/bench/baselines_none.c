/* baselines_none.c: gpuhal-bench knows no vendor's calls. */
#include "baselines.h"

const gpuhal_bench_baselines gpuhal_bench_baselines_here = {.vendors = NULL};
