/* tap.c: writes TAP version 13. A failure carries a YAML block whose message names the fault. */
#include "report.h"

#include "../common/standard_output.h"

#include <string.h>

/* A line of TAP: '#' would begin a directive, and a line end the next line. */
static void put_plain(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '#' || *text == '\\') {
            fputc('\\', out);
        }
        fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
    }
}

/* A double-quoted YAML text: the plugin's text may hold anything. */
static void put_quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '\n') {
            fputs("\\n", out);
        } else if (byte < 0x20 || byte == 0x7f) {
            fprintf(out, "\\x%02x", byte);
        } else if (byte == '"' || byte == '\\') {
            fprintf(out, "\\%c", byte);
        } else {
            fputc(byte, out);
        }
    }
    fputc('"', out);
}

/* Lines about one device carry its index, in the form that --only and lists of expected failures take. */
static void put_line(FILE *out, bool ok, const gpuhal_job *job, unsigned number)
{
    fprintf(out, "%s %u - %s", ok ? "ok" : "not ok", number, job->check->name);
    if (gpuhal_job_has_device(job)) {
        fprintf(out, "@%u", job->index);
    }
    fprintf(out, ": %s", job->check->sentence);
}

static void put_block(FILE *out, const gpuhal_finding *finding)
{
    fputs("  ---\n  message: ", out);
    put_quoted(out, finding->message);
    if (finding->rule != 0) {
        fprintf(out, "\n  rule: M-%02u", finding->rule);
    }
    if (finding->hint[0] != '\0') {
        fputs("\n  hint: ", out);
        put_quoted(out, finding->hint);
    }
    if (finding->printed[0] != '\0') {
        fputs("\n  printed: ", out);
        put_quoted(out, finding->printed);
    }
    fputs("\n  ...\n", out);
}

static void put_notes(FILE *out, const char *notes)
{
    while (*notes != '\0') {
        size_t length = strcspn(notes, "\n");
        fprintf(out, "# %.*s\n", (int)length, notes);
        notes += length + (notes[length] == '\n');
    }
}

/* TAP has a directive for failures that are known: readers of the report do not count them. */
void gpuhal_tap_result(FILE *out, const gpuhal_finding *finding, unsigned number)
{
    const bool ok = finding->outcome == OUTCOME_PASSED || finding->outcome == OUTCOME_SKIPPED;
    put_line(out, ok, finding->job, number);
    if (finding->outcome == OUTCOME_EXPECTED) {
        fputs(" # TODO expected: ", out);
        put_plain(out, finding->expected);
    } else if (finding->outcome == OUTCOME_SKIPPED) {
        fputs(" # SKIP ", out);
        put_plain(out, finding->message);
    }
    fputc('\n', out);
    if (!ok) {
        put_block(out, finding);
    }
    put_notes(out, finding->result->notes);
    gpuhal_tool_output_flush(out);
}
