/* main.c: gpuhal-probe from the command line to the exit code.
 *
 * Read in this order: this file, machine.c (the findings), verify.c (protects the program from drivers), head.c,
 * table.c and foot.c (the screen), problems.c, links.c, explain.c, json.c, fields.c (formats for other programs),
 * watch.c (the live view), registry.c and diff.c (the record). */
#include "environment.h"
#include "error.h"
#include "columns.h"
#include "machine.h"
#include "options.h"
#include "print.h"
#include "registry.h"
#include "repeat.h"
#include "report_file.h"
#include "watch.h"
#include "../common/errors.h"
#include "../common/standard_output.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Takes over standard output. Returns NULL after a message if standard output is closed. */
static FILE *take_output(void)
{
    FILE *out = gpuhal_tool_output_take();
    if (!out) {
        gpuhal_probe_say("standard output cannot be written: %s", strerror(errno));
    }
    return out;
}

/* Writes the buffered output; returns false after a message if a write failed. Sets *out to NULL. Does nothing if *out
 * is already NULL. */
static bool close_output(FILE **out)
{
    const bool arrived = gpuhal_tool_output_close(out);
    if (!arrived) {
        gpuhal_probe_say("standard output cannot be written%s%s", errno ? ": " : "", errno ? strerror(errno) : "");
    }
    return arrived;
}

static gpuhal_probe_exit out_of_memory(void)
{
    gpuhal_probe_say("out of memory");
    return PROBE_INTERNAL;
}

static gpuhal_probe_exit run_other(const gpuhal_probe_options *options, gpuhal_probe_machine *machine,
                                   const gpuhal_probe_environment *environment, FILE *out)
{
    gpuhal_probe_screen screen;
    if (options->report) {
        return gpuhal_probe_write_report(machine, options, environment, out);
    }
    gpuhal_probe_screen_init(&screen, out);
    const gpuhal_probe_exit code = gpuhal_probe_print_target(machine, options, &screen);
    if (code == PROBE_NOT_FOUND) {
        gpuhal_probe_say("--explain: \"%s\" is neither a plugin, nor a device, nor hardware of this machine",
                         options->target);
    }
    return code;
}

/* Opens the machine and prints the listing. Printing a listing closes the output, so that no error document follows
 * it. */
static gpuhal_probe_exit run(const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                             FILE **out)
{
    gpuhal_probe_machine machine;
    gpuhal_probe_exit code = gpuhal_probe_machine_open(options, &machine);
    if (code == PROBE_GO_ON) {
        if (options->report || options->target) {
            code = run_other(options, &machine, environment, *out);
        } else if (options->watch_ns && !options->format_given && isatty(fileno(*out))) {
            code = gpuhal_probe_watch(options, &machine, *out);
        } else {
            code = gpuhal_probe_repeat(options, environment, &machine, *out);
        }
        code = close_output(out) ? code : PROBE_INTERNAL;
    }
    gpuhal_probe_machine_finish(&machine);
    return code;
}

/* Returns whether the options request only environment variables. Printing them requires no plugin, so they are printed
 * even if a plugin hangs. Any option about a listing, except --device and --backends, requests a listing. */
static bool wants_variables_alone(const gpuhal_probe_options *options)
{
    return options->environment && !options->format_given && !options->columns && !options->all && !options->links &&
           !options->processes && !options->explain && !options->timings && !options->verify && !options->strict &&
           !options->cached && !options->retry && !options->timeout_ns && !options->output && !options->expected;
}

int main(int count, char **arguments)
{
    setlocale(LC_CTYPE, "");
    FILE *out = take_output();
    if (!out) {
        return PROBE_INTERNAL;
    }
    gpuhal_probe_options options;
    gpuhal_probe_environment environment = {0};
    const bool wants_json = gpuhal_probe_wants_json(count, arguments);
    char said[2048];
    const int caught = wants_json ? gpuhal_tool_errors_catch() : -1;
    gpuhal_probe_exit code = gpuhal_probe_options_read(count, arguments, out, &options);
    gpuhal_tool_errors_release(caught, said, sizeof said);
    if (caught >= 0) {
        gpuhal_probe_set_said(said);
    }
    gpuhal_probe_screen_set_color(options.color);
    gpuhal_probe_column columns[PROBE_COLUMN_COUNT];
    const bool in_table = options.format == PROBE_FORMAT_TABLE || options.format == PROBE_FORMAT_WIDE;
    if (code == PROBE_GO_ON && in_table && options.columns &&
        gpuhal_probe_columns_read(options.columns, columns) == 0) {
        code = PROBE_USAGE;
    }
    if (code == PROBE_GO_ON && !gpuhal_probe_environment_read(&options, &environment)) {
        code = out_of_memory();
    }
    if (code == PROBE_GO_ON && gpuhal_probe_options_about_registry(&options)) {
        code = gpuhal_probe_registry_do(&options, out);
    }
    if (code == PROBE_GO_ON && wants_variables_alone(&options)) {
        gpuhal_probe_screen screen;
        gpuhal_probe_screen_init(&screen, out);
        gpuhal_probe_environment_print(&environment, &screen);
        code = PROBE_COMPLETE;
    }
    if (code == PROBE_GO_ON) {
        code = run(&options, &environment, &out);
    }
    gpuhal_probe_environment_finish(&environment);
    /* `out` is NULL if a listing has already closed the output. */
    if (code > PROBE_COMPLETE && wants_json && out && !gpuhal_probe_options_about_registry(&options) &&
        !gpuhal_probe_print_error(code, out)) {
        code = out_of_memory();
    }
    return close_output(&out) ? (int)code : (int)PROBE_INTERNAL;
}
