/* report.h: the report for the user, as TAP or as JSON Lines. Each result is written as soon as it is known, so that an
 * interrupted run leaves all its results. */
#ifndef GPUHAL_CHECK_REPORT_H
#define GPUHAL_CHECK_REPORT_H

#include "expect.h"

/* A result, judged with the expected failures. */
typedef enum gpuhal_outcome {
    OUTCOME_PASSED,
    OUTCOME_FAILED, /* also a check that passes although it is expected to fail */
    OUTCOME_EXPECTED,
    OUTCOME_SKIPPED,
    OUTCOMES
} gpuhal_outcome;

typedef struct gpuhal_finding {
    const gpuhal_job *job;
    const gpuhal_result *result;
    gpuhal_outcome outcome;
    const char *message;  /* the fault, or the reason for skipping; "": it passed */
    const char *expected; /* the reason on the list of expected failures; NULL: it is not on it */
    unsigned rule;        /* the rule that a failure breaks; 0: none */
    const char *hint;     /* the remedy of a failure; "": not known */
    const char *printed;  /* the output of the plugin before the failure; "": none */
} gpuhal_finding;

/* The ways in which a run ends. */
typedef enum gpuhal_ending {
    ENDING_COMPLETE,
    ENDING_NO_PLUGIN, /* only the first check ran: the plugin cannot be used */
    ENDING_STOPPED    /* by a signal, with the results until then */
} gpuhal_ending;

typedef struct gpuhal_report {
    const gpuhal_check_options *options;
    const gpuhal_expectations *expectations;
    const gpuhal_self *self; /* the plugin's description of itself */
    unsigned counts[OUTCOMES];
    bool failed; /* a check failed, or some were not run */
} gpuhal_report;

typedef struct gpuhal_form {
    /* Prints all checks, instead of a report. */
    void (*list)(FILE *out);
    /* Begins a report of @p count results; 0: none, since the run ends. */
    void (*begin)(const gpuhal_report *report, unsigned count);
    void (*result)(const gpuhal_report *report, const gpuhal_finding *finding);
    void (*end)(const gpuhal_report *report, gpuhal_ending ending);
    /* Replaces the end, or the whole report; @p code: "usage" or "internal". */
    void (*error)(FILE *out, const char *code, const char *message);
} gpuhal_form;

extern const gpuhal_form gpuhal_form_tap, gpuhal_form_json;

/* Judges and prints one result. */
void gpuhal_report_result(gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result);

/* Prints a text in quotes as in JSON, which YAML takes, too. Bytes that are no UTF-8 become U+FFFD. */
void gpuhal_print_quoted(FILE *out, const char *text);

#endif
