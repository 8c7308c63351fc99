/* memory/map.c: temporarily maps a part of a buffer for the host. A mapping uses the memory's permanent host address if
 * there is one, otherwise the plugin's map. In both cases transfers with a mapped buffer are refused, so that a program
 * that works on one device works on all. */
#include "memory/buffer.h"

#include "base/error.h"

#include <inttypes.h>

static gpuhal_status clean(gpuhal_buffer *buffer, int32_t invalidate)
{
    return buffer->needs_clean ? gpuhal_buffer_clean(buffer, buffer->mapped_offset, buffer->mapped_bytes, invalidate)
                               : GPUHAL_OK;
}

/* Called while `use` is CHANGING, so no transfer or other mapping can interfere. */
static gpuhal_status map_now(gpuhal_buffer *buffer)
{
    gpuhal_device *device = buffer->device;
    if (buffer->memory.host) {
        buffer->mapped = (char *)buffer->memory.host + buffer->mapped_offset;
        /* Excludes read-only memory, because the device has not written to it, and an API that copies bytes back would
         * crash the process. */
        return buffer->mapped_access & GPUHAL_ACCESS_READ && !buffer->read_only ? clean(buffer, 1) : GPUHAL_OK;
    }
    const gpuhal_call call = gpuhal_call_blocking(device, buffer->mapped_bytes);
    gpuhal_status status =
        gpuhal_device_result(device, call,
                             device->ops.map(device->handle, &buffer->memory, buffer->mapped_offset,
                                             buffer->mapped_bytes, buffer->mapped_access, &buffer->mapped));
    return status ? gpuhal_device_failed(device, status, "mapping %" PRIu64 " bytes", buffer->mapped_bytes) : GPUHAL_OK;
}

/* With DISCARD the application must not read the mapping, so DISCARD is valid only with WRITE alone. */
static gpuhal_status check_map(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t access)
{
    const uint32_t known = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE | GPUHAL_ACCESS_DISCARD;
    bool reads_or_writes = access & (GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
    bool discards_what_it_reads = (access & GPUHAL_ACCESS_DISCARD) && (access & GPUHAL_ACCESS_READ);
    if (bytes == 0 || (access & ~known) || !reads_or_writes || discards_what_it_reads) {
        return gpuhal_error_set(
            GPUHAL_ERROR_INVALID_ARGUMENT,
            "gpuhal_buffer_map: 0 bytes, or access is not READ, WRITE, both, or WRITE with DISCARD");
    }
    if (offset > buffer->bytes || bytes > buffer->bytes - offset) {
        return gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                                "%s: mapping %" PRIu64 " bytes from %" PRIu64 " on is outside the buffer of %" PRIu64
                                " bytes",
                                buffer->device->id, bytes, offset, buffer->bytes);
    }
    if (buffer->read_only && (access & GPUHAL_ACCESS_WRITE)) {
        return gpuhal_buffer_refuse_write(buffer);
    }
    gpuhal_status status = gpuhal_device_check(buffer->device);
    status = status ? status : gpuhal_buffer_check_separate(buffer, "mapping it");
    if (!status && !buffer->memory.host && !buffer->device->ops.map) {
        status = gpuhal_device_failed(buffer->device, GPUHAL_ERROR_NOT_SUPPORTED, "mapping");
    }
    return status;
}

gpuhal_status gpuhal_buffer_map(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t access,
                                void **out_pointer)
{
    if (out_pointer) {
        *out_pointer = NULL;
    }
    if (!buffer || !out_pointer) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_map: buffer or out_pointer is NULL");
    }
    gpuhal_status status = check_map(buffer, offset, bytes, access);
    if (status) {
        return status;
    }
    buffer = buffer->whole; /* transfers check the whole buffer */
    int32_t idle = 0;
    if (!atomic_compare_exchange_strong(&buffer->use, &idle, GPUHAL_BUFFER_CHANGING)) {
        return idle < 0 ? gpuhal_buffer_busy(buffer)
                        : gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s: a transfer with the buffer is running",
                                           buffer->device->id);
    }
    buffer->mapped_offset = offset;
    buffer->mapped_bytes = bytes;
    buffer->mapped_access = access;
    status = map_now(buffer);
    if (status) {
        buffer->mapped = NULL;
        atomic_store(&buffer->use, 0);
        return status;
    }
    *out_pointer = buffer->mapped;
    /* Stored last, because a thread that unmaps reads the members above after it has read this value. */
    atomic_store(&buffer->use, GPUHAL_BUFFER_MAPPED);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_buffer_unmap(gpuhal_buffer *buffer, void *pointer)
{
    gpuhal_status status = buffer ? gpuhal_check(buffer->device->gpu) : GPUHAL_OK;
    if (status) {
        return status;
    }
    int32_t mapped = GPUHAL_BUFFER_MAPPED;
    buffer = buffer ? buffer->whole : NULL;
    bool claimed = buffer && pointer && atomic_compare_exchange_strong(&buffer->use, &mapped, GPUHAL_BUFFER_CHANGING);
    if (!claimed || buffer->mapped != pointer) {
        if (claimed) {
            atomic_store(&buffer->use, GPUHAL_BUFFER_MAPPED);
        }
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_unmap: the pointer is not a mapping of the buffer");
    }
    gpuhal_device *device = buffer->device;
    status = gpuhal_device_check(device);
    if (status) {
        /* The plugin must not be called any more, but the mapping ends nevertheless. */
    } else if (buffer->memory.host) {
        status = buffer->mapped_access & GPUHAL_ACCESS_WRITE ? clean(buffer, 0) : GPUHAL_OK;
    } else {
        const gpuhal_call call = gpuhal_call_blocking(device, buffer->mapped_bytes);
        status = gpuhal_device_result(device, call, device->ops.unmap(device->handle, &buffer->memory, pointer));
        status = status ? gpuhal_device_failed(device, status, "unmapping") : GPUHAL_OK;
    }
    buffer->mapped = NULL;
    atomic_store(&buffer->use, 0);
    return status;
}
