/* telemetry/kernel_values.c: the table of values and the kernel files that contain them. Most file names are amdgpu's.
 * A file name has the same meaning in every driver that uses it. */
#include "telemetry/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* If the device's interface reports much more memory than the dedicated memory, the device also allocates from host
 * memory, as integrated GPUs do; amdgpu counts this memory as GTT. If the interface reports much less, the device is a
 * part of the GPU, and the other parts may be hidden. */
static bool read_memory(gpuhal_files *files, uint64_t *out_total, uint64_t *out_used, gpuhal_value *value)
{
    const uint64_t listed = files->memory_total;
    if (!gpuhal_files_number(files->device, "mem_info_vram_total", out_total, value)) {
        return false;
    }
    if (listed != 0 && *out_total > listed && *out_total - listed > listed / 8) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED,
                          "the system's files report more memory than the device's API has");
        return false;
    }
    /* A deviation of up to an eighth counts as equal, because the API's total differs slightly from the kernel's
     * total. */
    if (*out_total >= listed - listed / 8) {
        return gpuhal_files_number(files->device, "mem_info_vram_used", out_used, value);
    }
    if (!gpuhal_files_number(files->device, "mem_info_gtt_total", out_total, value)) {
        return false;
    }
    if (*out_total < listed) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED,
                          "the system's files report less memory than the device's API has");
        return false;
    }
    *out_total = listed;
    return gpuhal_files_number(files->device, "mem_info_gtt_used", out_used, value);
}

static void read_used(gpuhal_files *files, gpuhal_value *value)
{
    uint64_t total = 0, used = 0;
    if (read_memory(files, &total, &used, value)) {
        gpuhal_value_set(value, used, "sysfs");
    }
}

static void read_free(gpuhal_files *files, gpuhal_value *value)
{
    uint64_t total = 0, used = 0;
    if (!read_memory(files, &total, &used, value)) {
        return;
    }
    if (used > total && used - total > total / 8) { /* the total may be slightly too low */
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's files report more memory in use than there is");
    } else {
        gpuhal_value_set(value, used < total ? total - used : 0, "sysfs");
    }
}

/* Reads a line such as "MemTotal: 122502144 kB". Used for a GPU that shares the host's memory and whose driver does not
 * count memory (GB10, Tegra). Memory that the system uses is not available to such a GPU. */
static bool read_line_of(const char *text, const char *name, uint64_t *out_bytes)
{
    const char *at = strstr(text, name);
    unsigned long long kilobytes = 0;
    const bool good = at && (at == text || at[-1] == '\n') && sscanf(at + strlen(name), " %19llu kB", &kilobytes) == 1;
    *out_bytes = good ? kilobytes * 1024 : 0;
    return good;
}

static void read_shared(gpuhal_files *files, gpuhal_value *value)
{
    char folder[GPUHAL_PATH_BYTES], text[512];
    uint64_t total, available;
    snprintf(folder, sizeof folder, "%.400s/proc", files->root);
    if (gpuhal_files_bytes(folder, "meminfo", text, sizeof text, value) == 0) {
        return;
    }
    if (!read_line_of(text, "MemTotal:", &total) || !read_line_of(text, "MemAvailable:", &available) ||
        available > total) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's file meminfo holds no usable numbers");
        return;
    }
    gpuhal_value_set(value, value->key == GPUHAL_VALUE_MEMORY_FREE_BYTES ? available : total - available, "proc");
}

static bool is_memory(gpuhal_key key)
{
    return key == GPUHAL_VALUE_MEMORY_FREE_BYTES || key == GPUHAL_VALUE_MEMORY_USED_BYTES;
}

/* Some firmware reports numbers with all bits set, which are not percentages. */
static void read_percent(gpuhal_files *files, const char *name, gpuhal_value *value)
{
    uint64_t percent = 0;
    if (!gpuhal_files_number(files->device, name, &percent, value)) {
        return;
    }
    if (percent > 100) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's file %s holds more than 100 percent", name);
    } else {
        gpuhal_value_set(value, percent * 10, "sysfs");
    }
}

/* The unit of Tegra's file is permille: 237 means 23.7 percent (glances#3580, autoware_universe#11326). */
static void read_busy(gpuhal_files *files, gpuhal_value *value)
{
    uint64_t permille = 0;
    if (!gpuhal_files_are_of_tegra(files)) {
        read_percent(files, "gpu_busy_percent", value);
    } else if (gpuhal_files_number(files->device, "load", &permille, value) && permille > 1000) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's file load holds more than 1000 permille");
    } else if (!value->missing) {
        gpuhal_value_set(value, permille, "sysfs");
    }
}

static void read_memory_busy(gpuhal_files *files, gpuhal_value *value)
{
    read_percent(files, "mem_busy_percent", value);
}

/* One engine encodes and decodes, so both utilizations have this value. */
static void read_video_busy(gpuhal_files *files, gpuhal_value *value)
{
    read_percent(files, "vcn_busy_percent", value);
}

/* Reads the number of errors of one kind since the driver was loaded, from two lines, "ue: 0" and "ce: 0". The kernel
 * keeps no lifetime count. */
static void read_errors(gpuhal_files *files, const char *which, gpuhal_value *value)
{
    char text[64], *end = NULL;
    if (gpuhal_files_bytes(files->device, "ras/umc_err_count", text, sizeof text, value) == 0) {
        return;
    }
    const char *at = strstr(text, which);
    const unsigned long long count = at ? strtoull(at + strlen(which), &end, 10) : 0;
    if (!end || end == at + strlen(which)) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's file umc_err_count holds no usable numbers");
    } else {
        gpuhal_value_set(value, count, "sysfs");
    }
}

static void read_corrected(gpuhal_files *files, gpuhal_value *value)
{
    read_errors(files, "ce:", value);
}

static void read_uncorrected(gpuhal_files *files, gpuhal_value *value)
{
    read_errors(files, "ue:", value);
}

static void read_energy(gpuhal_files *files, gpuhal_value *value)
{
    gpuhal_value second = {.key = value->key};
    gpuhal_metrics_energy(files, value);
    if (value->missing == GPUHAL_MISSING_NOT_SUPPORTED) {
        gpuhal_sensors_energy(files, &second);
        gpuhal_value_improve(value, &second);
    }
}

static void read_own_memory(gpuhal_files *files, gpuhal_value *value)
{
    char path[GPUHAL_PATH_BYTES];
    gpuhal_clients clients = {0};
    uint64_t sum = 0;
    if (!gpuhal_clients_are_of(files->driver)) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the kernel driver does not count it");
        return;
    }
    snprintf(path, sizeof path, "%.400s/proc/self", files->root);
    const int error = gpuhal_clients_of_process(&clients, path, 0);
    bool counted = true;
    for (uint32_t i = 0; i < clients.count; i++) {
        const gpuhal_client *client = &clients.list[i];
        if (gpuhal_client_is_of(client, &files->match)) {
            counted = counted && client->has_memory;
            sum += files->match.is_unified ? client->memory : client->device_memory;
        }
    }
    if (error || clients.partial) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the descriptors of this process cannot be read (error %d)",
                          error);
    } else if (!counted) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the kernel driver does not count it");
    } else {
        gpuhal_value_set(value, sum, "fdinfo");
    }
    gpuhal_clients_finish(&clients);
}

/* BUS means that the PCI core reports the value with any driver. WHOLE means that the value never applies to a part of
 * a divided device. */
enum { DRIVER = 0, WHOLE = 1, BUS = 2 };

static const struct {
    gpuhal_key key;
    gpuhal_files_reader *read_one;
    int how;
} table[] = {
    {GPUHAL_VALUE_MEMORY_FREE_BYTES, read_free, WHOLE},
    {GPUHAL_VALUE_MEMORY_USED_BYTES, read_used, WHOLE},
    {GPUHAL_VALUE_MEMORY_PROCESS_BYTES, read_own_memory, WHOLE},
    {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, gpuhal_sensors_temperature, DRIVER},
    {GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, gpuhal_sensors_temperature_memory, DRIVER},
    {GPUHAL_VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS, gpuhal_sensors_hot_spot, DRIVER},
    {GPUHAL_VALUE_POWER_MICROWATTS, gpuhal_sensors_power, DRIVER},
    {GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, gpuhal_sensors_power_limit, DRIVER},
    {GPUHAL_VALUE_ENERGY_MICROJOULES, read_energy, DRIVER},
    {GPUHAL_VALUE_CLOCK_CORE_HERTZ, gpuhal_frequency_core, DRIVER},
    {GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, gpuhal_frequency_memory, DRIVER},
    {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, read_busy, DRIVER},
    {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, read_memory_busy, DRIVER},
    {GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE, read_video_busy, DRIVER},
    {GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE, read_video_busy, DRIVER},
    {GPUHAL_VALUE_FAN_PERMILLE, gpuhal_sensors_fan, DRIVER},
    {GPUHAL_VALUE_FAN_REVOLUTIONS_PER_MINUTE, gpuhal_sensors_revolutions, DRIVER},
    {GPUHAL_VALUE_THROTTLE_REASONS, gpuhal_frequency_throttle, DRIVER},
    {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, read_corrected, DRIVER},
    {GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, read_uncorrected, DRIVER},
    {GPUHAL_VALUE_PCIE_GENERATION, gpuhal_pci_generation, BUS},
    {GPUHAL_VALUE_PCIE_WIDTH, gpuhal_pci_width, BUS},
    {GPUHAL_VALUE_PCIE_GENERATION_MAX, gpuhal_pci_generation_max, BUS},
    {GPUHAL_VALUE_PCIE_WIDTH_MAX, gpuhal_pci_width_max, BUS},
    {GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, gpuhal_pci_replays, DRIVER},
    /* Reading these values takes a second, so they are last. */
    {GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, gpuhal_pci_receive, DRIVER},
    {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, gpuhal_pci_send, DRIVER},
};
#define TABLE_COUNT (sizeof table / sizeof table[0])

uint32_t gpuhal_kernel_value_count(void)
{
    return TABLE_COUNT;
}

gpuhal_key gpuhal_kernel_key(uint32_t number)
{
    return table[number].key;
}

void gpuhal_kernel_value(uint32_t number, gpuhal_files *files, gpuhal_value *value)
{
    const bool is_of_bus = gpuhal_files_are_of_bus(files);
    if ((is_of_bus || gpuhal_files_are_of_tegra(files)) && files->match.is_unified && is_memory(table[number].key)) {
        read_shared(files, value);
    } else if (table[number].how != BUS && is_of_bus) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "NVIDIA's kernel driver reports it to NVML alone");
    } else if (table[number].how == WHOLE && files->is_part) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the system's files report it for the whole GPU only");
    } else {
        table[number].read_one(files, value);
    }
}

bool gpuhal_kernel_has(gpuhal_key key)
{
    for (size_t t = 0; t < TABLE_COUNT; t++) {
        if (table[t].key == key) {
            return true;
        }
    }
    return false;
}
