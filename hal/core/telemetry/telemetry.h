/* telemetry/telemetry.h: reads values of several devices at once.
 *
 * Each value is read from the first source that has it. The kernel's files for the device (kernel.h) are first, because
 * they need no vendor library, which may hang. The device's clients (clients.h) are next. The plugins of all interfaces
 * of the physical device are last, ordered by priority, so that a vendor's management library comes before APIs. The
 * order does not depend on the interface that the caller named, so all interfaces have the same values.
 *
 * Each step is started for all devices before the caller waits for the first result; queries of plugins are started for
 * one device of each backend at a time (ask.c). A step may use half of the remaining time, so that a hung source leaves
 * time for the next source.
 */
#ifndef GPUHAL_TELEMETRY_TELEMETRY_H
#define GPUHAL_TELEMETRY_TELEMETRY_H

#include "device/device.h"
#include "telemetry/clients.h"
#include "telemetry/kernel.h"
#include "telemetry/value.h"

/* The state of a gpuhal object between readings. */
typedef struct gpuhal_telemetry {
    gpuhal_kernel_devices devices;
    gpuhal_walks *walks;
} gpuhal_telemetry;
gpuhal_telemetry *gpuhal_telemetry_create(void);
/* Accepts NULL. */
void gpuhal_telemetry_destroy(gpuhal_telemetry *telemetry);

/* The time limits of one call: a deadline for the whole call or, without a deadline, a limit for each value. */
typedef struct gpuhal_time {
    uint64_t deadline_ns; /* on the monotonic clock; 0 if there is none */
    uint64_t each_ns;
} gpuhal_time;
/* Returns how long the next step may take. */
uint64_t gpuhal_time_share(const gpuhal_time *time);

/* location.c: a device's place in the system. */
enum { GPUHAL_INTERFACES_MAX = 16 };
typedef struct gpuhal_location {
    gpuhal_device *interfaces[GPUHAL_INTERFACES_MAX]; /* interfaces of the device's partition, in source order */
    uint32_t interface_count;
    char directory[GPUHAL_PLACE_BYTES]; /* "" if none */
    gpuhal_client_match match;
    uint64_t memory_total; /* as reported by the first interface; 0 if unknown */
    bool is_part;
    char driver[GPUHAL_DRIVER_BYTES]; /* the kernel driver; "" if there is none or the files were not read yet */
} gpuhal_location;
/* Lists the interfaces of the device's partition: first the preferred interface, then all others by plugin priority.
 * For a device that was removed from the device list, lists only the device itself. Returns the number of interfaces,
 * which is at least 1. */
uint32_t gpuhal_location_interfaces(gpuhal_device *device, gpuhal_device *out_interfaces[GPUHAL_INTERFACES_MAX],
                                    bool *out_is_part);
void gpuhal_location_find(gpuhal_device *device, gpuhal_location *out_place);

typedef struct gpuhal_asking gpuhal_asking; /* ask.c */

/* One device in a call. */
typedef struct gpuhal_gather {
    gpuhal_device *device;
    gpuhal_value *values;
    uint32_t count;
    bool may_wake;
    bool *wanted;     /* values that a source must still provide; false for the library's own values */
    uint32_t free_at; /* index of the free memory value, the basis of MEMORY_AVAILABLE_BYTES; `count` if neither is
                       * requested */
    bool free_is_extra; /* free memory was not requested; its value is stored in place of MEMORY_AVAILABLE_BYTES */
    bool is_unusable; /* the device is lost, so nothing is read */
    bool has_any;     /* some source provided a value */
    gpuhal_power power;
    gpuhal_location place;
    gpuhal_kernel_device *kernel;
    gpuhal_kernel_reading *reading;
    const struct gpuhal_gather *read; /* another part of the same device whose files are being read, or NULL */
    gpuhal_status status;       /* status of the device's plugin, or the reason why the device is unusable */
    gpuhal_error_detail detail; /* the error detail of `status` */
    /* ask.c */
    gpuhal_device *iface; /* the interface to query next, or NULL */
    gpuhal_asking *asking;
    bool is_asked, is_late; /* queried in this round; `is_late` means that a device of the same backend timed out */
} gpuhal_gather;
void gpuhal_gather_all(gpuhal *gpu, gpuhal_gather *list, uint32_t count, const gpuhal_time *time);

/* In ask.c: queries the n-th interface of each device for the values that are still wanted. */
void gpuhal_ask_interfaces(gpuhal_gather *list, uint32_t count, uint32_t n, const gpuhal_time *time);

#endif
