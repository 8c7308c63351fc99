/* check.c: --check healthy, which prints one line for a prolog, a node health check or a person; see print.h. The line
 * always agrees with the exit status. */
#include "print.h"

#include "../common/text.h"

#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = GPUHAL_PROBE_JOINED_BYTES + 200 };

/* Appends the first cause of this grade and the number of other causes. */
static void append_causes(const gpuhal_probe_problems *problems, bool (*counts)(const gpuhal_probe_problem *problem),
                          const char *between, char line[LINE_BYTES])
{
    char text[GPUHAL_PROBE_JOINED_BYTES];
    uint32_t causes = 0;
    for (uint32_t i = 0; i < problems->count; i++) {
        if (!counts(&problems->list[i]) || !gpuhal_probe_problem_joined(problems, i, text)) {
            continue;
        }
        if (causes++ == 0) {
            gpuhal_tool_append(line, LINE_BYTES, between, "%s", text);
        }
    }
    if (causes > 1) {
        gpuhal_tool_append(line, LINE_BYTES, "; ", "and %u more: gpuhal-probe", causes - 1);
    }
}

static bool is_any(const gpuhal_probe_problem *problem)
{
    (void)problem;
    return true;
}

static bool is_note(const gpuhal_probe_problem *problem)
{
    return problem->grade == GPUHAL_HARDWARE_NOTE;
}

static bool is_warning(const gpuhal_probe_problem *problem)
{
    return problem->grade == GPUHAL_HARDWARE_WARNING;
}

static bool is_problem(const gpuhal_probe_problem *problem)
{
    return problem->grade == GPUHAL_HARDWARE_PROBLEM;
}

void gpuhal_probe_print_check(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                              const gpuhal_probe_options *options, const gpuhal_probe_screen *screen)
{
    char counts[112], line[LINE_BYTES] = "";
    const gpuhal_probe_counts counted = gpuhal_probe_count(machine, options);
    const gpuhal_probe_exit code = gpuhal_probe_judge_findings(machine, problems, options);
    gpuhal_probe_write_counts(machine, options, counts, sizeof counts);
    if (code == PROBE_COMPLETE) {
        snprintf(line, sizeof line, "healthy: %s", counts);
        append_causes(problems, is_warning, "; warning: ", line);
        append_causes(problems, is_note, "; note: ", line);
    } else if (code == PROBE_NO_DEVICE) {
        snprintf(line, sizeof line, "%s", counts);
        append_causes(problems, is_any, ": ", line);
    } else {
        const bool are_few = counted.ready + counted.taken < options->expected; /* a note may be the cause */
        snprintf(line, sizeof line, "not healthy: %s", counts);
        if (are_few) {
            gpuhal_tool_append(line, sizeof line, ", ", "%u expected", options->expected);
        }
        append_causes(problems, options->strict || are_few ? is_any : is_problem, "; ", line);
    }
    gpuhal_probe_screen_put(screen, PROBE_PLAIN, line);
    fputc('\n', screen->out);
}
