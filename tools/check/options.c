/* options.c: see options.h. */
#include "options.h"

#include "../common/command_line.h"
#include "../common/text.h"
#include "report.h"

#include <gpuhal/instance.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE_S = 60, LARGE_DEADLINE_S = 600 };

static const char doc[] =
    "Runs the conformance suite on a plugin, or on a manifest and the plugin that it names, and reports in TAP "
    "version 13 or in JSON Lines.\v"
    "Exit status: 0 all passed, 1 failures, 2 usage, 3 the plugin cannot be loaded or lists no such device, "
    "4 out of memory, no process can be made, or the output cannot be written.";

enum {
    OPTION_LIST = GPUHAL_TOOL_KEY,
    OPTION_ONLY,
    OPTION_EXCEPT,
    OPTION_DEVICE,
    OPTION_DEADLINE,
    OPTION_EXPECT,
    OPTION_LARGE,
    OPTION_JSON,
    OPTION_PROGRAM,
    OPTION_KERNEL,
    OPTION_FORMAT,
    OPTION_BUILD,
    OPTION_PARAMETERS,
    OPTION_GROUP_SIZE,
    OPTION_GROUPS
};

static const struct argp_option known[] = {
    {"list", OPTION_LIST, NULL, 0, "list the checks and exit", 0},
    {"only", OPTION_ONLY, "CHECK", 0, "run this check only, CHECK@INDEX on one device; may be repeated", 0},
    {"except", OPTION_EXCEPT, "CHECK", 0, "leave this check out; may be repeated; the check file always runs", 0},
    {"device", OPTION_DEVICE, "INDEX", 0, "check this device only", 0},
    {"deadline", OPTION_DEADLINE, "SECONDS", 0, "time for each check (60; with --large 600)", 0},
    {"expect", OPTION_EXPECT, "FILE", 0, "expected failures, in lines 'CHECK: REASON' (FILE.so.expect, if it exists)",
     0},
    {"large", OPTION_LARGE, NULL, 0, "run above_4gib, which takes 8 GiB of a device", 0},
    {"json", OPTION_JSON, NULL, 0, "JSON Lines instead of TAP, schema gpuhal.check/2; of errors and --list, too", 0},
    {NULL, 0, NULL, 0, "A kernel of yours, for the checks of programs:", 0},
    {"program", OPTION_PROGRAM, "FILE", 0, "code that the device takes, with --kernel", 0},
    {"kernel", OPTION_KERNEL, "NAME", 0, "the function to launch; it changes a buffer, the same way each time", 0},
    {"format", OPTION_FORMAT, "FORMAT", 0, "of the code, as program_formats names it (as the file looks)", 0},
    {"build-options", OPTION_BUILD, "TEXT", 0, "options of the driver's compiler", 0},
    {"parameters", OPTION_PARAMETERS, "LIST", 0,
     "r, w, b: a buffer that is read, written, or both; l: local memory; each with its bytes: r4096; r?: a buffer that "
     "a launch may omit; values: i32=N, u32=N, i64=N, u64=N, f32=X, f64=X; in order, with commas (as the plugin says, "
     "buffers b65536, values 1024)",
     0},
    {"group-size", OPTION_GROUP_SIZE, "X[,Y[,Z]]", 0, "threads of a group (as the code says)", 0},
    {"groups", OPTION_GROUPS, "X[,Y[,Z]]", 0, "groups of a launch (4)", 0},
    {0},
};

static error_t take_check(const struct argp_state *state, const char *option, const char *value, const char **list,
                          unsigned *count)
{
    const char *problem = gpuhal_job_name_problem(value);
    if (problem != NULL) {
        argp_error(state, "--%s is \"%s\": %s", option, value, problem);
        return EINVAL;
    }
    if (*count == CHECKS_NAMED_MAX) {
        argp_error(state, "--%s \"%s\": it may be given %d times", option, value, CHECKS_NAMED_MAX);
        return EINVAL;
    }
    list[(*count)++] = value;
    return 0;
}

/* Reads a number. @p what describes the option's values. */
static error_t take_number(const struct argp_state *state, const char *option, const char *value, uint64_t least,
                           uint64_t most, const char *what, uint64_t *out_number)
{
    return gpuhal_tool_read_number(value, least, most, out_number, NULL)
               ? 0
               : gpuhal_tool_mistake(state, option, value, what);
}

static error_t take_file(const struct argp_state *state, const char *value, gpuhal_check_options *options)
{
    if (options->file != NULL) {
        argp_error(state, "\"%s\": one plugin at a time", value);
        return EINVAL;
    }
    if (value[0] == '\0') {
        argp_error(state, "the name of the plugin is empty; it takes FILE.so or NAME.gpuhal");
        return EINVAL;
    }
    options->file = value;
    return 0;
}

static bool leaves_out(const char *except, const char *only)
{
    const size_t length = strlen(except);
    return strncmp(only, except, length) == 0 && (only[length] == '\0' || only[length] == '@');
}

/* A check named in both lists would not run, and the run would succeed. */
static error_t judge_names(const struct argp_state *state, const gpuhal_check_options *options)
{
    for (unsigned o = 0; o < options->only_count; o++) {
        for (unsigned e = 0; e < options->except_count; e++) {
            if (leaves_out(options->except[e], options->only[o])) {
                argp_error(state, "--only %s and --except %s leave nothing of that check", options->only[o],
                           options->except[e]);
                return EINVAL;
            }
        }
    }
    return 0;
}

/* The same holds for a check of a device other than the selected one. */
static error_t judge_devices(const struct argp_state *state, const gpuhal_check_options *options)
{
    for (unsigned o = 0; options->one_device && o < options->only_count; o++) {
        const char *at = strchr(options->only[o], '@');
        if (at != NULL && strtoul(at + 1, NULL, 10) != options->device) {
            argp_error(state, "--only %s is about device %s, and --device %" PRIu32 " checks device %" PRIu32 " only",
                       options->only[o], at + 1, options->device, options->device);
            return EINVAL;
        }
    }
    return 0;
}

/* The code is read here, so that a missing file is a usage error. */
static error_t judge_program(const struct argp_state *state, gpuhal_given *given)
{
    char problem[256];
    if ((given->file == NULL) != (given->kernel == NULL)) {
        argp_error(state, "--program and --kernel go together");
        return EINVAL;
    }
    if (given->file == NULL) {
        return 0;
    }
    if (!gpuhal_given_read_code(given, problem, sizeof problem)) {
        argp_error(state, "--program \"%s\": %s", given->file, problem);
        return EINVAL;
    }
    return 0;
}

static error_t judge(const struct argp_state *state, gpuhal_check_options *options)
{
    if (options->file == NULL && !options->list) {
        argp_error(state, "no plugin was given; it takes FILE.so or NAME.gpuhal");
        return EINVAL;
    }
    error_t error = judge_names(state, options);
    error = error ? error : judge_devices(state, options);
    return error ? error : judge_program(state, &options->given);
}

static error_t take_extent(const struct argp_state *state, const char *option, const char *value, uint32_t rest,
                           uint32_t extent[3])
{
    return gpuhal_given_read_extent(value, rest, extent)
               ? 0
               : gpuhal_tool_mistake(state, option, value, "one to three numbers from 1 on with commas between them");
}

static error_t parse_given(int key, const char *value, const struct argp_state *state, gpuhal_given *given)
{
    char problem[256];
    switch (key) {
    case OPTION_PROGRAM:
        given->file = value;
        return 0;
    case OPTION_KERNEL:
        given->kernel = value;
        return 0;
    case OPTION_FORMAT:
        given->format = value;
        return 0;
    case OPTION_BUILD:
        given->options = value;
        return 0;
    case OPTION_PARAMETERS:
        if (!gpuhal_given_read_parameters(given, value, problem, sizeof problem)) {
            argp_error(state, "--parameters \"%s\": %s", value, problem);
            return EINVAL;
        }
        return 0;
    case OPTION_GROUP_SIZE:
        return take_extent(state, "group-size", value, 1, given->group_size);
    case OPTION_GROUPS:
        return take_extent(state, "groups", value, 1, given->groups);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    gpuhal_check_options *options = state->input;
    uint64_t number = 0;
    error_t error = 0;
    switch (key) {
    case OPTION_ONLY:
        return take_check(state, "only", value, options->only, &options->only_count);
    case OPTION_EXCEPT:
        return take_check(state, "except", value, options->except, &options->except_count);
    case OPTION_DEVICE:
        error = take_number(state, "device", value, 0, UINT32_MAX, "the index of a device", &number);
        options->one_device = true;
        options->device = (uint32_t)number;
        return error;
    case OPTION_DEADLINE:
        error = take_number(state, "deadline", value, 1, 86400, "seconds from 1 to 86400", &number);
        options->deadline_s = (uint32_t)number;
        return error;
    case OPTION_EXPECT:
        options->expect = value;
        return 0;
    case OPTION_LIST:
        options->list = true;
        return 0;
    case OPTION_LARGE:
        options->large = true;
        return 0;
    case OPTION_JSON:
        options->form = &gpuhal_form_json;
        return 0;
    case ARGP_KEY_ARG:
        return take_file(state, value, options);
    case ARGP_KEY_END:
        return judge(state, options);
    default:
        return parse_given(key, value, state, &options->given);
    }
}

static void print_version(FILE *out)
{
    fprintf(out, "gpuhal-check %s, plugin ABI %u.%u\n", gpuhal_version(), gpuhal_abi_version() >> 16,
            gpuhal_abi_version() & 0xffffu);
}

int gpuhal_options_read(int argc, char **argv, FILE *out, gpuhal_check_options *out_options)
{
    static const struct argp argp = {known, parse, "FILE.so | NAME.gpuhal", doc, NULL, NULL, NULL};
    *out_options = (gpuhal_check_options){.out = out, .form = &gpuhal_form_tap, .given.groups = {4, 1, 1}};
    const int exit_code = gpuhal_tool_command_line("gpuhal-check", &argp, out_options, out, print_version, argc, argv);
    if (out_options->deadline_s == 0) {
        out_options->deadline_s = out_options->large ? LARGE_DEADLINE_S : DEADLINE_S;
    }
    return exit_code;
}
