/* telemetry/kernel.h: values from the kernel's files of a device, for any driver.
 *
 * A driver may never return from reading one of its files, so a job reads them (base/job.h). Values that it read before
 * its caller abandons it count. While a reading of a device has not returned, the device is not read again.
 */
#ifndef GPUHAL_TELEMETRY_KERNEL_H
#define GPUHAL_TELEMETRY_KERNEL_H

#include "base/job.h"
#include "telemetry/files.h"
#include "telemetry/rate.h"

/* The state of one physical device between two readings. Freed with the last reference: one is the table's, others are
 * those of jobs. */
typedef struct gpuhal_kernel_device {
    _Atomic uint32_t references;
    char path[GPUHAL_PLACE_BYTES]; /* its directory; constant */
    gpuhal_mutex mutex;            /* protects the members below */
    uint32_t abandoned;            /* readings that have not returned */
    gpuhal_rate energy;
} gpuhal_kernel_device;

/* Returns the device of a directory, with one reference for the caller; NULL without memory. More than
 * GPUHAL_KERNEL_DEVICES are not kept, so they have no values that need two readings. */
enum { GPUHAL_KERNEL_DEVICES = 128 };
typedef struct gpuhal_kernel_devices {
    gpuhal_mutex mutex; /* protects the list */
    gpuhal_kernel_device *list[GPUHAL_KERNEL_DEVICES];
    uint32_t count;
} gpuhal_kernel_devices;
gpuhal_kernel_device *gpuhal_kernel_device_get(gpuhal_kernel_devices *devices, const char *path);
/* NULL does nothing. */
void gpuhal_kernel_device_release(gpuhal_kernel_device *device);

/* Returns whether the kernel may have a file for the value. */
bool gpuhal_kernel_has(gpuhal_key key);

/* One reading. */
typedef struct gpuhal_kernel_reading gpuhal_kernel_reading;
typedef struct gpuhal_kernel_request {
    gpuhal_kernel_device *device;
    gpuhal_client_match match;
    const char *root;      /* of the system */
    uint64_t memory_total; /* as the device's preferred interface lists it; 0: unknown */
    bool is_part;          /* a part of a divided device */
    bool may_wake;
    uint64_t left_ns; /* until the deadline */
} gpuhal_kernel_request;

typedef enum gpuhal_power {
    GPUHAL_POWER_UNKNOWN, /* it has no files, or they did not answer in time */
    GPUHAL_POWER_ASLEEP,
    GPUHAL_POWER_AWAKE /* or it may be woken */
} gpuhal_power;

/* Begins to read the wanted values. NULL without memory or while an earlier reading has not returned: then the values
 * have that reason. */
gpuhal_kernel_reading *gpuhal_kernel_begin(const gpuhal_kernel_request *request, gpuhal_value *values, uint32_t count,
                                           const bool *wanted);
/* Waits for the end of a reading, subtracts the time from *left_ns, and writes the wanted values, also missing ones.
 * Nothing is read of a device that sleeps. `out_driver`: its kernel driver, "" for none or when it is not known in
 * time. NULL does nothing. */
gpuhal_power gpuhal_kernel_end(gpuhal_kernel_reading *own, uint64_t *left_ns, gpuhal_value *values, uint32_t count,
                               const bool *wanted, char out_driver[GPUHAL_DRIVER_BYTES]);
#define GPUHAL_SLEEPS "the GPU sleeps, and reading would wake it"

/* kernel_values.c: the values that the kernel may have a file for, in the order of reading. */
uint32_t gpuhal_kernel_value_count(void);
gpuhal_key gpuhal_kernel_key(uint32_t number);
void gpuhal_kernel_value(uint32_t number, gpuhal_files *files, gpuhal_value *value);

#endif
