/* tests/fuzz/registry_fuzz.c: arbitrary bytes as a registry. The parsed registry can be written and parsed again
 * without loss, can be changed, and can be imported over another registry. The result must be complete.
 *
 * Each input is parsed unchanged and with corrected checksums, so that the parser also reaches the text that follows a
 * checksum. */
#include "fuzz.h"
#include "registry/checksum.h"
#include "registry/serial.h"
#include "registry/merge.h"

#include <string.h>

static gpuhal_text written(const gpuhal_database *database)
{
    gpuhal_text text = {0};
    gpuhal_serial_write(database, &text);
    CHECK(!text.failed);
    return text;
}

/* Parses text that this fuzz target has written. All of it must be valid. */
static gpuhal_database read_whole(const gpuhal_text *text)
{
    gpuhal_database database;
    gpuhal_serial_report report;
    CHECK(gpuhal_serial_read(text->data, text->length, &database, &report) == GPUHAL_READ_OK);
    CHECK(!gpuhal_serial_is_damaged(&report) && !report.newer);
    return database;
}

static void change(gpuhal_database *database)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    gpuhal_sighting *seen = calloc(count + 1, sizeof *seen);
    gpuhal_text before = written(database);
    gpuhal_database kept = read_whole(&before);
    interfaces = gpuhal_database_interfaces(&kept, &count);
    for (size_t i = 0; i < count; i++) {
        seen[i] = (gpuhal_sighting){.group = interfaces[i].physical % (uint32_t)(count + 1),
                                    .backend = interfaces[i].backend,
                                    .uuid = interfaces[i].uuid,
                                    .partition = interfaces[i].partition,
                                    .name = interfaces[i].name,
                                    .driver_version = "next"};
    }
    seen[count] = (gpuhal_sighting){.group = (uint32_t)count, .backend = "cuda", .pci = "0000:01:00.0"};
    gpuhal_database_fault fault = {.kind = GPUHAL_FAULT_LOST, .iface = 1, .count = UINT64_MAX};
    gpuhal_changes changes = {.now = 1,
                              .sightings = seen,
                              .sighting_count = count + 1,
                              .faults = &fault,
                              .fault_count = 1,
                              .forget_plugin = "x"};
    CHECK(gpuhal_database_merge(database, &changes));
    for (size_t i = 0; i <= count && i < gpuhal_database_limit(GPUHAL_DATABASE_INTERFACE); i++) {
        CHECK(seen[i].iface > 0 && seen[i].physical > 0);
        for (size_t j = 0; j < i; j++) {
            CHECK(seen[i].iface != seen[j].iface);
        }
    }
    gpuhal_database_finish(&kept);
    gpuhal_text_finish(&before);
    free(seen);
}

/* Imports the database over a registry with two interfaces. Both interfaces disappear, and their numbers must not be
 * reused. */
static void import(const gpuhal_database *imported)
{
    gpuhal_database known = {0};
    gpuhal_sighting seen[] = {{.backend = "cuda", .pci = "0000:01:00.0"},
                              {.group = 1, .backend = "cuda", .pci = "0000:02:00.0"}};
    gpuhal_changes sight = {.now = 1, .sightings = seen, .sighting_count = 2};
    gpuhal_changes replace = {.now = 2, .replace = imported};
    CHECK(gpuhal_database_merge(&known, &sight));
    uint64_t generation = known.generation;
    uint32_t next_interface = known.next_interface, next_physical = known.next_physical;
    CHECK(gpuhal_database_merge(&known, &replace));
    CHECK(known.generation > generation && known.next_interface >= next_interface &&
          known.next_physical >= next_physical);
    CHECK(known.next_interface >= imported->next_interface && known.next_physical >= imported->next_physical);
    gpuhal_text text = written(&known);
    gpuhal_database again = read_whole(&text);
    size_t before, after;
    gpuhal_database_interfaces(imported, &before);
    gpuhal_database_interfaces(&again, &after);
    CHECK(before == after);
    gpuhal_database_finish(&again);
    gpuhal_text_finish(&text);
    gpuhal_database_finish(&known);
}

static void check(const char *text, size_t count)
{
    gpuhal_database database;
    gpuhal_serial_report report;
    CHECK(gpuhal_serial_read(text, count, &database, &report) == GPUHAL_READ_OK);
    if (!report.newer && !report.headless && database.generation < UINT64_MAX / 2) {
        gpuhal_text first = written(&database);
        gpuhal_database again = read_whole(&first);
        gpuhal_text second = written(&again);
        CHECK(first.length == second.length && memcmp(first.data, second.data, first.length) == 0);
        if (database.next_physical < UINT32_MAX / 2 && database.next_interface < UINT32_MAX / 2) {
            import(&again);
            change(&again);
            gpuhal_text third = written(&again);
            gpuhal_database last = read_whole(&third);
            gpuhal_database_finish(&last);
            gpuhal_text_finish(&third);
        }
        gpuhal_text_finish(&second);
        gpuhal_text_finish(&first);
        gpuhal_database_finish(&again);
    }
    gpuhal_database_finish(&database);
}

/* Returns the text with a correct crc line at the end of each record, without the existing crc lines. */
static gpuhal_text closed(const char *text, size_t count)
{
    gpuhal_text out = {0};
    size_t begin = SIZE_MAX, records = 0;
    const char *end = text + count;
    while (text < end) {
        const char *line = text, *stop = memchr(text, '\n', (size_t)(end - text));
        text = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        if (stop - line >= 4 && memcmp(line, "crc ", 4) == 0) {
            continue;
        }
        if (stop > line && *line == '[') {
            if (begin != SIZE_MAX) {
                gpuhal_text_printf(&out, "crc = %08x\n", gpuhal_checksum(0, out.data + begin, out.length - begin));
            }
            begin = out.length;
            records++;
        }
        gpuhal_text_append(&out, line, (size_t)(stop - line));
        gpuhal_text_append(&out, "\n", 1);
    }
    if (begin != SIZE_MAX) {
        gpuhal_text_printf(&out, "crc = %08x\n", gpuhal_checksum(0, out.data + begin, out.length - begin));
    }
    CHECK(!out.failed && records <= count);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    gpuhal_text copy = {0};
    gpuhal_text_append(&copy, (const char *)bytes, count);
    check(gpuhal_text_get(&copy), count);
    gpuhal_text fixed = closed(gpuhal_text_get(&copy), count);
    check(gpuhal_text_get(&fixed), fixed.length);
    gpuhal_text_finish(&fixed);
    gpuhal_text_finish(&copy);
    return 0;
}
