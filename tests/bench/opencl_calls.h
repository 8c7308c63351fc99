/* opencl_calls.h: the OpenCL functions that the bench itself calls, from the library that the plugin has opened. */
#ifndef GPUHAL_BENCH_OPENCL_CALLS_H
#define GPUHAL_BENCH_OPENCL_CALLS_H

#include "baseline.h"

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue exists in every version */
#include <CL/cl.h>
#include <CL/cl_ext.h>

#define GPUHAL_BENCH_OPENCL_FUNCTIONS(X)                                                                              \
    X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateCommandQueue)             \
    X(clReleaseCommandQueue) X(clEnqueueWriteBuffer) X(clEnqueueReadBuffer) X(clEnqueueCopyBuffer) X(clFlush)         \
    X(clWaitForEvents) X(clReleaseEvent) X(clCreateBuffer) X(clEnqueueMigrateMemObjects) X(clReleaseMemObject)        \
    X(clCreateProgramWithSource) X(clBuildProgram) X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel)           \
    X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clGetEventInfo) X(clCreateSubBuffer)

#define GPUHAL_BENCH_OPENCL_MEMBER(name) __typeof__(&name) name;
typedef struct gpuhal_bench_opencl_functions {
    GPUHAL_BENCH_OPENCL_FUNCTIONS(GPUHAL_BENCH_OPENCL_MEMBER)
} gpuhal_bench_opencl_functions;

typedef struct gpuhal_bench_opencl {
    gpuhal_bench_baseline base;
    gpuhal_bench_opencl_functions cl;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;               /* the baseline's own queue */
    cl_event events[GPUHAL_BENCH_PIECES]; /* of the enqueued commands */
    cl_uint event_count;
} gpuhal_bench_opencl;

/* Looks up all functions. Returns false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_opencl_find(void *library, gpuhal_bench_opencl_functions *out_cl);

/* Returns whether the call succeeded; otherwise sets gpuhal_bench_failure(). */
bool gpuhal_bench_opencl_good(const char *call, cl_int code);

#endif
