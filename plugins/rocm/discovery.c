/* rocm/discovery.c: finds the devices.
 *
 * HIP is initialized only here, because initialization wakes devices and opens their nodes. No device memory is
 * allocated. The list never changes afterwards, so an index is HIP's own ordinal until the process exits.
 */
#include "smi.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const hiding[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
                                     "GPU_DEVICE_ORDINAL", NULL};

int gpuhal_rocm_attribute(hipDevice_t device, hipDeviceAttribute_t attribute, int otherwise)
{
    int value = otherwise;
    const hipError_t code = gpuhal_rocm_api.hipDeviceGetAttribute(&value, attribute, device);
    return code == hipSuccess ? value : (int)(gpuhal_rocm_forget(code), otherwise);
}

/* ---- errors if HIP does not list a device */

/* Checks the kernel driver by opening its node in the same way as HIP. This does not wake a GPU. Returns the fault, or
 * NULL. */
static const char *kernel_fault(gpuhal_status *out_status)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_rocm_path(path, "/dev/kfd");
    const int node = open(path, O_RDWR | O_CLOEXEC);
    const int error = errno;
    if (node >= 0) {
        close(node);
        return NULL;
    }
    *out_status = error == EACCES || error == EPERM ? GPUHAL_ERROR_NO_PERMISSION : GPUHAL_ERROR_NO_DEVICE;
    return *out_status == GPUHAL_ERROR_NO_PERMISSION
               ? "this user may not open /dev/kfd: add the user to the group render, or map the node into the container"
           : error != ENOENT /* such as during a GPU reset */
               ? "/dev/kfd exists, but cannot be opened: see the kernel's log for lines with kfd or amdgpu"
               : "there is no /dev/kfd: the kernel's amdgpu driver has found no GPU, or the node is not mapped into "
                 "the container";
}

/* The message begins with HIP's own description. The other parts name the remedy if possible. */
static gpuhal_status no_device(const gpuhal_host *host, const char *call, hipError_t code)
{
    gpuhal_status status = GPUHAL_ERROR_NO_DEVICE;
    char text[480], cause[160];
    const char *description = gpuhal_rocm_error_text(code), *fault = kernel_fault(&status);
    /* HIP 5 describes a code only by its name. */
    description = strcmp(description, gpuhal_rocm_result_name(code)) == 0 ? "HIP lists no device" : description;
    const uint32_t known = gpuhal_rocm_count_system();
    if (status == GPUHAL_ERROR_NO_PERMISSION && known == 0) {
        status = GPUHAL_ERROR_NO_DEVICE; /* permissions cannot hide a GPU, because there is none */
    }
    if (fault) {
        const bool set = gpuhal_rocm_list_variables(hiding, cause, sizeof cause);
        snprintf(text, sizeof text, "%s; %s%s%s%s", description, fault, set ? "; or " : "", cause,
                 set ? " hides every device" : "");
    } else if (known > 0) {
        gpuhal_rocm_say_what_hides(hiding, cause, sizeof cause);
        snprintf(text, sizeof text, "%s; the kernel's driver has %u: %s %s", description, known, cause,
                 known == 1 ? "it" : "them");
    } else {
        snprintf(text, sizeof text, "%s; the kernel's amdgpu driver has no device that computes, either", description);
    }
    return gpuhal_rocm_report_as(host, status, call, code, text);
}

static gpuhal_status init_failed(const gpuhal_host *host, const char *call, hipError_t code)
{
    switch (code) {
    case hipErrorNoDevice:
        return no_device(host, call, code);
    case hipErrorInvalidDevice: { /* hipInit of HIP 5 returns this code if there is no device */
        int count = 0;
        const hipError_t again = gpuhal_rocm_api.hipGetDeviceCount(&count);
        return again == hipErrorNoDevice || count == 0 ? no_device(host, "hipGetDeviceCount", hipErrorNoDevice)
                                                       : gpuhal_rocm_report(host, call, code);
    }
    case hipErrorInsufficientDriver:
        return gpuhal_rocm_report_as(
            host, GPUHAL_ERROR_INCOMPATIBLE, call, code,
            "the kernel's amdgpu driver is too old for this HIP; update it, or use an older HIP");
    case hipErrorNotInitialized:
    case hipErrorOperatingSystem: {
        gpuhal_status status = GPUHAL_ERROR_DRIVER;
        const char *fault = kernel_fault(&status);
        return gpuhal_rocm_report_as(host, status, call, code, fault ? fault : gpuhal_rocm_error_text(code));
    }
    default:
        return gpuhal_rocm_report(host, call, code);
    }
}

/* ---- the list */

static bool has_range_functions(void)
{
    const gpuhal_rocm_functions *api = &gpuhal_rocm_api;
    return api->hipMemGetAllocationGranularity && api->hipMemAddressReserve && api->hipMemAddressFree &&
           api->hipMemCreate && api->hipMemRelease && api->hipMemMap && api->hipMemUnmap && api->hipMemSetAccess;
}

/* AMD's own kernel module has a version. The mainline module has none, so HIP's version is used instead. */
static void read_driver_version(char *out_text, size_t size)
{
    const gpuhal_rocm_version *runtime = &gpuhal_rocm_runtime;
    char path[GPUHAL_STREAM_PATH];
    gpuhal_rocm_path(path, "/sys/module/amdgpu/version");
    if (!gpuhal_rocm_read_line(path, out_text, size) && runtime->whole != 0) {
        snprintf(out_text, size, "%d.%d.%d", runtime->major, runtime->minor, runtime->patch);
    }
}

static void fill_in(gpuhal_rocm_entry *entry)
{
    const hipDevice_t device = entry->device;
    const gpuhal_rocm_version *runtime = &gpuhal_rocm_runtime;
    size_t total = 0;
    const hipError_t code = gpuhal_rocm_api.hipDeviceTotalMem(&total, device);
    entry->total = code == hipSuccess ? total : (uint64_t)(gpuhal_rocm_forget(code), 0);
    const int pitch = gpuhal_rocm_attribute(device, hipDeviceAttributeMaxPitch, 0);
    entry->pitch_max = pitch > 0 ? (uint32_t)pitch : 0;
    entry->maps_host = gpuhal_rocm_attribute(device, hipDeviceAttributeCanMapHostMemory, 0) != 0;
    entry->registers_host =
        entry->maps_host && (!runtime->has_attribute_host_register ||
                             gpuhal_rocm_attribute(device, GPUHAL_ROCM_ATTRIBUTE_HOST_REGISTER, 1) != 0);
    /* HIP reports both attributes if the kernel can move pages (HMM). */
    entry->has_managed = gpuhal_rocm_api.hipMallocManaged &&
                         gpuhal_rocm_attribute(device, hipDeviceAttributeManagedMemory, 0) != 0 &&
                         gpuhal_rocm_attribute(device, hipDeviceAttributeConcurrentManagedAccess, 0) != 0;
    entry->has_ranges = has_range_functions() && runtime->has_attribute_virtual_memory &&
                        gpuhal_rocm_attribute(device, GPUHAL_ROCM_ATTRIBUTE_VIRTUAL_MEMORY, 0) != 0;
    entry->exports_fd = entry->has_ranges && gpuhal_rocm_api.hipMemExportToShareableHandle &&
                        gpuhal_rocm_api.hipMemImportFromShareableHandle;
    read_driver_version(entry->driver_version, sizeof entry->driver_version);
    gpuhal_rocm_identify(entry);
}

static void explain_hidden(const gpuhal_host *host, uint32_t listed)
{
    const uint32_t known = gpuhal_rocm_count_system();
    if (known > listed) {
        char text[256], cause[160];
        gpuhal_rocm_say_what_hides(hiding, cause, sizeof cause);
        snprintf(text, sizeof text, "the kernel's driver has %u AMD GPUs and HIP lists %u devices: %s the rest", known,
                 listed, cause);
        host->log(host, GPUHAL_LOG_INFO, text);
    }
}

gpuhal_status gpuhal_rocm_make_list(const gpuhal_host *host, gpuhal_rocm_entry *entries, uint32_t space,
                                    uint32_t *out_count)
{
    hipError_t code = gpuhal_rocm_api.hipInit(0);
    if (code != hipSuccess) {
        return init_failed(host, "hipInit", code);
    }
    int count = 0, version = 0;
    code = gpuhal_rocm_api.hipGetDeviceCount(&count);
    if (code != hipSuccess) {
        return init_failed(host, "hipGetDeviceCount", code);
    }
    if (count <= 0) {
        return no_device(host, "hipGetDeviceCount", hipErrorNoDevice);
    }
    code = gpuhal_rocm_api.hipRuntimeGetVersion(&version);
    gpuhal_rocm_runtime = gpuhal_rocm_version_of(code == hipSuccess ? version : (int)(gpuhal_rocm_forget(code), 0));
    /* *out_count is set only at the end, so that find() returns no entry if a step before it fails
     * (stream/discovery.c). */
    const uint32_t listed = (uint32_t)count < space ? (uint32_t)count : space;
    for (uint32_t i = 0; i < listed; i++) {
        code = gpuhal_rocm_api.hipDeviceGet(&entries[i].device, (int)i);
        if (code != hipSuccess) {
            return gpuhal_rocm_report(host, "hipDeviceGet", code);
        }
        entries[i].ordinal = i;
        fill_in(&entries[i]);
    }
    /* Requires all entries. */
    gpuhal_rocm_find_partitions(entries, listed);
    gpuhal_rocm_read_nodes(entries, listed);
    explain_hidden(host, listed);
    gpuhal_rocm_smi_open(host); /* opened only if devices exist, since the library only reports device values */
    *out_count = listed;
    return GPUHAL_OK;
}
