/* expect.h: expected failures, and how they change results. */
#ifndef GPUHAL_CHECK_EXPECT_H
#define GPUHAL_CHECK_EXPECT_H

#include "run.h"

/* Failures announced by a plugin's author. */
typedef struct gpuhal_expected {
    char check[64]; /* "copy" on every device, or "copy@1" */
    char reason[256];
} gpuhal_expected;

typedef struct gpuhal_expectations {
    gpuhal_expected *list;
    unsigned count;
} gpuhal_expectations;

/* Reads lines `check: reason`. An unknown check or a line without a reason is an error, described in @p out_problem.
 */
bool gpuhal_expectations_read(const char *file, gpuhal_expectations *out_expectations, char *out_problem, size_t size);
void gpuhal_expectations_finish(gpuhal_expectations *expectations);
/* Returns the reason why this job is expected to fail, or NULL. */
const char *gpuhal_expectations_find(const gpuhal_expectations *expectations, const gpuhal_job *job);

#endif
