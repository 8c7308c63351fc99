/* rocm/smi_values.c: reads values from AMD SMI or ROCm SMI if they cannot be read from the kernel's files: values in
 * containers without these files, and the memory of a partition.
 *
 * ROCm SMI reads the same files as the core, so it is called only for memory, because no file has that of a
 * partition, and for the speed of xGMI (link.c).
 */
#include "telemetry.h"

#include <stdio.h>

const gpuhal_key gpuhal_rocm_keys_of_values[GPUHAL_ROCM_VALUES] = {
    GPUHAL_VALUE_MEMORY_FREE_BYTES,        GPUHAL_VALUE_MEMORY_USED_BYTES,
    GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS,
    GPUHAL_VALUE_ENERGY_MICROJOULES,
};

/* AMD SMI documents millidegrees but returns degrees. No chip works below one degree or above 1000 degrees. */
static uint64_t from_degrees(int64_t value)
{
    if (value < 0) {
        return 0;
    }
    return value < 1000 ? (uint64_t)value * 1000 : (uint64_t)value;
}

/* For partition 0 of a GPU both libraries report the memory of the whole GPU, and for integrated graphics only the
 * reserved memory. HIP's memory is smaller or larger, so HIP's free bytes cannot be computed from the library's used
 * bytes.
 */
static uint32_t check_memory(const gpuhal_rocm_entry *entry, uint64_t total, uint64_t taken, bool used,
                             uint64_t *out_value)
{
    const uint64_t apart = total > entry->total ? total - entry->total : entry->total - total;
    *out_value = used ? taken : taken < total ? total - taken : 0;
    return entry->total != 0 && apart > entry->total / 8 ? GPUHAL_ROCM_SMI_OTHER_MEMORY : 0;
}

/* ---- AMD SMI */

static uint32_t amd_memory(const gpuhal_rocm_entry *entry, amdsmi_processor_handle device, bool used,
                           uint64_t *out_value)
{
    uint64_t total = 0, taken = 0;
    uint32_t code = gpuhal_rocm_amd_smi.amdsmi_get_gpu_memory_total(device, AMDSMI_MEM_TYPE_VRAM, &total);
    if (code == AMDSMI_STATUS_SUCCESS) {
        code = gpuhal_rocm_amd_smi.amdsmi_get_gpu_memory_usage(device, AMDSMI_MEM_TYPE_VRAM, &taken);
    }
    return code == AMDSMI_STATUS_SUCCESS ? check_memory(entry, total, taken, used, out_value) : code;
}

/* The library divides its value by 1000 even on failure. */
static uint32_t amd_temperature(amdsmi_processor_handle device, amdsmi_temperature_type_t sensor, uint64_t *out_value)
{
    int64_t value = 0;
    if (!gpuhal_rocm_amd_smi.amdsmi_get_temp_metric) {
        return GPUHAL_ROCM_SMI_NO_FUNCTION;
    }
    const uint32_t code = gpuhal_rocm_amd_smi.amdsmi_get_temp_metric(device, sensor, AMDSMI_TEMP_CURRENT, &value);
    *out_value = from_degrees(value);
    return code;
}

static uint32_t amd_energy(amdsmi_processor_handle device, uint64_t *out_value)
{
    uint64_t count = 0, when = 0;
    float each = 0;
    if (!gpuhal_rocm_amd_smi.amdsmi_get_energy_count) {
        return GPUHAL_ROCM_SMI_NO_FUNCTION;
    }
    const uint32_t code = gpuhal_rocm_amd_smi.amdsmi_get_energy_count(device, &count, &each, &when);
    *out_value = each > 0 ? (uint64_t)((double)count * (double)each) : 0;
    return code;
}

/* Reads the edge temperature of the chip, if there is a sensor. Large GPUs measure only the hot spot. */
static uint32_t ask_amd(const gpuhal_rocm_entry *entry, amdsmi_processor_handle device, gpuhal_key key,
                        uint64_t *out_value)
{
    uint32_t code;
    switch (key) {
    case GPUHAL_VALUE_MEMORY_FREE_BYTES:
        return amd_memory(entry, device, false, out_value);
    case GPUHAL_VALUE_MEMORY_USED_BYTES:
        return amd_memory(entry, device, true, out_value);
    case GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS:
        code = amd_temperature(device, AMDSMI_TEMPERATURE_TYPE_EDGE, out_value);
        return code == AMDSMI_STATUS_SUCCESS ? code
                                             : amd_temperature(device, AMDSMI_TEMPERATURE_TYPE_HOTSPOT, out_value);
    case GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS:
        return amd_temperature(device, AMDSMI_TEMPERATURE_TYPE_VRAM, out_value);
    case GPUHAL_VALUE_ENERGY_MICROJOULES:
        return amd_energy(device, out_value);
    default:
        return GPUHAL_ROCM_SMI_NO_FUNCTION;
    }
}

/* ---- ROCm SMI */

static uint32_t rocm_memory(const gpuhal_rocm_entry *entry, uint32_t device, bool used, uint64_t *out_value)
{
    uint64_t total = 0, taken = 0;
    uint32_t code = gpuhal_rocm_rocm_smi.rsmi_dev_memory_total_get(device, RSMI_MEM_TYPE_VRAM, &total);
    if (code == RSMI_STATUS_SUCCESS) {
        code = gpuhal_rocm_rocm_smi.rsmi_dev_memory_usage_get(device, RSMI_MEM_TYPE_VRAM, &taken);
    }
    return code == RSMI_STATUS_SUCCESS ? check_memory(entry, total, taken, used, out_value) : code;
}

/* ---- both */

bool gpuhal_rocm_smi_has(gpuhal_key key)
{
    switch (key) {
    case GPUHAL_VALUE_MEMORY_FREE_BYTES:
    case GPUHAL_VALUE_MEMORY_USED_BYTES:
        return true;
    case GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS:
    case GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS:
    case GPUHAL_VALUE_ENERGY_MICROJOULES:
        return gpuhal_rocm_smi_which() == GPUHAL_ROCM_SMI_AMD;
    default:
        return false;
    }
}

/* Runs during this thread's turn. If the device is not found, every value gets the error code. Otherwise each value
 * that cannot be read gets its own code. */
static uint32_t ask(void *request)
{
    gpuhal_rocm_sample_request *own = request;
    gpuhal_rocm_smi_device device = {0};
    const bool amd = gpuhal_rocm_smi_which() == GPUHAL_ROCM_SMI_AMD;
    const uint32_t found = gpuhal_rocm_smi_find(own->entry, &device);
    for (size_t i = 0; i < GPUHAL_ROCM_VALUES; i++) {
        const gpuhal_key key = gpuhal_rocm_keys_of_values[i];
        uint64_t value = 0;
        own->codes[i] = found;
        if (own->wanted[i] && found == 0) {
            own->codes[i] = amd ? ask_amd(own->entry, device.processor, key, &value)
                                : rocm_memory(own->entry, device.index, key == GPUHAL_VALUE_MEMORY_USED_BYTES, &value);
            own->numbers[i] = value;
        }
    }
    return found;
}

void gpuhal_rocm_ask_smi(gpuhal_rocm_sample_request *request, gpuhal_stream_why *whys)
{
    const gpuhal_stream_why whole = gpuhal_rocm_smi_run(ask, request);
    for (size_t i = 0; i < GPUHAL_ROCM_VALUES; i++) {
        if (request->wanted[i]) {
            whys[i] = whole.reason != 0 ? whole : gpuhal_rocm_smi_why(request->codes[i]);
        }
    }
}
