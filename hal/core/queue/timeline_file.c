/* queue/timeline_file.c: writes traces of queues as JSON. A few records at a time are formatted under the ring's mutex,
 * and the text is written to the file without a lock. An arrow is written only if the ring contains both of its
 * pieces. */
#include "queue/timeline.h"

#include "base/error.h"
#include "base/text.h"
#include "queue/completion_service.h"
#include "queue/queue.h"
#include "transfer/document.h"

#include <gpuhal/trace.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS_AT_A_TIME = 64 };
static const gpuhal_document_kind kind = {.what = "a trace of queues", .header = "{\"schema\":\"gpuhal.trace/"};

/* ---- the text */

/* Returns the length of the character in bytes, or 0 if it is not valid UTF-8. */
static size_t character(const unsigned char *at)
{
    const size_t length = *at < 0x80                  ? 1
                          : *at >= 0xc2 && *at < 0xe0 ? 2
                          : (*at & 0xf0) == 0xe0      ? 3
                          : *at >= 0xf0 && *at < 0xf5 ? 4
                                                      : 0;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    const bool outside = (*at == 0xed && at[1] > 0x9f) || (*at == 0xf4 && at[1] > 0x8f);
    return length > 1 && (overlong || outside) ? 0 : length;
}

static void print_text(gpuhal_text *text, const char *value)
{
    gpuhal_text_append(text, "\"", 1);
    for (const unsigned char *at = (const unsigned char *)value; *at;) {
        const size_t length = character(at);
        if (length == 0) {
            gpuhal_text_append(text, "\\ufffd", 6);
        } else if (*at < ' ' || *at == '"' || *at == '\\' || *at == 0x7f) {
            gpuhal_text_printf(text, "\\u%04x", *at);
        } else {
            gpuhal_text_append(text, (const char *)at, length);
        }
        at += length ? length : 1;
    }
    gpuhal_text_append(text, "\"", 1);
}

static const char *const forms[] = {
    [GPUHAL_OP_WRITE] = "write", [GPUHAL_OP_READ] = "read",     [GPUHAL_OP_COPY] = "copy",
    [GPUHAL_OP_FILL] = "fill",   [GPUHAL_OP_RECT] = "rect",     [GPUHAL_OP_JOB] = "file",
    [GPUHAL_OP_CALL] = "call",   [GPUHAL_OP_LAUNCH] = "launch", [GPUHAL_OP_EVENT] = "event",
    [GPUHAL_OP_RECORDING] = "recording",
};
static const char *const usages[] = {
    [GPUHAL_USAGE_WRITTEN] = "written", [GPUHAL_USAGE_READ] = "read", [GPUHAL_USAGE_FILLED] = "filled",
    [GPUHAL_USAGE_COPIED] = "copied",   [GPUHAL_USAGE_PAIR] = "pair",
};
static const char *const clocks[] = {
    [GPUHAL_CLOCK_NONE] = "none", [GPUHAL_CLOCK_HOST] = "host", [GPUHAL_CLOCK_DEVICE] = "device"};

static void print_time(gpuhal_text *text, const char *name, uint64_t ns)
{
    gpuhal_text_printf(text, "\"%s\":%" PRIu64 ".%03u", name, ns / 1000, (unsigned)(ns % 1000));
}

static void print_head(gpuhal_text *text, const char *phase, uint32_t queue)
{
    gpuhal_text_printf(text, ",\n{\"ph\":\"%s\",\"pid\":%" PRId64 ",\"tid\":%" PRIu32 ",", phase,
                       gpuhal_os_process_own(), queue);
}

static void print_arguments(gpuhal_text *text, const gpuhal_traced_record *record)
{
    gpuhal_text_printf(text, "\"args\":{\"number\":%" PRIu64 ",", record->number);
    print_time(text, "enqueued", record->enqueued_ns);
    gpuhal_text_printf(text, ",\"clock\":\"%s\"", clocks[record->clock]);
    if (record->form != GPUHAL_OP_EVENT) {
        const char *path = record->path == GPUHAL_TRACED_WORKER   ? "worker"
                           : record->path == GPUHAL_TRACED_DIRECT ? "direct"
                                                                  : gpuhal_path_name(record->path - GPUHAL_TRACED_PATH);
        gpuhal_text_printf(text, ",\"path\":\"%s\"", path);
    }
    if (record->usage != GPUHAL_USAGE_NONE) {
        gpuhal_text_printf(text, ",\"bytes\":%" PRIu64 ",\"usage\":\"%s\"", record->bytes, usages[record->usage]);
    }
    if (record->usage == GPUHAL_USAGE_PAIR) {
        gpuhal_text_printf(text, ",\"from\":\"%s\",\"to\":\"%s\"", record->from->id, record->to->id);
    }
    if (record->form == GPUHAL_OP_LAUNCH) {
        gpuhal_text_printf(text, ",\"groups\":[%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", record->groups[0],
                           record->groups[1], record->groups[2]);
    }
    if (record->status) {
        gpuhal_text_printf(text, ",\"status\":\"%s\"", gpuhal_status_name(record->status));
    }
    gpuhal_text_printf(text, "}}");
}

/* The format requires that arrows begin and end inside a piece. An arrow's id is unique in the document: it consists of
 * the later piece's number and the index in that piece's `after`. */
static void print_arrow(gpuhal_text *text, const gpuhal_traced_record *from, const gpuhal_traced_record *to, int place)
{
    const gpuhal_traced_record *const ends[] = {from, to};
    for (int i = 0; i < 2; i++) {
        print_head(text, i == 0 ? "s" : "f", ends[i]->queue);
        print_time(text, "ts", i == 0 && from->end_ns > from->begin_ns ? from->end_ns - 1 : ends[i]->begin_ns);
        gpuhal_text_printf(text, ",\"id\":\"%" PRIu64 ".%d\",\"name\":\"wait\",\"cat\":\"wait\"%s}", to->number, place,
                           i == 0 ? "" : ",\"bp\":\"e\"");
    }
}

/* Device ids and status names contain no characters that JSON escapes. */
static void print_lane(gpuhal_text *text, const gpuhal_traced_record *record)
{
    print_head(text, "M", record->queue);
    gpuhal_text_printf(text, "\"name\":\"thread_name\",\"args\":{\"name\":\"%s queue %" PRIu32 "\"}}",
                       record->device->id, record->queue);
}

static void print_record(gpuhal_text *text, const gpuhal_traced_record *record)
{
    const bool is_event = record->form == GPUHAL_OP_EVENT;
    print_head(text, is_event ? "i" : "X", record->queue);
    print_time(text, "ts", is_event ? record->end_ns : record->begin_ns);
    if (is_event) {
        gpuhal_text_printf(text, ",\"s\":\"t\"");
    } else {
        gpuhal_text_append(text, ",", 1);
        print_time(text, "dur", record->end_ns - record->begin_ns);
    }
    gpuhal_text_printf(text, ",\"name\":");
    print_text(text, record->name ? record->name : forms[record->form]);
    gpuhal_text_printf(text, ",\"cat\":\"%s\",", forms[record->form]);
    print_arguments(text, record);
}

/* ---- a trace */

typedef struct writing {
    gpuhal_timeline *timeline;
    gpuhal_document to;
    unsigned char *lanes; /* one bit per queue, set after the queue's name was written */
    uint64_t lane_bytes;
    uint64_t pieces; /* number of pieces written so far */
} writing;

/* The caller holds the ring's mutex. */
static const gpuhal_traced_record *find(const gpuhal_timeline *timeline, uint64_t number)
{
    const gpuhal_traced_record *place = timeline->ring ? &timeline->ring[number % timeline->capacity] : NULL;
    return place && number != 0 && place->number == number ? place : NULL;
}

/* The caller holds the ring's mutex. */
static void print_place(writing *w, const gpuhal_traced_record *record)
{
    unsigned char *lane = record->queue / 8 < w->lane_bytes ? &w->lanes[record->queue / 8] : NULL;
    const unsigned char bit = (unsigned char)(1u << record->queue % 8);
    if (!lane) { /* the queue was created after the bits were allocated */
        return;
    }
    if (!(*lane & bit)) {
        *lane |= bit;
        print_lane(&w->to.text, record);
    }
    print_record(&w->to.text, record);
    w->pieces++;
    for (int i = 0; i < GPUHAL_TRACED_AFTER; i++) {
        const gpuhal_traced_record *from = find(w->timeline, record->after[i]);
        if (from) {
            print_arrow(&w->to.text, from, record, i);
        }
    }
}

/* Ignores pieces that are enqueued during the call, so the function terminates even if the queues stay busy. */
static gpuhal_status write_records(writing *w)
{
    gpuhal_timeline *timeline = w->timeline;
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&timeline->mutex);
    const uint64_t last = timeline->count;
    uint64_t next = timeline->first;
    for (bool more = true; more && !status;) {
        const uint64_t oldest = last >= timeline->capacity ? last - timeline->capacity + 1 : 1;
        next = next > oldest ? next : oldest;
        for (int i = 0; i < RECORDS_AT_A_TIME && next <= last; i++, next++) {
            const gpuhal_traced_record *record = find(timeline, next);
            if (record) {
                print_place(w, record);
            }
        }
        more = next <= last;
        gpuhal_mutex_unlock(&timeline->mutex);
        status = gpuhal_document_write(&w->to);
        gpuhal_mutex_lock(&timeline->mutex);
    }
    const uint64_t begun = timeline->count >= timeline->first ? timeline->count - timeline->first + 1 : 0;
    gpuhal_text_printf(&w->to.text,
                       "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"pieces\":%" PRIu64 ",\"dropped\":%" PRIu64
                       ",\"unfinished\":%" PRIu64 "}}\n",
                       w->pieces, timeline->dropped, begun - timeline->ended);
    gpuhal_mutex_unlock(&timeline->mutex);
    return status;
}

static void take_all(gpuhal *gpu)
{
    gpuhal_queue *queue = NULL;
    while ((queue = gpuhal_service_next(gpu, NULL, queue)) != NULL) {
        gpuhal_timeline_take(queue);
    }
}

static gpuhal_status write_trace(void *user, const char *path)
{
    gpuhal *gpu = user;
    gpuhal_timeline *timeline = gpu->layers.timeline;
    writing w = {.timeline = timeline, .lane_bytes = atomic_load(&timeline->queues) / 8 + 1};
    take_all(gpu);
    gpuhal_status status = gpuhal_document_create(&kind, path, &w.to);
    if (status) {
        return status;
    }
    w.lanes = w.lane_bytes <= SIZE_MAX ? calloc(1, (size_t)w.lane_bytes) : NULL;
    gpuhal_text_printf(&w.to.text,
                       "1\",\"library_version\":\"%s\",\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":%" PRId64
                       ",\"name\":\"process_name\",\"args\":{\"name\":\"gpuhal\"}}",
                       GPUHAL_VERSION, gpuhal_os_process_own());
    status = w.lanes ? write_records(&w) : gpuhal_error_host_memory();
    free(w.lanes);
    return gpuhal_document_end(&w.to, status);
}

gpuhal_status gpuhal_timeline_write(gpuhal *gpu, const char *path)
{
    return write_trace(gpu, path);
}

/* Checks the path when the object is opened, so that a wrong path is reported early. */
gpuhal_status gpuhal_timeline_begin_at_open(gpuhal *gpu)
{
    const char *path = gpu->settings.trace;
    const gpuhal_status status = path ? gpuhal_document_try("GPUHAL_TRACE", &kind, path) : GPUHAL_OK;
    return status || !path ? status : gpuhal_timeline_start(gpu->layers.timeline, 0);
}

/* If the gpuhal object's queues had no work, writes no file, because another gpuhal object of the process may write
 * it. */
void gpuhal_timeline_write_at_close(gpuhal *gpu)
{
    gpuhal_timeline *timeline = gpu->layers.timeline;
    gpuhal_mutex_lock(&timeline->mutex);
    const bool any = timeline->count > 0;
    gpuhal_mutex_unlock(&timeline->mutex);
    if (any && gpu->settings.trace) {
        gpuhal_document_write_at_close(gpu->log, write_trace, gpu, gpu->settings.trace);
    }
}
