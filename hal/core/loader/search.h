/* loader/search.h: finds the plugin directories and reads the manifests in them. */
#ifndef GPUHAL_LOADER_SEARCH_H
#define GPUHAL_LOADER_SEARCH_H

#include "loader/loader.h"

/* Adds a candidate for each manifest, and for each `gpuhal-*.so` without a manifest. Directories are searched in the
 * documented order, their files in strcmp() order. Manifests for other platforms are refused. Returns INVALID_ARGUMENT
 * for a path that is not absolute, or HOST_MEMORY. */
gpuhal_status gpuhal_search(const gpuhal_settings *settings, gpuhal_log *log, gpuhal_candidates *candidates);

#endif
