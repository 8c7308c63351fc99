/* fence.h: memory for what a plugin reads and writes that ends where nothing else is.
 *
 * Behind a copy for reading lies a page that cannot be touched: a call that reads too far ends the child, and the
 * report names the call. Behind a structure for writing lie bytes that have to stay as they are, and then such a page:
 * a call that writes too far is named with the structure. */
#ifndef GPUHAL_CHECK_FENCE_H
#define GPUHAL_CHECK_FENCE_H

#include <stddef.h>
#include <stdint.h>

/* A copy whose last byte is the last of its page. */
void *gpuhal_fence_copy(const void *from, uint64_t bytes);
void gpuhal_fence_free(const void *copy, uint64_t bytes);

/* Zeroed room for a structure. */
void *gpuhal_guard_make(uint64_t bytes);
/* Fails the check if bytes behind the room have changed; frees it. @p call: "allocate"; @p what: "gpuhal_memory". */
void gpuhal_guard_end(void *room, uint64_t bytes, const char *call, const char *what);

#endif
