/* rows_open_all.h: opening with all plugins, and from the registry. */
#ifndef GPUHAL_BENCH_ROWS_OPEN_ALL_H
#define GPUHAL_BENCH_ROWS_OPEN_ALL_H

#include "bench.h"

/* Fills bench->times: each sample is a process of its own, ours and the other one in turn. Both are the words of a child; a
 * @baseline of NULL: there is nothing to compare with. False with gpuhal_bench_failure(). */
bool gpuhal_bench_children(gpuhal_bench *bench, const char *const *ours, const char *const *baseline);

void gpuhal_bench_rows_open_all(gpuhal_bench *bench);

#endif
