/* expect.h: the expected failures, which change the meaning of results. */
#ifndef GPUHAL_CHECK_EXPECT_H
#define GPUHAL_CHECK_EXPECT_H

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
/* Returns the reason why this job shall fail, or NULL. */
const char *gpuhal_expectations_find(const gpuhal_expectations *expectations, const gpuhal_job *job);

#endif
