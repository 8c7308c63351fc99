/* fence.h: memory for a plugin's reads and writes that ends at a guard.
 *
 * A copy for reading is followed by an inaccessible page. A call that reads too far crashes the child, and the report
 * names the call. A structure for writing is followed by guard bytes and an inaccessible page. If a call writes too
 * far, the failure names the structure. */
#ifndef GPUHAL_CHECK_FENCE_H
#define GPUHAL_CHECK_FENCE_H

#include <stddef.h>
#include <stdint.h>

/* Makes a copy whose last byte is the last byte of its page. */
void *gpuhal_fence_copy(const void *from, uint64_t bytes);
void gpuhal_fence_free(const void *copy, uint64_t bytes);

/* Allocates a zeroed structure. */
void *gpuhal_guard_make(uint64_t bytes);
/* Frees the structure; fails the check if bytes after it have changed. @p call is the called slot ("allocate"), @p what
 * the structure's type ("gpuhal_memory"). */
void gpuhal_guard_end(void *room, uint64_t bytes, const char *call, const char *what);

#endif
