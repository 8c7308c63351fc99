/* telemetry/files.h: reads one device's files in sysfs. Call these functions only in the job of kernel.c, because a
 * read may never return.
 *
 * All paths begin with the system root (base/config.h). Files can appear and disappear during a reading, and a driver
 * may fail the read of any file. If a read fails, the reading function stores the reason in the value. */
#ifndef GPUHAL_TELEMETRY_FILES_H
#define GPUHAL_TELEMETRY_FILES_H

#include "base/config.h"
#include "telemetry/clients.h"

enum {
    GPUHAL_PLACE_BYTES = GPUHAL_SYSTEM_ROOT_BYTES + 64, /* for the path of a device's directory */
    GPUHAL_PATH_BYTES = GPUHAL_PLACE_BYTES + 160,
    GPUHAL_DRIVER_BYTES = 32,
    GPUHAL_SENSORS = 8, /* maximum number of temperatures read per device */
    GPUHAL_LABEL_BYTES = 12
};

typedef struct gpuhal_files {
    char device[GPUHAL_PLACE_BYTES];                                  /* the device's directory */
    char root[GPUHAL_SYSTEM_ROOT_BYTES], driver[GPUHAL_DRIVER_BYTES]; /* the system root, and the kernel driver's name
                                                                       * or "" */
    gpuhal_client_match match;
    uint64_t memory_total; /* as reported by the device's preferred interface; 0 if unknown */
    bool is_part;          /* a part of a divided device; the files describe the whole device */
    uint64_t left_ns;      /* remaining time, for a file that takes a second to read */
    char traffic[96];      /* cached line of the traffic file */
    /* Determined when first needed. */
    bool looked_for_sensors, looked_for_card, looked_for_labels, is_labelled;
    char sensors[GPUHAL_PATH_BYTES], card[GPUHAL_PATH_BYTES]; /* directories, or "" */
    char link[GPUHAL_PATH_BYTES];                             /* directory; "" if not searched yet */
    char labels[GPUHAL_SENSORS][GPUHAL_LABEL_BYTES];
} gpuhal_files;

/* NVIDIA's kernel driver for Tegra GPUs, which has different files. */
#define GPUHAL_TEGRA "gk20a"
bool gpuhal_files_are_of_tegra(const gpuhal_files *files);

/* Returns whether only the PCI core provides files for the device. NVIDIA's kernel driver adds no files, and NVIDIA's
 * cards have no bridges. A search for both would take longer than reading all existing files. */
bool gpuhal_files_are_of_bus(const gpuhal_files *files);

/* Reads at most `size` - 1 bytes and appends a 0. Returns the number of bytes. Returns 0 if the file cannot be read
 * or is empty, and stores the reason in the value. `name` is relative to `directory`. */
size_t gpuhal_files_bytes(const char *directory, const char *name, void *out_bytes, size_t size, gpuhal_value *value);
/* Reads a file's first line without its newline. */
bool gpuhal_files_line(const char *directory, const char *name, char *out_text, size_t size, gpuhal_value *value);
/* Reads a file that contains one decimal number. */
bool gpuhal_files_number(const char *directory, const char *name, uint64_t *out_number, gpuhal_value *value);
/* Finds the first name that begins with `prefix` in a directory. *out_path is "" if there is no such name. */
bool gpuhal_files_find(const char *directory, const char *prefix, char out_path[GPUHAL_PATH_BYTES]);
/* Return the directory of the device's sensors (hwmon) and of its DRM card, or NULL. */
const char *gpuhal_files_sensors(gpuhal_files *files, gpuhal_value *value);
const char *gpuhal_files_card(gpuhal_files *files);

/* sensors.c, pci.c, metrics.c, frequency.c: each reader reads one value. */
typedef void gpuhal_files_reader(gpuhal_files *files, gpuhal_value *value);
gpuhal_files_reader gpuhal_sensors_temperature, gpuhal_sensors_temperature_memory, gpuhal_sensors_hot_spot,
    gpuhal_sensors_power, gpuhal_sensors_power_limit, gpuhal_sensors_energy, gpuhal_sensors_fan,
    gpuhal_sensors_revolutions;
gpuhal_files_reader gpuhal_frequency_core, gpuhal_frequency_memory, gpuhal_frequency_throttle;
gpuhal_files_reader gpuhal_pci_generation, gpuhal_pci_width, gpuhal_pci_generation_max, gpuhal_pci_width_max,
    gpuhal_pci_replays, gpuhal_pci_receive, gpuhal_pci_send;
gpuhal_files_reader gpuhal_metrics_energy, gpuhal_metrics_throttle;

#endif
