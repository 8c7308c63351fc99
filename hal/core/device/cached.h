/* device/cached.h: updates the registry after enumerations, plugin starts and device openings. */
#ifndef GPUHAL_DEVICE_CACHED_H
#define GPUHAL_DEVICE_CACHED_H

#include "device/snapshot.h"

/* Writes the loader's results and the devices of this enumeration (the first `fresh` entries), including hidden
 * devices, in one update, and assigns the stable numbers to these entries. The other entries keep their earlier
 * numbers. Returns HOST_MEMORY or OK; an unwritable registry is not an error. */
gpuhal_status gpuhal_devices_know(gpuhal *gpu, gpuhal_device_snapshot *snapshot);

/* Compares the newest snapshot with the plugin's list in this process, if the list is newer. `now` is the device in
 * that list; NULL if absent. The first call for a device reports the differences and replaces the cached result.
 * Preserves the error detail. */
void gpuhal_cached_compare(gpuhal_device *device, const gpuhal_backend *backend, const gpuhal_listed_device *now);
/* Records that the plugin could not be started although its result is cached. The next start of the library probes it
 * again. */
void gpuhal_cached_failed(gpuhal_device *device, gpuhal_status status);
/* Ends a quarantine of the opened device's plugin. Preserves the error detail. */
void gpuhal_cached_opened(gpuhal_device *device);

#endif
