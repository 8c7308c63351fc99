/* loader/isolation.h: probes plugins concurrently, each in a helper process with its own deadline. */
#ifndef GPUHAL_LOADER_ISOLATION_H
#define GPUHAL_LOADER_ISOLATION_H

#include "loader/probe_cache.h"

/* Decides every undecided candidate that is not built in. If no helper can be started for a candidate, the candidate
 * stays NOT_PROBED, and a note states the reason; only the library's own cpu plugin then stays undecided. Fails only if
 * out of memory. */
gpuhal_status gpuhal_isolation_run(gpuhal_probe_cache *cache);

#endif
