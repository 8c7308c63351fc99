/* opencl/driver.c: opens the OpenCL library, maps error codes, and queries devices and events. */
#include "driver.h"

#include "../common/text.h"

#include <pthread.h>

gpuhal_opencl_functions gpuhal_opencl_api;

static const char *const library_names[] = {
#if defined(_WIN32)
    "OpenCL.dll",
#elif defined(__APPLE__)
    "/System/Library/Frameworks/OpenCL.framework/OpenCL",
#else
    "libOpenCL.so.1",
    "libOpenCL.so", /* Android */
#endif
    NULL,
};

/* Each copy of the core opens the library through its own host, so that the host's report names the library. The
 * process uses the first library found. Readers need no lock, because each reader calls this function first, and the
 * function acquires the lock. */
gpuhal_status gpuhal_opencl_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects gpuhal_opencl_api while it is written */
    static bool started;
    gpuhal_opencl_functions found;
#define REQUIRED_SYMBOL(name) {#name, &found.name, 1, 0},
#define OPTIONAL_SYMBOL(name) {#name, &found.name, 0, 0},
    const gpuhal_symbol symbols[] = {GPUHAL_OPENCL_FUNCTIONS(REQUIRED_SYMBOL, OPTIONAL_SYMBOL)};
    gpuhal_status status = host->library(host, "OPENCL", library_names, symbols, sizeof symbols / sizeof symbols[0]);
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    bool other = started && gpuhal_opencl_api.clGetPlatformIDs != found.clGetPlatformIDs;
    if (!started) {
        gpuhal_opencl_api = found;
        started = true;
    }
    pthread_mutex_unlock(&lock);
    if (other) {
        host->log(host, GPUHAL_LOG_WARNING,
                  "another OpenCL library is in use in this process already, and stays in use");
    }
    return GPUHAL_OK;
}

/* Codes that mean an invalid argument map to DRIVER: the core has checked the arguments, so the application cannot fix
 * them. A context or queue that has become invalid means a lost device: after a fault NVIDIA's driver returns these
 * codes from every call. CL_DEVICE_NOT_FOUND is handled by discovery. Elsewhere its value, -1, is PoCL's execution
 * status of a command that failed or was enqueued after a failed command. */
static const struct {
    cl_int code;
    gpuhal_status status;
    const char *name;
} errors[] = {
    {CL_DEVICE_NOT_FOUND, GPUHAL_ERROR_DRIVER, "CL_DEVICE_NOT_FOUND (of a command: it failed)"},
    {CL_DEVICE_NOT_AVAILABLE, GPUHAL_ERROR_DEVICE_LOST, "CL_DEVICE_NOT_AVAILABLE"},
    {CL_COMPILER_NOT_AVAILABLE, GPUHAL_ERROR_NOT_SUPPORTED, "CL_COMPILER_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, GPUHAL_ERROR_OUT_OF_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, GPUHAL_ERROR_OUT_OF_MEMORY, "CL_OUT_OF_RESOURCES"},
    {CL_OUT_OF_HOST_MEMORY, GPUHAL_ERROR_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {CL_PROFILING_INFO_NOT_AVAILABLE, GPUHAL_ERROR_NOT_SUPPORTED, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {CL_MEM_COPY_OVERLAP, GPUHAL_ERROR_INVALID_ARGUMENT, "CL_MEM_COPY_OVERLAP"},
    {CL_IMAGE_FORMAT_MISMATCH, GPUHAL_ERROR_DRIVER, "CL_IMAGE_FORMAT_MISMATCH"},
    {CL_IMAGE_FORMAT_NOT_SUPPORTED, GPUHAL_ERROR_NOT_SUPPORTED, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
    {CL_BUILD_PROGRAM_FAILURE, GPUHAL_ERROR_DRIVER, "CL_BUILD_PROGRAM_FAILURE"},
    {CL_MAP_FAILURE, GPUHAL_ERROR_OUT_OF_MEMORY, "CL_MAP_FAILURE"},
    {CL_MISALIGNED_SUB_BUFFER_OFFSET, GPUHAL_ERROR_DRIVER, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, GPUHAL_ERROR_DRIVER,
     "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {CL_COMPILE_PROGRAM_FAILURE, GPUHAL_ERROR_DRIVER, "CL_COMPILE_PROGRAM_FAILURE"},
    {CL_LINKER_NOT_AVAILABLE, GPUHAL_ERROR_NOT_SUPPORTED, "CL_LINKER_NOT_AVAILABLE"},
    {CL_LINK_PROGRAM_FAILURE, GPUHAL_ERROR_DRIVER, "CL_LINK_PROGRAM_FAILURE"},
    {CL_DEVICE_PARTITION_FAILED, GPUHAL_ERROR_DRIVER, "CL_DEVICE_PARTITION_FAILED"},
    {CL_KERNEL_ARG_INFO_NOT_AVAILABLE, GPUHAL_ERROR_NOT_SUPPORTED, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
    {CL_INVALID_VALUE, GPUHAL_ERROR_DRIVER, "CL_INVALID_VALUE"},
    {CL_INVALID_DEVICE_TYPE, GPUHAL_ERROR_DRIVER, "CL_INVALID_DEVICE_TYPE"},
    {CL_INVALID_PLATFORM, GPUHAL_ERROR_DRIVER, "CL_INVALID_PLATFORM"},
    {CL_INVALID_DEVICE, GPUHAL_ERROR_DEVICE_LOST, "CL_INVALID_DEVICE"},
    {CL_INVALID_CONTEXT, GPUHAL_ERROR_DEVICE_LOST, "CL_INVALID_CONTEXT"},
    {CL_INVALID_QUEUE_PROPERTIES, GPUHAL_ERROR_DRIVER, "CL_INVALID_QUEUE_PROPERTIES"},
    {CL_INVALID_COMMAND_QUEUE, GPUHAL_ERROR_DEVICE_LOST, "CL_INVALID_COMMAND_QUEUE"},
    {CL_INVALID_HOST_PTR, GPUHAL_ERROR_DRIVER, "CL_INVALID_HOST_PTR"},
    {CL_INVALID_MEM_OBJECT, GPUHAL_ERROR_DRIVER, "CL_INVALID_MEM_OBJECT"},
    {CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, GPUHAL_ERROR_DRIVER, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"},
    {CL_INVALID_IMAGE_SIZE, GPUHAL_ERROR_DRIVER, "CL_INVALID_IMAGE_SIZE"},
    {CL_INVALID_SAMPLER, GPUHAL_ERROR_DRIVER, "CL_INVALID_SAMPLER"},
    {CL_INVALID_BINARY, GPUHAL_ERROR_DRIVER, "CL_INVALID_BINARY"},
    {CL_INVALID_BUILD_OPTIONS, GPUHAL_ERROR_DRIVER, "CL_INVALID_BUILD_OPTIONS"},
    {CL_INVALID_PROGRAM, GPUHAL_ERROR_DRIVER, "CL_INVALID_PROGRAM"},
    {CL_INVALID_PROGRAM_EXECUTABLE, GPUHAL_ERROR_DRIVER, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {CL_INVALID_KERNEL_NAME, GPUHAL_ERROR_DRIVER, "CL_INVALID_KERNEL_NAME"},
    {CL_INVALID_KERNEL_DEFINITION, GPUHAL_ERROR_DRIVER, "CL_INVALID_KERNEL_DEFINITION"},
    {CL_INVALID_KERNEL, GPUHAL_ERROR_DRIVER, "CL_INVALID_KERNEL"},
    {CL_INVALID_ARG_INDEX, GPUHAL_ERROR_DRIVER, "CL_INVALID_ARG_INDEX"},
    {CL_INVALID_ARG_VALUE, GPUHAL_ERROR_DRIVER, "CL_INVALID_ARG_VALUE"},
    {CL_INVALID_ARG_SIZE, GPUHAL_ERROR_DRIVER, "CL_INVALID_ARG_SIZE"},
    {CL_INVALID_KERNEL_ARGS, GPUHAL_ERROR_DRIVER, "CL_INVALID_KERNEL_ARGS"},
    {CL_INVALID_WORK_DIMENSION, GPUHAL_ERROR_DRIVER, "CL_INVALID_WORK_DIMENSION"},
    {CL_INVALID_WORK_GROUP_SIZE, GPUHAL_ERROR_DRIVER, "CL_INVALID_WORK_GROUP_SIZE"},
    {CL_INVALID_WORK_ITEM_SIZE, GPUHAL_ERROR_DRIVER, "CL_INVALID_WORK_ITEM_SIZE"},
    {CL_INVALID_GLOBAL_OFFSET, GPUHAL_ERROR_DRIVER, "CL_INVALID_GLOBAL_OFFSET"},
    {CL_INVALID_EVENT_WAIT_LIST, GPUHAL_ERROR_DRIVER, "CL_INVALID_EVENT_WAIT_LIST"},
    {CL_INVALID_EVENT, GPUHAL_ERROR_DRIVER, "CL_INVALID_EVENT"},
    {CL_INVALID_OPERATION, GPUHAL_ERROR_DRIVER, "CL_INVALID_OPERATION"},
    {CL_INVALID_GL_OBJECT, GPUHAL_ERROR_DRIVER, "CL_INVALID_GL_OBJECT"},
    {CL_INVALID_BUFFER_SIZE, GPUHAL_ERROR_TOO_LARGE, "CL_INVALID_BUFFER_SIZE"},
    {CL_INVALID_MIP_LEVEL, GPUHAL_ERROR_DRIVER, "CL_INVALID_MIP_LEVEL"},
    {CL_INVALID_GLOBAL_WORK_SIZE, GPUHAL_ERROR_DRIVER, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {CL_INVALID_PROPERTY, GPUHAL_ERROR_DRIVER, "CL_INVALID_PROPERTY"},
    {CL_INVALID_IMAGE_DESCRIPTOR, GPUHAL_ERROR_DRIVER, "CL_INVALID_IMAGE_DESCRIPTOR"},
    {CL_INVALID_COMPILER_OPTIONS, GPUHAL_ERROR_DRIVER, "CL_INVALID_COMPILER_OPTIONS"},
    {CL_INVALID_LINKER_OPTIONS, GPUHAL_ERROR_DRIVER, "CL_INVALID_LINKER_OPTIONS"},
    {CL_INVALID_DEVICE_PARTITION_COUNT, GPUHAL_ERROR_DRIVER, "CL_INVALID_DEVICE_PARTITION_COUNT"},
    {CL_INVALID_PIPE_SIZE, GPUHAL_ERROR_DRIVER, "CL_INVALID_PIPE_SIZE"},
    {CL_INVALID_DEVICE_QUEUE, GPUHAL_ERROR_DRIVER, "CL_INVALID_DEVICE_QUEUE"},
    {CL_INVALID_SPEC_ID, GPUHAL_ERROR_DRIVER, "CL_INVALID_SPEC_ID"},
    {CL_MAX_SIZE_RESTRICTION_EXCEEDED, GPUHAL_ERROR_TOO_LARGE, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
    {CL_PLATFORM_NOT_FOUND_KHR, GPUHAL_ERROR_NO_DRIVER, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-9999, GPUHAL_ERROR_DEVICE_LOST, "illegal access to device memory (NVIDIA)"},
};

#define ERROR_COUNT (sizeof errors / sizeof errors[0])

static size_t find_error(cl_int code)
{
    size_t i = 0;
    while (i < ERROR_COUNT && errors[i].code != code) {
        i++;
    }
    return i;
}

gpuhal_status gpuhal_opencl_status(cl_int code)
{
    size_t i = find_error(code);
    return i < ERROR_COUNT ? errors[i].status : GPUHAL_ERROR_DRIVER;
}

gpuhal_status gpuhal_opencl_report(const gpuhal_host *host, const char *call, cl_int code)
{
    size_t i = find_error(code);
    return host->report(host, gpuhal_opencl_status(code), call, code,
                        i < ERROR_COUNT ? errors[i].name : "unknown error code");
}

bool gpuhal_opencl_ask(cl_device_id id, cl_device_info what, void *out_value, size_t bytes)
{
    size_t size = 0;
    return gpuhal_opencl_api.clGetDeviceInfo(id, what, bytes, out_value, &size) == CL_SUCCESS && size == bytes;
}

bool gpuhal_opencl_ask_text(cl_device_id id, cl_device_info what, char *out_text, size_t size)
{
    size_t length = 0;
    out_text[0] = '\0';
    if (gpuhal_opencl_api.clGetDeviceInfo(id, what, size - 1, out_text, &length) != CL_SUCCESS || length >= size) {
        out_text[0] = '\0';
        return false;
    }
    out_text[length] = '\0';
    return gpuhal_plugin_clean_text(out_text);
}

cl_int gpuhal_opencl_execution(cl_event event, cl_int *out_execution)
{
    return gpuhal_opencl_api.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *out_execution,
                                            out_execution, NULL);
}
