/* loader/isolation.h: meeting plugins in helper processes, one each, at the same time, each with its own deadline. */
#ifndef GPUHAL_LOADER_ISOLATION_H
#define GPUHAL_LOADER_ISOLATION_H

#include "loader/probe_cache.h"

/* Decides every candidate of the search that is NOT_PROBED and no built-in one. What no helper could be found or started for
 * stays NOT_PROBED, and a remark says why. Fails without memory only. */
gpuhal_status gpuhal_isolation_run(gpuhal_probe_cache *cache);

#endif
