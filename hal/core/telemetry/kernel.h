/* telemetry/kernel.h: a device's values from the kernel's files, for any driver.
 *
 * The read of a driver's file may never return, so a job reads the files (base/job.h). If the caller abandons the job,
 * the values read so far are valid. A device is not read again while an earlier reading has not returned.
 */
#ifndef GPUHAL_TELEMETRY_KERNEL_H
#define GPUHAL_TELEMETRY_KERNEL_H

#include "base/job.h"
#include "telemetry/files.h"
#include "telemetry/rate.h"

/* The state of one physical device between two readings. Freed with the last reference. The table and each job hold a
 * reference. */
typedef struct gpuhal_kernel_device {
    _Atomic uint32_t references;
    char path[GPUHAL_PLACE_BYTES]; /* the device's directory; constant */
    gpuhal_mutex mutex;            /* protects the members below */
    uint32_t abandoned;            /* readings that have not returned yet */
    gpuhal_rate energy;
} gpuhal_kernel_device;

enum { GPUHAL_KERNEL_DEVICES = 128 };
typedef struct gpuhal_kernel_devices {
    gpuhal_mutex mutex; /* protects the list */
    gpuhal_kernel_device *list[GPUHAL_KERNEL_DEVICES];
    uint32_t count;
} gpuhal_kernel_devices;
/* Returns the device with this directory, with a reference for the caller. Returns NULL if out of memory. At most
 * GPUHAL_KERNEL_DEVICES devices are kept. For devices beyond this limit, values that need two readings are missing. */
gpuhal_kernel_device *gpuhal_kernel_device_get(gpuhal_kernel_devices *devices, const char *path);
/* Accepts NULL. */
void gpuhal_kernel_device_release(gpuhal_kernel_device *device);

/* Returns whether the kernel may have a file for the value. */
bool gpuhal_kernel_has(gpuhal_key key);

typedef struct gpuhal_kernel_reading gpuhal_kernel_reading;
typedef struct gpuhal_kernel_request {
    gpuhal_kernel_device *device;
    gpuhal_client_match match;
    const char *root;      /* the system root */
    uint64_t memory_total; /* as reported by the device's preferred interface; 0 if unknown */
    bool is_part;          /* a part of a divided device */
    bool may_wake;
    uint64_t left_ns; /* time until the deadline */
} gpuhal_kernel_request;

typedef enum gpuhal_power {
    GPUHAL_POWER_UNKNOWN, /* the device has no files, or reading them timed out */
    GPUHAL_POWER_ASLEEP,
    GPUHAL_POWER_AWAKE /* the device is awake, or the caller may wake it */
} gpuhal_power;

/* Begins to read the wanted values. Returns NULL if out of memory or an earlier reading has not returned, and stores
 * this reason in the values. */
gpuhal_kernel_reading *gpuhal_kernel_begin(const gpuhal_kernel_request *request, gpuhal_value *values, uint32_t count,
                                           const bool *wanted);
/* Waits for a reading to end, subtracts the elapsed time from *left_ns, and writes the wanted values that the kernel
 * may report, including missing values. Nothing is read from a sleeping device. `out_driver` is the device's kernel
 * driver, or "" if the device has none or its name was not read in time. If `own` is NULL, writes nothing and returns
 * UNKNOWN. */
gpuhal_power gpuhal_kernel_end(gpuhal_kernel_reading *own, uint64_t *left_ns, gpuhal_value *values, uint32_t count,
                               const bool *wanted, char out_driver[GPUHAL_DRIVER_BYTES]);
#define GPUHAL_SLEEPS "the GPU sleeps, and reading would wake it"

/* In kernel_values.c: the values that the kernel may report in a file, in reading order. */
uint32_t gpuhal_kernel_value_count(void);
gpuhal_key gpuhal_kernel_key(uint32_t number);
void gpuhal_kernel_value(uint32_t number, gpuhal_files *files, gpuhal_value *value);

#endif
