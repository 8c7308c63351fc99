/* report.h: what the user gets: lines of TAP, each as soon as it is known, or one JSON document at the end. */
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

/* Whether lines about this job are about one device, whose index they carry. */
bool gpuhal_job_has_device(const gpuhal_job *job);

typedef struct gpuhal_report {
    const gpuhal_check_options *options;
    const gpuhal_expectations *expectations;
    unsigned counts[OUTCOMES];
    bool failed; /* a check failed, or some were not run */
    struct json_t *checks; /* of the document, until it is printed; NULL: memory was short */
} gpuhal_report;

/* Results may follow. False without memory. */
bool gpuhal_report_begin(gpuhal_report *report);
/* So many results follow. */
void gpuhal_report_plan(const gpuhal_report *report, unsigned count);
void gpuhal_report_result(gpuhal_report *report, const gpuhal_job *job, const gpuhal_result *result);
/* How a run ends. */
typedef enum gpuhal_ending {
    ENDING_COMPLETE,
    ENDING_NO_PLUGIN, /* nothing was checked but that the plugin cannot be used */
    ENDING_STOPPED    /* by a signal, with what has run until then */
} gpuhal_ending;
/* @p self: what the plugin said of itself. False without memory for the document. */
bool gpuhal_report_end(gpuhal_report *report, const gpuhal_self *self, gpuhal_ending ending);
/* Instead of the end: gpuhal-check itself failed. */
void gpuhal_report_broken(gpuhal_report *report, const char *why);

/* ---- the forms (tap.c; json.c, or json_none.c in a build without jansson) */

void gpuhal_tap_result(FILE *out, const gpuhal_finding *finding, unsigned number);

extern const bool gpuhal_document_built;
bool gpuhal_document_begin(gpuhal_report *report);
/* Loses the document when memory is short: then the end fails. */
void gpuhal_document_result(gpuhal_report *report, const gpuhal_finding *finding);
bool gpuhal_document_end(gpuhal_report *report, const gpuhal_self *self, gpuhal_ending ending);
/* Prints all checks as a document. False without memory. */
bool gpuhal_document_print_list(FILE *out);
/* Prints an error as a document; @p code: "usage" or "internal". */
bool gpuhal_document_print_error(FILE *out, const char *code, const char *message);

#endif
