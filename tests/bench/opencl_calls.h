/* opencl_calls.h: the functions of OpenCL that the bench calls itself, from the library that the plugin opened. */
#ifndef GPUHAL_BENCH_OPENCL_CALLS_H
#define GPUHAL_BENCH_OPENCL_CALLS_H

#include "baseline.h"

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* every version has clCreateCommandQueue */
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

/* The baseline of a device of OpenCL. */
typedef struct gpuhal_bench_opencl {
    gpuhal_bench_baseline base;
    gpuhal_bench_opencl_functions cl;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;               /* The baseline's own. */
    cl_event events[GPUHAL_BENCH_PIECES]; /* Of the enqueued commands. */
    cl_uint event_count;
} gpuhal_bench_opencl;

/* Finds all of them. False with gpuhal_bench_failure(). */
bool gpuhal_bench_opencl_find(void *library, gpuhal_bench_opencl_functions *out_cl);

/* False unless the call succeeded, with gpuhal_bench_failure(). */
bool gpuhal_bench_opencl_good(const char *call, cl_int code);

#endif
