/* loader/cache_key.h: what one plugin's answer depends on, put together from its manifest and from what its helper saw. */
#ifndef GPUHAL_LOADER_CACHE_KEY_H
#define GPUHAL_LOADER_CACHE_KEY_H

#include "loader/loader.h"

/* The key of registry/key.h under which the answer holds. `mapped`: files with code in the helper's memory, as the system shows them; may be
 * NULL. false without memory. */
bool gpuhal_cache_key_make(const gpuhal_candidate *candidate, const gpuhal_texts *mapped, const gpuhal_texts *machine,
                               gpuhal_texts *out_key);
/* Whether one of these files was replaced while the plugin was met: what it said then belongs to the old one. */
bool gpuhal_cache_key_replaced(const gpuhal_texts *mapped);
/* The files and folders that the candidate's manifest tells to watch, as today's environment has them. */
void gpuhal_cache_key_watched(const gpuhal_candidate *candidate, gpuhal_texts *to);

#endif
