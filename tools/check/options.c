/* options.c: reads the command line, and says what may stand in it. */
#include "options.h"

#include "tap.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEADLINE_S = 60, LARGE_DEADLINE_S = 600, MEMORY_CAP_MIB = 256 };

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},         {"version", no_argument, NULL, 'V'},
    {"list", no_argument, NULL, 'l'},         {"only", required_argument, NULL, 'o'},
    {"device", required_argument, NULL, 'd'}, {"deadline", required_argument, NULL, 't'},
    {"expect", required_argument, NULL, 'e'}, {"memory-cap", required_argument, NULL, 'm'},
    {"large", no_argument, NULL, 'L'},        {"except", required_argument, NULL, 'x'},
    {NULL, 0, NULL, 0},
};

void gpuhal_options_help(void)
{
    fputs("Usage: gpuhal-check [OPTION]... FILE.so | NAME.gpuhal\n"
          "Runs the conformance suite on a plugin, or on a manifest and the plugin that it names, and reports in TAP version 13.\n"
          "\n"
          "  --list              print the checks and leave\n"
          "  --only CHECK        run this check alone; CHECK@INDEX: on one device; may be repeated\n"
          "  --except CHECK      leave this check out; may be repeated; the first one always runs\n"
          "  --device INDEX      check this device alone\n"
          "  --deadline SECONDS  time for each check (60; with --large 600)\n"
          "  --expect FILE       expected failures, lines of 'check: reason' (FILE.so.expect, when it is there)\n"
          "  --memory-cap MIB    exhaust devices with at most that much memory (256)\n"
          "  --large             also allocate more than 4 GiB\n"
          "  --help, --version\n"
          "\n"
          "Exit status: 0 all passed, 1 failures, 2 usage, 3 the plugin cannot be loaded or lists no such device.\n",
          stdout);
}

/* Digits alone: strtoull() would take a sign, spaces, and nothing at all. */
static bool number(const char *text, uint64_t most, uint64_t *out_number)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    *out_number = value;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value <= most;
}

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
static const char *take(int option, const char *value, gpuhal_check_options *options)
{
    uint64_t parsed = 0;
    switch (option) {
    case 'o':
        return take_check(value, options->only, &options->only_count, sizeof options->only / sizeof *options->only);
    case 'x':
        return take_check(value, options->except, &options->except_count, sizeof options->except / sizeof *options->except);
    case 'd':
        options->one_device = true;
        if (!number(value, UINT32_MAX, &parsed)) {
            return "not the index of a device";
        }
        options->device = (uint32_t)parsed;
        return NULL;
    case 't':
        if (!number(value, 86400, &parsed) || parsed == 0) {
            return "not a number of seconds between 1 and 86400";
        }
        options->deadline_s = (uint32_t)parsed;
        return NULL;
    case 'm':
        if (!number(value, UINT64_C(1) << 40, &parsed)) {
            return "not a number of MiB";
        }
        options->memory_cap = parsed << 20;
        return NULL;
    case 'e':
        options->expect = value;
        return NULL;
    default:
        options->large = true;
        return NULL;
    }
}

gpuhal_errand gpuhal_options_parse(int argc, char **argv, gpuhal_check_options *out_options, char *out_problem, size_t size)
{
    *out_options = (gpuhal_check_options){.memory_cap = (uint64_t)MEMORY_CAP_MIB << 20};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":", long_options, NULL)) != -1;) {
        if (option == 'h' || option == 'V' || option == 'l') {
            return option == 'h' ? ERRAND_HELP : option == 'V' ? ERRAND_VERSION : ERRAND_LIST;
        }
        if (option == '?' || option == ':') {
            snprintf(out_problem, size, "%s: %s", argv[optind - 1], option == ':' ? "a value is missing" : "no such option");
            return ERRAND_USAGE;
        }
        const char *problem = take(option, optarg, out_options);
        if (problem != NULL) {
            snprintf(out_problem, size, "%s: %s", optarg, problem);
            return ERRAND_USAGE;
        }
    }
    if (argc - optind != 1) {
        snprintf(out_problem, size, argc == optind ? "which plugin?" : "one plugin at a time");
        return ERRAND_USAGE;
    }
    if (out_options->deadline_s == 0) {
        out_options->deadline_s = out_options->large ? LARGE_DEADLINE_S : DEADLINE_S;
    }
    out_options->file = argv[optind];
    return ERRAND_CHECK;
}
