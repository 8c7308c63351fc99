/* loader/selection.h: which backends are wanted and their order, from the table of known names, GPUHAL_BACKENDS, and
 * priorities. */
#ifndef GPUHAL_LOADER_SELECTION_H
#define GPUHAL_LOADER_SELECTION_H

#include "loader/loader.h"

/* One list of backends. Zero-initialised: no selection. */
typedef struct gpuhal_selection_list {
    const char *text, *source; /* as given, and its source: "GPUHAL_BACKENDS" */
    char **names;              /* from gpuhal_text_split; without the `-` */
    size_t count;
    bool excludes; /* the names are excluded; else only they are used, in this order, and then cpu */
} gpuhal_selection_list;

/* The configuration's list of allowed backends, and the environment's selection from it in an order of its own. */
typedef struct gpuhal_selection {
    gpuhal_selection_list allowed, narrowed;
} gpuhal_selection;

/* Parses the lists. Returns INVALID_ARGUMENT for a malformed one. Whether the names exist is not known yet. */
gpuhal_status gpuhal_selection_parse(const gpuhal_settings *settings, gpuhal_selection *out_selection);
void gpuhal_selection_finish(gpuhal_selection *selection);
/* Returns NOT_FOUND for a name that is neither known nor found. Otherwise records selected backends that are not
 * installed, and excludes the backends that are not selected. Adds a note if the two lists have nothing in common. */
gpuhal_status gpuhal_selection_apply(const gpuhal_selection *selection, gpuhal_log *log, gpuhal_candidates *candidates);
/* Sorts the candidates by priority; equal ones keep their order. */
void gpuhal_selection_sort(const gpuhal_selection *selection, gpuhal_candidates *candidates);
/* Returns a backend's priority: the manifest's for third parties, the table's for known names. */
int32_t gpuhal_selection_priority(const char *name, bool has_priority, int32_t priority);

#endif
