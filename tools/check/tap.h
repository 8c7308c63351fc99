/* tap.h: the report, in TAP version 13, and the expected failures that change its meaning. */
#ifndef GPUHAL_CHECK_TAP_H
#define GPUHAL_CHECK_TAP_H

#include "run.h"

/* Failures that a plugin's author has announced. */
typedef struct gpuhal_expected {
    char check[64]; /* "copy" on every device, or "copy@1" */
    char reason[256];
} gpuhal_expected;

typedef struct gpuhal_expectations {
    gpuhal_expected *list;
    unsigned count;
} gpuhal_expectations;

/* Reads lines `check: reason`. A name that no check has, or a line without reason, is an error: one sentence for @p
 * out_problem.
 */
bool gpuhal_expectations_read(const char *file, gpuhal_expectations *out_expectations, char *out_problem, size_t size);
void gpuhal_expectations_finish(gpuhal_expectations *expectations);
/* The reason why this job shall fail, or NULL. */
const char *gpuhal_expectations_find(const gpuhal_expectations *expectations, const gpuhal_job *job);

/* Whether "copy" or "copy@1" means this job; NULL job: whether there is any check of this name. */
bool gpuhal_job_is(const gpuhal_job *job, const char *name);

typedef struct gpuhal_tap {
    const gpuhal_expectations *expectations;
    unsigned number, passed, skipped, failed, expected;
} gpuhal_tap;

void gpuhal_tap_version(void);
void gpuhal_tap_plan(unsigned count);
void gpuhal_tap_result(gpuhal_tap *tap, const gpuhal_job *job, const gpuhal_result *result);
void gpuhal_tap_summary(const gpuhal_tap *tap);

#endif
