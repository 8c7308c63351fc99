/* memory/cached_import.h: imports of a buffer's host memory by other devices, made for copies and kept with the buffer.
 *
 * A cached import resembles the result of gpuhal_buffer_share(), but it holds no reference to the buffer and is
 * released with the buffer. An import costs the driver about as much as touching every page. So it pays off for large
 * copies, and for small copies from the second copy on. Each device is tried only once, because a failure is cached
 * too. */
#ifndef GPUHAL_MEMORY_CACHED_IMPORT_H
#define GPUHAL_MEMORY_CACHED_IMPORT_H

#include "memory/buffer.h"

/* Returns whether the device has imported the buffer's memory, or an import is worth trying. */
bool gpuhal_cached_import_possible(const gpuhal_buffer *buffer, const gpuhal_device *device);
/* Returns the device's import of the buffer's memory; the buffer begins at *out_begin of the import. The first call for
 * a device imports the memory. Returns NULL without an error detail if the device cannot import it. The device must be
 * open. */
const gpuhal_memory *gpuhal_cached_import_get(gpuhal_buffer *buffer, gpuhal_device *device, uint64_t *out_begin);
/* Releases all cached imports of a buffer that has no users. */
void gpuhal_cached_imports_release(gpuhal_buffer *buffer);

#endif
