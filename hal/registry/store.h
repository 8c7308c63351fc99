/* registry/store.h: the registry's files, in a directory of their own:
 *
 *     registry             the text of form.h; replaced as a whole, so that who reads it sees one state or the next
 *     registry.lock        locked by the one process that writes
 *     registry.new-…       what is being written; what a writer left that was killed goes with the next one
 *     registry.damaged-1   set aside, the newest; up to 3
 */
#ifndef GPUHAL_REGISTRY_STORE_H
#define GPUHAL_REGISTRY_STORE_H

#include "os/os.h"
#include "registry/serial.h"

#define GPUHAL_STORE_DAMAGED_MAX 3u

typedef struct gpuhal_store_reading {
    int error;                 /* errno of what stands in the way of reading; 0: read, or absent */
    bool absent;               /* there is no file; the content is empty */
    gpuhal_serial_report report; /* of what was read */
    bool damaged;
    gpuhal_file_state state;   /* of the file */
} gpuhal_store_reading;

/* Whose directory it is decides: somebody else's is only read. Where it is missing, the nearest directory above it decides: none is made
 * below one of another user, other than root. */
bool gpuhal_store_is_foreign(const char *directory);
/* Never waits, never locks. ENOMEM in out_reading->error is the library's own want. The content is to be finished in any case. */
void gpuhal_store_read(const char *directory, gpuhal_database *out_content, gpuhal_store_reading *out_reading);
/* Makes the directory where it is missing, and takes the lock. Returns 0 or errno, ETIMEDOUT when somebody else keeps the lock. */
int gpuhal_store_lock(const char *directory, uint64_t timeout_ns, intptr_t *out_lock);
/* With the lock: puts the text in the place of the file, which is set aside where `damaged`. Returns 0 once the disk has it, or errno. */
int gpuhal_store_replace(const char *directory, const char *text, size_t bytes, bool damaged);

#endif
