/* cuda/discovery.c: finds the devices.
 *
 * CUDA is initialised here, because that wakes devices and opens their nodes. No context is created and no device
 * memory is allocated. The list does not change afterwards, so an index is CUDA's own ordinal until the process exits.
 */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

int gpuhal_cuda_attribute(CUdevice device, CUdevice_attribute attribute, int otherwise)
{
    int value = otherwise;
    return gpuhal_cuda_api.cuDeviceGetAttribute(&value, attribute, device) == CUDA_SUCCESS ? value : otherwise;
}

typedef struct survey {
    const char *source; /* the component that counted the GPUs, with a verb for messages, or NULL */
    unsigned int count;
    char driver_version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE];
} survey;

static nvmlReturn_t ask_nvml(void *request)
{
    survey *own = request;
    own->source = "NVML sees";
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetCount_v2(&own->count);
    if (code != NVML_SUCCESS) {
        own->count = 0;
    }
    if (gpuhal_cuda_nvml.nvmlSystemGetDriverVersion(own->driver_version, sizeof own->driver_version) != NVML_SUCCESS) {
        own->driver_version[0] = '\0';
    }
    own->driver_version[sizeof own->driver_version - 1] = '\0';
    return code;
}

/* The kernel's files come first, because reading them cannot hang. WSL does not have them. */
static void make_survey(survey *own)
{
    if (gpuhal_cuda_read_module_version(own->driver_version, sizeof own->driver_version)) {
        own->source = "the kernel's driver has";
        own->count = gpuhal_cuda_count_system();
    } else {
        (void)gpuhal_cuda_nvml_ask(ask_nvml, own, sizeof *own);
    }
}

/* ---- errors if CUDA does not list a device */

static const char *const hiding[] = {"CUDA_VISIBLE_DEVICES", NULL};

static void explain_none(const survey *known, char *text, size_t size)
{
    char cause[160];
    const bool is_hidden = gpuhal_cuda_list_variables(hiding, cause, sizeof cause);
    const uint32_t empty = gpuhal_cuda_find_empty_mig(!is_hidden);
    gpuhal_cuda_say_what_hides(hiding, cause, sizeof cause);
    const int length = snprintf(text, size, "CUDA lists no device, and %s %u: ", known->source, known->count);
    text += length;
    size -= (size_t)length;
    if (empty > 0 && empty >= known->count) {
        snprintf(text, size, "%s", GPUHAL_CUDA_EMPTY_MIG);
    } else if (empty > 0) { /* the other GPUs are missing for another reason */
        snprintf(text, size, "%u with MIG on and no instance; %s the other%s", empty, cause,
                 known->count - empty == 1 ? "" : "s");
    } else {
        snprintf(text, size, "%s %s", cause, known->count == 1 ? "it" : "them");
    }
}

static gpuhal_status no_device(const gpuhal_host *host, const char *call, CUresult code, const survey *known)
{
    char text[512];
    gpuhal_status status = GPUHAL_ERROR_NO_DEVICE;
    if (known->count > 0) {
        explain_none(known, text, sizeof text);
    } else {
        status = gpuhal_cuda_explain_nothing(text, sizeof text);
    }
    return gpuhal_cuda_report_as(host, status, call, code, text);
}

/* @p how describes the mismatch between libcuda and the loaded kernel driver, and the remedy. */
static gpuhal_status mismatch(const gpuhal_host *host, CUresult code, const char *how)
{
    char module[80], text[256];
    int version = 0;
    const bool has_version = gpuhal_cuda_read_module_version(module, sizeof module);
    (void)gpuhal_cuda_api.cuDriverGetVersion(&version);
    snprintf(text, sizeof text, "libcuda supports CUDA %d.%d, and the kernel's NVIDIA driver is %s: %s", version / 1000,
             version % 1000 / 10, has_version ? module : "of an unknown version", how);
    return gpuhal_cuda_report_as(host, GPUHAL_ERROR_INCOMPATIBLE, "cuInit", code, text);
}

/* Adds the remedy, which the driver's descriptions of these codes do not contain. */
static gpuhal_status init_failed(const gpuhal_host *host, CUresult code, const survey *known)
{
    switch (code) {
    case CUDA_ERROR_NO_DEVICE:
        return no_device(host, "cuInit", code, known);
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return mismatch(host, code, "restart after an update, or give the container the libraries of its host");
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return mismatch(host, code, "this GPU takes no compatibility package; use the libcuda of the driver");
    case GPUHAL_CUDA_INSUFFICIENT_DRIVER:
    case CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
        return mismatch(host, code, "the driver is too old; update it");
    case CUDA_ERROR_STUB_LIBRARY:
        return gpuhal_cuda_report_as(
            host, GPUHAL_ERROR_NO_DRIVER, "cuInit", code,
            "this libcuda is the stub for linking, not a driver: take its directory out of the search path");
    case CUDA_ERROR_NOT_INITIALIZED:
        return gpuhal_cuda_report_as(
            host, GPUHAL_ERROR_DRIVER, "cuInit", code,
            "this process was forked from one that used CUDA, and cannot use it: start it with exec");
    case CUDA_ERROR_OPERATING_SYSTEM:
        return gpuhal_cuda_report_as(
            host, GPUHAL_ERROR_NO_PERMISSION, "cuInit", code,
            "the system refused the driver: check that /dev/nvidia* exist and that this user may open them");
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return gpuhal_cuda_report_as(host, GPUHAL_ERROR_BUSY, "cuInit", code,
                                     "the machine's GPUs are not set up yet: is the fabric manager running?");
    case CUDA_ERROR_UNKNOWN:
        return gpuhal_cuda_report_as(
            host, GPUHAL_ERROR_DRIVER, "cuInit", code,
            gpuhal_cuda_lacks_uvm() ? "there is no /dev/nvidia-uvm: load nvidia_uvm, or give the container the node"
                                    : gpuhal_cuda_explain_unknown());
    default:
        return gpuhal_cuda_report(host, "cuInit", code);
    }
}

/* ---- the list */

static bool has_range_functions(void)
{
    const gpuhal_cuda_functions *api = &gpuhal_cuda_api;
    return api->cuMemGetAllocationGranularity && api->cuMemAddressReserve && api->cuMemAddressFree &&
           api->cuMemCreate && api->cuMemRelease && api->cuMemMap && api->cuMemUnmap && api->cuMemSetAccess;
}

/* Drivers before CUDA 10 do not know every attribute. A feature that they do not report is not used. */
static void fill_in(gpuhal_cuda_entry *entry, const survey *known)
{
    const CUdevice device = entry->device;
    size_t total = 0;
    entry->total = gpuhal_cuda_api.cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS ? total : 0;
    const int pitch = gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0);
    entry->pitch_max = pitch > 0 ? (uint32_t)pitch : 0;
    entry->maps_host = gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 0) != 0;
    entry->registers_host =
        entry->maps_host && gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0) != 0;
    entry->registers_read_only =
        entry->registers_host &&
        gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0) != 0;
    /* Without concurrent access (before Pascal, WSL), the host must not touch managed memory while a kernel runs. */
    entry->has_managed = gpuhal_cuda_api.cuMemAllocManaged &&
                         gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0) != 0 &&
                         gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0) != 0;
    entry->has_ranges = has_range_functions() &&
                        gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0) != 0;
    entry->exports_fd =
        entry->has_ranges && gpuhal_cuda_api.cuMemExportToShareableHandle &&
        gpuhal_cuda_api.cuMemImportFromShareableHandle &&
        gpuhal_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0) != 0;
    memcpy(entry->driver_version, known->driver_version, sizeof entry->driver_version);
    gpuhal_cuda_identify(entry);
}

static void explain_hidden(const gpuhal_host *host, const survey *known, uint32_t listed)
{
    if (known->count > listed) {
        char text[256], cause[160];
        gpuhal_cuda_say_what_hides(hiding, cause, sizeof cause);
        snprintf(text, sizeof text, "%s %u NVIDIA GPUs and CUDA lists %u devices: %s the rest", known->source,
                 known->count, listed, cause);
        host->log(host, GPUHAL_LOG_INFO, text);
    }
}

/* Each failed cuInit leaks descriptors and a thread (drivers 550 and 555: four descriptors and one thread). So cuInit
 * is called again only if it may return another code. enumerate() holds its lock. */
static CUresult initialise(void)
{
    static CUresult answer;
    static bool asked;
    static uint64_t seen;
    const uint64_t now = gpuhal_cuda_see_system();
    if (!asked || gpuhal_cuda_status(answer) == GPUHAL_ERROR_BUSY || now != seen) {
        answer = gpuhal_cuda_api.cuInit(0);
        asked = true;
        seen = now;
    }
    return answer;
}

gpuhal_status gpuhal_cuda_make_list(const gpuhal_host *host, gpuhal_cuda_entry *entries, uint32_t space,
                                    uint32_t *out_count)
{
    survey known = {0};
    make_survey(&known);
    CUresult code = initialise();
    if (code != CUDA_SUCCESS) {
        return init_failed(host, code, &known);
    }
    int count = 0;
    code = gpuhal_cuda_api.cuDeviceGetCount(&count);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_report(host, "cuDeviceGetCount", code);
    }
    if (count <= 0) {
        return no_device(host, "cuDeviceGetCount", CUDA_ERROR_NO_DEVICE, &known);
    }
    /* *out_count is set only at the end, so that find() returns no entry if a step before it fails
     * (stream/discovery.c). */
    const uint32_t listed = (uint32_t)count < space ? (uint32_t)count : space;
    for (uint32_t i = 0; i < listed; i++) {
        code = gpuhal_cuda_api.cuDeviceGet(&entries[i].device, (int)i);
        if (code != CUDA_SUCCESS) {
            return gpuhal_cuda_report(host, "cuDeviceGet", code);
        }
        entries[i].ordinal = i;
        fill_in(&entries[i], &known);
    }
    explain_hidden(host, &known, listed);
    char set[160];
    gpuhal_cuda_find_unlisted(host, entries, listed,
                              known.count > listed && !gpuhal_cuda_list_variables(hiding, set, sizeof set));
    *out_count = listed;
    return GPUHAL_OK;
}
