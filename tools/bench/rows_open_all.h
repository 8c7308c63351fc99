/* rows_open_all.h: opening with all plugins, and from the registry. */
#ifndef GPUHAL_BENCH_ROWS_OPEN_ALL_H
#define GPUHAL_BENCH_ROWS_OPEN_ALL_H

#include "bench.h"

/* Adds a row of samples that are processes of their own, ours and the other one in turn. Both are the words of a child; a
 * @baseline of NULL: there is nothing to compare with. False: they failed, which is reported. */
bool gpuhal_bench_children_row(gpuhal_bench *bench, gpuhal_bench_row row, const char *const *ours,
                               const char *const *baseline);

void gpuhal_bench_rows_open_all(gpuhal_bench *bench);

#endif
