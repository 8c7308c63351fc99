/* replay.c: reads recorded requests. Reading stops at an impossible line. A recording that began late may contain the
 * release of older memory; such lines are counted and skipped. */
#include "replay.h"
#include "../common/text.h"
#include "live.h"
#include "failure.h"

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096, QUEUE_NAME = 32 };

static const char csv_header[] = "Thread,Time,Action,Pointer,Size,Stream";
static const uint64_t most_requests = UINT64_C(1) << 26;

typedef struct reader {
    const char *path;
    uint64_t line; /* the line's number, starting at 1 */
    gpuhal_bench_replay *replay;
    gpuhal_bench_live live;
    char queues[GPUHAL_BENCH_QUEUES_MAX][QUEUE_NAME]; /* the queues' names in the file */
    char text[LINE_MAX_BYTES + 1];
    size_t length;
} reader;

static bool malformed(const reader *r, const char *why)
{
    return gpuhal_bench_failed("%s:%" PRIu64 ": %s", r->path, r->line, why);
}

/* ---- requests */

static bool add(reader *r, gpuhal_bench_action action, uint32_t slot, uint16_t queue, uint64_t bytes)
{
    gpuhal_bench_replay *replay = r->replay;
    if (replay->count == replay->space) {
        const uint64_t space = replay->space > 0 ? 2 * replay->space : 4096;
        gpuhal_bench_request *grown =
            space <= most_requests ? realloc(replay->requests, (size_t)space * sizeof *grown) : NULL;
        if (grown == NULL) {
            return malformed(r, "there is no memory for more operations");
        }
        replay->requests = grown;
        replay->space = space;
    }
    replay->requests[replay->count++] = (gpuhal_bench_request){bytes, slot, queue, (uint16_t)action};
    replay->calls += action != GPUHAL_BENCH_USE;
    return true;
}

static bool release(reader *r, gpuhal_bench_name name, uint16_t queue)
{
    uint32_t slot;
    if (!gpuhal_bench_live_find(&r->live, name, &slot)) {
        r->replay->unmatched++;
        return true;
    }
    gpuhal_bench_live_remove(&r->live, name);
    return (queue == 0 || add(r, GPUHAL_BENCH_USE, slot, queue, 0)) && add(r, GPUHAL_BENCH_GIVE, slot, 0, 0);
}

/* If the name already has memory, the file lacks the line that released this memory. */
static bool take(reader *r, gpuhal_bench_name name, uint16_t queue, uint64_t bytes)
{
    uint32_t slot;
    if (gpuhal_bench_live_find(&r->live, name, &slot)) {
        r->replay->unmatched++;
        if (!release(r, name, 0)) {
            return false;
        }
    }
    slot = gpuhal_bench_live_add(&r->live, name);
    return slot != UINT32_MAX ? add(r, GPUHAL_BENCH_TAKE, slot, queue, bytes)
                              : malformed(r, "there is no memory for more allocations");
}

static bool use(reader *r, gpuhal_bench_name name, uint16_t queue)
{
    uint32_t slot;
    if (!gpuhal_bench_live_find(&r->live, name, &slot)) {
        r->replay->unmatched++;
        return true;
    }
    return add(r, GPUHAL_BENCH_USE, slot, queue, 0);
}

/* If there are more names than queues, the last character of each further name determines its queue. */
static uint16_t queue_of(reader *r, const char *name)
{
    uint32_t at = 0;
    while (at < r->replay->queues && strcmp(r->queues[at], name) != 0) {
        at++;
    }
    if (at == GPUHAL_BENCH_QUEUES_MAX) {
        at = (uint32_t)(unsigned char)name[strlen(name) - 1] % GPUHAL_BENCH_QUEUES_MAX;
    } else if (at == r->replay->queues) {
        snprintf(r->queues[r->replay->queues++], QUEUE_NAME, "%s", name);
    }
    return (uint16_t)(at + 1);
}

/* ---- RMM's log */

static bool split(char *text, char **fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *comma = strchr(text, ',');
        if ((comma == NULL) != (i + 1 == count)) {
            return false;
        }
        fields[i] = text;
        if (comma != NULL) {
            *comma = '\0';
            text = comma + 1;
        }
    }
    return true;
}

/* Reads an address in printf's %p format. */
static bool read_address(const char *text, uint64_t *out_address)
{
    char *rest = NULL;
    if (strcmp(text, "(nil)") == 0) {
        *out_address = 0;
        return true;
    }
    if (strncmp(text, "0x", 2) != 0) {
        return gpuhal_tool_read_number(text, 0, UINT64_MAX, out_address, NULL);
    }
    errno = 0;
    *out_address = strtoull(text, &rest, 16);
    return errno == 0 && *rest == '\0' && strspn(text + 2, "0123456789abcdefABCDEF") == strlen(text + 2) && text[2];
}

/* Skips allocations and releases of 0 bytes, because their addresses are not unique, and failed requests, because they
 * are not replayed. */
static bool read_row(reader *r)
{
    enum { THREAD, TIME, ACTION, POINTER, SIZE, STREAM, FIELDS };
    char *fields[FIELDS];
    gpuhal_bench_name name = {0, 0};
    uint64_t bytes;
    if (!split(r->text, fields, FIELDS)) {
        return malformed(r, "it lacks some of the six columns of the first line");
    }
    const size_t stream = strlen(fields[STREAM]);
    if (!read_address(fields[POINTER], &name.number) ||
        !gpuhal_tool_read_number(fields[SIZE], 0, UINT64_MAX, &bytes, NULL) || stream == 0 || stream >= QUEUE_NAME) {
        return malformed(r, "Pointer, Size or Stream is malformed");
    }
    const bool allocates = strcmp(fields[ACTION], "allocate") == 0, frees = strcmp(fields[ACTION], "free") == 0;
    if (!allocates && !frees && strcmp(fields[ACTION], "allocate failure") != 0) {
        return malformed(r, "Action is neither allocate, free nor allocate failure");
    }
    if (bytes == 0 || (!allocates && !frees)) {
        return true;
    }
    const uint16_t queue = queue_of(r, fields[STREAM]);
    return allocates ? take(r, name, queue, bytes) : release(r, name, queue);
}

/* ---- traces of pools */

static bool member(const json_t *line, const char *name, uint64_t *out_number)
{
    const json_t *value = json_object_get(line, name);
    *out_number = json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static bool is(const json_t *line, const char *name, const char *word)
{
    const char *text = json_string_value(json_object_get(line, name));
    return text != NULL && strcmp(text, word) == 0;
}

static bool read_operation(reader *r, const json_t *line)
{
    gpuhal_bench_name name;
    uint64_t bytes, number;
    char queue[QUEUE_NAME];
    const bool allocates = is(line, "operation", "allocate"), releases = is(line, "operation", "release");
    if (!allocates && !releases && !is(line, "operation", "use")) {
        return json_is_string(json_object_get(line, "operation")) || malformed(r, "it has no operation");
    }
    if (!is(line, "result", "ok")) {
        return json_is_string(json_object_get(line, "result")) || malformed(r, "it has no result");
    }
    if (!member(line, "pool", &name.space) || !member(line, "buffer", &name.number) || !member(line, "bytes", &bytes)) {
        return malformed(r, "pool, buffer or bytes is missing or no number");
    }
    const bool queued = member(line, "queue", &number);
    if (!queued && !json_is_null(json_object_get(line, "queue"))) {
        return malformed(r, "queue is missing, or neither a number nor null");
    }
    snprintf(queue, sizeof queue, "%" PRIu64, number);
    if (releases) {
        return release(r, name, 0);
    }
    const uint16_t at = queued ? queue_of(r, queue) : 0;
    return allocates ? take(r, name, at, bytes) : at > 0 ? use(r, name, at) : malformed(r, "use has no queue");
}

static bool read_object(reader *r)
{
    json_error_t error;
    uint64_t lost;
    json_t *line = json_loadb(r->text, r->length, 0, &error);
    bool good = json_is_object(line) || malformed(r, "it is not a JSON object");
    if (good && member(line, "lost", &lost)) {
        r->replay->lost += lost;
    } else if (good) {
        good = read_operation(r, line);
    }
    json_decref(line);
    return good;
}

static bool read_schema(reader *r)
{
    json_error_t error;
    json_t *line = json_loadb(r->text, r->length, 0, &error);
    const bool good = is(line, "schema", "gpuhal.pool-trace/1");
    json_decref(line);
    return good;
}

/* ---- lines */

/* Reads the next line without the newline. Returns false at the end of the file, and if a line is too long. */
static bool next_line(reader *r, FILE *file, bool *out_good)
{
    int c = getc_unlocked(file);
    const bool any = c != EOF;
    r->line += any;
    r->length = 0;
    while (c != EOF && c != '\n' && r->length < LINE_MAX_BYTES) {
        r->text[r->length++] = (char)c;
        c = getc_unlocked(file);
    }
    if (c != EOF && c != '\n') {
        *out_good = malformed(r, "it has more than 4096 bytes");
        return false;
    }
    if (r->length > 0 && r->text[r->length - 1] == '\r') {
        r->length--;
    }
    r->text[r->length] = '\0';
    return any;
}

static bool read_lines(reader *r, FILE *file)
{
    bool (*read)(reader *) = NULL;
    bool good = true;
    while (good && next_line(r, file, &good)) {
        if (strlen(r->text) != r->length) {
            good = malformed(r, "it has a zero byte");
        } else if (r->length == 0) {
            continue;
        } else if (read != NULL) {
            good = read(r);
        } else {
            read = strcmp(r->text, csv_header) == 0 ? read_row : read_schema(r) ? read_object : NULL;
            good = read != NULL || malformed(r, "it begins neither a trace of pools (gpuhal.pool-trace/1) nor a log of "
                                                "RMM (Thread,Time,Action,Pointer,Size,Stream)");
        }
    }
    if (good && ferror(file)) {
        return gpuhal_bench_failed("%s: %s", r->path, strerror(errno));
    }
    return good && (r->replay->calls > 0 || gpuhal_bench_failed("%s: it has no allocation", r->path));
}

bool gpuhal_bench_replay_read(const char *path, gpuhal_bench_replay *out_replay)
{
    *out_replay = (gpuhal_bench_replay){0};
    const bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (file == NULL) {
        return gpuhal_bench_failed("%s: %s", path, strerror(errno));
    }
    static reader r;
    r = (reader){.path = path, .replay = out_replay};
    const bool good = read_lines(&r, file);
    out_replay->slots = r.live.slots;
    gpuhal_bench_live_free(&r.live);
    if (!standard) {
        fclose(file);
    }
    if (!good) {
        gpuhal_bench_replay_free(out_replay);
    }
    return good;
}

void gpuhal_bench_replay_free(gpuhal_bench_replay *replay)
{
    free(replay->requests);
    *replay = (gpuhal_bench_replay){0};
}
