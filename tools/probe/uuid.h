/* uuid.h: UUIDs as the tools of a GPU's vendor print and take them: "GPU-6a1b2c3d-…" and "MIG-…" for NVIDIA,
 * "GPU-1a2b3c4d5e6f7080" for AMD. The library's own text is 8-4-4-4-12 digits, and so is that of other vendors. */
#ifndef PROBE_UUID_H
#define PROBE_UUID_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>

enum { PROBE_UUID_BYTES = 48 };

/* Returns the library's text in the form of the vendor with that PCI id, in `space` or unchanged. */
const char *gpuhal_probe_uuid(const char *uuid, uint64_t vendor_id, bool is_part, char space[PROBE_UUID_BYTES]);
/* Returns a device's UUID in that form, or its partition's if the key names one; "" if unknown. */
const char *gpuhal_probe_device_uuid(const gpuhal_device *device, gpuhal_key key, char space[PROBE_UUID_BYTES]);
/* Returns a physical device's UUID in that form; `device` is one of its interfaces. */
const char *gpuhal_probe_physical_uuid(const gpuhal_physical_info *physical, const gpuhal_device *device,
                                       char space[PROBE_UUID_BYTES]);

#endif
