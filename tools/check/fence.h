/* fence.h: memory for a plugin's reads and writes that ends at a guard.
 *
 * A page that cannot be touched follows a copy for reading: a call that reads too far ends the child, and the report
 * names the call. Bytes that have to stay as they are follow a structure for writing, and then such a page: the failure
 * of a call that writes too far names the structure. */
#ifndef GPUHAL_CHECK_FENCE_H
#define GPUHAL_CHECK_FENCE_H

#include <stddef.h>
#include <stdint.h>

/* A copy whose last byte is the last of its page. */
void *gpuhal_fence_copy(const void *from, uint64_t bytes);
void gpuhal_fence_free(const void *copy, uint64_t bytes);

/* Zeroed room for a structure. */
void *gpuhal_guard_make(uint64_t bytes);
/* Fails the check if bytes after the room have changed; frees it. @p call: "allocate"; @p what: "gpuhal_memory". */
void gpuhal_guard_end(void *room, uint64_t bytes, const char *call, const char *what);

#endif
