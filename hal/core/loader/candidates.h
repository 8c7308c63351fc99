/* loader/candidates.h: the growing list of plugins found, and the functions that change a candidate in the loader's
 * steps. */
#ifndef GPUHAL_LOADER_CANDIDATES_H
#define GPUHAL_LOADER_CANDIDATES_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* Appends a candidate in state NOT_PROBED. Copies both strings, which may be NULL. Returns NULL if out of memory. */
gpuhal_candidate *gpuhal_candidates_add(gpuhal_candidates *candidates, const char *name, const char *file);
/* Logs a note about the search and adds it to the list. If out of memory, only logs it. */
void gpuhal_candidates_add_note(gpuhal_candidates *candidates, gpuhal_log *log, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool gpuhal_candidate_is_open(const gpuhal_candidate *candidate);
/* The cpu plugin is the last resort, and its failures are never cached. */
bool gpuhal_candidate_is_cpu(const gpuhal_candidate *candidate);
/* The library's own cpu plugin opens no driver and may therefore run in this process. */
bool gpuhal_candidate_is_own_cpu(const gpuhal_candidate *candidate);
/* Takes ownership of the manifest's contributions to the cache key and of its settings, and sets the caller's pointers
 * to NULL. The strings may be NULL. */
void gpuhal_candidate_note(gpuhal_candidate *candidate, char **manifest, char **libraries, char **environment,
                           char **settings, char **watch);
void gpuhal_candidate_decide(gpuhal_candidate *candidate, gpuhal_plugin_state state, gpuhal_plugin_stage stage,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Marks the candidate as in use, because its plugin lists devices. */
void gpuhal_candidate_accept(gpuhal_candidate *candidate);
/* Returns whether a result with this state may have these devices. A NO_DEVICE result may only have unlisted
 * devices. */
bool gpuhal_candidate_may_have(gpuhal_plugin_state state, const gpuhal_listed_devices *devices);
void gpuhal_candidate_reopen(gpuhal_candidate *candidate);
/* Moves the stage and the strings from `load` to the candidate. After a failure, also moves the state, the code and the
 * unlisted devices, and decides the candidate. Finishes `load`. */
void gpuhal_candidate_take(gpuhal_candidate *candidate, gpuhal_load_context *load, bool good);

#endif
