/* report.c: see report.h. This file evaluates results for both formats. */
#include "report.h"

#include "../common/standard_output.h"
#include "../common/utf8.h"

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

static gpuhal_finding judge(const gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result)
{
    const char *expected = gpuhal_expectations_find(report->expectations, job);
    gpuhal_finding finding = {job, result, OUTCOME_PASSED, "", expected, 0, "", ""};
    if (result->status != CHECK_PASSED && result->status != CHECK_SKIPPED) {
        finding.outcome = expected != NULL ? OUTCOME_EXPECTED : OUTCOME_FAILED;
        finding.message = result->sentence;
        finding.rule = result->rule;
        finding.hint = hint_of(result);
        finding.printed = result->printed;
    } else if (result->status == CHECK_SKIPPED) {
        finding.outcome = OUTCOME_SKIPPED;
        finding.message = result->sentence;
    } else if (expected != NULL) {
        finding.outcome = OUTCOME_FAILED;
        finding.message = "passes, yet is listed as expected to fail: remove it from the list";
    }
    return finding;
}

void gpuhal_report_result(gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result)
{
    const gpuhal_finding finding = judge(report, job, result);
    report->counts[finding.outcome]++;
    report->failed = report->failed || finding.outcome == OUTCOME_FAILED || result->not_run;
    report->options->form->result(report, &finding);
    gpuhal_tool_output_flush(report->options->out);
}

void gpuhal_print_quoted(FILE *out, const char *text)
{
    putc('"', out);
    while (*text != '\0') {
        uint32_t character;
        const size_t length = gpuhal_tool_utf8_next(text, &character);
        if (length == 0) {
            fputs("\xef\xbf\xbd", out);
        } else if (character < 0x20 || character == 0x7f) {
            fprintf(out, "\\u%04x", (unsigned)character);
        } else {
            fprintf(out, "%s%.*s", character == '"' || character == '\\' ? "\\" : "", (int)length, text);
        }
        text += length != 0 ? length : 1;
    }
    putc('"', out);
}
