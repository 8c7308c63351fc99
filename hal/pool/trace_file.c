/* pool/trace_file.c: traces of pools as JSON Lines; and the calls of the application. The file is written without a
 * lock, some records at a time. */
#include "pool/pool.h"

#include "core/error.h"
#include "core/text.h"
#include "transfer/file_pieces.h"

#include <gpuhal/pool_trace.h>

#include <inttypes.h>
#include <string.h>

enum { RECORDS_AT_A_TIME = 64 };

typedef struct trace_file {
    const char *path;
    intptr_t file;
    uint64_t bytes; /* written so far */
} trace_file;

static gpuhal_status failed(const trace_file *to, const char *call, int error)
{
    gpuhal_error_set(gpuhal_file_status(error), "a trace of pools cannot be written to %s: %s", to->path,
                     strerror(error));
    gpuhal_error_add_call(call, error, strerror(error));
    return gpuhal_file_status(error);
}

/* Empties the text. */
static gpuhal_status append(trace_file *to, gpuhal_text *text)
{
    uint64_t done = 0;
    if (text->failed) {
        return gpuhal_error_host_memory();
    }
    int error = gpuhal_os_file_write_piece(to->file, to->bytes, text->data, text->length, &done);
    to->bytes += done;
    text->length = 0;
    return error ? failed(to, "pwrite", error) : GPUHAL_OK;
}

static const char *const operations[] = {
    [GPUHAL_TRACE_CREATE] = "create",   [GPUHAL_TRACE_DESTROY] = "destroy", [GPUHAL_TRACE_ALLOCATE] = "allocate",
    [GPUHAL_TRACE_RELEASE] = "release", [GPUHAL_TRACE_USE] = "use",         [GPUHAL_TRACE_GROW] = "grow",
    [GPUHAL_TRACE_TRIM] = "trim",       [GPUHAL_TRACE_LIMIT] = "limit",
};

/* A member with a number, or null. */
static void print_number(gpuhal_text *text, const char *name, bool applies, uint64_t value)
{
    if (applies) {
        gpuhal_text_printf(text, "\"%s\":%" PRIu64 ",", name, value);
    } else {
        gpuhal_text_printf(text, "\"%s\":null,", name);
    }
}

/* A device's id has no character that JSON escapes, and neither has a status's name. */
static void print_record(gpuhal_text *text, const gpuhal_trace_record *record)
{
    const bool placed = record->buffer != 0;
    const bool of_segment = record->status == GPUHAL_OK &&
                            (record->operation == GPUHAL_TRACE_GROW || record->operation == GPUHAL_TRACE_TRIM);
    const bool sized = record->operation != GPUHAL_TRACE_CREATE && record->operation != GPUHAL_TRACE_DESTROY;
    gpuhal_text_printf(text,
                       "{\"time_ns\":%" PRIu64 ",\"operation\":\"%s\",\"result\":\"%s\",\"device\":\"%s\","
                       "\"pool\":%" PRIu32 ",",
                       record->time_ns, operations[record->operation], gpuhal_status_name(record->status),
                       record->device->id, record->pool);
    print_number(text, "buffer", placed, record->buffer);
    print_number(text, "queue", record->queue != NULL, (uintptr_t)record->queue);
    print_number(text, "bytes", sized, record->bytes);
    print_number(text, "segment", placed || of_segment, record->segment);
    print_number(text, "offset", placed, record->offset);
    gpuhal_text_printf(text,
                       "\"used\":%" PRIu64 ",\"reserved\":%" PRIu64 ",\"free\":%" PRIu64 ",\"thread\":%" PRIu32 "}\n",
                       record->used, record->reserved, record->free_bytes, record->thread);
}

/* What is recorded meanwhile is not waited for, so this ends however busy the pools are. */
static gpuhal_status write_records(gpuhal_trace *trace, trace_file *to, gpuhal_text *text)
{
    gpuhal_trace_record records[RECORDS_AT_A_TIME];
    gpuhal_mutex_lock(&trace->mutex);
    uint64_t next = trace->begin;
    const uint64_t end = trace->count;
    gpuhal_mutex_unlock(&trace->mutex);
    gpuhal_status status = append(to, text);
    for (size_t count = 1; count > 0 && !status;) {
        uint64_t lost = 0;
        count = gpuhal_trace_take(trace, &next, end, records, RECORDS_AT_A_TIME, &lost);
        if (lost > 0) {
            gpuhal_text_printf(text, "{\"lost\":%" PRIu64 "}\n", lost);
        }
        for (size_t i = 0; i < count; i++) {
            print_record(text, &records[i]);
        }
        status = append(to, text);
    }
    return status;
}

/* The file may have been longer. A device has no end to cut. */
static gpuhal_status cut(const trace_file *to)
{
    uint64_t size = 0;
    int error = gpuhal_os_file_size(to->file, &size);
    if (!error && size != UINT64_MAX && size > to->bytes) {
        error = gpuhal_os_file_truncate(to->file, to->bytes);
    }
    return error ? failed(to, "ftruncate", error) : GPUHAL_OK;
}

static gpuhal_status write_trace(gpuhal_trace *trace, const char *path)
{
    trace_file to = {.path = path};
    int error = gpuhal_os_file_open(path, true, &to.file);
    if (error) {
        return failed(&to, "open", error);
    }
    gpuhal_text text = {0};
    gpuhal_text_printf(&text, "{\"schema\":\"gpuhal.pool-trace/1\",\"library_version\":\"%s\"}\n", GPUHAL_VERSION);
    gpuhal_status status = write_records(trace, &to, &text);
    status = status ? status : cut(&to);
    gpuhal_text_finish(&text);
    gpuhal_os_descriptor_close(to.file);
    return status;
}

static gpuhal_status check(const char *call, const gpuhal *gpu, bool complete)
{
    return gpu && complete ? gpuhal_check(gpu)
                           : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", call);
}

gpuhal_status gpuhal_pool_trace_start(gpuhal *gpu)
{
    gpuhal_status status = check("gpuhal_pool_trace_start", gpu, true);
    return status ? status : gpuhal_trace_begin(&gpu->layers.pools->trace);
}

gpuhal_status gpuhal_pool_trace_stop(gpuhal *gpu)
{
    gpuhal_status status = check("gpuhal_pool_trace_stop", gpu, true);
    if (!status) {
        atomic_store(&gpu->layers.pools->trace.on, false);
    }
    return status;
}

gpuhal_status gpuhal_pool_trace_write(gpuhal *gpu, const char *path)
{
    gpuhal_status status = check("gpuhal_pool_trace_write", gpu, path != NULL);
    return status ? status : write_trace(&gpu->layers.pools->trace, path);
}

/* The file is made now, so that a mistake in its name shows. What it has stays until there is a trace. */
gpuhal_status gpuhal_trace_begin_at_open(gpuhal *gpu)
{
    const char *path = gpu->settings.pool_trace;
    intptr_t file = -1;
    int error = path ? gpuhal_os_file_open(path, true, &file) : 0;
    if (error) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "GPUHAL_POOL_TRACE is \"%s\": %s", path,
                                strerror(error));
    }
    if (path) {
        gpuhal_os_descriptor_close(file);
    }
    return path ? gpuhal_trace_begin(&gpu->layers.pools->trace) : GPUHAL_OK;
}

/* An object without pools leaves the file to the others of its process. */
void gpuhal_trace_write_at_close(gpuhal *gpu)
{
    gpuhal_trace *trace = &gpu->layers.pools->trace;
    gpuhal_mutex_lock(&trace->mutex);
    const bool any = trace->count > trace->begin;
    gpuhal_mutex_unlock(&trace->mutex);
    if (!any || !gpu->settings.pool_trace) {
        return;
    }
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    if (write_trace(trace, gpu->settings.pool_trace)) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "%s", gpuhal_last_error()->sentence);
    }
    gpuhal_error_restore(&before);
}
