/* node/registry_view.h: the machine's record as a view source, for the files that implement gpuhal/node/registry.h. */
#ifndef GPUHAL_NODE_REGISTRY_VIEW_H
#define GPUHAL_NODE_REGISTRY_VIEW_H

#include "device/for_node.h"

#include <gpuhal/node/registry.h>

typedef struct gpuhal_registry_source {
    gpuhal_snapshot *snapshot; /* NULL if `own` is used */
    gpuhal_database own;
    const gpuhal_database *database; /* the snapshot's database, or `own` */
    char *place;
    char system_root[GPUHAL_SYSTEM_ROOT_BYTES]; /* from the settings */
    const char *damage;
    char **outputs; /* the plugins' outputs, in plugin order; NULL means "" */
    size_t output_count;
} gpuhal_registry_source;

/* The source's functions; registry_records.c. */
uint32_t gpuhal_registry_count(const void *state, gpuhal_record_kind kind);
void gpuhal_registry_give(const void *state, gpuhal_record_kind kind, uint32_t index, void *out_record);

/* Adds the current record to a view and, with GPUHAL_VIEW_HARDWARE, the hardware. */
gpuhal_status gpuhal_node_view(const gpuhal *gpu, uint32_t flags, gpuhal_view *view);

static inline const gpuhal_registry_source *gpuhal_registry_source_of(const gpuhal_view *view)
{
    return view->sources[GPUHAL_SOURCE_RECORD].state; /* every view has this source if the library contains node */
}

#endif
