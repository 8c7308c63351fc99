/* report.c: see report.h. Each result is judged here, for both forms alike. */
#include "report.h"

#include "signals.h"

#include <stdio.h>

bool gpuhal_job_has_device(const gpuhal_job *job)
{
    return job->check->needs != NEEDS_NOTHING && job->check->needs != NEEDS_PLUGIN;
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

static gpuhal_finding judge(const gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result)
{
    const char *expected = gpuhal_expectations_find(report->expectations, job);
    gpuhal_finding finding = {job, result, OUTCOME_PASSED, "", expected, 0, "", ""};
    if (result->status == CHECK_FAILED) {
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

bool gpuhal_report_begin(gpuhal_report *report)
{
    if (report->options->json) {
        return gpuhal_document_begin(report);
    }
    fputs("TAP version 13\n", report->options->out);
    return true;
}

void gpuhal_report_plan(const gpuhal_report *report, unsigned count)
{
    if (!report->options->json) {
        fprintf(report->options->out, "1..%u\n", count);
    }
}

void gpuhal_report_result(gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result)
{
    const gpuhal_finding finding = judge(report, job, result);
    report->counts[finding.outcome]++;
    report->failed = report->failed || finding.outcome == OUTCOME_FAILED || result->not_run;
    if (report->options->json) {
        gpuhal_document_result(report, &finding);
        return;
    }
    unsigned number = 0;
    for (unsigned o = 0; o < OUTCOMES; o++) {
        number += report->counts[o];
    }
    gpuhal_tap_result(report->options->out, &finding, number);
}

bool gpuhal_report_end(gpuhal_report *report, const gpuhal_self *self, gpuhal_ending ending)
{
    const unsigned *counts = report->counts;
    if (ending == ENDING_STOPPED) {
        fprintf(stderr, "gpuhal-check: ended by %s\n", gpuhal_signals_name());
    }
    if (report->options->json) {
        return gpuhal_document_end(report, self, ending);
    }
    if (ending == ENDING_NO_PLUGIN) {
        fputs("# the plugin cannot be used, so nothing else was checked\n", report->options->out);
    }
    fprintf(report->options->out, "# %u passed, %u failed, %u failed as expected, %u skipped\n",
            counts[OUTCOME_PASSED], counts[OUTCOME_FAILED], counts[OUTCOME_EXPECTED], counts[OUTCOME_SKIPPED]);
    if (ending == ENDING_STOPPED) {
        fprintf(report->options->out, "Bail out! ended by %s\n", gpuhal_signals_name());
    }
    return true;
}

void gpuhal_report_broken(gpuhal_report *report, const char *why)
{
    fprintf(stderr, "gpuhal-check: %s\n", why);
    if (report->options->json) {
        gpuhal_document_print_error(report->options->out, "internal", why);
    } else {
        fprintf(report->options->out, "Bail out! %s\n", why);
    }
}
