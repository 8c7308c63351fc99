/* registry/limit.h: the memory limit of the control groups of this process. */
#ifndef GPUHAL_REGISTRY_LIMIT_H
#define GPUHAL_REGISTRY_LIMIT_H

#include <stdint.h>

/* Returns the tightest limit in bytes; UINT64_MAX where there is none or it cannot be read. `root` as in key.h. */
uint64_t gpuhal_limit_memory(const char *root);

#endif
