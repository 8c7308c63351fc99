/* tests/fakes/cuda/nvml_mig.c: the partitions of MIG GPUs. NVML lists all of them to every process. */
#include "nvml.h"

#include <stdio.h>

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    *device = fake_nvml_whole(mig->physical);
    return code ? code : mig->mig ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code || index >= fake_script_get()->device_count) {
        return code ? code : NVML_ERROR_INVALID_ARGUMENT;
    }
    *device = fake_nvml_whole(index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (!code) {
        fake_nvml_report_pci(device->plan, pci);
    }
    return code;
}

/* A partition's name ends with its profile. */
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    if (code) {
        return code;
    }
    const int written = device->mig ? snprintf(name, length, "%s MIG %s", device->plan->name, device->mig->profile)
                                    : snprintf(name, length, "%s", device->plan->name);
    return written >= 0 && (unsigned)written < length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    *current = *pending =
        device->plan->mig_mode || device->plan->mig_count ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    return code;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    *count = FAKE_MIGS;
    return code;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    if (code || index >= device->plan->mig_count) {
        return code ? code : index < FAKE_MIGS ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
    }
    *mig = fake_nvml_part(device->physical, index);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    *id = mig->mig ? mig->mig->gpu_instance : 0;
    return code ? code : mig->mig ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t mig, unsigned int *id)
{
    nvmlReturn_t code = fake_nvml_enter(__func__);
    *id = mig->mig ? mig->mig->compute_instance : 0;
    return code ? code : mig->mig ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
