/* registry/registry.h: the persistent record of this machine: plugins, devices, links, faults. This is the interface
 * for the layers above.
 *
 * A reader takes a snapshot, which never changes and never waits. A writer calls gpuhal_registry_update(): under a lock
 * between processes it reads the file again, merges its changes and writes the whole, so that no other process's
 * changes are lost. If nothing can be saved (no home, a read-only or full disk, another user's directory, a file of a
 * newer version), the changes apply to this object only, and the log says so once.
 */
#ifndef GPUHAL_REGISTRY_REGISTRY_H
#define GPUHAL_REGISTRY_REGISTRY_H

#include "base/log.h"
#include "registry/merge.h"

/* The longest wait of a writer for others; one update takes a few milliseconds. */
#define GPUHAL_REGISTRY_LOCK_NS UINT64_C(5000000000)

typedef struct gpuhal_registry gpuhal_registry;

/* The whole registry at one moment. Must not be changed. */
typedef struct gpuhal_snapshot {
    _Atomic uint64_t references;
    gpuhal_database database; /* its generation rises from snapshot to snapshot of one registry object */
} gpuhal_snapshot;

/* Reads the registry. `directory` is that of gpuhal_settings; NULL for none. A privileged process never has one.
 * Returns NULL without memory. */
gpuhal_registry *gpuhal_registry_create(const char *directory, uint64_t lock_timeout_ns, gpuhal_log *log);
/* Snapshots stay valid. NULL does nothing. */
void gpuhal_registry_destroy(gpuhal_registry *registry);

/* Returns the newest snapshot, which the caller releases; never NULL. Any thread may call it; it does not wait. */
gpuhal_snapshot *gpuhal_registry_snapshot(gpuhal_registry *registry);
void gpuhal_snapshot_release(gpuhal_snapshot *snapshot);

/* Reads the file again if it changed. An object that could not write tries again from here on. Returns true if there is
 * a new snapshot. */
bool gpuhal_registry_refresh(gpuhal_registry *registry);

/* Merges the changes, unless the registry has them already. Returns OK once the disk has them. After GPUHAL_ERROR_FILE
 * they are in the next snapshots of this object and are lost with it; the stable numbers are valid for this object
 * only. After HOST_MEMORY nothing changed. */
gpuhal_status gpuhal_registry_update(gpuhal_registry *registry, gpuhal_changes *changes);

/* Returns "/home/a/.local/state/gpuhal", or NULL. */
const char *gpuhal_registry_directory(const gpuhal_registry *registry);

#endif
