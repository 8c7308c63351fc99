/* baseline_opencl.h: the vendor's own OpenCL calls on the very buffers of the library, for comparison.
 *
 * Nothing of OpenCL shows here: buffers come as gpuhal_native. Each function makes the call @count times and waits for each. */
#ifndef GPUHAL_BENCH_BASELINE_OPENCL_H
#define GPUHAL_BENCH_BASELINE_OPENCL_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

typedef struct gpuhal_bench_opencl gpuhal_bench_opencl;

/* A queue of our own in the context of the device. NULL when the device is none of OpenCL, or when something failed; the remark
 * is then in gpuhal_bench_failure(). */
gpuhal_bench_opencl *gpuhal_bench_opencl_create(gpuhal *gpu, gpuhal_device *device);
void gpuhal_bench_opencl_destroy(gpuhal_bench_opencl *cl);

/* Whether the device is a device of OpenCL. */
bool gpuhal_bench_opencl_is(gpuhal_device *device);

bool gpuhal_bench_opencl_write(gpuhal_bench_opencl *cl, const gpuhal_native *to, const void *from, uint64_t bytes,
                               uint64_t count);
bool gpuhal_bench_opencl_read(gpuhal_bench_opencl *cl, void *to, const gpuhal_native *from, uint64_t bytes, uint64_t count);
bool gpuhal_bench_opencl_copy(gpuhal_bench_opencl *cl, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                              uint64_t count);

/* Creates, commits and releases. */
bool gpuhal_bench_opencl_allocate(gpuhal_bench_opencl *cl, uint64_t bytes, uint64_t count);

#endif
