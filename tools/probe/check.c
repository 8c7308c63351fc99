/* check.c: --check healthy, which prints one line for a prolog, a node health check or a person, or a JSON document;
 * see print.h. Both always agree with the exit status. */
#include "json_parts.h"
#include "print.h"

#include "../common/text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

static void write_line(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                       const gpuhal_probe_options *options, char line[LINE_BYTES])
{
    char counts[112];
    const gpuhal_probe_counts counted = gpuhal_probe_count(machine, options);
    const gpuhal_probe_exit code = gpuhal_probe_judge_findings(machine, problems, options);
    gpuhal_probe_write_counts(machine, options, counts, sizeof counts);
    if (code == PROBE_COMPLETE) {
        snprintf(line, LINE_BYTES, "healthy: %s", counts);
        append_causes(problems, is_warning, "; warning: ", line);
        append_causes(problems, is_note, "; note: ", line);
    } else if (code == PROBE_NO_DEVICE) {
        snprintf(line, LINE_BYTES, "%s", counts);
        append_causes(problems, is_any, ": ", line);
    } else {
        const bool are_few = counted.ready + counted.taken < options->expected; /* a note may be the cause */
        snprintf(line, LINE_BYTES, "not healthy: %s", counts);
        if (are_few) {
            gpuhal_tool_append(line, LINE_BYTES, ", ", "%u expected", options->expected);
        }
        append_causes(problems, options->strict || are_few ? is_any : is_problem, "; ", line);
    }
}

static json_t *make_counts(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                           const gpuhal_probe_options *options)
{
    json_t *object = json_object();
    const gpuhal_probe_counts counts = gpuhal_probe_count(machine, options);
    gpuhal_probe_put(builder, object, "ready", gpuhal_probe_number(counts.ready));
    gpuhal_probe_put(builder, object, "all", gpuhal_probe_number(counts.all));
    gpuhal_probe_put(builder, object, "in_exclusive_use", gpuhal_probe_number(counts.taken));
    gpuhal_probe_put(builder, object, "not_given", gpuhal_probe_number(counts.not_given));
    gpuhal_probe_put(builder, object, "expected",
                     options->expected ? gpuhal_probe_number(options->expected) : json_null());
    return object;
}

/* Prints the document gpuhal.health/1, described by docs/gpuhal.health-1.schema.json. */
static bool print_document(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                           const gpuhal_probe_options *options, const char *line, FILE *out)
{
    gpuhal_probe_json builder = {0};
    json_t *document = json_object();
    const gpuhal_probe_exit code = gpuhal_probe_judge_findings(machine, problems, options);
    gpuhal_probe_put(&builder, document, "schema", gpuhal_json_text("gpuhal.health/1"));
    gpuhal_probe_put(&builder, document, "library_version", gpuhal_json_text(gpuhal_version()));
    gpuhal_probe_put(&builder, document, "generated_at", gpuhal_json_time((uint64_t)time(NULL)));
    gpuhal_probe_put(&builder, document, "healthy", json_boolean(code == PROBE_COMPLETE));
    gpuhal_probe_put(&builder, document, "exit_status", json_integer(code));
    gpuhal_probe_put(&builder, document, "result", gpuhal_json_any_text(line));
    gpuhal_probe_put(&builder, document, "gpus", make_counts(&builder, machine, options));
    gpuhal_probe_put(&builder, document, "problems", gpuhal_probe_make_problems(&builder, problems));
    return gpuhal_probe_json_print(&builder, document, out);
}

bool gpuhal_probe_print_check(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                              const gpuhal_probe_options *options, FILE *out)
{
    char line[LINE_BYTES] = "";
    gpuhal_probe_screen screen;
    write_line(machine, problems, options, line);
    if (options->format == PROBE_FORMAT_JSON) {
        return print_document(machine, problems, options, line, out);
    }
    gpuhal_probe_screen_init(&screen, out);
    gpuhal_probe_screen_put(&screen, PROBE_PLAIN, line);
    fputc('\n', out);
    return true;
}
