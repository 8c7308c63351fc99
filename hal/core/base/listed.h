/* base/listed.h: lists of devices as reported by plugins. The loader produces them, the registry stores them, and the
 * layers above use them. */
#ifndef GPUHAL_BASE_LISTED_H
#define GPUHAL_BASE_LISTED_H

#include "base/facts.h"

typedef struct gpuhal_listed_device {
    uint32_t index;
    uint32_t capabilities; /* GPUHAL_CAPABILITY_ bits, derived from the device's slots */
    gpuhal_facts facts;    /* include memory_free_bytes if the plugin samples it without opening the device */
} gpuhal_listed_device;

/* A zero-initialised list is empty. */
typedef struct gpuhal_listed_devices {
    gpuhal_listed_device *list;
    size_t count, capacity;
} gpuhal_listed_devices;

/* Appends a device without facts. Returns NULL if out of memory. */
gpuhal_listed_device *gpuhal_listed_devices_add(gpuhal_listed_devices *devices, uint32_t index);
/* Returns false for an entry that the driver knows but its API does not list (GPUHAL_FACT_UNLISTED), which is
 * reported only as hardware. */
bool gpuhal_listed_is_device(const gpuhal_listed_device *listed);
/* Returns the number of entries that are devices. */
size_t gpuhal_listed_devices_usable(const gpuhal_listed_devices *devices);
const gpuhal_listed_device *gpuhal_listed_devices_find(const gpuhal_listed_devices *devices, uint32_t index);
/* Returns false if out of memory. */
bool gpuhal_listed_devices_copy(const gpuhal_listed_devices *from, gpuhal_listed_devices *to);
/* Returns whether both lists have the same devices in the same order, with the same facts, except free memory,
 * which changes constantly. */
bool gpuhal_listed_devices_same(const gpuhal_listed_devices *one, const gpuhal_listed_devices *other);
void gpuhal_listed_devices_finish(gpuhal_listed_devices *devices);

#endif
