/* telemetry/files.h: the kernel's files of one device, and how they are read. Only for the job of kernel.c: a read may
 * never return.
 *
 * All paths begin with the root of the system (base/config.h). Files come and go while they are read, and a driver may
 * refuse each of them: every function that reads leaves the reason in the value. */
#ifndef GPUHAL_TELEMETRY_FILES_H
#define GPUHAL_TELEMETRY_FILES_H

#include "base/config.h"
#include "telemetry/clients.h"

enum {
    GPUHAL_PLACE_BYTES = GPUHAL_SYSTEM_ROOT_BYTES + 64, /* of the directory of a device */
    GPUHAL_PATH_BYTES = GPUHAL_PLACE_BYTES + 160,
    GPUHAL_DRIVER_BYTES = 32,
    GPUHAL_SENSORS = 8, /* temperatures of one device that are read */
    GPUHAL_LABEL_BYTES = 12
};

typedef struct gpuhal_files {
    char device[GPUHAL_PLACE_BYTES];                                  /* its directory */
    char root[GPUHAL_SYSTEM_ROOT_BYTES], driver[GPUHAL_DRIVER_BYTES]; /* of the system; the kernel's, "" for none */
    gpuhal_client_match match;
    uint64_t memory_total; /* as the device's preferred interface lists it; 0: unknown */
    bool is_part;          /* a part of a divided device; its files are the device's */
    uint64_t left_ns;      /* time left, for a file that takes a second */
    char traffic[96];      /* its line, once it was read */
    /* Found when they are first needed. */
    bool looked_for_sensors, looked_for_card, looked_for_labels, is_labelled;
    char sensors[GPUHAL_PATH_BYTES], card[GPUHAL_PATH_BYTES]; /* directories; "": none */
    char link[GPUHAL_PATH_BYTES];                             /* directory; "": not looked for yet */
    char labels[GPUHAL_SENSORS][GPUHAL_LABEL_BYTES];
} gpuhal_files;

/* NVIDIA's kernel driver for GPUs of Tegra, which has other files. */
#define GPUHAL_TEGRA "gk20a"
bool gpuhal_files_are_of_tegra(const gpuhal_files *files);

/* Returns whether only the PCI core has files: NVIDIA's kernel driver adds none, and there are no bridges on its cards.
 * Looking for them in vain costs more than reading all the files. */
bool gpuhal_files_are_of_bus(const gpuhal_files *files);

/* Reads at most `size` - 1 bytes and ends them with 0. Returns their number; 0: nothing was there, and the value has
 * the reason. `name` is relative to `directory`. */
size_t gpuhal_files_bytes(const char *directory, const char *name, void *out_bytes, size_t size, gpuhal_value *value);
/* Does the same for one line, without its end. */
bool gpuhal_files_line(const char *directory, const char *name, char *out_text, size_t size, gpuhal_value *value);
/* Does the same for one decimal number. */
bool gpuhal_files_number(const char *directory, const char *name, uint64_t *out_number, gpuhal_value *value);
/* Finds the first name in a directory that begins with `prefix`; "" for none. */
bool gpuhal_files_find(const char *directory, const char *prefix, char out_path[GPUHAL_PATH_BYTES]);
/* Returns the directory of the device's sensors (hwmon), or of its DRM card; NULL for none. */
const char *gpuhal_files_sensors(gpuhal_files *files, gpuhal_value *value);
const char *gpuhal_files_card(gpuhal_files *files);

/* sensors.c, pci.c, metrics.c, frequency.c: readers, each of one value. */
typedef void gpuhal_files_reader(gpuhal_files *files, gpuhal_value *value);
gpuhal_files_reader gpuhal_sensors_temperature, gpuhal_sensors_temperature_memory, gpuhal_sensors_hot_spot,
    gpuhal_sensors_power, gpuhal_sensors_power_limit, gpuhal_sensors_energy, gpuhal_sensors_fan,
    gpuhal_sensors_revolutions;
gpuhal_files_reader gpuhal_frequency_core, gpuhal_frequency_memory, gpuhal_frequency_throttle;
gpuhal_files_reader gpuhal_pci_generation, gpuhal_pci_width, gpuhal_pci_generation_max, gpuhal_pci_width_max,
    gpuhal_pci_replays, gpuhal_pci_receive, gpuhal_pci_send;
gpuhal_files_reader gpuhal_metrics_energy, gpuhal_metrics_throttle;

#endif
