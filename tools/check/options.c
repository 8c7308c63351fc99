/* options.c: see options.h. */
#include "options.h"

#include "../common/command_line.h"
#include "../common/text.h"
#include "tap.h"

#include <gpuhal/instance.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { DEADLINE_S = 60, LARGE_DEADLINE_S = 600, MEMORY_CAP_MIB = 256 };

static const char doc[] =
    "Runs the conformance suite on a plugin, or on a manifest and the plugin that it names, and reports in TAP "
    "version 13.\v"
    "Exit status: 0 all passed, 1 failures, 2 usage, 3 the plugin cannot be loaded or lists no such device.";

enum {
    OPTION_LIST = GPUHAL_TOOL_KEY,
    OPTION_ONLY,
    OPTION_EXCEPT,
    OPTION_DEVICE,
    OPTION_DEADLINE,
    OPTION_EXPECT,
    OPTION_MEMORY_CAP,
    OPTION_LARGE
};

static const struct argp_option known[] = {
    {"list", OPTION_LIST, NULL, 0, "print the checks and leave", 0},
    {"only", OPTION_ONLY, "CHECK", 0, "run this check alone; CHECK@INDEX: on one device; may be repeated", 0},
    {"except", OPTION_EXCEPT, "CHECK", 0, "leave this check out; may be repeated; the first one always runs", 0},
    {"device", OPTION_DEVICE, "INDEX", 0, "check this device alone", 0},
    {"deadline", OPTION_DEADLINE, "SECONDS", 0, "time for each check (60; with --large 600)", 0},
    {"expect", OPTION_EXPECT, "FILE", 0,
     "expected failures, lines of 'check: reason' (FILE.so.expect, when it is there)", 0},
    {"memory-cap", OPTION_MEMORY_CAP, "MIB", 0, "exhaust devices with at most that much memory (256)", 0},
    {"large", OPTION_LARGE, NULL, 0, "also allocate more than 4 GiB", 0},
    {0},
};

/* Takes the name of a check into a list with room for @p most. @return NULL, or what is wrong with it */
static const char *take_check(const char *value, const char **list, unsigned *count, unsigned most)
{
    if (!gpuhal_job_is(NULL, value)) {
        return "no check has this name; --list shows them";
    }
    if (*count == most) {
        return "too many checks";
    }
    list[(*count)++] = value;
    return NULL;
}

/* @return NULL, or what is wrong with the value */
static const char *take(int key, const char *value, gpuhal_check_options *options)
{
    uint64_t parsed = 0;
    switch (key) {
    case OPTION_ONLY:
        return take_check(value, options->only, &options->only_count, sizeof options->only / sizeof *options->only);
    case OPTION_EXCEPT:
        return take_check(value, options->except, &options->except_count,
                          sizeof options->except / sizeof *options->except);
    case OPTION_DEVICE:
        options->one_device = true;
        if (!gpuhal_tool_read_number(value, 0, UINT32_MAX, &parsed, NULL)) {
            return "not the index of a device";
        }
        options->device = (uint32_t)parsed;
        return NULL;
    case OPTION_DEADLINE:
        if (!gpuhal_tool_read_number(value, 1, 86400, &parsed, NULL)) {
            return "not a number of seconds between 1 and 86400";
        }
        options->deadline_s = (uint32_t)parsed;
        return NULL;
    case OPTION_MEMORY_CAP:
        if (!gpuhal_tool_read_number(value, 0, UINT64_C(1) << 40, &parsed, NULL)) {
            return "not a number of MiB";
        }
        options->memory_cap = parsed << 20;
        return NULL;
    case OPTION_EXPECT:
        options->expect = value;
        return NULL;
    case OPTION_LIST:
        options->list = true;
        return NULL;
    default:
        options->large = true;
        return NULL;
    }
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    gpuhal_check_options *options = state->input;
    const char *problem = NULL;
    switch (key) {
    case ARGP_KEY_ARG:
        problem = options->file != NULL ? "one plugin at a time" : NULL;
        options->file = value;
        break;
    case ARGP_KEY_END:
        problem = options->file == NULL && !options->list ? "which plugin?" : NULL;
        value = NULL;
        break;
    default:
        if (key < OPTION_LIST || key > OPTION_LARGE) {
            return ARGP_ERR_UNKNOWN;
        }
        problem = take(key, value, options);
    }
    if (problem != NULL) {
        argp_error(state, "%s%s%s", value != NULL ? value : "", value != NULL ? ": " : "", problem);
    }
    return problem != NULL ? EINVAL : 0;
}

static void print_version(FILE *out)
{
    fprintf(out, "gpuhal-check %s, plugin ABI %u.%u\n", gpuhal_version(), gpuhal_abi_version() >> 16,
            gpuhal_abi_version() & 0xffffu);
}

int gpuhal_options_read(int argc, char **argv, gpuhal_check_options *out_options)
{
    static const struct argp argp = {known, parse, "FILE.so | NAME.gpuhal", doc, NULL, NULL, NULL};
    *out_options = (gpuhal_check_options){.memory_cap = (uint64_t)MEMORY_CAP_MIB << 20};
    const int exit_code =
        gpuhal_tool_command_line("gpuhal-check", &argp, out_options, stdout, print_version, argc, argv);
    if (out_options->deadline_s == 0) {
        out_options->deadline_s = out_options->large ? LARGE_DEADLINE_S : DEADLINE_S;
    }
    return exit_code;
}
