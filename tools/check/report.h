/* report.h: the report for the user, as TAP or as JSON Lines. Each result is written as soon as it is known, so an
 * interrupted run still shows all its results. */
#ifndef GPUHAL_CHECK_REPORT_H
#define GPUHAL_CHECK_REPORT_H

#include "expect.h"

/* A result after the expected failures have been applied. */
typedef enum gpuhal_outcome {
    OUTCOME_PASSED,
    OUTCOME_FAILED, /* also a check that passed although its failure was expected */
    OUTCOME_EXPECTED,
    OUTCOME_SKIPPED,
    OUTCOMES
} gpuhal_outcome;

typedef struct gpuhal_finding {
    const gpuhal_job *job;
    const gpuhal_result *result;
    gpuhal_outcome outcome;
    const char *message;  /* the fault, or the reason for skipping; "" if the check passed */
    const char *expected; /* the reason in the list of expected failures; NULL if the check is not in the list */
    unsigned rule;        /* the broken rule, or 0 */
    const char *hint;     /* the remedy, or "" */
    const char *printed;  /* the plugin's output before the failure, or "" */
} gpuhal_finding;

typedef enum gpuhal_ending {
    ENDING_COMPLETE,
    ENDING_NO_PLUGIN, /* only the first check ran, because the plugin is unusable */
    ENDING_STOPPED    /* a signal ended the run; the results so far are reported */
} gpuhal_ending;

typedef struct gpuhal_report {
    const gpuhal_check_options *options;
    const gpuhal_expectations *expectations;
    const gpuhal_self *self; /* the plugin's description of itself */
    unsigned counts[OUTCOMES];
    bool failed; /* a check failed, or some were not run */
} gpuhal_report;

typedef struct gpuhal_form {
    void (*list)(FILE *out); /* prints all checks in place of a report */
    /* Begins a report of @p count results. A count of 0 means that the run ends without results. */
    void (*begin)(const gpuhal_report *report, unsigned count);
    void (*result)(const gpuhal_report *report, const gpuhal_finding *finding);
    void (*end)(const gpuhal_report *report, gpuhal_ending ending);
    /* Prints an error in place of the end of the report, or of the whole report. @p code is "usage" or "internal". */
    void (*error)(FILE *out, const char *code, const char *message);
} gpuhal_form;

extern const gpuhal_form gpuhal_form_tap, gpuhal_form_json;

void gpuhal_report_result(gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result);

/* Prints a string in JSON quotes, which are also valid in YAML. Invalid UTF-8 bytes become U+FFFD. */
void gpuhal_print_quoted(FILE *out, const char *text);

#endif
