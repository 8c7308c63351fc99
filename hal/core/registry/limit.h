/* registry/limit.h: the memory limits of the control groups of this process. */
#ifndef GPUHAL_REGISTRY_LIMIT_H
#define GPUHAL_REGISTRY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the tightest limit in bytes; UINT64_MAX if there is none or it cannot be read. `root` as in key.h. */
uint64_t gpuhal_limit_memory(const char *root);
/* Returns whether the controller of device memory (version 2, `dmem`) has a file of limits for a group of this process,
 * with any contents. */
bool gpuhal_limit_counts_devices(const char *root);
/* Returns the bytes of a device's memory that this controller still grants, by the PCI address ("0000:03:00.0");
 * *out_limit gets the limit. UINT64_MAX for both if there is no limit or it cannot be read. */
uint64_t gpuhal_limit_device_memory(const char *root, const char *pci, uint64_t *out_limit);

#endif
