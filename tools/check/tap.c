/* tap.c: writes TAP version 13. A failure carries a YAML block whose message names the fault. */
#include "tap.h"

#include <stdio.h>
#include <string.h>

void gpuhal_tap_version(void)
{
    puts("TAP version 13");
}

void gpuhal_tap_plan(unsigned count)
{
    printf("1..%u\n", count);
}

/* A line of TAP: '#' would begin a directive, and a line end the next line. */
static void put_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '#' || *text == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*text < 0x20 ? ' ' : *text);
    }
}

/* A double-quoted YAML text: the plugin's text may hold anything. */
static void put_quoted(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '\n') {
            fputs("\\n", stdout);
        } else if (byte < 0x20 || byte == 0x7f) {
            printf("\\x%02x", byte);
        } else if (byte == '"' || byte == '\\') {
            printf("\\%c", byte);
        } else {
            putchar(byte);
        }
    }
    putchar('"');
}

/* Lines about one device carry its index, in the form that --only and lists of expected failures take. */
static bool per_device(const gpuhal_job *job)
{
    return job->check->needs != NEEDS_NOTHING && job->check->needs != NEEDS_PLUGIN;
}

static void put_line(gpuhal_tap *tap, bool ok, const gpuhal_job *job)
{
    printf("%s %u - %s", ok ? "ok" : "not ok", ++tap->number, job->check->name);
    if (per_device(job)) {
        printf("@%u", job->index);
    }
    printf(": %s", job->check->sentence);
}

static const struct {
    unsigned number;
    const char *hint;
} rules[] = {
#define RULE(number, hint) {number, hint},
#include "rules.inc"
#undef RULE
};

static const char *hint_of(const gpuhal_result *result)
{
    const char *hint = result->hint;
    for (size_t r = 0; hint[0] == '\0' && r < sizeof rules / sizeof *rules; r++) {
        hint = rules[r].number == result->rule ? rules[r].hint : hint;
    }
    return hint;
}

static void put_block(const char *message, const gpuhal_result *result)
{
    fputs("  ---\n  message: ", stdout);
    put_quoted(message);
    if (result->status == CHECK_FAILED && result->rule != 0) {
        printf("\n  rule: M-%02u", result->rule);
    }
    if (result->status == CHECK_FAILED && hint_of(result)[0] != '\0') {
        fputs("\n  hint: ", stdout);
        put_quoted(hint_of(result));
    }
    if (result->printed[0] != '\0' && result->status == CHECK_FAILED) {
        fputs("\n  printed: ", stdout);
        put_quoted(result->printed);
    }
    fputs("\n  ...\n", stdout);
}

static void put_notes(const char *notes)
{
    while (*notes != '\0') {
        size_t length = strcspn(notes, "\n");
        printf("# %.*s\n", (int)length, notes);
        notes += length + (notes[length] == '\n');
    }
}

/* TAP has a directive for failures that are known: readers of the report do not count them. */
void gpuhal_tap_result(gpuhal_tap *tap, const gpuhal_job *job, const gpuhal_result *result)
{
    const char *expected = gpuhal_expectations_find(tap->expectations, job);
    const bool failed = result->status == CHECK_FAILED;
    if (failed && expected != NULL) {
        put_line(tap, false, job);
        fputs(" # TODO expected: ", stdout);
        put_plain(expected);
        putchar('\n');
        put_block(result->sentence, result);
        tap->expected++;
    } else if (failed) {
        put_line(tap, false, job);
        putchar('\n');
        put_block(result->sentence, result);
        tap->failed++;
    } else if (result->status == CHECK_SKIPPED) {
        put_line(tap, true, job);
        fputs(" # SKIP ", stdout);
        put_plain(result->sentence);
        putchar('\n');
        tap->skipped++;
    } else if (expected != NULL) {
        put_line(tap, false, job);
        putchar('\n');
        put_block("passes, yet is listed as expected to fail: remove it from the list", result);
        tap->failed++;
    } else {
        put_line(tap, true, job);
        putchar('\n');
        tap->passed++;
    }
    put_notes(result->notes);
    fflush(stdout);
}

void gpuhal_tap_summary(const gpuhal_tap *tap)
{
    printf("# %u passed, %u failed, %u failed as expected, %u skipped\n", tap->passed, tap->failed, tap->expected,
           tap->skipped);
}
