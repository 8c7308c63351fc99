/* checks.c: the table of checks, and the meaning of a check's name. */
#include "run.h"

#include "../common/text.h"

#include <stdlib.h>
#include <string.h>

const gpuhal_check gpuhal_checks[] = {
#define CHECK(name, needs, rule, sentence) {#name, needs, rule, sentence, gpuhal_check_##name},
#include "checks.inc"
#undef CHECK
};
const unsigned gpuhal_check_count = sizeof gpuhal_checks / sizeof *gpuhal_checks;

bool gpuhal_job_has_device(const gpuhal_job *job)
{
    return job->check->needs != NEEDS_NOTHING && job->check->needs != NEEDS_PLUGIN;
}

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
