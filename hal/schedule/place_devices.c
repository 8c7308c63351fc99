/* schedule/place_devices.c: describes the machine's devices and links for gpuhal_place(). */
#include "device/for_schedule.h"

#include <gpuhal/link.h>
#include <gpuhal/schedule/placement.h>
#include <gpuhal/telemetry.h>

gpuhal_status gpuhal_placement_describe(gpuhal_device *device, gpuhal_placement_device *out_device)
{
    if (!device || !out_device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_placement_describe: device or out_device is NULL");
    }
    *out_device = (gpuhal_placement_device){.name = gpuhal_device_id(device)};
    uint64_t bandwidth = 0;
    gpuhal_value available = {.key = GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES};
    gpuhal_status status = gpuhal_device_sample(device, 0, &available, 1, NULL);
    if (status == GPUHAL_ERROR_FORKED || status == GPUHAL_ERROR_DEVICE_LOST) {
        return status;
    }
    if (status || available.missing) {
        status = gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &available.u64);
        if (status) {
            return status;
        }
    }
    out_device->capacity_bytes = available.u64;
    if (!gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, &bandwidth)) {
        out_device->bytes_per_second = (double)bandwidth;
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_placement_describe_link(gpuhal_device *from, gpuhal_device *to, gpuhal_placement_link *out_link)
{
    if (!out_link) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_placement_describe_link: out_link is NULL");
    }
    *out_link = (gpuhal_placement_link){0};
    uint64_t value = 0;
    gpuhal_status status = gpuhal_link_u64(from, to, GPUHAL_LINK_MEASURED_LATENCY_NS, &value);
    out_link->latency_seconds = status ? 0 : (double)value * 1e-9;
    if (status && status != GPUHAL_ERROR_NOT_SUPPORTED) {
        return status;
    }
    if (!gpuhal_link_u64(from, to, GPUHAL_LINK_MEASURED_BYTES_PER_SECOND, &value) ||
        !gpuhal_link_u64(from, to, GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND, &value)) {
        out_link->bytes_per_second = (double)value;
    }
    return GPUHAL_OK;
}
