/* telemetry/sensors.c: reads values from the kernel's sensor interface (hwmon), whose units are millidegrees,
 * microwatts, microjoules, and 0 to 255 for a fan. */
#include "telemetry/files.h"

#include "base/records.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

static bool read_sensor(gpuhal_files *files, const char *name, gpuhal_value *value)
{
    const char *directory = gpuhal_files_sensors(files, value);
    uint64_t number = 0;
    if (directory && gpuhal_files_number(directory, name, &number, value)) {
        gpuhal_value_set(value, number, "hwmon");
        return true;
    }
    return false;
}

static void read_either(gpuhal_files *files, const char *one, const char *other, gpuhal_value *value)
{
    gpuhal_value second = {.key = value->key};
    if (!read_sensor(files, one, value) && value->missing == GPUHAL_MISSING_NOT_SUPPORTED) {
        (void)read_sensor(files, other, &second);
        gpuhal_value_improve(value, &second);
    }
}

static void read_labels(gpuhal_files *files)
{
    gpuhal_value ignored = {0};
    const char *directory = gpuhal_files_sensors(files, &ignored);
    for (uint32_t i = 0; directory && !files->looked_for_labels && i < GPUHAL_SENSORS; i++) {
        char name[24];
        snprintf(name, sizeof name, "temp%u_label", i + 1);
        if (gpuhal_files_line(directory, name, files->labels[i], sizeof files->labels[i], &ignored)) {
            files->is_labelled = true;
        }
    }
    files->looked_for_labels = true;
}

/* Reads the temperature with one of the labels. `number` is the temperature's sensor number in drivers without labels,
 * or 0. */
static bool read_labelled(gpuhal_files *files, const char *const *labels, uint32_t number, gpuhal_value *value)
{
    char name[24];
    read_labels(files);
    for (; files->is_labelled && *labels; labels++) {
        for (uint32_t i = 0; i < GPUHAL_SENSORS; i++) {
            if (strcmp(files->labels[i], *labels) == 0) {
                snprintf(name, sizeof name, "temp%u_input", i + 1);
                return read_sensor(files, name, value);
            }
        }
    }
    if (!files->is_labelled && number > 0) {
        snprintf(name, sizeof name, "temp%u_input", number);
        return read_sensor(files, name, value);
    }
    if (gpuhal_files_sensors(files, value)) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the device has no such sensor");
    }
    return false;
}

/* Returns whether the type is "gpu-thermal" or, in older releases, "GPU-therm". */
static bool is_zone_of_gpu(const char *type)
{
    static const char beginning[] = "gpu-therm";
    size_t same = 0;
    while (same < strlen(beginning) && (type[same] | 0x20) == (beginning[same] | 0x20)) {
        same++;
    }
    return same == strlen(beginning);
}

/* If the GPU is switched off, so is its sensor, and the read fails or returns -256000 (wentbackward/nv-monitor#17,
 * laminair/jetson_stats_node_exporter#29). */
static void read_zone_of_tegra(const char *zone, gpuhal_value *value)
{
    char text[32];
    uint64_t millidegrees = 0;
    const bool has_line = gpuhal_files_line(zone, "temp", text, sizeof text, value);
    const bool is_off = has_line ? strcmp(text, "-256000") == 0 : value->missing == GPUHAL_MISSING_FAILED;
    if (is_off) {
        gpuhal_value_miss(value, GPUHAL_MISSING_ASLEEP, "the GPU is switched off, and its sensor with it");
    } else if (has_line && gpuhal_records_u64(text, &millidegrees)) {
        gpuhal_value_set(value, millidegrees, "sysfs");
    } else if (has_line) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the thermal zone of the GPU holds no number from 0 on");
    }
}

static void read_zones(gpuhal_files *files, gpuhal_value *value)
{
    char folder[GPUHAL_PATH_BYTES], zone[2 * GPUHAL_PATH_BYTES], type[32];
    char **names = NULL;
    size_t count = 0;
    bool found = false;
    snprintf(folder, sizeof folder, "%.400s/sys/class/thermal", files->root);
    (void)gpuhal_os_directory_names(folder, &names, &count);
    for (size_t i = 0; i < count && !found; i++) {
        gpuhal_value ignored = {0};
        snprintf(zone, sizeof zone, "%s/%.64s", folder, names[i]);
        found = strncmp(names[i], "thermal_zone", strlen("thermal_zone")) == 0 &&
                gpuhal_files_line(zone, "type", type, sizeof type, &ignored) && is_zone_of_gpu(type);
    }
    gpuhal_os_names_free(names, count);
    if (found) {
        read_zone_of_tegra(zone, value);
    } else {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the system has no thermal zone of the GPU");
    }
}

/* Reads the chip's edge temperature or, on large accelerators, which have no such sensor, the temperature of the hot
 * spot. xe calls the sensor "pkg". */
void gpuhal_sensors_temperature(gpuhal_files *files, gpuhal_value *value)
{
    if (gpuhal_files_are_of_tegra(files)) {
        read_zones(files, value);
        return;
    }
    static const char *const labels[] = {"edge", "pkg", "GPU", NULL}, *const hottest[] = {"junction", NULL};
    gpuhal_value second = {.key = value->key};
    if (!read_labelled(files, labels, 1, value) && value->missing == GPUHAL_MISSING_NOT_SUPPORTED) {
        (void)read_labelled(files, hottest, 2, &second);
        gpuhal_value_improve(value, &second);
    }
}

void gpuhal_sensors_temperature_memory(gpuhal_files *files, gpuhal_value *value)
{
    static const char *const labels[] = {"mem", "vram", NULL};
    (void)read_labelled(files, labels, 3, value);
}

void gpuhal_sensors_hot_spot(gpuhal_files *files, gpuhal_value *value)
{
    static const char *const labels[] = {"junction", NULL};
    (void)read_labelled(files, labels, 0, value);
}

void gpuhal_sensors_power(gpuhal_files *files, gpuhal_value *value)
{
    read_either(files, "power1_average", "power1_input", value);
}

/* i915 and xe report the active limit in the file for the maximum. */
void gpuhal_sensors_power_limit(gpuhal_files *files, gpuhal_value *value)
{
    read_either(files, "power1_cap", "power1_max", value);
}

void gpuhal_sensors_energy(gpuhal_files *files, gpuhal_value *value)
{
    (void)read_sensor(files, "energy1_input", value);
}

void gpuhal_sensors_fan(gpuhal_files *files, gpuhal_value *value)
{
    const char *directory = gpuhal_files_sensors(files, value);
    uint64_t duty = 0;
    if (!directory || !gpuhal_files_number(directory, "pwm1", &duty, value)) {
        return;
    }
    if (duty > 255) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's file pwm1 holds more than 255");
    } else {
        gpuhal_value_set(value, duty * 1000 / 255, "hwmon");
    }
}

void gpuhal_sensors_revolutions(gpuhal_files *files, gpuhal_value *value)
{
    (void)read_sensor(files, "fan1_input", value);
}
