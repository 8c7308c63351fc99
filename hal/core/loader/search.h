/* loader/search.h: finds the directories with plugins, and reads their manifests. */
#ifndef GPUHAL_LOADER_SEARCH_H
#define GPUHAL_LOADER_SEARCH_H

#include "loader/loader.h"

/* Adds a candidate for each manifest, directories in the documented order and files by strcmp, and for each
 * `gpuhal-*.so` without a manifest. Refuses manifests for other platforms. Returns INVALID_ARGUMENT for a path that is
 * not absolute, or HOST_MEMORY. */
gpuhal_status gpuhal_search(const gpuhal_settings *settings, gpuhal_log *log, gpuhal_candidates *candidates);

#endif
