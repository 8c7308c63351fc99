/* registry/limit.h: the memory limits of the control groups of this process. */
#ifndef GPUHAL_REGISTRY_LIMIT_H
#define GPUHAL_REGISTRY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the tightest limit in bytes; UINT64_MAX where there is none or it cannot be read. `root` as in key.h. */
uint64_t gpuhal_limit_memory(const char *root);
/* Returns whether the controller of device memory (version 2, `dmem`) has a file of limits for a group of this process,
 * whatever it says now. */
bool gpuhal_limit_counts_devices(const char *root);
/* Returns what that controller leaves of the memory of a device, by its PCI address
 * ("0000:03:00.0"); *out_limit: of how many bytes. UINT64_MAX for both where there is no limit or it cannot be read. */
uint64_t gpuhal_limit_device_memory(const char *root, const char *pci, uint64_t *out_limit);

#endif
