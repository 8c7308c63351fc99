/* loader/selection.h: which backends are wanted, and their order: the table of known names, GPUHAL_BACKENDS, and priorities. */
#ifndef GPUHAL_LOADER_SELECTION_H
#define GPUHAL_LOADER_SELECTION_H

#include "loader/loader.h"

/* One list of backends. Zero-initialised asks for nothing. */
typedef struct gpuhal_selection_list {
    const char *text, *source; /* as it was given, and by what: "GPUHAL_BACKENDS" */
    char **names;              /* as gpuhal_text_split gives them; without the `-` */
    size_t count;
    bool excludes; /* the names are left out; else only they are taken, in this order, then cpu */
} gpuhal_selection_list;

/* What the configuration allows, and what the environment takes of that, in its own order. */
typedef struct gpuhal_selection {
    gpuhal_selection_list allowed, narrowed;
} gpuhal_selection;

/* INVALID_ARGUMENT for what is no list; whether the names exist is not known yet. */
gpuhal_status gpuhal_selection_parse(const gpuhal_settings *settings, gpuhal_selection *out_selection);
void gpuhal_selection_finish(gpuhal_selection *selection);
/* NOT_FOUND for a name that is neither known nor found. Then records asked-for backends that are not installed, and excludes what
 * was not asked for; a remark says so where the two lists have nothing in common. */
gpuhal_status gpuhal_selection_apply(const gpuhal_selection *selection, gpuhal_log *log, gpuhal_candidates *candidates);
/* Brings the candidates into the order of priority; equal ones stay as they were found. */
void gpuhal_selection_sort(const gpuhal_selection *selection, gpuhal_candidates *candidates);
/* A backend's priority: the manifest's for third parties, the table's for known names. */
int32_t gpuhal_selection_priority(const char *name, bool has_priority, int32_t priority);

#endif
