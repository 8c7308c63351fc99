/* opencl/driver.h: the OpenCL functions that this plugin calls, their error codes, and queries.
 *
 * The host opens the library at run time, and all functions are called through this table, so the plugin does not link
 * OpenCL. The table is written once, by the first successful start() of the process, and never changes afterwards.
 */
#ifndef GPUHAL_OPENCL_DRIVER_H
#define GPUHAL_OPENCL_DRIVER_H

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue is available in every version */
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <gpuhal/plugin.h>

#include <stdbool.h>

/* Optional functions are from OpenCL 1.1 (rectangles, sub-buffers, callbacks of buffers and events), 1.2, and 2.0
 * (queue properties, shared memory). A symbol alone is not sufficient: the loader may be newer than the device. So the
 * plugin also checks the device's version. */
#define GPUHAL_OPENCL_FUNCTIONS(REQUIRED, OPTIONAL)                                                                   \
    REQUIRED(clGetPlatformIDs)                                                                                        \
    REQUIRED(clGetPlatformInfo)                                                                                       \
    REQUIRED(clGetDeviceIDs)                                                                                          \
    REQUIRED(clGetDeviceInfo)                                                                                         \
    REQUIRED(clCreateContext)                                                                                         \
    REQUIRED(clRetainContext)                                                                                         \
    REQUIRED(clGetContextInfo)                                                                                        \
    REQUIRED(clReleaseContext)                                                                                        \
    REQUIRED(clCreateCommandQueue)                                                                                    \
    REQUIRED(clRetainCommandQueue)                                                                                    \
    REQUIRED(clGetCommandQueueInfo)                                                                                   \
    REQUIRED(clReleaseCommandQueue)                                                                                   \
    REQUIRED(clCreateBuffer)                                                                                          \
    REQUIRED(clRetainMemObject)                                                                                       \
    REQUIRED(clGetMemObjectInfo)                                                                                      \
    REQUIRED(clReleaseMemObject)                                                                                      \
    REQUIRED(clEnqueueReadBuffer)                                                                                     \
    REQUIRED(clEnqueueWriteBuffer)                                                                                    \
    REQUIRED(clEnqueueCopyBuffer)                                                                                     \
    REQUIRED(clEnqueueMapBuffer)                                                                                      \
    REQUIRED(clEnqueueUnmapMemObject)                                                                                 \
    REQUIRED(clFlush)                                                                                                 \
    REQUIRED(clWaitForEvents)                                                                                         \
    REQUIRED(clGetEventInfo)                                                                                          \
    REQUIRED(clGetEventProfilingInfo)                                                                                 \
    REQUIRED(clRetainEvent)                                                                                           \
    REQUIRED(clReleaseEvent)                                                                                          \
    REQUIRED(clCreateProgramWithSource)                                                                               \
    REQUIRED(clCreateProgramWithBinary)                                                                               \
    REQUIRED(clBuildProgram)                                                                                          \
    REQUIRED(clGetProgramInfo)                                                                                        \
    REQUIRED(clGetProgramBuildInfo)                                                                                   \
    REQUIRED(clReleaseProgram)                                                                                        \
    REQUIRED(clCreateKernel)                                                                                          \
    REQUIRED(clReleaseKernel)                                                                                         \
    REQUIRED(clSetKernelArg)                                                                                          \
    REQUIRED(clGetKernelInfo)                                                                                         \
    REQUIRED(clGetKernelWorkGroupInfo)                                                                                \
    REQUIRED(clEnqueueNDRangeKernel)                                                                                  \
    OPTIONAL(clGetKernelArgInfo)                                                                                      \
    OPTIONAL(clCreateProgramWithIL)                                                                                   \
    OPTIONAL(clGetExtensionFunctionAddressForPlatform)                                                                \
    OPTIONAL(clSetKernelArgSVMPointer)                                                                                \
    OPTIONAL(clCreateSubBuffer)                                                                                       \
    OPTIONAL(clSetMemObjectDestructorCallback)                                                                        \
    OPTIONAL(clEnqueueReadBufferRect)                                                                                 \
    OPTIONAL(clEnqueueWriteBufferRect)                                                                                \
    OPTIONAL(clEnqueueCopyBufferRect)                                                                                 \
    OPTIONAL(clEnqueueFillBuffer)                                                                                     \
    OPTIONAL(clEnqueueMigrateMemObjects)                                                                              \
    OPTIONAL(clSetEventCallback)                                                                                      \
    OPTIONAL(clEnqueueMarkerWithWaitList)                                                                             \
    OPTIONAL(clEnqueueBarrierWithWaitList)                                                                            \
    OPTIONAL(clCreateCommandQueueWithProperties)                                                                      \
    OPTIONAL(clSVMAlloc)                                                                                              \
    OPTIONAL(clSVMFree)

#define GPUHAL_OPENCL_MEMBER(name) __typeof__(name) *name;
typedef struct gpuhal_opencl_functions {
    GPUHAL_OPENCL_FUNCTIONS(GPUHAL_OPENCL_MEMBER, GPUHAL_OPENCL_MEMBER)
} gpuhal_opencl_functions;
#undef GPUHAL_OPENCL_MEMBER

extern gpuhal_opencl_functions gpuhal_opencl_api;

gpuhal_status gpuhal_opencl_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);

gpuhal_status gpuhal_opencl_status(cl_int code);
/* Reports an error to the host under its CL_… name, and returns the matching status. */
gpuhal_status gpuhal_opencl_report(const gpuhal_host *host, const char *call, cl_int code);

/* Queries a value of exactly this size. Returns false if the driver does not support the query. */
bool gpuhal_opencl_ask(cl_device_id id, cl_device_info what, void *out_value, size_t bytes);
/* Queries a string, trims it and makes it valid UTF-8. Returns false if it is missing or empty. */
bool gpuhal_opencl_ask_text(cl_device_id id, cl_device_info what, char *out_text, size_t size);
/* Queries the execution status: CL_COMPLETE, greater for unfinished work, less for an error. Returns the code of the
 * query. */
cl_int gpuhal_opencl_execution(cl_event event, cl_int *out_execution);

#endif
