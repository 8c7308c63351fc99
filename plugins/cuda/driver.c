/* cuda/driver.c: opens the driver's library, and contains the table of its error codes. */
#include "nvml.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

gpuhal_cuda_functions gpuhal_cuda_api;

static const char *const library_names[] = {
#if defined(_WIN32)
    "nvcuda.dll",
#else
    "libcuda.so.1",
#endif
    NULL,
};

/* NVML is opened second, because the report shows the first opened library as the driver. The first successful start()
 * writes the function table. Afterwards threads of other copies of the core may call functions through the table, so it
 * never changes, even if later starts find another library. */
gpuhal_status gpuhal_cuda_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects gpuhal_cuda_api while it is written */
    static bool started;
    gpuhal_cuda_functions found;
#define REQUIRED_SYMBOL(name, arguments) {#name, &found.name, 1, 0},
#define OPTIONAL_SYMBOL(name, arguments) {#name, &found.name, 0, 0},
    const gpuhal_symbol symbols[] = {GPUHAL_CUDA_FUNCTIONS(REQUIRED_SYMBOL, OPTIONAL_SYMBOL)};
    gpuhal_status status = host->library(host, "CUDA", library_names, symbols, sizeof symbols / sizeof symbols[0]);
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    bool other = started && gpuhal_cuda_api.cuInit != found.cuInit;
    status = gpuhal_cuda_use_system(host, !started);
    /* Readers need no lock, because each copy's start() has acquired this lock after the table was written. */
    if (!started && status == GPUHAL_OK) {
        gpuhal_cuda_api = found;
        started = true;
    }
    pthread_mutex_unlock(&lock);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (other) {
        host->log(host, GPUHAL_LOG_WARNING,
                  "another CUDA library is in use in this process already, and stays in use");
    }
    gpuhal_cuda_nvml_open(host);
    return GPUHAL_OK;
}

/* gpuhal's status for each code. Codes that mean "your argument is wrong" are DRIVER: the core has checked the
 * arguments, so gpuhal's caller cannot correct them. Codes of later drivers that are not in the table are also DRIVER.
 * LOST marks the sticky codes and the codes for a context that the application destroyed. According to the
 * documentation, a sticky code leaves the process in an inconsistent state, and further work returns the same error. */
#define LOST GPUHAL_ERROR_DEVICE_LOST
static const struct {
    CUresult code;
    gpuhal_status status;
} meanings[] = {
    {CUDA_SUCCESS, GPUHAL_OK},
    {CUDA_ERROR_INVALID_VALUE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_OUT_OF_MEMORY, GPUHAL_ERROR_OUT_OF_MEMORY},
    {CUDA_ERROR_NOT_INITIALIZED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_DEINITIALIZED, LOST}, /* the process is exiting */
    {CUDA_ERROR_PROFILER_DISABLED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_PROFILER_NOT_INITIALIZED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_PROFILER_ALREADY_STARTED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_PROFILER_ALREADY_STOPPED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_STUB_LIBRARY, GPUHAL_ERROR_NO_DRIVER},
    {GPUHAL_CUDA_INSUFFICIENT_DRIVER, GPUHAL_ERROR_INCOMPATIBLE},
    {CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, GPUHAL_ERROR_INCOMPATIBLE},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_NO_DEVICE, GPUHAL_ERROR_NO_DEVICE},
    {CUDA_ERROR_INVALID_DEVICE, GPUHAL_ERROR_NO_DEVICE},
    {CUDA_ERROR_DEVICE_NOT_LICENSED, GPUHAL_ERROR_NO_PERMISSION},
    {CUDA_ERROR_INVALID_IMAGE, GPUHAL_ERROR_INVALID_ARGUMENT},
    {CUDA_ERROR_INVALID_CONTEXT, LOST},
    {CUDA_ERROR_CONTEXT_ALREADY_CURRENT, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_MAP_FAILED, GPUHAL_ERROR_OUT_OF_MEMORY},
    {CUDA_ERROR_UNMAP_FAILED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_ARRAY_IS_MAPPED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_ALREADY_MAPPED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, GPUHAL_ERROR_INCOMPATIBLE},
    {CUDA_ERROR_ALREADY_ACQUIRED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_NOT_MAPPED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_NOT_MAPPED_AS_ARRAY, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_NOT_MAPPED_AS_POINTER, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_ECC_UNCORRECTABLE, LOST},
    {CUDA_ERROR_UNSUPPORTED_LIMIT, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_CONTEXT_ALREADY_IN_USE, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, GPUHAL_ERROR_NOT_SUPPORTED},
    {CUDA_ERROR_INVALID_PTX, GPUHAL_ERROR_INVALID_ARGUMENT},
    {CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, LOST},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, GPUHAL_ERROR_NOT_SUPPORTED},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, GPUHAL_ERROR_INCOMPATIBLE},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, GPUHAL_ERROR_NOT_SUPPORTED},
    {CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_CONTAINED, LOST},
    {CUDA_ERROR_INVALID_SOURCE, GPUHAL_ERROR_INVALID_ARGUMENT},
    {CUDA_ERROR_FILE_NOT_FOUND, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_OPERATING_SYSTEM, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_INVALID_HANDLE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_ILLEGAL_STATE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_LOSSY_QUERY, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_NOT_FOUND, GPUHAL_ERROR_NOT_FOUND},
    {CUDA_ERROR_NOT_READY, GPUHAL_NOT_READY},
    {CUDA_ERROR_ILLEGAL_ADDRESS, LOST},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, GPUHAL_ERROR_TOO_LARGE},
    {CUDA_ERROR_LAUNCH_TIMEOUT, LOST},
    {CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, LOST},
    {CUDA_ERROR_ASSERT, LOST},
    {CUDA_ERROR_TOO_MANY_PEERS, GPUHAL_ERROR_NOT_SUPPORTED},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, GPUHAL_ERROR_INVALID_ARGUMENT},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, LOST},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, LOST},
    {CUDA_ERROR_MISALIGNED_ADDRESS, LOST},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, LOST},
    {CUDA_ERROR_INVALID_PC, LOST},
    {CUDA_ERROR_LAUNCH_FAILED, LOST},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, GPUHAL_ERROR_TOO_LARGE},
    {CUDA_ERROR_TENSOR_MEMORY_LEAK, LOST},
    {CUDA_ERROR_NOT_PERMITTED, GPUHAL_ERROR_NO_PERMISSION},
    {CUDA_ERROR_NOT_SUPPORTED, GPUHAL_ERROR_NOT_SUPPORTED},
    {CUDA_ERROR_SYSTEM_NOT_READY, GPUHAL_ERROR_BUSY}, /* NVSwitch machines: the fabric manager is still starting */
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, GPUHAL_ERROR_INCOMPATIBLE},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, GPUHAL_ERROR_INCOMPATIBLE},
    {CUDA_ERROR_MPS_CONNECTION_FAILED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_MPS_RPC_FAILURE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, LOST},
    {CUDA_ERROR_CDP_NOT_SUPPORTED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_CDP_VERSION_MISMATCH, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, GPUHAL_ERROR_BUSY}, /* the application is capturing a graph */
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_CAPTURED_EVENT, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, GPUHAL_ERROR_BUSY},
    {CUDA_ERROR_TIMEOUT, GPUHAL_ERROR_TIMEOUT},
    {CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_EXTERNAL_DEVICE, LOST},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_FUNCTION_NOT_LOADED, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_INVALID_RESOURCE_TYPE, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_KEY_ROTATION, GPUHAL_ERROR_DRIVER},
    {CUDA_ERROR_UNKNOWN, GPUHAL_ERROR_DRIVER},
};
#undef LOST

#define COUNTED_RESULT(name, value) +1
_Static_assert(sizeof meanings / sizeof meanings[0] == 1 + GPUHAL_CUDA_RESULTS(COUNTED_RESULT),
               "every code has its line");

gpuhal_status gpuhal_cuda_status(CUresult code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].code == code) {
            return meanings[i].status;
        }
    }
    return GPUHAL_ERROR_DRIVER;
}

const char *gpuhal_cuda_result_name(CUresult code)
{
#define NAMED_RESULT(name, value)                                                                                     \
    case value:                                                                                                       \
        return #name;
    switch (code) {
        GPUHAL_CUDA_RESULTS(NAMED_RESULT)
    case GPUHAL_CUDA_INSUFFICIENT_DRIVER:
        return "cudaErrorInsufficientDriver";
    default:
        return "unknown error code";
    }
}

gpuhal_status gpuhal_cuda_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, CUresult code,
                                    const char *sentence)
{
    char text[512];
    snprintf(text, sizeof text, "%s: %s", gpuhal_cuda_result_name(code), sentence);
    return host->report(host, status, call, code, text);
}

/* The driver's text is used even for known codes, because it changes between versions and contains the remedy. */
gpuhal_status gpuhal_cuda_report(const gpuhal_host *host, const char *call, CUresult code)
{
    const char *description = NULL;
    if (gpuhal_cuda_api.cuGetErrorString(code, &description) != CUDA_SUCCESS || !description) {
        description = "the driver does not describe it";
    }
    return gpuhal_cuda_report_as(host, gpuhal_cuda_status(code), call, code, description);
}
