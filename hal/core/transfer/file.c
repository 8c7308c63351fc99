/* transfer/file.c: checks a transfer between a file and a buffer before the first byte moves, and completes it after
 * the last byte; see file.h. */
#include "transfer/file.h"

#include "base/error.h"
#include "transfer/account.h"
#include "transfer/file_pieces.h"
#include "transfer/ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets the error detail for a refused descriptor or path, if possible with a more precise reason than the system's. */
static gpuhal_status open_failed(const gpuhal_file_job *job, bool by_path, int error)
{
    const char *why = strerror(error);
    if (error == ESPIPE) {
        why = "it has no offsets: FIFOs, sockets and terminals are not supported";
    } else if (error == EBADF && !by_path) {
        why = job->writes ? "it is not open for writing" : "it is not open for reading";
    } else if (error == EINVAL && !by_path) {
        why = "it is open for appending, or does not open again without O_DIRECT";
    }
    gpuhal_error_set(gpuhal_file_status(error), "%s cannot be %s: %s", job->name, job->writes ? "written" : "read",
                     why);
    gpuhal_error_add_call(by_path ? "open" : "fcntl", error, strerror(error));
    return gpuhal_file_status(error);
}

static gpuhal_status open_file(gpuhal_file_job *job, const gpuhal_file *file)
{
    char number[40];
    snprintf(number, sizeof number, "descriptor %" PRIdPTR, file->descriptor);
    job->name = strdup(file->path ? file->path : number);
    if (!job->name) {
        return gpuhal_error_host_memory();
    }
    int error = file->path ? gpuhal_os_file_open(file->path, job->writes, &job->file)
                           : gpuhal_os_file_adopt(file->descriptor, job->writes, &job->file);
    return error ? open_failed(job, file->path != NULL, error) : GPUHAL_OK;
}

void gpuhal_file_job_finish(gpuhal_file_job *job)
{
    if (job->file >= 0) {
        gpuhal_os_descriptor_close(job->file);
    }
    free(job->name);
}

static gpuhal_status check_arguments(const char *call, const gpuhal_buffer *buffer, const gpuhal_file *file,
                                     bool writes)
{
    if (!buffer || !file) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", call);
    }
    if (file->size < sizeof *file) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the size of gpuhal_file is %" PRIu32 ", not %zu",
                                call, file->size, sizeof *file);
    }
    uint32_t known = writes ? GPUHAL_FILE_TRUNCATE | GPUHAL_FILE_SYNC : 0;
    if (file->flags & ~known) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the flags 0x%" PRIx32 " are unknown here", call,
                                file->flags);
    }
    return GPUHAL_OK;
}

static gpuhal_status check_offsets(const char *call, uint64_t offset, uint64_t bytes)
{
    if (offset > INT64_MAX || (bytes != GPUHAL_WHOLE_SIZE && bytes > INT64_MAX - offset)) {
        return gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                                "%s: %" PRIu64 " bytes from offset %" PRIu64 " on are more than a file can have", call,
                                bytes, offset);
    }
    return GPUHAL_OK;
}

/* For GPUHAL_WHOLE_SIZE, the rest of the buffer is known now; the size of the file is read when the transfer
 * begins. */
static gpuhal_status check_range(const char *call, gpuhal_file_job *job)
{
    const gpuhal_buffer *buffer = job->buffer;
    bool whole = job->bytes == GPUHAL_WHOLE_SIZE;
    if (whole && job->writes && job->buffer_offset <= buffer->bytes) {
        job->bytes = buffer->bytes - job->buffer_offset;
        whole = false;
    }
    const uint64_t bytes = whole ? 0 : job->bytes;
    gpuhal_status status = job->writes ? gpuhal_range_check(buffer, job->buffer_offset, bytes)
                                       : gpuhal_range_check_written(buffer, job->buffer_offset, bytes);
    return status ? status : check_offsets(call, job->file_offset, job->bytes);
}

/* Refuses to read a whole device file, because its size is unknown. The error is reported immediately even with a
 * queue, because the caller made a mistake. */
static gpuhal_status check_whole(const gpuhal_file_job *job)
{
    uint64_t size = 0;
    bool whole = !job->writes && job->bytes == GPUHAL_WHOLE_SIZE;
    if (whole && gpuhal_os_file_size(job->file, &size) == 0 && size == UINT64_MAX) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "%s is a device, whose size is unknown: pass the number of bytes", job->name);
    }
    return GPUHAL_OK;
}

/* A device file does not report its size, so a transfer notices the end only on reaching it. */
static gpuhal_status look_at_size(const gpuhal_file_job *job, uint64_t *out_bytes)
{
    uint64_t size = 0;
    int error = gpuhal_os_file_size(job->file, &size);
    if (error) {
        return gpuhal_file_failed(job->name, "reading the size of", job->file_offset, "fstat", error);
    }
    bool whole = job->bytes == GPUHAL_WHOLE_SIZE;
    if (job->file_offset > size || (!whole && job->bytes > size - job->file_offset)) {
        return gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                                "%s has %" PRIu64 " bytes: too few for %" PRIu64 " from offset %" PRIu64 " on",
                                job->name, size, whole ? 0 : job->bytes, job->file_offset);
    }
    *out_bytes = whole ? size - job->file_offset : job->bytes;
    const uint64_t offset = job->buffer_offset - job->begin;
    return *out_bytes > job->size - offset ? gpuhal_range_outside(job->buffer->device, job->size, offset, *out_bytes)
                                           : gpuhal_device_check(job->buffer->device);
}

static gpuhal_status finish_file(const gpuhal_file_job *job, uint64_t bytes)
{
    uint64_t end = job->file_offset + bytes, size = 0;
    int error = job->flags & GPUHAL_FILE_TRUNCATE ? gpuhal_os_file_size(job->file, &size) : 0;
    if (!error && (job->flags & GPUHAL_FILE_TRUNCATE) && size != UINT64_MAX) {
        error = gpuhal_os_file_truncate(job->file, end);
    }
    if (error) {
        return gpuhal_file_failed(job->name, "truncating", end, "ftruncate", error);
    }
    error = job->flags & GPUHAL_FILE_SYNC ? gpuhal_os_file_sync(job->file) : 0;
    return error ? gpuhal_file_failed(job->name, "syncing", job->file_offset, "fdatasync", error) : GPUHAL_OK;
}

/* The file is truncated and synced only after all bytes have been moved, so a transfer that fails before then removes
 * no bytes from it. */
static gpuhal_status transfer(gpuhal_file_job *job)
{
    gpuhal_buffer *buffer = job->buffer;
    uint64_t bytes = job->bytes;
    gpuhal_status status = gpuhal_device_check(buffer->device);
    if (!status && !job->writes) {
        status = look_at_size(job, &bytes);
    }
    uint64_t begin_ns = gpuhal_count_from(bytes);
    job->bytes = status ? job->bytes : bytes;
    if (!status && bytes > 0 && !(status = gpuhal_buffer_enter(buffer, !job->writes))) {
        status = gpuhal_file_move(job, bytes);
        if (!status && !job->writes) {
            status = gpuhal_buffer_written(buffer, job->buffer_offset, bytes);
        }
        gpuhal_buffer_leave(buffer, !job->writes);
        if (!status) {
            gpuhal_count(job->writes ? &buffer->device->read : &buffer->device->written, bytes, begin_ns);
        }
    }
    if (!status && job->writes) {
        status = finish_file(job, bytes);
    }
    if (!status && job->progress) {
        (void)job->progress(job->user, bytes, bytes);
    }
    return status;
}

gpuhal_status gpuhal_file_transfer(gpuhal_file_job *job)
{
    int cancel = gpuhal_os_cancel_defer();
    gpuhal_status status = transfer(job);
    gpuhal_os_cancel_restore(cancel);
    return status;
}

void gpuhal_file_job_set_buffer(gpuhal_file_job *job, gpuhal_buffer *buffer, uint64_t offset)
{
    job->size = buffer->bytes;
    job->begin = buffer->begin;
    job->buffer_offset = buffer->begin + offset;
    job->buffer = buffer->whole;
}

gpuhal_status gpuhal_file_begin(const char *call, gpuhal_file_job *job, const gpuhal_file *file)
{
    job->file = -1;
    gpuhal_status status = check_arguments(call, job->buffer, file, job->writes);
    if (status) {
        return status;
    }
    job->flags = file->flags;
    job->file_offset = file->offset;
    job->progress = file->progress;
    job->user = file->user;
    status = gpuhal_check(job->buffer->device->gpu);
    status = status ? status : check_range(call, job);
    status = status ? status : open_file(job, file);
    if (!status) {
        gpuhal_file_job_set_buffer(job, job->buffer, job->buffer_offset);
    }
    return status ? status : check_whole(job);
}
