/* memory/range.c: buffers of reserved addresses, whose memory comes and goes piece by piece. Only pools have them, and
 * give parts of what has memory.
 *
 * Only memory counts against the device's limit. What cannot be given back stays counted until the buffer ends. */
#include "memory/buffer.h"

#include "core/error.h"

gpuhal_status gpuhal_range_create(gpuhal_device *device, uint64_t bytes, struct gpuhal_pool *pool,
                                  gpuhal_buffer **out_buffer)
{
    gpuhal_buffer *buffer = gpuhal_buffer_blank(device, bytes);
    if (!buffer) {
        return gpuhal_error_host_memory();
    }
    const gpuhal_status status = gpuhal_memory_reserve(device, bytes, &buffer->memory, &buffer->range);
    if (status) {
        gpuhal_buffer_free(buffer);
        return status;
    }
    buffer->pool = pool;
    gpuhal_buffer_enlist(buffer);
    *out_buffer = buffer;
    return GPUHAL_OK;
}

static gpuhal_status commit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_memory_charge(range->device, bytes, bytes);
    if (status) {
        return status;
    }
    status = gpuhal_memory_commit(range, offset, bytes);
    if (status) {
        gpuhal_memory_discharge(range->device, bytes);
    } else {
        atomic_fetch_add(&range->charged, bytes);
    }
    return status;
}

/* As for a buffer, memory of completed work is looked for before it is called short. */
gpuhal_status gpuhal_range_commit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes)
{
    gpuhal_device *device = range->device;
    const uint64_t held = atomic_load(&device->allocated_bytes);
    uint64_t pending = 0;
    gpuhal_status status = commit(range, offset, bytes);
    if (status != GPUHAL_ERROR_OUT_OF_MEMORY) {
        return status;
    }
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    device->gpu->layers.reclaim(device, bytes, &pending);
    status = atomic_load(&device->allocated_bytes) < held ? commit(range, offset, bytes)
                                                          : gpuhal_error_restore(&detail);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY && pending > 0) {
        gpuhal_error_add_pending(pending);
    }
    return status;
}

gpuhal_status gpuhal_range_decommit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes)
{
    const gpuhal_status status = gpuhal_memory_decommit(range, offset, bytes);
    if (!status) {
        atomic_fetch_sub(&range->charged, bytes);
        gpuhal_memory_discharge(range->device, bytes);
    }
    return status;
}
