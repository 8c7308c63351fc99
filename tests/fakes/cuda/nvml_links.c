/* tests/fakes/cuda/nvml_links.c: the fake NVML's NVLinks, the switches at their ends, and field values. These values of
 * the machine are used: links_down (how many of a device's last links are down), link_replays and link_recoveries
 * (total numbers of errors), temperature_memory, fabric (state of the GPU's registration with the fabric, 0 to 3), and
 * fabric_status. */
#include "nvml.h"

/* A device's links lead to its neighbours in the order of the machine, or all links lead to switches. */
static const fake_link *nvlink(const struct nvmlDevice_st *device, unsigned link, unsigned *out_other)
{
    const fake_script *script = fake_script_get();
    *out_other = device->physical;
    if (script->nvswitch.lanes > 0) {
        return link < script->nvswitch.lanes ? &script->nvswitch : NULL;
    }
    for (unsigned other = 0; other < script->device_count; other++) {
        const fake_link *to = &script->links[device->physical][other];
        if (to->kind == FAKE_LINK_NVLINK && link < to->lanes) {
            *out_other = other;
            return to;
        }
        link -= to->kind == FAKE_LINK_NVLINK ? to->lanes : 0;
    }
    return NULL;
}

/* Returns the device's field value, or UINT64_MAX if the device does not have this field. Only devices with links have
 * error counters. */
static uint64_t field_of(nvmlDevice_t device, unsigned field)
{
    unsigned other;
    const bool has_links = nvlink(device, 0, &other) != NULL;
    switch (field) {
    case NVML_FI_DEV_MEMORY_TEMP:
        return fake_script_value(device->plan, "temperature_memory", 55);
    case NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL:
        return has_links ? fake_script_value(device->plan, "link_replays", 0) : UINT64_MAX;
    case NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL:
        return has_links ? fake_script_value(device->plan, "link_recoveries", 0) : UINT64_MAX;
    default:
        return UINT64_MAX;
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    for (int i = 0; !code && i < count; i++) {
        const uint64_t value = field_of(device, values[i].fieldId);
        const bool is_wide = values[i].fieldId != NVML_FI_DEV_MEMORY_TEMP;
        values[i].nvmlReturn = value != UINT64_MAX ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        values[i].valueType = is_wide ? NVML_VALUE_TYPE_UNSIGNED_LONG_LONG : NVML_VALUE_TYPE_UNSIGNED_INT;
        values[i].value.ullVal = value != UINT64_MAX && is_wide ? value : 0;
        if (value != UINT64_MAX && !is_wide) {
            values[i].value.uiVal = (unsigned)value;
        }
    }
    return code;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    nvmlReturn_t code = fake_nvml_enter_whole(__func__, device);
    *info = (nvmlGpuFabricInfo_t){
        .state = (unsigned char)fake_script_value(device->plan, "fabric", NVML_GPU_FABRIC_STATE_NOT_SUPPORTED),
        .status = (nvmlReturn_t)fake_script_value(device->plan, "fabric_status", NVML_SUCCESS)};
    return code;
}

static nvmlReturn_t enter_link(const char *function, nvmlDevice_t device, unsigned link, const fake_link **out_link,
                               unsigned *out_other)
{
    nvmlReturn_t code = fake_nvml_enter_whole(function, device);
    if (!code && link >= GPUHAL_NVML_LINKS_MAX) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *out_link = nvlink(device, link, out_other);
    return code ? code : *out_link ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *active)
{
    const fake_link *to, *later;
    unsigned other;
    const nvmlReturn_t code = enter_link(__func__, device, link, &to, &other);
    const unsigned down = (unsigned)fake_script_value(device->plan, "links_down", 0);
    later = nvlink(device, link + down, &other);
    *active = later ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return code;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version)
{
    const fake_link *to;
    unsigned other;
    nvmlReturn_t code = enter_link(__func__, device, link, &to, &other);
    *version = code ? 0 : to->generation;
    return code;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    const fake_link *to;
    unsigned other;
    nvmlReturn_t code = enter_link(__func__, device, link, &to, &other);
    const fake_plan at_switch = {.pci_bus = 5 + link % 4};
    if (!code) {
        fake_nvml_report_pci(fake_script_get()->nvswitch.lanes > 0 ? &at_switch : fake_nvml_whole(other)->plan, pci);
    }
    return code;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t *type)
{
    const fake_link *to;
    unsigned other;
    *type = fake_script_get()->nvswitch.lanes > 0 ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return enter_link(__func__, device, link, &to, &other);
}
