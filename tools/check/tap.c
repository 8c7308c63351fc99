/* tap.c: writes TAP version 13. A failure has a YAML block whose message describes the fault. */
#include "report.h"

#include "signals.h"

#include <string.h>

/* Writes a string into a TAP line. A '#' would begin a directive, and a newline would end the line. */
static void put_plain(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '#' || *text == '\\') {
            fputc('\\', out);
        }
        fputc((unsigned char)*text < 0x20 ? ' ' : *text, out);
    }
}

/* Lines about one device contain the device index, in the same form as --only and lists of expected failures. */
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
    gpuhal_print_quoted(out, finding->message);
    if (finding->rule != 0) {
        fprintf(out, "\n  rule: M-%02u", finding->rule);
    }
    if (finding->hint[0] != '\0') {
        fputs("\n  hint: ", out);
        gpuhal_print_quoted(out, finding->hint);
    }
    if (finding->printed[0] != '\0') {
        fputs("\n  printed: ", out);
        gpuhal_print_quoted(out, finding->printed);
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

/* TAP has a directive for known failures. TAP readers do not count these failures. */
static void put_result(const gpuhal_report *report, const gpuhal_finding *finding)
{
    FILE *out = report->options->out;
    const bool ok = finding->outcome == OUTCOME_PASSED || finding->outcome == OUTCOME_SKIPPED;
    unsigned number = 0;
    for (unsigned o = 0; o < OUTCOMES; o++) {
        number += report->counts[o];
    }
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
}

static void put_list(FILE *out)
{
    for (unsigned c = 0; c < gpuhal_check_count; c++) {
        fprintf(out, "%-20s %s\n", gpuhal_checks[c].name, gpuhal_checks[c].sentence);
    }
}

static void put_head(const gpuhal_report *report, unsigned count)
{
    fputs("TAP version 13\n", report->options->out);
    if (count > 0) {
        fprintf(report->options->out, "1..%u\n", count);
    }
}

static void put_end(const gpuhal_report *report, gpuhal_ending ending)
{
    const unsigned *counts = report->counts;
    if (ending == ENDING_NO_PLUGIN) {
        fputs("# the plugin cannot be used, so nothing else was checked\n", report->options->out);
    }
    fprintf(report->options->out, "# %u passed, %u failed, %u failed as expected, %u skipped\n", counts[OUTCOME_PASSED],
            counts[OUTCOME_FAILED], counts[OUTCOME_EXPECTED], counts[OUTCOME_SKIPPED]);
    if (ending == ENDING_STOPPED) {
        fprintf(report->options->out, "Bail out! ended by %s\n", gpuhal_signals_name());
    }
}

static void put_error(FILE *out, const char *code, const char *message)
{
    (void)code;
    fprintf(out, "Bail out! %s\n", message);
}

const gpuhal_form gpuhal_form_tap = {put_list, put_head, put_result, put_end, put_error};
