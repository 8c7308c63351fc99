/* node/registry_view.h: the members of a gpuhal_registry_view, for the files that implement gpuhal/node/registry.h. */
#ifndef GPUHAL_NODE_REGISTRY_VIEW_H
#define GPUHAL_NODE_REGISTRY_VIEW_H

#include "device/for_node.h"

#include <gpuhal/node/registry.h>

struct gpuhal_registry_view {
    uint32_t generation;           /* fork generation in which it was made */
    gpuhal_snapshot *snapshot;     /* NULL: `own` was read */
    gpuhal_database own;
    const gpuhal_database *database; /* of either */
    char *place;
    char system_root[GPUHAL_SYSTEM_ROOT_BYTES]; /* as in the settings */
    const char *damage;
    char **outputs; /* of the plugins, in their order */
    size_t output_count;
};

/* The rule for forks, as in device/device.h. */
static inline gpuhal_status gpuhal_view_check(const gpuhal_registry_view *view)
{
    return view->generation == gpuhal_os_fork_generation() ? GPUHAL_OK : gpuhal_error_forked();
}

/* Texts for callers are never NULL. */
static inline const char *gpuhal_view_text(const char *text)
{
    return text ? text : "";
}

#endif
