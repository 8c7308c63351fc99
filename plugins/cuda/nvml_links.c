/* cuda/nvml_links.c: values of a GPU's links to other GPUs: NVLink and its switches. */
#include "nvml.h"

/* NVML refuses a link that the GPU does not have, with NOT_SUPPORTED or INVALID_ARGUMENT. */
nvmlReturn_t gpuhal_cuda_nvml_links_up(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetNvLinkState ? NVML_SUCCESS : NVML_ERROR_FUNCTION_NOT_FOUND;
    unsigned int link = 0;
    *out_value = 0;
    while (code == NVML_SUCCESS && link < GPUHAL_NVML_LINKS_MAX) {
        nvmlEnableState_t state = NVML_FEATURE_DISABLED;
        code = gpuhal_cuda_nvml.nvmlDeviceGetNvLinkState(device, link, &state);
        *out_value += code == NVML_SUCCESS && state == NVML_FEATURE_ENABLED;
        link += code == NVML_SUCCESS;
    }
    const bool is_end = code == NVML_ERROR_NOT_SUPPORTED || code == NVML_ERROR_INVALID_ARGUMENT;
    return !is_end ? code : link > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static uint64_t number_of(const nvmlFieldValue_t *field)
{
    return field->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG ? field->value.ullVal
           : field->valueType == NVML_VALUE_TYPE_UNSIGNED_LONG    ? field->value.ulVal
                                                                  : field->value.uiVal;
}

/* Counts retransmitted packets and re-established links. NVIDIA's DCGM reports a failure if even one of these events
 * occurs within a minute (modules/health/DcgmHealthWatch.cpp, MonitorNVLink4Fields(): DCGM_FR_NVLINK_ERROR_CRITICAL).
 * Checksum errors are not counted here, because DCGM accepts fewer than 100 per second. */
nvmlReturn_t gpuhal_cuda_nvml_link_errors(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlFieldValue_t fields[] = {{.fieldId = NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL},
                                 {.fieldId = NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL}};
    nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetFieldValues
                            ? gpuhal_cuda_nvml.nvmlDeviceGetFieldValues(device, 2, fields)
                            : NVML_ERROR_FUNCTION_NOT_FOUND;
    bool is_known = false;
    *out_value = 0;
    for (size_t i = 0; code == NVML_SUCCESS && i < 2; i++) {
        is_known = is_known || fields[i].nvmlReturn == NVML_SUCCESS;
        *out_value += fields[i].nvmlReturn == NVML_SUCCESS ? number_of(&fields[i]) : 0;
    }
    return code != NVML_SUCCESS ? code : is_known ? NVML_SUCCESS : fields[0].nvmlReturn;
}

/* GPUs without NVSwitches, and GPUs before Hopper, do not have this state. */
nvmlReturn_t gpuhal_cuda_nvml_fabric(nvmlDevice_t device, uint64_t *out_value)
{
    nvmlGpuFabricInfo_t info = {.state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED};
    const nvmlReturn_t code = gpuhal_cuda_nvml.nvmlDeviceGetGpuFabricInfo
                                  ? gpuhal_cuda_nvml.nvmlDeviceGetGpuFabricInfo(device, &info)
                                  : NVML_ERROR_FUNCTION_NOT_FOUND;
    const bool is_known = info.state > NVML_GPU_FABRIC_STATE_NOT_SUPPORTED &&
                          info.state <= NVML_GPU_FABRIC_STATE_COMPLETED; /* states of later drivers are not known */
    *out_value = info.state != NVML_GPU_FABRIC_STATE_COMPLETED ? GPUHAL_FABRIC_WAITS
                 : info.status == NVML_SUCCESS                 ? GPUHAL_FABRIC_READY
                                                               : GPUHAL_FABRIC_FAILED;
    return code == NVML_SUCCESS && !is_known ? NVML_ERROR_NOT_SUPPORTED : code;
}
