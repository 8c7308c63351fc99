/* visible.h: sets the environment variables that limit the lists of this library and of vendors' libraries to the
 * leased devices. */
#ifndef GPUHAL_LEASE_VISIBLE_H
#define GPUHAL_LEASE_VISIBLE_H

#include <gpuhal/schedule/lease.h>

#include <stdbool.h>

/* Sets the variables in this process, so that the command inherits them. `bytes` is the memory limit for each device; 0
 * means no limit. Returns false if out of memory. */
bool gpuhal_lease_set_visible(gpuhal *gpu, const gpuhal_lease *lease, uint64_t bytes);

#endif
