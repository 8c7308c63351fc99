/* device/environment_api.c: lists the library's environment variables for the application. */
#include "device/device.h"

#include "base/error.h"
#include "device/view.h"

gpuhal_status gpuhal_environment_at(const gpuhal *gpu, uint32_t index, gpuhal_environment_entry *out_entry)
{
    if (!out_entry || out_entry->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_environment_at: out_entry is NULL, or its size is 0");
    }
    gpuhal_status status = gpu ? gpuhal_check(gpu) : GPUHAL_OK;
    if (status) {
        return status;
    }
    const char *name = gpuhal_variable_name(index);
    if (!name) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "the library reads no environment variable number %u", index);
    }
    const char *value = gpuhal_os_environment_raw(name);
    bool ignored = value && (gpuhal_os_privileged() || (gpu && gpu->settings.ignore_environment));
    const gpuhal_environment_entry entry = {
        .name = name, .value = value, .meaning = gpuhal_variable_meaning(index), .ignored = ignored};
    gpuhal_record_give(out_entry, &entry, sizeof entry);
    return GPUHAL_OK;
}
