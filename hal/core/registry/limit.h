/* registry/limit.h: memory limits of this process's control groups. */
#ifndef GPUHAL_REGISTRY_LIMIT_H
#define GPUHAL_REGISTRY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the lowest limit in bytes; UINT64_MAX if there is no limit or the limit cannot be read. For `root` see
 * key.h. */
uint64_t gpuhal_limit_memory(const char *root);
/* Returns whether the device memory controller (cgroup v2, `dmem`) has a limits file for a group of this process. The
 * file's contents do not matter. */
bool gpuhal_limit_counts_devices(const char *root);
/* Returns the number of bytes that this process may still allocate on the device with this PCI address ("0000:03:00.0")
 * according to the `dmem` controller. *out_limit is the limit of the group that leaves the least. Both values are
 * UINT64_MAX if there is no limit or the limit cannot be read. */
uint64_t gpuhal_limit_device_memory(const char *root, const char *pci, uint64_t *out_limit);

#endif
