/* memory/cached_import.h: imports of a buffer's host memory by another device, made for copies and kept with the
 * buffer.
 *
 * A cached import is like the result of gpuhal_buffer_share(), but without a reference: it ends with the buffer. Making
 * one costs the driver about as much as touching each page, so it pays from the second copy on, or for large ones. It
 * is made once for a device, and a refusal is kept too. */
#ifndef GPUHAL_MEMORY_CACHED_IMPORT_H
#define GPUHAL_MEMORY_CACHED_IMPORT_H

#include "memory/buffer.h"

/* Returns whether the device has the memory of the buffer, or is worth asking. */
bool gpuhal_cached_import_possible(const gpuhal_buffer *buffer, const gpuhal_device *device);
/* Returns memory of `device`, with the buffer at *out_begin; imports it the first time. NULL, without a detail, when
 * the device cannot. The device is open. */
const gpuhal_memory *gpuhal_cached_import_get(gpuhal_buffer *buffer, gpuhal_device *device, uint64_t *out_begin);
/* Releases all cached imports of a buffer without users. */
void gpuhal_cached_imports_release(gpuhal_buffer *buffer);

#endif
