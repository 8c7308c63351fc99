/* loader/candidates.h: the growing list of plugins that were found, and what the steps of the loader do to one. */
#ifndef GPUHAL_LOADER_CANDIDATES_H
#define GPUHAL_LOADER_CANDIDATES_H

#include "loader/load_context.h"
#include "loader/loader.h"

/* A new candidate at the end, state NOT_PROBED; texts may be NULL and are copied. NULL without memory. */
gpuhal_candidate *gpuhal_candidates_add(gpuhal_candidates *candidates, const char *name, const char *file);
/* Adds a sentence about the whole search; without memory it is lost. */
void gpuhal_candidates_remark(gpuhal_candidates *candidates, gpuhal_log *log, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Nothing was decided about it yet. */
bool gpuhal_candidate_is_open(const gpuhal_candidate *candidate);
/* Whether it is the cpu plugin: the last resort, whose failures are never kept. */
bool gpuhal_candidate_is_cpu(const gpuhal_candidate *candidate);
/* Whether it is the cpu plugin that came with this library. It opens no driver, so nothing of it needs to be kept away from this process. */
bool gpuhal_candidate_is_own_cpu(const gpuhal_candidate *candidate);
/* Takes over what the manifest says about what the answers depend on; texts may be NULL, and are NULL afterwards. */
void gpuhal_candidate_note(gpuhal_candidate *candidate, char **manifest, char **libraries, char **environment,
                           char **watch);
/* Ends the candidate's way. */
void gpuhal_candidate_decide(gpuhal_candidate *candidate, gpuhal_plugin_state state, gpuhal_plugin_stage stage,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Ends it well: the plugin lists devices. */
void gpuhal_candidate_accept(gpuhal_candidate *candidate);
/* Gives a decided one another chance. */
void gpuhal_candidate_reopen(gpuhal_candidate *candidate);
/* Moves stage, texts and, where it failed, state and reason over from an attempt, and finishes the attempt. */
void gpuhal_candidate_take(gpuhal_candidate *candidate, gpuhal_load_context *load, bool good);

#endif
