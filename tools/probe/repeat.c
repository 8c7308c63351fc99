/* repeat.c: see repeat.h. Repeated listings reopen neither drivers nor the registry. They only read values, processes
 * and, at longer intervals, the hardware, and detect devices that appeared or disappeared. */
#include "repeat.h"

#include "formats.h"
#include "output.h"
#include "print.h"
#include "problems.h"
#include "processes.h"
#include "stop.h"

#include "../common/standard_output.h"
#include "../common/subprocess.h"

#include <gpuhal/rescan.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool print_sections(const gpuhal_probe_options *options, const gpuhal_probe_machine *machine,
                           const gpuhal_probe_problems *problems, const gpuhal_probe_environment *environment,
                           FILE *out)
{
    gpuhal_probe_screen screen;
    gpuhal_probe_marks marks = {0};
    gpuhal_probe_screen_init(&screen, out);
    gpuhal_probe_print_head(machine, options, &screen);
    if (!gpuhal_probe_print_table(machine, options, &screen, &marks)) {
        return false;
    }
    if (!gpuhal_probe_print_processes(machine, options, &screen)) {
        return false;
    }
    gpuhal_probe_print_problems(problems, &screen, &marks);
    gpuhal_probe_print_not_given(machine, options, &screen);
    if (machine->count && !options->explain) {
        gpuhal_probe_print_default(machine, &marks, &screen);
        gpuhal_probe_print_more(machine, options, &screen);
    }
    if (options->links) {
        fputc('\n', out);
        if (!gpuhal_probe_print_links(machine, options, &screen)) {
            return false;
        }
    }
    if (options->explain) {
        fputc('\n', out);
        gpuhal_probe_print_explanation(machine, options, &screen);
    }
    if (options->timings) {
        fputc('\n', out);
        gpuhal_probe_print_timings(machine, &screen);
    }
    if (options->environment) {
        fputc('\n', out);
        gpuhal_probe_environment_print(environment, &screen);
    }
    return true;
}

/* Prints the listing. Returns INTERNAL if out of memory. Returns NO_DEVICE if nothing was printed because the format
 * requires a GPU. */
static gpuhal_probe_exit print_once(const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                                    const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                                    bool first, FILE *out)
{
    bool made;
    if (options->check) {
        return gpuhal_probe_print_check(machine, problems, options, out) ? PROBE_COMPLETE : PROBE_INTERNAL;
    }
    switch (options->watch_ns ? PROBE_FORMAT_JSON_LINES : options->format) {
    case PROBE_FORMAT_JSON:
    case PROBE_FORMAT_JSON_LINES:
        made = gpuhal_probe_print_json(machine, problems, options, options->environment ? environment : NULL, out);
        break;
    case PROBE_FORMAT_CSV:
        made = gpuhal_probe_print_csv(machine, options, first || options->output, out);
        break;
    case PROBE_FORMAT_OPENMETRICS:
    case PROBE_FORMAT_PROMETHEUS:
        made = gpuhal_probe_print_openmetrics(machine, options, out);
        break;
    case PROBE_FORMAT_GRES:
        made = gpuhal_probe_print_gres(machine, options, out);
        break;
    case PROBE_FORMAT_CDI:
        return gpuhal_probe_print_cdi(machine, options, first, out);
    case PROBE_FORMAT_TABLE:
    case PROBE_FORMAT_WIDE:
    default:
        made = print_sections(options, machine, problems, environment, out);
        break;
    }
    return made ? PROBE_COMPLETE : PROBE_INTERNAL;
}

/* Prints one listing to the file or to standard output. Returns the exit code of the findings, or INTERNAL after a
 * message. After the first listing, calls gpuhal_probe_say_findings(), except with --check. */
static gpuhal_probe_exit put_once(const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                                  gpuhal_probe_machine *machine, bool first, FILE *out)
{
    char *bytes = NULL;
    size_t count = 0;
    gpuhal_probe_problems problems = {0};
    FILE *to = options->output ? open_memstream(&bytes, &count) : out;
    gpuhal_probe_exit printed =
        to && gpuhal_probe_processes_read(options, machine) && gpuhal_probe_problems_find(machine, options, &problems)
            ? print_once(options, environment, machine, &problems, first, to)
            : PROBE_INTERNAL;
    if (options->output && to && fclose(to) != 0) {
        printed = PROBE_INTERNAL;
    }
    if (printed == PROBE_INTERNAL) {
        gpuhal_probe_say("out of memory");
    }
    bool written = printed == PROBE_NO_DEVICE; /* the file stays unchanged */
    if (printed == PROBE_COMPLETE) {
        written = !options->output || gpuhal_probe_output_write(options->output, bytes, count);
    }
    free(bytes);
    gpuhal_tool_output_flush(out); /* flushes before messages to the same terminal; a pipe's reader also waits for the
                                    * output */
    written = written && !gpuhal_tool_output_error();
    if (written && first && !options->check) {
        gpuhal_probe_say_findings(machine, &problems, options);
    }
    const gpuhal_probe_exit found = gpuhal_probe_judge_findings(machine, &problems, options);
    gpuhal_probe_problems_finish(&problems);
    return !written ? PROBE_INTERNAL : found == PROBE_COMPLETE ? printed : found;
}

/* Waits for the next listing time, or for devices to appear or disappear. Returns false after a fatal signal. */
static bool wait_for_next(const gpuhal_probe_machine *machine, uint64_t due_ns, int changes)
{
    gpuhal_change change = {.size = sizeof change};
    if (gpuhal_probe_stop_wait(due_ns, changes)) {
        while (gpuhal_next_change(machine->gpu, &change) == GPUHAL_OK) {
        }
    }
    return gpuhal_probe_stopped() == 0;
}

static gpuhal_probe_exit go_on(const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                               gpuhal_probe_machine *machine, FILE *out)
{
    const uint64_t period_ns = options->every_ns ? options->every_ns : options->watch_ns;
    gpuhal_os_handle changes = -1;
    gpuhal_change_descriptor(machine->gpu, &changes); /* without a descriptor, changes are not detected */
    bool written = true;
    for (uint64_t due_ns = gpuhal_tool_now_ns() + period_ns; written && wait_for_next(machine, due_ns, (int)changes);) {
        /* A listing that took longer than the period skips samples instead of catching up. */
        const uint64_t now_ns = gpuhal_tool_now_ns();
        due_ns = now_ns >= due_ns + period_ns ? now_ns + period_ns : now_ns >= due_ns ? due_ns + period_ns : due_ns;
        written = gpuhal_probe_machine_refresh(options, PROBE_READ_ALL, machine) &&
                  put_once(options, environment, machine, false, out) != PROBE_INTERNAL;
    }
    if (changes >= 0) {
        gpuhal_os_handle_close(changes);
    }
    return written ? PROBE_COMPLETE : PROBE_INTERNAL;
}

gpuhal_probe_exit gpuhal_probe_repeat(const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                                      gpuhal_probe_machine *machine, FILE *out)
{
    const bool repeats = options->every_ns || options->watch_ns;
    if (repeats && !gpuhal_probe_stop_catch(false)) {
        gpuhal_probe_say("signals cannot be caught: %s", strerror(errno));
        return PROBE_INTERNAL;
    }
    const gpuhal_probe_exit code = put_once(options, environment, machine, true, out);
    return repeats && code != PROBE_INTERNAL ? go_on(options, environment, machine, out) : code;
}
