/* tap.c: writes TAP version 13. A failure carries a YAML block whose message names the fault. */
#include "report.h"

#include <stdio.h>
#include <string.h>

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
static void put_line(bool ok, const gpuhal_job *job, unsigned number)
{
    printf("%s %u - %s", ok ? "ok" : "not ok", number, job->check->name);
    if (gpuhal_job_has_device(job)) {
        printf("@%u", job->index);
    }
    printf(": %s", job->check->sentence);
}

static void put_block(const gpuhal_finding *finding)
{
    fputs("  ---\n  message: ", stdout);
    put_quoted(finding->message);
    if (finding->rule != 0) {
        printf("\n  rule: M-%02u", finding->rule);
    }
    if (finding->hint[0] != '\0') {
        fputs("\n  hint: ", stdout);
        put_quoted(finding->hint);
    }
    if (finding->printed[0] != '\0') {
        fputs("\n  printed: ", stdout);
        put_quoted(finding->printed);
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
void gpuhal_tap_result(const gpuhal_finding *finding, unsigned number)
{
    const bool ok = finding->outcome == OUTCOME_PASSED || finding->outcome == OUTCOME_SKIPPED;
    put_line(ok, finding->job, number);
    if (finding->outcome == OUTCOME_EXPECTED) {
        fputs(" # TODO expected: ", stdout);
        put_plain(finding->expected);
    } else if (finding->outcome == OUTCOME_SKIPPED) {
        fputs(" # SKIP ", stdout);
        put_plain(finding->message);
    }
    putchar('\n');
    if (!ok) {
        put_block(finding);
    }
    put_notes(finding->result->notes);
    fflush(stdout);
}
