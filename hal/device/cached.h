/* device/cached.h: what the registry is told of an opening, and what it tells. */
#ifndef GPUHAL_DEVICE_CACHED_H
#define GPUHAL_DEVICE_CACHED_H

#include "device/snapshot.h"

/* Tells the registry, in one update, what the loader learned and which devices there are, hidden ones too, and gives each entry of
 * the listing its stable numbers. A registry that cannot be written is no failure: HOST_MEMORY or OK. */
gpuhal_status gpuhal_devices_know(gpuhal *gpu, gpuhal_device_snapshot *snapshot);

/* Compares what was listed last with what the plugin lists in this process, where it was started after that: `now` is the device, NULL when
 * it is not there. The first call for a device tells of what is different, and replaces what the registry remembers. The error detail
 * stays as it was. */
void gpuhal_cached_compare(gpuhal_device *device, const gpuhal_backend *backend, const gpuhal_listed_device *now);
/* The plugin could not be started here although its listing is remembered: the next start will meet it again. */
void gpuhal_cached_failed(gpuhal_device *device, gpuhal_status status);
/* The device was opened: what the registry says of a plugin that hung or crashed is over. The error detail stays as it was. */
void gpuhal_cached_opened(gpuhal_device *device);

#endif
