/* loader/selection.h: selects and orders the backends by the table of known names, config.backends, GPUHAL_BACKENDS
 * and the priorities.
 */
#ifndef GPUHAL_LOADER_SELECTION_H
#define GPUHAL_LOADER_SELECTION_H

#include "loader/loader.h"

/* One list of backends. Zero-initialised means no selection. */
typedef struct gpuhal_selection_list {
    const char *text, *source; /* as given, and its origin such as "GPUHAL_BACKENDS" */
    char **names;              /* from gpuhal_text_split, without the `-` */
    size_t count;
    bool excludes; /* all other backends are used; if not set, only these are used, in this order, and cpu after them */
} gpuhal_selection_list;

/* The configuration's list of allowed backends, and the environment's list, which restricts the first list and has its
 * own order. */
typedef struct gpuhal_selection {
    gpuhal_selection_list allowed, narrowed;
} gpuhal_selection;

/* Returns INVALID_ARGUMENT for a malformed list. Does not check whether the names exist. */
gpuhal_status gpuhal_selection_parse(const gpuhal_settings *settings, gpuhal_selection *out_selection);
void gpuhal_selection_finish(gpuhal_selection *selection);
/* Returns NOT_FOUND for a name that is neither known nor found. Otherwise adds a candidate for each selected backend
 * that is not installed, and excludes all backends that were not selected. Adds a note if the two lists have nothing in
 * common. */
gpuhal_status gpuhal_selection_apply(const gpuhal_selection *selection, gpuhal_log *log, gpuhal_candidates *candidates);
/* Sorts the candidates in the order of the lists, and by priority. The sort is stable. */
void gpuhal_selection_sort(const gpuhal_selection *selection, gpuhal_candidates *candidates);
/* A priority in the manifest takes precedence over the priority in the table of known names, except for cpu. */
int32_t gpuhal_selection_priority(const char *name, bool has_priority, int32_t priority);

#endif
