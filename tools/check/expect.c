/* expect.c: the file of expected failures: lines `check: reason` or `check@device: reason`, and comments that begin
 * with '#'. */
#include "expect.h"

#include "../common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An unknown name is an error, because a misspelled name would otherwise have no effect. */
static bool take_line(char *line, gpuhal_expectations *expectations, const char **out_problem)
{
    line = gpuhal_tool_trimmed(line);
    if (line[0] == '\0' || line[0] == '#') {
        return true;
    }
    char *colon = strchr(line, ':');
    if (colon == NULL || gpuhal_tool_trimmed(colon + 1)[0] == '\0') {
        *out_problem = "a line is 'check: reason'";
        return false;
    }
    *colon = '\0';
    line = gpuhal_tool_trimmed(line);
    *out_problem = gpuhal_job_name_problem(line);
    if (*out_problem != NULL) {
        return false;
    }
    gpuhal_expected *bigger = realloc(expectations->list, (expectations->count + 1) * sizeof *bigger);
    if (bigger == NULL) {
        *out_problem = "no memory";
        return false;
    }
    expectations->list = bigger;
    gpuhal_expected *entry = &bigger[expectations->count++];
    snprintf(entry->check, sizeof entry->check, "%s", line);
    snprintf(entry->reason, sizeof entry->reason, "%s", gpuhal_tool_trimmed(colon + 1));
    return true;
}

/* The message begins with the file name and line, like a compiler message. */
bool gpuhal_expectations_read(const char *file, gpuhal_expectations *out_expectations, char *out_problem, size_t size)
{
    FILE *stream = fopen(file, "re");
    if (stream == NULL) {
        snprintf(out_problem, size, "%s: %s", file, strerror(errno));
        return false;
    }
    char line[512];
    const char *problem = NULL;
    unsigned number = 0;
    while (problem == NULL && fgets(line, sizeof line, stream) != NULL) {
        number++;
        if (!take_line(line, out_expectations, &problem)) {
            snprintf(out_problem, size, "%s:%u: %s: %s", file, number, problem, line);
        }
    }
    if (problem == NULL && ferror(stream)) { /* fopen() also succeeds for a folder */
        problem = strerror(errno);
        snprintf(out_problem, size, "%s: %s", file, problem);
    }
    fclose(stream);
    return problem == NULL;
}

void gpuhal_expectations_finish(gpuhal_expectations *expectations)
{
    free(expectations->list);
    *expectations = (gpuhal_expectations){0};
}

const char *gpuhal_expectations_find(const gpuhal_expectations *expectations, const gpuhal_job *job)
{
    for (unsigned e = 0; e < expectations->count; e++) {
        if (gpuhal_job_is(job, expectations->list[e].check)) {
            return expectations->list[e].reason;
        }
    }
    return NULL;
}
