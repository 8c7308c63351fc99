/* registry/outdated.h: drops results of plugins whose files no longer exist. Otherwise every start would read the
 * results of a deleted build directory until they are the oldest and are dropped. */
#ifndef GPUHAL_REGISTRY_OUTDATED_H
#define GPUHAL_REGISTRY_OUTDATED_H

#include "registry/merge.h"

/* Drops results whose plugin file was removed or replaced after the probe. Considers only results from the same boot
 * and mount namespace as a new result, because the file may still exist in another. Checks each file for a short time
 * at most; the first timeout ends the checks. */
void gpuhal_outdated_drop(gpuhal_database *database, const gpuhal_changes *changes);

#endif
