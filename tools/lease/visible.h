/* visible.h: sets the variables that make vendors' libraries, and this one, list only the devices of a lease. */
#ifndef GPUHAL_LEASE_VISIBLE_H
#define GPUHAL_LEASE_VISIBLE_H

#include <gpuhal/schedule/lease.h>

#include <stdbool.h>

/* Sets them in the environment of this process, for the command. `bytes`: of the memory of each device; 0: all. Returns
 * false without memory. */
bool gpuhal_lease_set_visible(gpuhal *gpu, const gpuhal_lease *lease, uint64_t bytes);

#endif
