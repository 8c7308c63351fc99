/* device/cached.h: reads from and writes to the registry when a gpuhal object opens and when its devices do.
 */
#ifndef GPUHAL_DEVICE_CACHED_H
#define GPUHAL_DEVICE_CACHED_H

#include "device/snapshot.h"

/* Writes in one update the loader's results and the devices, hidden ones included, and gives each entry of the snapshot
 * its stable numbers. Returns HOST_MEMORY or OK: a registry that cannot be written is not a failure. */
gpuhal_status gpuhal_devices_know(gpuhal *gpu, gpuhal_device_snapshot *snapshot);

/* Compares the newest snapshot with the plugin's list in this process, if the plugin was started after the snapshot;
 * `now` is the device, NULL when it is absent. The first call for a device reports the differences and replaces the
 * cached result. Keeps the error detail. */
void gpuhal_cached_compare(gpuhal_device *device, const gpuhal_backend *backend, const gpuhal_listed_device *now);
/* Records that the plugin could not be started here although its result is cached: the next start probes it again. */
void gpuhal_cached_failed(gpuhal_device *device, gpuhal_status status);
/* Records that the device was opened, which ends a quarantine of its plugin. Keeps the error detail. */
void gpuhal_cached_opened(gpuhal_device *device);

#endif
