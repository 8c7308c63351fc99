/* registry/registry.h: the persistent record of this machine's plugins, devices, links and faults. This is the
 * interface for the layers above.
 *
 * A reader acquires a snapshot, which is immutable and available without waiting. A writer calls
 * gpuhal_registry_update(), which takes a lock that excludes other processes, reads the file again, merges the changes
 * and writes the whole file. Changes of other processes are therefore never lost. If nothing can be saved (no home, a
 * read-only or full disk, another user's directory, a file of a newer version), the changes apply only to this object.
 * The failure is logged once.
 */
#ifndef GPUHAL_REGISTRY_REGISTRY_H
#define GPUHAL_REGISTRY_REGISTRY_H

#include "base/log.h"
#include "registry/merge.h"

/* The maximum time that a writer waits for other writers. An update takes a few milliseconds. */
#define GPUHAL_REGISTRY_LOCK_NS UINT64_C(5000000000)

typedef struct gpuhal_registry gpuhal_registry;

/* An immutable copy of the whole registry. */
typedef struct gpuhal_snapshot {
    _Atomic uint64_t references;
    gpuhal_database database; /* its generation increases with each snapshot of a registry object */
} gpuhal_snapshot;

/* Reads the registry. `directory` is the directory in gpuhal_settings, or NULL. A privileged process ignores it.
 * Returns NULL if out of memory. */
gpuhal_registry *gpuhal_registry_create(const char *directory, uint64_t lock_timeout_ns, gpuhal_log *log);
/* Snapshots stay valid. NULL does nothing. */
void gpuhal_registry_destroy(gpuhal_registry *registry);

/* Returns the newest snapshot, never NULL; the caller releases it. May be called by any thread. Does not block. */
gpuhal_snapshot *gpuhal_registry_snapshot(gpuhal_registry *registry);
void gpuhal_snapshot_release(gpuhal_snapshot *snapshot);

/* Reads the file again if it has changed or an earlier write failed; later updates then also try to write again.
 * Returns true if there is a new snapshot. */
bool gpuhal_registry_refresh(gpuhal_registry *registry);

/* Merges the changes, unless they are only sightings that the registry has noted. Returns OK once they are on disk.
 * After GPUHAL_ERROR_FILE, only the snapshots of this object contain the changes, and the stable numbers are valid only
 * for this object. After HOST_MEMORY the newest snapshot is unchanged, but the file may contain the changes. */
gpuhal_status gpuhal_registry_update(gpuhal_registry *registry, gpuhal_changes *changes);

/* Returns the directory ("/home/a/.local/state/gpuhal"), or NULL. */
const char *gpuhal_registry_directory(const gpuhal_registry *registry);

#endif
