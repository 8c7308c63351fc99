/* registry/serial.c: see serial.h. The text is split into records, and only records with a correct checksum are parsed.
 * A damaged `[` or `crc` line affects only its own record. */
#include "registry/serial.h"

#include "registry/checksum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CRC_LINE   "crc = "
#define CRC_DIGITS 8u

static void end_record(gpuhal_text *to, size_t begin)
{
    /* If out of memory, even the beginning of the record may be missing. */
    if (to->failed) {
        return;
    }
    const char *text = gpuhal_text_get(to);
    gpuhal_text_printf(to, CRC_LINE "%08" PRIx32 "\n", gpuhal_checksum(0, text + begin, to->length - begin));
}

/* Skips the empty line before a record, because this line is not part of the checksum. */
static size_t begin_of_next(const gpuhal_text *to)
{
    return to->length > 0 ? to->length + 1 : 0;
}

void gpuhal_serial_write(const gpuhal_database *database, gpuhal_text *to)
{
    size_t count = 0;
    gpuhal_text_printf(to, "# libgpuhal's record of this machine. It may be deleted: then plugins are probed again.\n");
    size_t begin = begin_of_next(to);
    gpuhal_records_write_kind(to, "registry");
    gpuhal_records_write_u64(to, "version", GPUHAL_REGISTRY_VERSION);
    gpuhal_records_write_u64(to, "generation", database->generation);
    gpuhal_records_write_u64(to, "next_physical", database->next_physical);
    gpuhal_records_write_u64(to, "next_interface", database->next_interface);
    end_record(to, begin);
    for (gpuhal_database_kind kind = 0; kind < GPUHAL_DATABASE_KINDS; kind++) {
        for (size_t i = 0; i < database->records[kind].count && !to->failed; i++) {
            begin = begin_of_next(to);
            gpuhal_record_write(kind, gpuhal_database_at(database, kind, i), to);
            end_record(to, begin);
            count++;
        }
    }
    begin = begin_of_next(to);
    gpuhal_records_write_kind(to, "end");
    gpuhal_records_write_u64(to, "records", count);
    end_record(to, begin);
}

typedef struct piece {
    const char *begin;
    size_t bytes; /* number of bytes without the crc line */
    char kind[64];
} piece;

typedef struct cutter {
    const char *next, *end;
    size_t damaged;
} cutter;

/* Finds the next line. Returns false at the end of the text. A last line without a line end counts as truncated. */
static bool next_line(cutter *at, const char **out_line, size_t *out_length)
{
    if (at->next >= at->end) {
        return false;
    }
    const char *end = memchr(at->next, '\n', (size_t)(at->end - at->next));
    *out_line = at->next;
    *out_length = end ? (size_t)(end - at->next) : 0;
    at->next = end ? end + 1 : at->end;
    if (!end) {
        at->damaged++;
    }
    return end != NULL;
}

static bool begins_record(const char *line, size_t length)
{
    return length > 0 && line[0] == '[';
}

static bool is_crc_line(const char *line, size_t length)
{
    return length > strlen(CRC_LINE) && memcmp(line, CRC_LINE, strlen(CRC_LINE)) == 0;
}

/* Compares digits instead of values, so that every flipped bit is detected. */
static bool crc_is(const char *line, size_t length, uint32_t sum)
{
    static const char digits[] = "0123456789abcdef";
    if (length != strlen(CRC_LINE) + CRC_DIGITS) {
        return false;
    }
    for (uint32_t i = 0; i < CRC_DIGITS; i++) {
        if (line[strlen(CRC_LINE) + i] != digits[sum >> (28 - 4 * i) & 15]) {
            return false;
        }
    }
    return true;
}

static bool take_kind(piece *to, const char *line, size_t length)
{
    if (length < 3 || length - 2 >= sizeof to->kind || line[length - 1] != ']') {
        return false;
    }
    memcpy(to->kind, line + 1, length - 2);
    to->kind[length - 2] = 0;
    return true;
}

/* Finds the next record with a correct checksum, and counts the damaged records and stray lines before it. */
static bool next_piece(cutter *at, piece *out_piece)
{
    const char *line, *begin = NULL;
    size_t length;
    while (next_line(at, &line, &length)) {
        if (begins_record(line, length)) {
            at->damaged += begin != NULL;
            begin = take_kind(out_piece, line, length) ? line : NULL;
            at->damaged += begin == NULL;
        } else if (begin && is_crc_line(line, length)) {
            *out_piece = (piece){.begin = begin, .bytes = (size_t)(line - begin)};
            begin = NULL;
            const char *first_end = memchr(out_piece->begin, '\n', out_piece->bytes);
            if (first_end && take_kind(out_piece, out_piece->begin, (size_t)(first_end - out_piece->begin)) &&
                crc_is(line, length, gpuhal_checksum(0, out_piece->begin, out_piece->bytes))) {
                return true;
            }
            at->damaged++;
        } else if (!begin && length > 0 && line[0] != '#') {
            at->damaged++;
        }
    }
    at->damaged += begin != NULL;
    return false;
}

/* Reads a record that contains only numbers, in the order of `names`. */
static gpuhal_read_result read_numbers(const piece *from, const char *const *names, uint64_t *out_numbers, size_t count)
{
    gpuhal_records_reader reader;
    size_t found = 0;
    bool good = true;
    gpuhal_records_begin(&reader, from->begin, from->bytes);
    gpuhal_records_next(&reader);
    gpuhal_records_item item;
    while (good && (item = gpuhal_records_next(&reader)) == GPUHAL_RECORDS_PAIR) {
        /* Members that a newer version added to the first record are ignored. */
        if (found < count) {
            good = strcmp(reader.name, names[found]) == 0 &&
                   gpuhal_records_u64(gpuhal_text_get(&reader.value), &out_numbers[found]);
            found++;
        }
    }
    bool memory = !reader.value.failed;
    good = good && item == GPUHAL_RECORDS_END && found == count;
    gpuhal_records_finish(&reader);
    return !memory ? GPUHAL_READ_NO_MEMORY : good ? GPUHAL_READ_OK : GPUHAL_READ_DAMAGED;
}

static gpuhal_read_result read_head(cutter *at, gpuhal_database *database, gpuhal_serial_report *report)
{
    static const char *const names[] = {"version", "generation", "next_physical", "next_interface"};
    uint64_t numbers[4] = {0};
    piece head;
    /* The version is read first, since a newer version may have another format. */
    gpuhal_read_result result = next_piece(at, &head) && strcmp(head.kind, "registry") == 0
                                    ? read_numbers(&head, names, numbers, 1)
                                    : GPUHAL_READ_DAMAGED;
    if (result == GPUHAL_READ_OK && numbers[0] > GPUHAL_REGISTRY_VERSION) {
        report->newer = true;
        return GPUHAL_READ_OK;
    }
    if (result == GPUHAL_READ_OK) {
        result = read_numbers(&head, names, numbers, 4);
    }
    if (result == GPUHAL_READ_NO_MEMORY) {
        return result;
    }
    bool good = result == GPUHAL_READ_OK && numbers[0] == GPUHAL_REGISTRY_VERSION && numbers[1] < UINT64_MAX &&
                numbers[2] > 0 && numbers[2] < UINT32_MAX && numbers[3] > 0 && numbers[3] < UINT32_MAX;
    if (!good) {
        report->headless = true;
        return GPUHAL_READ_OK;
    }
    database->generation = numbers[1];
    database->next_physical = (uint32_t)numbers[2];
    database->next_interface = (uint32_t)numbers[3];
    return GPUHAL_READ_OK;
}

/* Returns whether the stable numbers in a record are below the next free numbers. The next free numbers and higher ones
 * would later be assigned again. */
static bool numbers_were_given(const gpuhal_database *database, gpuhal_database_kind kind, const void *record)
{
    if (kind == GPUHAL_DATABASE_PHYSICAL) {
        uint32_t number = ((const gpuhal_database_physical *)record)->number;
        return number > 0 && number < database->next_physical;
    }
    if (kind == GPUHAL_DATABASE_INTERFACE) {
        uint32_t number = ((const gpuhal_database_interface *)record)->number;
        return number > 0 && number < database->next_interface;
    }
    return true;
}

/* A second record of the same object, or a record above the limit, counts as damage. A record of an unknown kind is
 * skipped, since another version wrote it. */
static gpuhal_read_result take_record(gpuhal_database *database, const piece *from)
{
    gpuhal_database_kind kind = gpuhal_record_kind_of(from->kind);
    if (kind == GPUHAL_DATABASE_KINDS) {
        return GPUHAL_READ_OK;
    }
    if (database->records[kind].count >= gpuhal_database_limit(kind)) {
        return GPUHAL_READ_DAMAGED;
    }
    void *record = gpuhal_database_add(database, kind);
    if (!record) {
        return GPUHAL_READ_NO_MEMORY;
    }
    gpuhal_read_result result = gpuhal_record_read(kind, from->begin, from->bytes, record);
    if (result == GPUHAL_READ_OK &&
        (!numbers_were_given(database, kind, record) || gpuhal_database_same(database, kind, record))) {
        result = GPUHAL_READ_DAMAGED;
    }
    if (result != GPUHAL_READ_OK) {
        gpuhal_database_remove(database, kind, database->records[kind].count - 1);
    }
    return result;
}

gpuhal_read_result gpuhal_serial_read(const char *text, size_t bytes, gpuhal_database *out_content,
                                      gpuhal_serial_report *out_report)
{
    static const char *const count_name[] = {"records"};
    cutter at = {.next = text, .end = text + bytes};
    uint64_t records = 0, expected = UINT64_MAX;
    piece found;
    *out_content = GPUHAL_DATABASE_EMPTY;
    *out_report = (gpuhal_serial_report){0};
    gpuhal_read_result result = read_head(&at, out_content, out_report);
    bool usable = result == GPUHAL_READ_OK && !out_report->newer && !out_report->headless;
    while (usable && expected == UINT64_MAX && result != GPUHAL_READ_NO_MEMORY && next_piece(&at, &found)) {
        if (strcmp(found.kind, "end") == 0) {
            result = read_numbers(&found, count_name, &expected, 1);
        } else {
            records++;
            result = take_record(out_content, &found);
        }
        at.damaged += result == GPUHAL_READ_DAMAGED;
    }
    if (result == GPUHAL_READ_NO_MEMORY) {
        gpuhal_database_finish(out_content);
        return result;
    }
    /* The last record states the number of records between the first record and itself. If the number differs, the last
     * record is missing, or records follow it, then the file was truncated or concatenated, or a record is damaged. */
    out_report->cut = usable && (expected != records || next_piece(&at, &found));
    out_report->damaged = at.damaged;
    gpuhal_database_trim(out_content);
    return GPUHAL_READ_OK;
}

bool gpuhal_serial_is_damaged(const gpuhal_serial_report *report)
{
    return !report->newer && (report->headless || report->cut || report->damaged > 0);
}
