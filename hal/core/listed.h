/* core/listed.h: devices as a plugin lists them: what the loader gets, the registry keeps and the layers above show. */
#ifndef GPUHAL_CORE_LISTED_H
#define GPUHAL_CORE_LISTED_H

#include "core/facts.h"

typedef struct gpuhal_listed_device {
    uint32_t index;
    uint32_t capabilities; /* GPUHAL_CAPABILITY_ bits, read off the slots */
    gpuhal_facts facts;    /* facts, and the value memory_free_bytes where the plugin samples it without opening */
} gpuhal_listed_device;

/* Zero-initialised is empty. */
typedef struct gpuhal_listed_devices {
    gpuhal_listed_device *list;
    size_t count, capacity;
} gpuhal_listed_devices;

/* A new device without facts at the end; NULL without memory. */
gpuhal_listed_device *gpuhal_listed_devices_add(gpuhal_listed_devices *devices, uint32_t index);
/* NULL when there is none. */
const gpuhal_listed_device *gpuhal_listed_devices_find(const gpuhal_listed_devices *devices, uint32_t index);
/* A copy of every device with its facts; false without memory. */
bool gpuhal_listed_devices_copy(const gpuhal_listed_devices *from, gpuhal_listed_devices *to);
/* Whether both hold the same devices in the same order, with the same facts; what changes from moment to moment (values) does not count. */
bool gpuhal_listed_devices_same(const gpuhal_listed_devices *one, const gpuhal_listed_devices *other);
void gpuhal_listed_devices_finish(gpuhal_listed_devices *devices);

#endif
