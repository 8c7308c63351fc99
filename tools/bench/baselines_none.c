/* baselines_none.c: gpuhal-bench has no vendor calls. */
#include "baselines.h"

const gpuhal_bench_baselines gpuhal_bench_baselines_here = {.vendors = NULL};
