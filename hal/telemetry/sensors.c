/* telemetry/sensors.c: values of the kernel's interface for sensors (hwmon), in its units: millidegrees, microwatts,
 * microjoules, 0 to 255 for a fan. */
#include "telemetry/files.h"

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

/* The second is what some devices have instead. */
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

/* Reads the temperature with one of the labels; `number` is where drivers without labels have it, 0: nowhere. */
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

/* At the edge of the chip where there is a sensor, as everywhere else; large accelerators measure the hottest spot
 * alone. xe calls it the package. */
void gpuhal_sensors_temperature(gpuhal_files *files, gpuhal_value *value)
{
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

/* i915 and xe call the limit that is in force the maximum. */
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
