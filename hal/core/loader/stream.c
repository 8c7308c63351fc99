/* loader/stream.c: see stream.h. Whole lines are parsed when they arrive. Each kind of record has its own function. */
#include "loader/stream.h"

#include "loader/abi.h"
#include "loader/device_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpuhal_stream_write_hello(gpuhal_text *to)
{
    gpuhal_records_write_kind(to, "hello");
    gpuhal_records_write_u64(to, "protocol", GPUHAL_HELPER_PROTOCOL);
    gpuhal_records_write_u64(to, "abi", GPUHAL_CORE_ABI);
}

void gpuhal_stream_write_stage(gpuhal_text *to, gpuhal_plugin_stage stage)
{
    gpuhal_records_write_kind(to, "stage");
    gpuhal_records_write_u64(to, "number", stage);
}

void gpuhal_stream_write_library(gpuhal_text *to, const char *path)
{
    gpuhal_records_write_kind(to, "library");
    gpuhal_records_write(to, "path", path);
}

void gpuhal_stream_write_version(gpuhal_text *to, const char *version)
{
    gpuhal_records_write_kind(to, "plugin");
    gpuhal_records_write(to, "version", version);
}

void gpuhal_stream_write_log(gpuhal_text *to, int32_t level, const char *line)
{
    gpuhal_records_write_kind(to, "log");
    gpuhal_records_write_u64(to, "level", (uint64_t)(level > 0 ? level : GPUHAL_LEVEL_ERROR));
    gpuhal_records_write(to, "text", line);
}

void gpuhal_stream_write_device(gpuhal_text *to, const gpuhal_listed_device *device)
{
    gpuhal_records_write_kind(to, "device");
    gpuhal_records_write_u64(to, "index", device->index);
    gpuhal_records_write_u64(to, "capabilities", device->capabilities);
    gpuhal_facts_write(&device->facts, to);
    gpuhal_records_write_u64(to, "complete", 1);
}

void gpuhal_stream_write_mapped(gpuhal_text *to, const gpuhal_texts *paths)
{
    gpuhal_records_write_kind(to, "mapped");
    for (size_t i = 0; i < paths->count && i < GPUHAL_STREAM_MAPPED_MAX; i++) {
        gpuhal_records_write(to, "path", paths->list[i]);
    }
}

void gpuhal_stream_write_end(gpuhal_text *to, const gpuhal_load_context *load, bool good, size_t devices)
{
    char status[16], code[16];
    snprintf(status, sizeof status, "%" PRId32, good ? GPUHAL_OK : load->status);
    gpuhal_records_write_kind(to, "end");
    gpuhal_records_write_u64(to, "state", good ? GPUHAL_PLUGIN_OK : load->state);
    gpuhal_records_write(to, "status", status);
    gpuhal_records_write_u64(to, "devices", devices);
    if (!good && load->code >= INT32_MIN && load->code <= INT32_MAX) {
        snprintf(code, sizeof code, "%" PRId64, load->code);
        gpuhal_records_write(to, "code", code);
    }
    if (!good) {
        gpuhal_records_write(to, "reason", load->reason ? load->reason : "the helper ran out of memory for the reason");
    } else if (load->note) {
        gpuhal_records_write(to, "reason", load->note);
    }
    gpuhal_records_write_u64(to, "complete", 1);
}

/* Stops reading. Keeps earlier records for the report, except devices. */
static gpuhal_stream_state rubbish(gpuhal_stream *stream, const char *problem)
{
    snprintf(stream->problem, sizeof stream->problem, "%s", problem);
    stream->state = GPUHAL_STREAM_RUBBISH;
    return stream->state;
}

static bool read_number(const char *value, uint64_t most, uint64_t *out_number)
{
    return gpuhal_records_u64(value, out_number) && *out_number <= most;
}

static bool keep_text(char **to, const char *value)
{
    free(*to);
    *to = gpuhal_text_copy(value);
    return *to != NULL;
}

/* Each take_… function parses one pair of its kind of record, and returns false if the pair is invalid. */

/* A helper of another version sends other numbers, and the caller ignores the helper. */
static bool take_hello(gpuhal_stream *stream, const char *key, const char *value)
{
    bool good = strcmp(key, "protocol") == 0 ? gpuhal_records_u64(value, &stream->protocol)
                                             : strcmp(key, "abi") == 0 && gpuhal_records_u64(value, &stream->abi);
    stream->hello = stream->protocol == GPUHAL_HELPER_PROTOCOL && stream->abi == GPUHAL_CORE_ABI;
    return good;
}

static bool take_stage(gpuhal_stream *stream, const char *key, const char *value)
{
    uint64_t number = 0;
    if (strcmp(key, "number") != 0 || !read_number(value, GPUHAL_STAGE_DONE, &number)) {
        return false;
    }
    stream->load->stage = (gpuhal_plugin_stage)number;
    return true;
}

static bool take_library(gpuhal_stream *stream, const char *key, const char *value)
{
    return strcmp(key, "path") == 0 && gpuhal_os_path_is_absolute(value) && keep_text(&stream->load->driver, value);
}

static bool take_plugin(gpuhal_stream *stream, const char *key, const char *value)
{
    return strcmp(key, "version") == 0 && strlen(value) < 64 && gpuhal_records_is_clean(value, strlen(value)) &&
           keep_text(&stream->load->version, value);
}

/* Log lines are passed on immediately, because the last lines before a crash matter most. */
static bool take_log(gpuhal_stream *stream, const char *key, const char *value)
{
    if (strcmp(key, "level") == 0) {
        return read_number(value, GPUHAL_LEVEL_DEBUG, &stream->level);
    }
    if (strcmp(key, "text") != 0) {
        return false;
    }
    gpuhal_log_line(stream->load->log, (int32_t)stream->level, "%s: %s",
                    stream->load->name ? stream->load->name : "plugin", value);
    return true;
}

/* The sink has the same limit, so only a plugin that writes to the stream itself can exceed it here. */
static bool begin_device(gpuhal_stream *stream)
{
    return stream->devices.count < GPUHAL_DEVICES_MAX && stream->whole == stream->devices.count &&
           gpuhal_listed_devices_add(&stream->devices, 0);
}

/* The device's index must be new, and its facts must obey the rules. The search returns the first device with the
 * index, which is the completed device unless the index occurs twice. */
static bool is_whole_device(gpuhal_stream *stream)
{
    const gpuhal_listed_devices *devices = &stream->devices;
    const gpuhal_listed_device *device = &devices->list[devices->count - 1];
    if (gpuhal_listed_devices_find(devices, device->index) != device) {
        snprintf(stream->problem, sizeof stream->problem, "device %" PRIu32 " was sent twice", device->index);
        return false;
    }
    if (!gpuhal_rules_device(device, stream->problem, sizeof stream->problem)) {
        return false;
    }
    stream->whole = devices->count;
    return true;
}

static bool take_device(gpuhal_stream *stream, const char *key, const char *value)
{
    gpuhal_listed_device *device = &stream->devices.list[stream->devices.count - 1];
    uint64_t number = 0;
    if (stream->whole == stream->devices.count) {
        return false; /* the device was already complete */
    }
    if (strcmp(key, "complete") == 0) {
        return strcmp(value, "1") == 0 && is_whole_device(stream);
    }
    if (strcmp(key, "index") == 0 || strcmp(key, "capabilities") == 0) {
        bool good = read_number(value, UINT32_MAX, &number);
        *(key[0] == 'i' ? &device->index : &device->capabilities) = (uint32_t)number;
        return good;
    }
    /* A device may have one more fact than a plugin may report: the sampled free memory. */
    if (device->facts.count > GPUHAL_FACTS_MAX) {
        snprintf(stream->problem, sizeof stream->problem, "more than %u facts of a device", GPUHAL_FACTS_MAX);
        return false;
    }
    return gpuhal_facts_read_pair(&device->facts, key, value) && !device->facts.failed;
}

static bool take_mapped(gpuhal_stream *stream, const char *key, const char *value)
{
    if (strcmp(key, "path") != 0 || stream->mapped.count >= GPUHAL_STREAM_MAPPED_MAX) {
        return false;
    }
    gpuhal_texts_add(&stream->mapped, value);
    return !stream->mapped.failed;
}

static bool is_whole(gpuhal_stream *stream)
{
    const gpuhal_listed_devices *devices = &stream->devices;
    if (stream->whole != devices->count) {
        snprintf(stream->problem, sizeof stream->problem, "a device is not complete");
        return false;
    }
    bool all = devices->count == stream->devices_reported;
    const bool is_empty = stream->good && gpuhal_listed_devices_usable(devices) == 0;
    if (!all || is_empty) {
        snprintf(stream->problem, sizeof stream->problem, "%zu devices were sent, %" PRIu64 " were announced",
                 devices->count, stream->devices_reported);
    }
    return all && !is_empty;
}

static bool is_result(gpuhal_stream *stream)
{
    const gpuhal_load_context *load = stream->load;
    bool failed = load->state == GPUHAL_PLUGIN_NO_DRIVER || load->state == GPUHAL_PLUGIN_NO_DEVICE ||
                  load->state == GPUHAL_PLUGIN_NO_PERMISSION || load->state == GPUHAL_PLUGIN_FAILED ||
                  load->state == GPUHAL_PLUGIN_INCOMPATIBLE || load->state == GPUHAL_PLUGIN_REJECTED;
    bool has_reason = load->reason && *load->reason;
    bool good = stream->good ? load->status == GPUHAL_OK : failed && load->status < 0 && has_reason;
    if (!stream->state_reported || !good) {
        snprintf(stream->problem, sizeof stream->problem, "an end without a result");
    }
    return stream->state_reported && good;
}

/* [end] is valid only with its last pair, because the process may die while writing the record. */
static bool take_end(gpuhal_stream *stream, const char *key, const char *value)
{
    gpuhal_load_context *load = stream->load;
    uint64_t number = 0;
    if (strcmp(key, "state") == 0) {
        bool good = read_number(value, GPUHAL_PLUGIN_QUARANTINED, &number);
        load->state = (gpuhal_plugin_state)number;
        stream->good = load->state == GPUHAL_PLUGIN_OK;
        stream->state_reported = true;
        return good;
    }
    if (strcmp(key, "status") == 0) {
        return gpuhal_records_i32(value, &load->status);
    }
    if (strcmp(key, "code") == 0) {
        int32_t code = 0;
        const bool good = gpuhal_records_i32(value, &code);
        load->code = code;
        return good;
    }
    if (strcmp(key, "devices") == 0) {
        return gpuhal_records_u64(value, &stream->devices_reported);
    }
    if (strcmp(key, "reason") == 0) {
        /* A plugin can also write to the stream, and its escapes may produce control characters. */
        char **to = stream->good ? &load->note : &load->reason;
        bool kept = keep_text(to, value);
        gpuhal_records_clean(kept ? *to : (char[]){""});
        return kept;
    }
    if (strcmp(key, "complete") != 0 || strcmp(value, "1") != 0 || !is_result(stream) || !is_whole(stream)) {
        return false;
    }
    stream->state = GPUHAL_STREAM_ENDED;
    return true;
}

static bool take_crash(gpuhal_stream *stream, const char *key, const char *value)
{
    uint64_t number = 0;
    if (strcmp(key, "signal") != 0 || !read_number(value, 128, &number)) {
        return false;
    }
    stream->signal = (int)number;
    stream->state = GPUHAL_STREAM_CRASHED;
    return true;
}

static const struct {
    const char *kind;
    bool (*take)(gpuhal_stream *stream, const char *key, const char *value);
} kinds[] = {
    {"hello", take_hello},   {"stage", take_stage}, {"library", take_library},
    {"plugin", take_plugin}, {"log", take_log},     {"device", take_device},
    {"mapped", take_mapped}, {"end", take_end},     {"crash", take_crash},
};

/* The hello must be the first record and occur only once, so that the first line shows whether the writer is a
 * helper. */
static gpuhal_stream_state begin_record(gpuhal_stream *stream, const char *kind)
{
    bool first = !stream->kind[0];
    if (strlen(kind) >= sizeof stream->kind || first != (strcmp(kind, "hello") == 0) || (!first && !stream->hello)) {
        return rubbish(stream, first ? "no hello" : "a record out of place");
    }
    snprintf(stream->kind, sizeof stream->kind, "%s", kind);
    return strcmp(kind, "device") == 0 && !begin_device(stream)
               ? rubbish(stream, "too many devices, or one before was not complete")
               : GPUHAL_STREAM_MORE;
}

static gpuhal_stream_state take_pair(gpuhal_stream *stream, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].kind, stream->kind) == 0) {
            if (kinds[i].take(stream, key, value)) {
                return stream->state;
            }
            char problem[sizeof stream->problem];
            snprintf(problem, sizeof problem, "%s", stream->problem[0] ? stream->problem : "an invalid value");
            return rubbish(stream, problem);
        }
    }
    return rubbish(stream, stream->kind[0] ? "an unknown record" : "no hello");
}

static gpuhal_stream_state take_line(gpuhal_stream *stream, const char *line, size_t length)
{
    gpuhal_records_reader reader;
    gpuhal_stream_state state = GPUHAL_STREAM_MORE;
    stream->line++;
    gpuhal_records_begin(&reader, line, length);
    gpuhal_records_item item = gpuhal_records_next(&reader);
    if (item == GPUHAL_RECORDS_ERROR) {
        state = rubbish(stream, reader.error);
    } else if (item == GPUHAL_RECORDS_KIND) {
        state = begin_record(stream, reader.name);
    } else if (item == GPUHAL_RECORDS_PAIR) {
        state = take_pair(stream, reader.name, gpuhal_text_get(&reader.value));
    }
    gpuhal_records_finish(&reader);
    return state;
}

/* A crash report may interrupt a line that another thread is writing. The report is written, and usually read, in one
 * piece. If a read ends inside the report, the line counts as invalid. */
static bool is_cut_by_crash(const gpuhal_stream *stream, const char *next, size_t count)
{
    static const char crash[] = "[crash]\n";
    return stream->state == GPUHAL_STREAM_RUBBISH && count >= sizeof crash - 1 &&
           memcmp(next, crash, sizeof crash - 1) == 0;
}

/* Bytes arrive in pieces of any size. Only whole lines are parsed, which also limits the buffer. Nothing is read after
 * [end] or [crash], because it may have been written by a plugin. */
gpuhal_stream_state gpuhal_stream_feed(gpuhal_stream *stream, const char *bytes, size_t count)
{
    stream->bytes += count;
    if (stream->bytes > GPUHAL_STREAM_BYTES_MAX) {
        return rubbish(stream, "more than 4 MiB");
    }
    while (count > 0 && stream->state == GPUHAL_STREAM_MORE) {
        const char *end = memchr(bytes, '\n', count);
        size_t taken = end ? (size_t)(end - bytes) : count;
        gpuhal_text_append(&stream->pending, bytes, taken);
        if (stream->pending.failed || stream->pending.length > GPUHAL_STREAM_LINE_MAX) {
            stream->line++;
            return rubbish(stream, "a line without end");
        }
        if (end) {
            take_line(stream, gpuhal_text_get(&stream->pending), stream->pending.length);
            stream->pending.length = 0;
        }
        bytes += taken + (end != NULL);
        count -= taken + (end != NULL);
        if (end && is_cut_by_crash(stream, bytes, count)) {
            stream->state = GPUHAL_STREAM_MORE;
        }
    }
    return stream->state;
}

void gpuhal_stream_finish(gpuhal_stream *stream)
{
    gpuhal_text_finish(&stream->pending);
    gpuhal_listed_devices_finish(&stream->devices);
    gpuhal_texts_finish(&stream->mapped);
}
