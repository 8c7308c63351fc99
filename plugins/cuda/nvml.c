/* cuda/nvml.c: opens and initialises NVML, runs work for one thread at a time, and finds devices; see nvml.h. */
#include "nvml.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

gpuhal_cuda_nvml_functions gpuhal_cuda_nvml;

static bool opened;      /* set by the first start() that can open NVML, under open_lock */
static bool initialised; /* only the thread with the turn accesses it */
static uint64_t session; /* only the thread with the turn accesses it */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const library_names[] = {
#if defined(_WIN32)
    "nvml.dll",
#else
    "libnvidia-ml.so.1",
#endif
    NULL,
};

void gpuhal_cuda_nvml_open(const gpuhal_host *host)
{
    gpuhal_cuda_nvml_functions found;
#define REQUIRED_SYMBOL(name, arguments) {#name, &found.name, 1, 0},
#define OPTIONAL_SYMBOL(name, arguments) {#name, &found.name, 0, 0},
    const gpuhal_symbol symbols[] = {GPUHAL_NVML_FUNCTIONS(REQUIRED_SYMBOL, OPTIONAL_SYMBOL)};
    gpuhal_status status = host->library(host, "NVML", library_names, symbols, sizeof symbols / sizeof symbols[0]);
    if (status != GPUHAL_OK) {
        host->log(host, GPUHAL_LOG_INFO,
                  "NVML cannot be used: the values of CUDA devices that only NVML reports are missing");
        return;
    }
    pthread_mutex_lock(&open_lock);
    if (!opened) {
        gpuhal_cuda_nvml = found;
        opened = true;
    }
    pthread_mutex_unlock(&open_lock);
}

/* The lock makes the table visible to this thread, because another copy of the core may have written it. */
static bool is_open(void)
{
    pthread_mutex_lock(&open_lock);
    bool is = opened;
    pthread_mutex_unlock(&open_lock);
    return is;
}

static const char *result_name(nvmlReturn_t code)
{
#define NAMED_RESULT(name, value)                                                                                      \
    case value:                                                                                                        \
        return #name;
    switch (code) {
        GPUHAL_NVML_RESULTS(NAMED_RESULT)
    default:
        return "unknown error code";
    }
}

static const char *meaning(nvmlReturn_t code)
{
    switch (code) {
    case NVML_ERROR_GPU_IS_LOST:
        return ": the GPU has fallen off the bus";
    case NVML_ERROR_RESET_REQUIRED:
        return ": the GPU works again after a reset";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return ": NVML and the kernel's driver differ";
    case NVML_ERROR_OPERATING_SYSTEM:
        return ": a control group withholds the device";
    case NVML_ERROR_NO_PERMISSION:
        return ": this user, or container, may not";
    default:
        return "";
    }
}

gpuhal_stream_why gpuhal_cuda_nvml_why(nvmlReturn_t code)
{
    gpuhal_stream_why why = {.reason = GPUHAL_MISSING_FAILED};
    switch (code) {
    case NVML_SUCCESS:
        why.reason = 0;
        return why;
    case GPUHAL_CUDA_NVML_OTHER_LAYOUT:
        return gpuhal_cuda_because(GPUHAL_MISSING_NOT_SUPPORTED,
                                   "this driver lists processes in a form of its own (535.43 to 535.86 do)");
    case GPUHAL_CUDA_NVML_OTHER_NAMESPACE:
        return gpuhal_cuda_because(GPUHAL_MISSING_NOT_SUPPORTED,
                                   "inside a container NVML may name processes by other numbers");
    case GPUHAL_CUDA_NVML_NO_EVENT:
        return gpuhal_cuda_because(GPUHAL_MISSING_NOT_READ, "the driver reported no error since it was first asked");
    case GPUHAL_CUDA_NVML_NO_LIMIT: /* not "unsupported", because a limit may be set later */
        return gpuhal_cuda_because(GPUHAL_MISSING_NOT_READ, "the control group of this process has no limit");
    case NVML_ERROR_NOT_SUPPORTED:
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
    case NVML_ERROR_DEPRECATED:
        why.reason = GPUHAL_MISSING_NOT_SUPPORTED;
        break;
    case NVML_ERROR_NO_PERMISSION:
    case NVML_ERROR_OPERATING_SYSTEM: /* a cgroup denies this process the device node */
        why.reason = GPUHAL_MISSING_NO_PERMISSION;
        break;
    case NVML_ERROR_TIMEOUT:
        why.reason = GPUHAL_MISSING_TIMED_OUT;
        break;
    case NVML_ERROR_RESET_REQUIRED:
        why.reason = GPUHAL_MISSING_RESET;
        break;
    case NVML_ERROR_GPU_IS_LOST:
        why.reason = GPUHAL_MISSING_LOST;
        break;
    default:
        break;
    }
    snprintf(why.text, sizeof why.text, "NVML returned %s (%u)%s", result_name(code), code, meaning(code));
    return why;
}

/* ---- calls */

/* Attaches no GPU, so that no sleeping GPU is woken. Drivers without the flag attach a GPU when it is looked up. */
static nvmlReturn_t initialise(void)
{
    nvmlReturn_t code = gpuhal_cuda_nvml.nvmlInitWithFlags
                            ? gpuhal_cuda_nvml.nvmlInitWithFlags(NVML_INIT_FLAG_NO_ATTACH)
                            : NVML_ERROR_FUNCTION_NOT_FOUND;
    const bool unknown = code == NVML_ERROR_FUNCTION_NOT_FOUND || code == NVML_ERROR_INVALID_ARGUMENT ||
                         code == NVML_ERROR_NOT_SUPPORTED;
    return unknown ? gpuhal_cuda_nvml.nvmlInit_v2() : code;
}

/* NVML counts initialisations. One initialisation is enough, and this plugin never shuts NVML down. */
static nvmlReturn_t run(nvmlReturn_t (*work)(void *request), void *request)
{
    nvmlReturn_t code = initialised ? NVML_SUCCESS : initialise();
    initialised = code == NVML_SUCCESS;
    if (initialised) {
        initialised = work(request) != NVML_ERROR_UNINITIALIZED;
        session += !initialised;
        code = initialised ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    }
    return code;
}

uint64_t gpuhal_cuda_nvml_session(void)
{
    return session;
}

gpuhal_stream_why gpuhal_cuda_nvml_run(nvmlReturn_t (*work)(void *request), void *request)
{
    if (!is_open()) {
        return gpuhal_cuda_because(GPUHAL_MISSING_NOT_SUPPORTED, "NVML (libnvidia-ml.so.1) cannot be opened");
    }
    if (!gpuhal_cuda_take_turn()) {
        return gpuhal_cuda_because(GPUHAL_MISSING_TIMED_OUT, "an earlier call of NVML hangs, so NVML is not called");
    }
    nvmlReturn_t code = run(work, request);
    /* Repeat only once, because this thread must not keep the turn forever if NVML does not stay initialised. */
    code = code == NVML_ERROR_UNINITIALIZED ? run(work, request) : code;
    gpuhal_cuda_give_turn();
    return gpuhal_cuda_nvml_why(code);
}

/* ---- devices */

static nvmlReturn_t check_uuid(nvmlDevice_t device, const char *wanted)
{
    char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = "";
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetUUID(device, uuid, sizeof uuid);
    return code == NVML_SUCCESS && strcmp(uuid, wanted) != 0 ? NVML_ERROR_NOT_FOUND : code;
}

/* Finds the whole GPU, even if the entry is a MIG device. */
static nvmlReturn_t find_at_address(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device)
{
    return entry->pci[0] == '\0' ? NVML_ERROR_NOT_FOUND
                                 : gpuhal_cuda_nvml.nvmlDeviceGetHandleByPciBusId_v2(entry->pci, out_device);
}

/* Inside a virtual machine NVML and CUDA may see different addresses, so the UUID must match if it is known. */
static nvmlReturn_t find_by_address(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device)
{
    if (entry->is_mig) {
        return NVML_ERROR_NOT_FOUND;
    }
    const nvmlReturn_t code = find_at_address(entry, out_device);
    return code == NVML_SUCCESS && entry->nvml_uuid[0] != '\0' ? check_uuid(*out_device, entry->nvml_uuid) : code;
}

bool gpuhal_cuda_nvml_is_lost(const gpuhal_cuda_entry *entry)
{
    nvmlDevice_t device = NULL;
    return find_at_address(entry, &device) == NVML_ERROR_GPU_IS_LOST;
}

/* To find a UUID, NVML queries one GPU after the other, and returns an error if another GPU is lost or has no power
 * ("if any GPU has fallen off the bus"). To find an address, NVML queries only the GPU at this address. */
nvmlReturn_t gpuhal_cuda_nvml_find(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device, nvmlDevice_t *out_board)
{
    nvmlReturn_t code = NVML_ERROR_NOT_FOUND;
    if (entry->nvml_uuid[0] != '\0' && gpuhal_cuda_nvml.nvmlDeviceGetHandleByUUID) {
        code = gpuhal_cuda_nvml.nvmlDeviceGetHandleByUUID(entry->nvml_uuid, out_device);
    }
    if (code != NVML_SUCCESS && code != NVML_ERROR_UNINITIALIZED) {
        const nvmlReturn_t there = find_by_address(entry, out_device);
        code = there == NVML_ERROR_NOT_FOUND && code != NVML_ERROR_INVALID_ARGUMENT ? code : there;
    }
    *out_board = *out_device;
    if (code == NVML_SUCCESS && entry->is_mig && gpuhal_cuda_nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle) {
        (void)gpuhal_cuda_nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(*out_device, out_board);
    }
    return code;
}
