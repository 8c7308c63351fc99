/* registry/limit.h: how much memory the control groups of this process grant it. */
#ifndef GPUHAL_REGISTRY_LIMIT_H
#define GPUHAL_REGISTRY_LIMIT_H

#include <stdint.h>

/* The tightest limit in bytes; UINT64_MAX where there is none, or nobody can tell. `root` as in key.h. */
uint64_t gpuhal_limit_memory(const char *root);

#endif
