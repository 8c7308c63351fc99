/* registry/outdated.h: results of plugins whose files are gone. The results of a deleted build directory would else
 * stay until they are the oldest of all, and each start reads them. */
#ifndef GPUHAL_REGISTRY_OUTDATED_H
#define GPUHAL_REGISTRY_OUTDATED_H

#include "registry/merge.h"

/* Drops results whose plugin's file is no longer the one that was probed. It considers only results made since the same
 * start of the machine, and in the same mount namespace, as a new one: elsewhere the file may still exist. Reads the
 * state of files, each for a short time at most. */
void gpuhal_outdated_drop(gpuhal_database *database, const gpuhal_changes *changes);

#endif
