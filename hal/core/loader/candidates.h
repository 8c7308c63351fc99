/* loader/candidates.h: the growing list of plugins that were found, and how the steps of the loader change one. */
#ifndef GPUHAL_LOADER_CANDIDATES_H
#define GPUHAL_LOADER_CANDIDATES_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* Appends a candidate in state NOT_PROBED; texts may be NULL and are copied. Returns NULL without memory. */
gpuhal_candidate *gpuhal_candidates_add(gpuhal_candidates *candidates, const char *name, const char *file);
/* Adds a note about the whole search. Without memory the note is lost. */
void gpuhal_candidates_add_note(gpuhal_candidates *candidates, gpuhal_log *log, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns whether the candidate is undecided. */
bool gpuhal_candidate_is_open(const gpuhal_candidate *candidate);
/* Returns whether it is a cpu plugin: the last resort, whose failures are never cached. */
bool gpuhal_candidate_is_cpu(const gpuhal_candidate *candidate);
/* Returns whether it is the cpu plugin that came with this library. It opens no driver, so it may run in this process.
 */
bool gpuhal_candidate_is_own_cpu(const gpuhal_candidate *candidate);
/* Takes over the manifest's contributions to the cache key; texts may be NULL, and are NULL afterwards. */
void gpuhal_candidate_note(gpuhal_candidate *candidate, char **manifest, char **libraries, char **environment,
                           char **watch);
/* Decides the candidate with a reason. */
void gpuhal_candidate_decide(gpuhal_candidate *candidate, gpuhal_plugin_state state, gpuhal_plugin_stage stage,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Decides that the plugin, which lists devices, is used. */
void gpuhal_candidate_accept(gpuhal_candidate *candidate);
/* Returns whether a result in this state has these devices: a result NO_DEVICE has only unlisted ones. */
bool gpuhal_candidate_may_have(gpuhal_plugin_state state, const gpuhal_listed_devices *devices);
/* Makes a decided candidate undecided again. */
void gpuhal_candidate_reopen(gpuhal_candidate *candidate);
/* Moves stage and texts, and after a failure also state and reason, from `load`, and finishes `load`. */
void gpuhal_candidate_take(gpuhal_candidate *candidate, gpuhal_load_context *load, bool good);

#endif
