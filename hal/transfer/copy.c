/* transfer/copy.c: the linear transfers of the application API: check, find the path, move.
 *
 * The way to the plugin's own function is short on purpose: no lock, no clock, no allocation. */
#include "core/error.h"
#include "memory/buffer.h"
#include "transfer/bytes.h"
#include "transfer/ranges.h"
#include "transfer/staged.h"

#include <gpuhal/transfer.h>

#include <inttypes.h>

gpuhal_status gpuhal_range_error(const gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE, "%s: %" PRIu64 " bytes from offset %" PRIu64 " on leave the buffer of %" PRIu64 " bytes",
                     buffer->device->id, bytes, offset, buffer->bytes);
    gpuhal_error_add_device(buffer->device->candidate->name, buffer->device->id);
    return GPUHAL_ERROR_OUT_OF_RANGE;
}

gpuhal_status gpuhal_queue_error(void)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "the queue is not NULL: this version offers no queues");
}

static gpuhal_status null_error(const char *call)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", call);
}

gpuhal_status gpuhal_write(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, const void *from, uint64_t bytes)
{
    if (!to || (!from && bytes > 0)) {
        return null_error("gpuhal_write");
    }
    gpuhal_status status = gpuhal_range_check(queue, to, to_offset, bytes);
    if (status || bytes == 0) {
        return status;
    }
    status = gpuhal_buffer_enter(to);
    if (!status) {
        status = gpuhal_bytes_write(to->device, &to->memory, to_offset, from, bytes);
        gpuhal_buffer_leave(to);
    }
    return status;
}

gpuhal_status gpuhal_read(gpuhal_queue *queue, void *to, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    if (!from || (!to && bytes > 0)) {
        return null_error("gpuhal_read");
    }
    gpuhal_status status = gpuhal_range_check(queue, from, from_offset, bytes);
    if (status || bytes == 0) {
        return status;
    }
    status = gpuhal_buffer_enter(from);
    if (!status) {
        status = gpuhal_bytes_read(from->device, to, &from->memory, from_offset, bytes);
        gpuhal_buffer_leave(from);
    }
    return status;
}

/* The one place that decides; gpuhal_copy_path() asks it too. */
static gpuhal_path path_between(const gpuhal_buffer *to, const gpuhal_buffer *from)
{
    if (to->device == from->device) {
        return GPUHAL_PATH_NATIVE;
    }
    return gpuhal_host_writes(&to->memory) || gpuhal_host_reads(&from->memory) ? GPUHAL_PATH_HOST : GPUHAL_PATH_STAGED;
}

/* One hop: the source is read by the destination's device where the host can read it fast, else the destination is written by the
 * source's device. */
static gpuhal_status copy_through_host(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    if (gpuhal_host_reads(&from->memory)) {
        return gpuhal_bytes_write(to->device, &to->memory, to_offset, (const char *)from->memory.host + from_offset, bytes);
    }
    return gpuhal_bytes_read(from->device, (char *)to->memory.host + to_offset, &from->memory, from_offset, bytes);
}

static gpuhal_status copy_between_devices(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_device_check(from->device);
    if (status) {
        return status;
    }
    return path_between(to, from) == GPUHAL_PATH_HOST
               ? copy_through_host(to, to_offset, from, from_offset, bytes)
               : gpuhal_staged_copy(to->device, &to->memory, to_offset, from->device, &from->memory, from_offset, bytes);
}

/* Overlap is refused for all, because some drivers refuse it (OpenCL answers CL_MEM_COPY_OVERLAP, Vulkan forbids it). */
static gpuhal_status check_pair(const gpuhal_buffer *to, uint64_t to_offset, const gpuhal_buffer *from, uint64_t from_offset,
                                uint64_t bytes)
{
    if (to->device->gpu != from->device->gpu) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_copy: the buffers belong to two gpuhal objects");
    }
    uint64_t distance = to_offset > from_offset ? to_offset - from_offset : from_offset - to_offset;
    if (to == from && distance < bytes) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_copy: source and destination overlap in one buffer");
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_copy(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset,
                          uint64_t bytes)
{
    if (!to || !from) {
        return null_error("gpuhal_copy");
    }
    gpuhal_status status = gpuhal_range_check(queue, to, to_offset, bytes);
    if (status) {
        return status;
    }
    if (from_offset > from->bytes || bytes > from->bytes - from_offset) {
        return gpuhal_range_error(from, from_offset, bytes);
    }
    status = check_pair(to, to_offset, from, from_offset, bytes);
    if (status || bytes == 0 || (status = gpuhal_buffer_enter(to))) {
        return status;
    }
    status = gpuhal_buffer_enter(from);
    if (!status) {
        status = to->device == from->device
                     ? gpuhal_bytes_copy(to->device, &to->memory, to_offset, &from->memory, from_offset, bytes)
                     : copy_between_devices(to, to_offset, from, from_offset, bytes);
        gpuhal_buffer_leave(from);
    }
    gpuhal_buffer_leave(to);
    return status;
}

gpuhal_status gpuhal_copy_path(const gpuhal_buffer *to, const gpuhal_buffer *from, gpuhal_path *out_path)
{
    if (!to || !from || !out_path) {
        return null_error("gpuhal_copy_path");
    }
    *out_path = path_between(to, from);
    return GPUHAL_OK;
}
