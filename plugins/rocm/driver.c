/* rocm/driver.c: opens HIP's library, and maps its error codes. */
#include "device.h"

#include <stdio.h>

gpuhal_rocm_functions gpuhal_rocm_api;
gpuhal_rocm_version gpuhal_rocm_runtime;

/* Newest first, because several versions may be installed, and the kernel driver works with older and newer
 * versions. */
static const char *const library_names[] = {
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    NULL,
};

/* A runtime that does not report its version is treated as recent. Querying the version initializes HIP like hipInit,
 * so discovery, not start(), queries the version. */
gpuhal_rocm_version gpuhal_rocm_version_of(int whole)
{
    const int known = whole >= 10000000 ? whole : 0;
    gpuhal_rocm_version version = {
        .whole = known, .major = known / 10000000, .minor = known % 10000000 / 100000, .patch = known % 100000};
    const bool late = known == 0 || version.major >= 6;
    version.memory_type_device = late ? 2 : 1;
    version.has_attribute_virtual_memory = late || version.minor >= 3;
    version.has_attribute_host_register = late;
    version.ends_with_pieces = known != 0 && (version.major < 6 || (version.major == 6 && version.minor < 3));
    version.keeps_last_error = known == 0 || version.major >= 7;
    version.has_graphs = version.major > 6 || (version.major == 6 && version.minor >= 4);
    version.takes_descriptors = version.major > 7 || (version.major == 7 && version.minor >= 1);
    return version;
}

gpuhal_status gpuhal_rocm_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    static pthread_mutex_t lock =
        PTHREAD_MUTEX_INITIALIZER; /* protects the root, and gpuhal_rocm_api while it is written */
    static bool started;
    gpuhal_rocm_functions found;
#define REQUIRED_SYMBOL(type, name, arguments) {#name, &found.name, 1, 0},
#define OPTIONAL_SYMBOL(type, name, arguments) {#name, &found.name, 0, 0},
    const gpuhal_symbol symbols[] = {GPUHAL_HIP_FUNCTIONS(REQUIRED_SYMBOL, OPTIONAL_SYMBOL)};
    gpuhal_status status = host->library(host, "HIP", library_names, symbols, sizeof symbols / sizeof symbols[0]);
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_lock(&lock);
    const bool other = started && gpuhal_rocm_api.hipInit != found.hipInit;
    status = gpuhal_rocm_use_system(host, !started);
    /* Write the table only once, because threads of other copies of the core may use it afterwards. They need no lock,
     * because each copy's start() has acquired the lock after the table was written. */
    if (!started && status == GPUHAL_OK) {
        gpuhal_rocm_api = found;
        started = true;
    }
    pthread_mutex_unlock(&lock);
    if (other) {
        host->log(host, GPUHAL_LOG_WARNING, "another HIP library is in use in this process already, and stays in use");
    }
    return status;
}

/* The status for each code. Codes that mean an invalid argument map to DRIVER: the core has checked the arguments, so
 * the application cannot fix them. Codes of later runtimes that are not in the table also map to DRIVER.
 *
 * LOST marks sticky codes: every later call on the device returns the same code. hipErrorInvalidContext and
 * hipErrorContextIsDestroyed are not sticky: HIP returns them for an invalid stream, and the device continues to
 * work. */
#define LOST GPUHAL_ERROR_DEVICE_LOST
static const struct {
    hipError_t code;
    gpuhal_status status;
} meanings[] = {
    {hipSuccess, GPUHAL_OK},
    {hipErrorInvalidValue, GPUHAL_ERROR_DRIVER},
    {hipErrorOutOfMemory, GPUHAL_ERROR_OUT_OF_MEMORY},
    {hipErrorNotInitialized, GPUHAL_ERROR_DRIVER},
    {hipErrorDeinitialized, LOST}, /* the process is ending */
    {hipErrorProfilerDisabled, GPUHAL_ERROR_DRIVER},
    {hipErrorProfilerNotInitialized, GPUHAL_ERROR_DRIVER},
    {hipErrorProfilerAlreadyStarted, GPUHAL_ERROR_DRIVER},
    {hipErrorProfilerAlreadyStopped, GPUHAL_ERROR_DRIVER},
    {hipErrorInvalidConfiguration, GPUHAL_ERROR_INVALID_ARGUMENT},
    {hipErrorInvalidPitchValue, GPUHAL_ERROR_DRIVER},
    {hipErrorInvalidSymbol, GPUHAL_ERROR_NOT_FOUND},
    {hipErrorInvalidDevicePointer, GPUHAL_ERROR_DRIVER},
    {hipErrorInvalidMemcpyDirection, GPUHAL_ERROR_DRIVER},
    {hipErrorInsufficientDriver, GPUHAL_ERROR_INCOMPATIBLE},
    {hipErrorMissingConfiguration, GPUHAL_ERROR_DRIVER},
    {hipErrorPriorLaunchFailure, LOST},
    {hipErrorInvalidDeviceFunction, GPUHAL_ERROR_INCOMPATIBLE}, /* the code is for another architecture */
    {hipErrorNoDevice, GPUHAL_ERROR_NO_DEVICE},
    {hipErrorInvalidDevice, GPUHAL_ERROR_NO_DEVICE},
    {hipErrorInvalidImage, GPUHAL_ERROR_INVALID_ARGUMENT},
    {hipErrorInvalidContext, GPUHAL_ERROR_DRIVER},
    {hipErrorContextAlreadyCurrent, GPUHAL_ERROR_DRIVER},
    {hipErrorMapFailed, GPUHAL_ERROR_OUT_OF_MEMORY},
    {hipErrorUnmapFailed, GPUHAL_ERROR_DRIVER},
    {hipErrorArrayIsMapped, GPUHAL_ERROR_DRIVER},
    {hipErrorAlreadyMapped, GPUHAL_ERROR_DRIVER},
    {hipErrorNoBinaryForGpu, GPUHAL_ERROR_INCOMPATIBLE},
    {hipErrorAlreadyAcquired, GPUHAL_ERROR_DRIVER},
    {hipErrorNotMapped, GPUHAL_ERROR_DRIVER},
    {hipErrorNotMappedAsArray, GPUHAL_ERROR_DRIVER},
    {hipErrorNotMappedAsPointer, GPUHAL_ERROR_DRIVER},
    {hipErrorECCNotCorrectable, LOST},
    {hipErrorUnsupportedLimit, GPUHAL_ERROR_DRIVER},
    {hipErrorContextAlreadyInUse, GPUHAL_ERROR_BUSY},
    {hipErrorPeerAccessUnsupported, GPUHAL_ERROR_NOT_SUPPORTED},
    {hipErrorInvalidKernelFile, GPUHAL_ERROR_INCOMPATIBLE}, /* the plugin has checked the image */
    {hipErrorInvalidGraphicsContext, GPUHAL_ERROR_DRIVER},
    {hipErrorInvalidSource, GPUHAL_ERROR_INVALID_ARGUMENT},
    {hipErrorFileNotFound, GPUHAL_ERROR_DRIVER},
    {hipErrorSharedObjectSymbolNotFound, GPUHAL_ERROR_DRIVER},
    {hipErrorSharedObjectInitFailed, GPUHAL_ERROR_INVALID_ARGUMENT}, /* for a module that cannot be read */
    {hipErrorOperatingSystem, GPUHAL_ERROR_DRIVER},
    {hipErrorInvalidHandle, GPUHAL_ERROR_DRIVER},
    {hipErrorIllegalState, GPUHAL_ERROR_DRIVER},
    {hipErrorNotFound, GPUHAL_ERROR_NOT_FOUND},
    {hipErrorNotReady, GPUHAL_NOT_READY},
    {hipErrorIllegalAddress, LOST},
    {hipErrorLaunchOutOfResources, GPUHAL_ERROR_TOO_LARGE},
    {hipErrorLaunchTimeOut, LOST},
    {hipErrorPeerAccessAlreadyEnabled, GPUHAL_ERROR_DRIVER},
    {hipErrorPeerAccessNotEnabled, GPUHAL_ERROR_DRIVER},
    {hipErrorSetOnActiveProcess, GPUHAL_ERROR_DRIVER},
    {hipErrorContextIsDestroyed, GPUHAL_ERROR_DRIVER},
    {hipErrorAssert, LOST},
    {hipErrorHostMemoryAlreadyRegistered, GPUHAL_ERROR_BUSY},
    {hipErrorHostMemoryNotRegistered, GPUHAL_ERROR_INVALID_ARGUMENT},
    {hipErrorLaunchFailure, LOST},
    {hipErrorCooperativeLaunchTooLarge, GPUHAL_ERROR_TOO_LARGE},
    {hipErrorNotSupported, GPUHAL_ERROR_NOT_SUPPORTED},
    {hipErrorStreamCaptureUnsupported, GPUHAL_ERROR_BUSY}, /* the application is capturing a graph */
    {hipErrorStreamCaptureInvalidated, GPUHAL_ERROR_DRIVER},
    {hipErrorStreamCaptureMerge, GPUHAL_ERROR_DRIVER},
    {hipErrorStreamCaptureUnmatched, GPUHAL_ERROR_DRIVER},
    {hipErrorStreamCaptureUnjoined, GPUHAL_ERROR_DRIVER},
    {hipErrorStreamCaptureIsolation, GPUHAL_ERROR_BUSY},
    {hipErrorStreamCaptureImplicit, GPUHAL_ERROR_BUSY},
    {hipErrorCapturedEvent, GPUHAL_ERROR_BUSY},
    {hipErrorStreamCaptureWrongThread, GPUHAL_ERROR_BUSY},
    {hipErrorGraphExecUpdateFailure, GPUHAL_ERROR_DRIVER},
    {hipErrorInvalidChannelDescriptor, GPUHAL_ERROR_DRIVER}, /* for textures, like the next code; since HIP 6.4 */
    {hipErrorInvalidTexture, GPUHAL_ERROR_DRIVER},
    {hipErrorUnknown, GPUHAL_ERROR_DRIVER},
    {hipErrorRuntimeMemory, GPUHAL_ERROR_OUT_OF_MEMORY},
    {hipErrorRuntimeOther, GPUHAL_ERROR_DRIVER},
};
#undef LOST

#define COUNTED_RESULT(name, value) +1
_Static_assert(sizeof meanings / sizeof meanings[0] == GPUHAL_HIP_RESULTS(COUNTED_RESULT), "every code has its line");

gpuhal_status gpuhal_rocm_status(hipError_t code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
        if (meanings[i].code == code) {
            return meanings[i].status;
        }
    }
    return GPUHAL_ERROR_DRIVER;
}

const char *gpuhal_rocm_result_name(hipError_t code)
{
#define NAMED_RESULT(name, value)                                                                                     \
    case value:                                                                                                       \
        return #name;
    switch (code) {
        GPUHAL_HIP_RESULTS(NAMED_RESULT)
    default:
        return "unknown error code";
    }
}

/* If HIP did not store the error, the last error must not be cleared, because it is the application's own error. */
hipError_t gpuhal_rocm_forget(hipError_t code)
{
    if (code != hipErrorNotReady || !gpuhal_rocm_runtime.keeps_last_error) {
        (void)gpuhal_rocm_api.hipGetLastError();
    }
    return code;
}

void gpuhal_rocm_ignore(hipError_t code)
{
    if (code != hipSuccess) {
        (void)gpuhal_rocm_forget(code);
    }
}

const char *gpuhal_rocm_error_text(hipError_t code)
{
    const char *description = gpuhal_rocm_api.hipGetErrorString(code);
    return description ? description : "HIP does not describe it";
}

gpuhal_status gpuhal_rocm_report_as(const gpuhal_host *host, gpuhal_status status, const char *call, hipError_t code,
                                    const char *sentence)
{
    char text[600];
    (void)gpuhal_rocm_forget(code);
    snprintf(text, sizeof text, "%s: %s", gpuhal_rocm_result_name(code), sentence);
    return host->report(host, status, call, code, text);
}

/* Uses HIP's description even for known codes, because it is updated with each version and names the remedy. */
gpuhal_status gpuhal_rocm_report(const gpuhal_host *host, const char *call, hipError_t code)
{
    return gpuhal_rocm_report_as(host, gpuhal_rocm_status(code), call, code, gpuhal_rocm_error_text(code));
}
