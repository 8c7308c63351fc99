/* report.h: what the user gets, as TAP or as JSON Lines. Each result is written as soon as it is known, so that a run
 * that is cut off leaves all that it has checked. */
#ifndef GPUHAL_CHECK_REPORT_H
#define GPUHAL_CHECK_REPORT_H

#include "expect.h"

/* A result, in the light of the expected failures. */
typedef enum gpuhal_outcome {
    OUTCOME_PASSED,
    OUTCOME_FAILED, /* also one that passes, and is expected to fail */
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
    unsigned rule;        /* that a failure breaks; 0: none */
    const char *hint;     /* what to do about a failure; "": not known */
    const char *printed;  /* what the plugin printed before it failed; "": nothing */
} gpuhal_finding;

/* How a run ends. */
typedef enum gpuhal_ending {
    ENDING_COMPLETE,
    ENDING_NO_PLUGIN, /* nothing was checked but that the plugin cannot be used */
    ENDING_STOPPED    /* by a signal, with what has run until then */
} gpuhal_ending;

typedef struct gpuhal_report {
    const gpuhal_check_options *options;
    const gpuhal_expectations *expectations;
    const gpuhal_self *self; /* what the plugin said of itself */
    unsigned counts[OUTCOMES];
    bool failed; /* a check failed, or some were not run */
} gpuhal_report;

typedef struct gpuhal_form {
    /* Prints all checks, in the place of a report. */
    void (*list)(FILE *out);
    /* So many results follow; 0: none, since the run ends. */
    void (*begin)(const gpuhal_report *report, unsigned count);
    void (*result)(const gpuhal_report *report, const gpuhal_finding *finding);
    void (*end)(const gpuhal_report *report, gpuhal_ending ending);
    /* Instead of the end, or of the whole report; @p code: "usage" or "internal". */
    void (*error)(FILE *out, const char *code, const char *message);
} gpuhal_form;

extern const gpuhal_form gpuhal_form_tap, gpuhal_form_json;

/* Judges and prints one result. */
void gpuhal_report_result(gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result);

/* Prints a text in quotes as JSON has it, which YAML takes, too. Bytes that are no UTF-8 become U+FFFD. */
void gpuhal_print_quoted(FILE *out, const char *text);

#endif
