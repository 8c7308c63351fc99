/* registry/store.h: the registry's files, in their own directory:
 *
 *     registry             the text of serial.h; replaced as a whole, so readers never see a partial update
 *     registry.lock        locked by the process that writes
 *     registry.new-…       a file being written; if its writer is killed, the next writer removes it
 *     registry.damaged-1   the newest damaged file; up to 3 are kept
 */
#ifndef GPUHAL_REGISTRY_STORE_H
#define GPUHAL_REGISTRY_STORE_H

#include "os/os.h"
#include "registry/serial.h"

#define GPUHAL_STORE_DAMAGED_MAX 3u

typedef struct gpuhal_store_reading {
    int error;                 /* errno if reading failed; 0 if the file was read or is absent */
    bool absent;               /* the file does not exist; the database is empty */
    gpuhal_serial_report report; /* describes the text that was read */
    bool damaged;
    gpuhal_file_state state;
} gpuhal_store_reading;

/* Returns whether the directory belongs to another user; such a registry is only read. If the directory does not exist,
 * its nearest existing ancestor is checked, because no directory is created inside another user's directory, except
 * root's. */
bool gpuhal_store_is_foreign(const char *directory);
/* Reads the registry. Never waits or locks. out_reading->error is ENOMEM if the library itself runs out of memory. The
 * database must be finished even on failure. */
void gpuhal_store_read_database(const char *directory, gpuhal_database *out_content, gpuhal_store_reading *out_reading);
/* Creates the directory if it is missing, and acquires the lock. Returns 0 or errno; ETIMEDOUT if another process keeps
 * the lock. */
int gpuhal_store_lock(const char *directory, uint64_t timeout_ns, intptr_t *out_lock);
/* The caller must have the lock. If `damaged` is set, keeps the old file under another name. Returns 0 once the text is
 * on disk, or errno. */
int gpuhal_store_replace(const char *directory, const char *text, size_t bytes, bool damaged);

#endif
