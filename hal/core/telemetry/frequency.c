/* telemetry/frequency.c: reads clocks and throttling reasons from amdgpu sensors (hertz), i915 and xe files
 * (megahertz), and, for integrated GPUs, devfreq (hertz). */
#include "telemetry/files.h"

#include <stdio.h>

static bool read_clock(const char *directory, const char *name, uint64_t unit, const char *source, gpuhal_value *value)
{
    uint64_t number = 0;
    if (!directory || !directory[0] || !gpuhal_files_number(directory, name, &number, value)) {
        return false;
    }
    if (number == 0) {
        gpuhal_value_miss(value, GPUHAL_MISSING_ASLEEP, "the clock is stopped while the GPU is idle");
    } else {
        /* A number too large to convert becomes UINT64_MAX, which is not plausible either. */
        gpuhal_value_set(value, number < UINT64_C(1000000000000) ? number * unit : UINT64_MAX, source);
    }
    return true;
}

void gpuhal_frequency_core(gpuhal_files *files, gpuhal_value *value)
{
    gpuhal_value second = {.key = value->key};
    char path[GPUHAL_PATH_BYTES];
    if (read_clock(gpuhal_files_sensors(files, value), "freq1_input", 1, "hwmon", value)) {
        return;
    }
    if (read_clock(files->device, "tile0/gt0/freq0/act_freq", 1000000, "sysfs", &second) ||
        read_clock(gpuhal_files_card(files), "gt/gt0/rps_act_freq_mhz", 1000000, "sysfs", &second) ||
        read_clock(gpuhal_files_card(files), "gt_act_freq_mhz", 1000000, "sysfs", &second)) {
        gpuhal_value_improve(value, &second);
        return;
    }
    char directory[GPUHAL_PATH_BYTES];
    snprintf(directory, sizeof directory, "%s/devfreq", files->device);
    if (gpuhal_files_find(directory, "", path) && read_clock(path, "cur_freq", 1, "sysfs", &second)) {
        gpuhal_value_improve(value, &second);
    }
}

void gpuhal_frequency_memory(gpuhal_files *files, gpuhal_value *value)
{
    (void)read_clock(gpuhal_files_sensors(files, value), "freq2_input", 1, "hwmon", value);
}

/* RATL limits the average temperature. TDC limits the current through the voltage regulator. */
static const struct {
    const char *name;
    uint32_t reason;
} reasons[] = {
    {"pl1", GPUHAL_THROTTLE_POWER_CAP},     {"pl2", GPUHAL_THROTTLE_POWER_CAP},
    {"pl4", GPUHAL_THROTTLE_POWER_CAP},     {"thermal", GPUHAL_THROTTLE_THERMAL},
    {"prochot", GPUHAL_THROTTLE_THERMAL},   {"ratl", GPUHAL_THROTTLE_THERMAL},
    {"vr_thermalert", GPUHAL_THROTTLE_THERMAL}, {"vr_tdc", GPUHAL_THROTTLE_POWER_CAP},
};

/* Reads a directory's file `status`, which shows whether the clock is limited, and one flag file per reason. Returns
 * false if `status` cannot be read. */
static bool read_flags(const char *directory, const char *status, const char *prefix, gpuhal_value *value)
{
    uint64_t limited = 0, bits = 0;
    if (!gpuhal_files_number(directory, status, &limited, value)) {
        return false;
    }
    for (size_t i = 0; limited && i < sizeof reasons / sizeof reasons[0]; i++) {
        gpuhal_value ignored = {.key = value->key};
        char name[64];
        uint64_t flag = 0;
        snprintf(name, sizeof name, "%s%s", prefix, reasons[i].name);
        bits |= gpuhal_files_number(directory, name, &flag, &ignored) && flag ? reasons[i].reason : 0;
    }
    gpuhal_value_set(value, limited && bits == 0 ? GPUHAL_THROTTLE_OTHER : bits, "sysfs");
    return true;
}

/* amdgpu reports the reasons as bits of its metrics table, xe and i915 as files. */
void gpuhal_frequency_throttle(gpuhal_files *files, gpuhal_value *value)
{
    char directory[GPUHAL_PATH_BYTES];
    gpuhal_value second = {.key = value->key};
    gpuhal_metrics_throttle(files, value);
    if (value->missing != GPUHAL_MISSING_NOT_SUPPORTED) {
        return;
    }
    snprintf(directory, sizeof directory, "%s/tile0/gt0/freq0/throttle", files->device);
    bool found = read_flags(directory, "status", "reason_", &second);
    if (!found && second.missing == GPUHAL_MISSING_NOT_SUPPORTED && gpuhal_files_card(files)) {
        snprintf(directory, sizeof directory, "%.440s/gt/gt0", gpuhal_files_card(files));
        (void)read_flags(directory, "throttle_reason_status", "throttle_reason_", &second);
    }
    gpuhal_value_improve(value, &second);
}
