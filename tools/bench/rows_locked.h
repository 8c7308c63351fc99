/* rows_locked.h: copies between a device and page-locked memory. */
#ifndef GPUHAL_BENCH_ROWS_LOCKED_H
#define GPUHAL_BENCH_ROWS_LOCKED_H

#include "baseline.h"
#include "bench.h"

/* The rows of one device and size; none where the device has no page-locked memory. @baseline NULL: the device has no API. */
void gpuhal_bench_rows_locked(gpuhal_bench *bench, gpuhal_device *device, gpuhal_bench_baseline *baseline, uint64_t bytes);

#endif
