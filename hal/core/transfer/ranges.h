/* transfer/ranges.h: the checks that every transfer makes before it moves anything. */
#ifndef GPUHAL_TRANSFER_RANGES_H
#define GPUHAL_TRANSFER_RANGES_H

#include "memory/buffer.h"

#include <gpuhal/transfer.h>

/* Set the error detail and return OUT_OF_RANGE. */
gpuhal_status gpuhal_range_error(const gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes);
gpuhal_status gpuhal_range_outside(const gpuhal_device *device, uint64_t size, uint64_t offset, uint64_t bytes);

/* Checks that the range is inside the buffer and that the buffer's device is usable. */
static inline gpuhal_status gpuhal_range_check(const gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    if (__builtin_expect(offset > buffer->bytes || bytes > buffer->bytes - offset, 0)) {
        return gpuhal_range_error(buffer, offset, bytes);
    }
    return gpuhal_device_check(buffer->device);
}

/* Like gpuhal_range_check(), for a destination. Also refuses read-only memory. */
static inline gpuhal_status gpuhal_range_check_written(const gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return __builtin_expect(buffer->read_only, 0) ? gpuhal_buffer_refuse_write(buffer)
                                                  : gpuhal_range_check(buffer, offset, bytes);
}

/* Return whether other devices may write or read this memory at its host address. The memory must be coherent. For
 * reading, the memory must also be cached, because uncached reads of device memory over a bus are slower than any
 * copy. */
static inline bool gpuhal_host_writes(const gpuhal_memory *memory)
{
    return memory->host && (memory->flags & GPUHAL_MEMORY_HOST_COHERENT);
}

static inline bool gpuhal_host_reads(const gpuhal_memory *memory)
{
    return gpuhal_host_writes(memory) && (memory->flags & GPUHAL_MEMORY_HOST_CACHED);
}

#endif
