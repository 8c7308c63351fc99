/* memory/range.c: buffers of reserved addresses. Memory is committed to the addresses and decommitted piece by piece.
 * Only pools use such buffers, and suballocate the committed memory.
 *
 * Only committed memory counts against the device's limit. Memory that cannot be decommitted stays charged until the
 * buffer is freed. */
#include "memory/buffer.h"

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

typedef struct commitment {
    gpuhal_buffer *range;
    uint64_t offset, bytes;
} commitment;

static gpuhal_status commit(void *user)
{
    const commitment *own = user;
    gpuhal_buffer *range = own->range;
    gpuhal_status status = gpuhal_memory_charge(range->device, own->bytes, own->bytes);
    if (status) {
        return status;
    }
    status = gpuhal_memory_commit(range, own->offset, own->bytes);
    if (status) {
        gpuhal_memory_discharge(range->device, own->bytes);
    } else {
        atomic_fetch_add(&range->charged, own->bytes);
        gpuhal_memory_count_in(range->device, own->bytes);
    }
    return status;
}

gpuhal_status gpuhal_range_commit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes)
{
    gpuhal_device *device = range->device;
    commitment own = {.range = range, .offset = offset, .bytes = bytes};
    const uint64_t held = atomic_load(&device->allocated_bytes);
    gpuhal_status status = commit(&own);
    if (status != GPUHAL_ERROR_OUT_OF_MEMORY) {
        return status;
    }
    gpuhal_relief relief = {.device = device,
                            .bytes = bytes,
                            .held_bytes = held,
                            .pool = range->pool,
                            .again = commit,
                            .user = &own};
    return device->gpu->layers.relieve(&relief);
}

gpuhal_status gpuhal_range_decommit(gpuhal_buffer *range, uint64_t offset, uint64_t bytes)
{
    const gpuhal_status status = gpuhal_memory_decommit(range, offset, bytes);
    if (!status) {
        atomic_fetch_sub(&range->charged, bytes);
        gpuhal_memory_discharge(range->device, bytes);
        atomic_fetch_add(&range->device->allocated_out, bytes);
    }
    return status;
}
