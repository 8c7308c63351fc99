/* registry/registry.h: the persistent record of this machine: plugins, devices, links, faults. What the layers above see.
 *
 * Whoever reads takes a snapshot, which never changes and never waits for anything. Whoever has something to add calls
 * gpuhal_registry_update(): under a lock between processes the file is read again, the changes are merged in, and the whole is
 * written, so that nothing which another process added is lost. Where nothing can be kept (no home, a read-only or full disk, a
 * foreign directory, a file of a newer version) everything works all the same within this object; one line of the log says so.
 */
#ifndef GPUHAL_REGISTRY_REGISTRY_H
#define GPUHAL_REGISTRY_REGISTRY_H

#include "core/log.h"
#include "registry/merge.h"

/* How long a writer waits for others; one update takes a few milliseconds. */
#define GPUHAL_REGISTRY_LOCK_NS UINT64_C(5000000000)

typedef struct gpuhal_registry gpuhal_registry;

/* The whole at one moment. Content is only read. */
typedef struct gpuhal_snapshot {
    _Atomic uint64_t references;
    gpuhal_database database; /* its generation rises from snapshot to snapshot of one registry object */
} gpuhal_snapshot;

/* Reads what is there. `directory` is that of gpuhal_settings, NULL for none; a privileged process has none whatever is said. NULL
 * without memory. */
gpuhal_registry *gpuhal_registry_create(const char *directory, uint64_t lock_timeout_ns, gpuhal_log *log);
/* Snapshots stay valid. NULL does nothing. */
void gpuhal_registry_destroy(gpuhal_registry *registry);

/* The newest one; never NULL. Any thread, does not wait. The caller releases it. */
gpuhal_snapshot *gpuhal_registry_snapshot(gpuhal_registry *registry);
void gpuhal_snapshot_release(gpuhal_snapshot *snapshot);

/* Reads the file again if it is another one than the last time. An object that could not write tries again from here on. Returns true
 * when there is a new snapshot. */
bool gpuhal_registry_refresh(gpuhal_registry *registry);

/* Merges the changes in, unless they are known already: OK once the disk has them. GPUHAL_ERROR_FILE: they are in the next snapshot, and will be gone with this
 * object; the numbers that were given are its own. HOST_MEMORY: nothing changed. */
gpuhal_status gpuhal_registry_update(gpuhal_registry *registry, gpuhal_changes *changes);

/* "/home/a/.local/state/gpuhal", or NULL. */
const char *gpuhal_registry_directory(const gpuhal_registry *registry);

#endif
