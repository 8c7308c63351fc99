/* pool/trace_file.c: traces of pools as JSON Lines. The file is written without a lock, in batches of records. */
#include "pool/pool.h"

#include "base/error.h"
#include "base/text.h"
#include "transfer/document.h"

#include <inttypes.h>

enum { RECORDS_AT_A_TIME = 64 };
static const gpuhal_document_kind kind = {.what = "a trace of pools", .header = "{\"schema\":\"gpuhal.pool-trace/"};

static const char *const operations[] = {
    [GPUHAL_TRACE_CREATE] = "create",   [GPUHAL_TRACE_DESTROY] = "destroy", [GPUHAL_TRACE_ALLOCATE] = "allocate",
    [GPUHAL_TRACE_RELEASE] = "release", [GPUHAL_TRACE_USE] = "use",         [GPUHAL_TRACE_GROW] = "grow",
    [GPUHAL_TRACE_TRIM] = "trim",       [GPUHAL_TRACE_LIMIT] = "limit",
};

static void print_number(gpuhal_text *text, const char *name, bool applies, uint64_t value)
{
    if (applies) {
        gpuhal_text_printf(text, "\"%s\":%" PRIu64 ",", name, value);
    } else {
        gpuhal_text_printf(text, "\"%s\":null,", name);
    }
}

/* Device ids and status names contain no characters that JSON escapes. */
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

/* Writes only the records that exist when the call begins, so the function terminates even if the pools stay busy. */
static gpuhal_status write_trace(void *user, const char *path)
{
    gpuhal_trace *trace = user;
    gpuhal_trace_record records[RECORDS_AT_A_TIME];
    gpuhal_document to;
    gpuhal_status status = gpuhal_document_create(&kind, path, &to);
    if (status) {
        return status;
    }
    gpuhal_text_printf(&to.text, "1\",\"library_version\":\"%s\"}\n", GPUHAL_VERSION);
    gpuhal_mutex_lock(&trace->mutex);
    uint64_t next = trace->begin;
    const uint64_t end = trace->count;
    gpuhal_mutex_unlock(&trace->mutex);
    for (size_t count = 1; count > 0 && !status;) {
        uint64_t lost = 0;
        count = gpuhal_trace_take(trace, &next, end, records, RECORDS_AT_A_TIME, &lost);
        if (lost > 0) {
            gpuhal_text_printf(&to.text, "{\"lost\":%" PRIu64 "}\n", lost);
        }
        for (size_t i = 0; i < count; i++) {
            print_record(&to.text, &records[i]);
        }
        status = gpuhal_document_write(&to);
    }
    return gpuhal_document_end(&to, status);
}

gpuhal_status gpuhal_trace_write_pools(gpuhal *gpu, const char *path)
{
    return write_trace(&gpu->layers.pools->trace, path);
}

/* Checks the file when the gpuhal object is opened, so that a wrong path is reported early. */
gpuhal_status gpuhal_trace_begin_at_open(gpuhal *gpu)
{
    const char *path = gpu->settings.pool_trace;
    const gpuhal_status status = path ? gpuhal_document_try("GPUHAL_POOL_TRACE", &kind, path) : GPUHAL_OK;
    return status || !path ? status : gpuhal_trace_begin(&gpu->layers.pools->trace);
}

/* If this gpuhal object's pools recorded nothing, writes no file, because another gpuhal object of the process may
 * write it. */
void gpuhal_trace_write_at_close(gpuhal *gpu)
{
    gpuhal_trace *trace = &gpu->layers.pools->trace;
    gpuhal_mutex_lock(&trace->mutex);
    const bool any = trace->count > trace->begin;
    gpuhal_mutex_unlock(&trace->mutex);
    if (any && gpu->settings.pool_trace) {
        gpuhal_document_write_at_close(gpu->log, write_trace, trace, gpu->settings.pool_trace);
    }
}
