/* expect.c: the file of expected failures: lines `check: reason` or `check@device: reason`, and comments that begin
 * with '#'. */
#include "../common/text.h"
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_called(const gpuhal_check *check, const char *name, size_t length)
{
    return strlen(check->name) == length && strncmp(check->name, name, length) == 0;
}

const char *gpuhal_job_name_problem(const char *name)
{
    const size_t length = strcspn(name, "@");
    uint64_t device = 0;
    if (name[length] == '@' && !gpuhal_tool_read_number(name + length + 1, 0, UINT32_MAX, &device, NULL)) {
        return "the index of a device stands behind @";
    }
    for (unsigned c = 0; c < gpuhal_check_count; c++) {
        const gpuhal_job job = {.check = &gpuhal_checks[c]};
        if (is_called(job.check, name, length)) {
            return name[length] == '@' && !gpuhal_job_has_device(&job) ? "the check is about no single device" : NULL;
        }
    }
    return "no check has this name";
}

bool gpuhal_job_is(const gpuhal_job *job, const char *name)
{
    const size_t length = strcspn(name, "@");
    return is_called(job->check, name, length) &&
           (name[length] == '\0' || strtoul(name + length + 1, NULL, 10) == job->index);
}

/* An unknown name is an error: a typing error would otherwise hide that a failure is not expected any more. */
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

/* The problem begins with file and line, as compilers write it. */
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
    if (problem == NULL && ferror(stream)) { /* a folder can be opened */
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
