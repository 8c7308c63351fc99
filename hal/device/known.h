/* device/known.h: what the registry is told of an opening, and what it tells. */
#ifndef GPUHAL_DEVICE_KNOWN_H
#define GPUHAL_DEVICE_KNOWN_H

#include "device/device.h"
#include "device/identity.h"

/* Tells the registry, in one update, what the loader learned and which devices there are, hidden ones too, and gives each device its
 * stable numbers. A registry that cannot be written is no failure: HOST_MEMORY or OK. */
gpuhal_status gpuhal_devices_know(gpuhal *gpu, const gpuhal_identity *identity);

#endif
