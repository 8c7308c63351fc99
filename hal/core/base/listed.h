/* base/listed.h: devices as a plugin lists them: the loader's result, which the registry stores and the layers above
 * use. */
#ifndef GPUHAL_BASE_LISTED_H
#define GPUHAL_BASE_LISTED_H

#include "base/facts.h"

typedef struct gpuhal_listed_device {
    uint32_t index;
    uint32_t capabilities; /* GPUHAL_CAPABILITY_ bits, from the slots */
    gpuhal_facts facts;    /* facts, and the value memory_free_bytes if the plugin samples it without opening */
} gpuhal_listed_device;

/* Zero-initialised is empty. */
typedef struct gpuhal_listed_devices {
    gpuhal_listed_device *list;
    size_t count, capacity;
} gpuhal_listed_devices;

/* Appends a device without facts; NULL without memory. */
gpuhal_listed_device *gpuhal_listed_devices_add(gpuhal_listed_devices *devices, uint32_t index);
/* Returns false for an entry that the driver has but its API does not list (GPUHAL_FACT_UNLISTED): it is shown as
 * hardware. */
bool gpuhal_listed_is_device(const gpuhal_listed_device *listed);
/* Counts the entries that are devices. */
size_t gpuhal_listed_devices_usable(const gpuhal_listed_devices *devices);
/* Returns the device with the index; NULL if there is none. */
const gpuhal_listed_device *gpuhal_listed_devices_find(const gpuhal_listed_devices *devices, uint32_t index);
/* Copies every device with its facts; returns false without memory. */
bool gpuhal_listed_devices_copy(const gpuhal_listed_devices *from, gpuhal_listed_devices *to);
/* Returns whether both have the same devices in the same order, with the same facts; values that change from moment to
 * moment are ignored. */
bool gpuhal_listed_devices_same(const gpuhal_listed_devices *one, const gpuhal_listed_devices *other);
void gpuhal_listed_devices_finish(gpuhal_listed_devices *devices);

#endif
