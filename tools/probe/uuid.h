/* uuid.h: UUIDs in the form that the GPU vendor's tools print and accept: "GPU-6a1b2c3d-…" and "MIG-…" for NVIDIA,
 * "GPU-1a2b3c4d5e6f7080" for AMD. The library and other vendors use 8-4-4-4-12 digits. */
#ifndef PROBE_UUID_H
#define PROBE_UUID_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

enum { PROBE_UUID_BYTES = 48 };

/* Converts the library's form to the form of the vendor with this PCI id. Returns `space`, or the unchanged `uuid`. */
const char *gpuhal_probe_uuid(const char *uuid, uint64_t vendor_id, bool is_part, char space[PROBE_UUID_BYTES]);
/* Returns the UUID of a device or, depending on the key, of its partition, in the vendor's form; "" if unknown. If the
 * partition has only a number, returns the number. */
const char *gpuhal_probe_device_uuid(const gpuhal_device *device, gpuhal_key key, char space[PROBE_UUID_BYTES]);
/* Returns a physical device's UUID in the vendor's form; `device` is one of its interfaces. */
const char *gpuhal_probe_physical_uuid(const gpuhal_physical_info *physical, const gpuhal_device *device,
                                       char space[PROBE_UUID_BYTES]);

#endif
