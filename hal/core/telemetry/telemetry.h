/* telemetry/telemetry.h: values of several devices at once.
 *
 * A value is read from the first source that has it. The sources are the kernel's files of the device (kernel.h), which
 * need no library and cannot hang in one; the device's clients (clients.h); and the plugins of all interfaces of its
 * physical device. The plugins are ordered by priority, so that a vendor's management library comes before APIs. The
 * order does not depend on the interface that the caller named, so all interfaces have the same values.
 *
 * Each step is started for all devices before it is awaited for any. A step may use half of the remaining time, so that
 * a hung source leaves time for the next source.
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
void gpuhal_telemetry_destroy(gpuhal_telemetry *telemetry);

/* The time limits of one call: a deadline for the whole call or, if there is none, a limit for each value. */
typedef struct gpuhal_time {
    uint64_t deadline_ns; /* on the monotonic clock; 0: none */
    uint64_t each_ns;
} gpuhal_time;
/* Returns how much time the next step may use. */
uint64_t gpuhal_time_share(const gpuhal_time *time);

/* location.c: a device's place in the system. */
enum { GPUHAL_INTERFACES_MAX = 16 };
typedef struct gpuhal_location {
    gpuhal_device *interfaces[GPUHAL_INTERFACES_MAX]; /* of its partition, in source order */
    uint32_t interface_count;
    char directory[GPUHAL_PLACE_BYTES]; /* "": none */
    gpuhal_client_match match;
    uint64_t memory_total; /* as reported by the first interface; 0: unknown */
    bool is_part;
    char driver[GPUHAL_DRIVER_BYTES]; /* the kernel driver; "": none, or files not read yet */
} gpuhal_location;
/* Lists the interfaces of the device's partition: the preferred interface first, then the others by plugin priority. A
 * device that is no longer listed is its only interface. Returns their number, at least 1. */
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
    bool *wanted;     /* values that no source has provided yet; others are the library's own */
    uint32_t free_at; /* index of free memory, needed for MEMORY_AVAILABLE_BYTES; `count`: not requested */
    bool free_is_extra; /* only for that; the value is the caller's MEMORY_AVAILABLE_BYTES */
    bool is_unusable; /* lost; nothing is read */
    bool has_any;     /* some source provided a value */
    gpuhal_power power;
    gpuhal_location place;
    gpuhal_kernel_device *kernel;
    gpuhal_kernel_reading *reading;
    const struct gpuhal_gather *read; /* another part of the same device whose files are being read; NULL: none */
    gpuhal_status status;       /* of the device's plugin, or why the device is unusable */
    gpuhal_error_detail detail; /* belongs to `status` */
    /* ask.c */
    gpuhal_device *iface; /* to query next; NULL: none */
    gpuhal_asking *asking;
    bool is_asked, is_late; /* in this round; a device of its backend timed out */
} gpuhal_gather;
void gpuhal_gather_all(gpuhal *gpu, gpuhal_gather *list, uint32_t count, const gpuhal_time *time);

/* ask.c: queries the n-th interface of each device for the values that are still wanted. */
void gpuhal_ask_interfaces(gpuhal_gather *list, uint32_t count, uint32_t n, const gpuhal_time *time);

#endif
