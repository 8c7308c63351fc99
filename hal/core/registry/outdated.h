/* registry/outdated.h: drops results of plugins whose files no longer exist. Otherwise the results of a deleted build
 * directory would stay until they are the oldest, and every start would read them. */
#ifndef GPUHAL_REGISTRY_OUTDATED_H
#define GPUHAL_REGISTRY_OUTDATED_H

#include "registry/merge.h"

/* Drops results whose plugin file is no longer the one that was probed. Considers only results from the same boot and
 * mount namespace as a new result; elsewhere the file may still exist. Checks each file for a short time at most. */
void gpuhal_outdated_drop(gpuhal_database *database, const gpuhal_changes *changes);

#endif
