/* registry/outdated.h: results of plugins whose files are gone. A build directory that was deleted would else keep its
 * results until they are the oldest of all, and each start reads them. */
#ifndef GPUHAL_REGISTRY_OUTDATED_H
#define GPUHAL_REGISTRY_OUTDATED_H

#include "registry/merge.h"

/* Drops the results whose plugin's file is no longer the one that was probed, of those that were made since the same
 * start of the machine in the same mount namespace as a new one: elsewhere the file may still be there. Reads the state
 * of files, each for a short time at most. */
void gpuhal_outdated_drop(gpuhal_database *database, const gpuhal_changes *changes);

#endif
