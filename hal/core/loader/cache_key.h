/* loader/cache_key.h: computes a plugin's cache key from its manifest and the files that its helper mapped. */
#ifndef GPUHAL_LOADER_CACHE_KEY_H
#define GPUHAL_LOADER_CACHE_KEY_H

#include "loader/loader.h"

/* Makes the cache key (registry/key.h) of a probe result. `root` is GPUHAL_SYSTEM_ROOT. `mapped` contains the helper's
 * executable mappings as the kernel names them, or is NULL. Returns false if out of memory. */
bool gpuhal_cache_key_make(const char *root, const gpuhal_candidate *candidate, const gpuhal_texts *mapped,
                           const gpuhal_texts *machine, gpuhal_texts *out_key);
/* Returns whether one of these files was replaced while the plugin was probed, so that the result describes the old
 * file. */
bool gpuhal_cache_key_replaced(const gpuhal_texts *mapped);
/* Lists the files and folders that the candidate's manifest watches, given the current environment. */
void gpuhal_cache_key_watched(const char *root, const gpuhal_candidate *candidate, gpuhal_texts *to);

#endif
