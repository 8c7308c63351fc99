/* opencl/driver.h: the OpenCL functions that this plugin calls, their error codes, and queries.
 *
 * The library is opened at run time through the host; the functions come from its table alone, so the plugin links no
 * OpenCL. The table is written once, by the first start() of the process, and is constant afterwards.
 */
#ifndef GPUHAL_OPENCL_DRIVER_H
#define GPUHAL_OPENCL_DRIVER_H

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* every version has clCreateCommandQueue */
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <gpuhal/plugin.h>

#include <stdbool.h>

/* Optional ones came with OpenCL 1.1 (rectangles, parts of buffers, the end of a buffer or an event), 1.2, and 2.0
 * (properties of queues, shared memory). A symbol alone proves nothing: the loader of another version has it too, so
 * the plugin also asks for the version of the device. */
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

/* Returns the status for an error code. */
gpuhal_status gpuhal_opencl_status(cl_int code);
/* Reports an error to the host, with its name, and returns its status. */
gpuhal_status gpuhal_opencl_report(const gpuhal_host *host, const char *call, cl_int code);

/* Asks for a value that has exactly this size; false when the driver does not know the question. */
bool gpuhal_opencl_ask(cl_device_id id, cl_device_info what, void *out_value, size_t bytes);
/* Asks for a text, without blanks around it and as clean UTF-8; false when it is not there or empty. */
bool gpuhal_opencl_ask_text(cl_device_id id, cl_device_info what, char *out_text, size_t size);
/* Gives CL_COMPLETE, more for unfinished work, less for its error. */
cl_int gpuhal_opencl_execution(cl_event event, cl_int *out_execution);

#endif
