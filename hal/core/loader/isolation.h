/* loader/isolation.h: probes plugins in helper processes, one for each, concurrently, each with its own deadline. */
#ifndef GPUHAL_LOADER_ISOLATION_H
#define GPUHAL_LOADER_ISOLATION_H

#include "loader/probe_cache.h"

/* Decides every candidate of the search that is NOT_PROBED and not built in. A candidate without a helper stays
 * NOT_PROBED, and a note gives the reason. Fails only without memory. */
gpuhal_status gpuhal_isolation_run(gpuhal_probe_cache *cache);

#endif
