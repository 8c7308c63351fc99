/* options.c: the command line. Any error in the command line is reported and ends the program before it measures. */
#include "options.h"
#include "../common/command_line.h"
#include "../common/text.h"
#include "statistics.h"

#include <gpuhal/gpuhal.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { USUAL_PAIRS = 31, QUICK_PAIRS = 3 };

static const uint64_t usual_hang_ns = UINT64_C(30000000000); /* gpuhal_config.hang_ns */
static const uint64_t largest_size = UINT64_C(1) << 30;

/* The largest size takes half of a run's time, and a run without a baseline should be short. */
static const uint64_t largest_brief_size = UINT64_C(256) << 20;

static const char *const groups[GPUHAL_BENCH_GROUPS] = {
    [GPUHAL_BENCH_CALL] = "call",         [GPUHAL_BENCH_QUEUE] = "queue", [GPUHAL_BENCH_BATCH] = "batch",
    [GPUHAL_BENCH_ALLOCATE] = "allocate", [GPUHAL_BENCH_OPEN] = "open",   [GPUHAL_BENCH_SHARE] = "share",
    [GPUHAL_BENCH_FILE] = "file",         [GPUHAL_BENCH_COPY] = "copy",   [GPUHAL_BENCH_PAIRS] = "pairs",
    [GPUHAL_BENCH_SAMPLE] = "sample",     [GPUHAL_BENCH_BLOCKS] = "blocks",
    [GPUHAL_BENCH_PLACE] = "place",       [GPUHAL_BENCH_LAUNCH] = "launch",
    [GPUHAL_BENCH_RECORDING] = "recording",
};

static const char doc[] =
    "Measures the costs of libgpuhal: opening, calls, queues, allocations, copies. With --baseline it also measures "
    "memcpy and other plain references in the same run, and compares the difference with a budget. The vendors' own "
    "calls are in gpuhal-bench-baseline, a program of the build tree.\v"
    "A ratio is the baseline's time over gpuhal's time: at 1.0 both are equally fast, above it gpuhal is faster. A row "
    "fails when its whole "
    "95 "
    "% interval lies on the wrong side of the budget. docs/measurements/README.md describes each row.\n\n"
    "Exit status: 0 every budget held, 1 a budget or a call failed, or a driver hangs, 2 usage, 3 no device, 5 the "
    "device "
    "was not found.";

enum {
    OPTION_BASELINE = GPUHAL_TOOL_KEY,
    OPTION_DEVICE,
    OPTION_ONLY,
    OPTION_SIZES,
    OPTION_PAIRS,
    OPTION_QUICK,
    OPTION_JSON,
    OPTION_HANG,
    OPTION_REPLAY
};

#define GROUPS "call, queue, batch, launch, recording, allocate, open, sample, share, file, copy, pairs, blocks, place"

static const struct argp_option known[] = {
    {"baseline", OPTION_BASELINE, NULL, 0, "also measure the baselines, in alternating rounds", 0},
    {"device", OPTION_DEVICE, "SELECTOR", 0, "measure this device only: opencl:1, cpu, name=GLOB ...", 0},
    {"only", OPTION_ONLY, "GROUP,...", 0, "groups of rows: " GROUPS " (all)", 0},
    {"sizes", OPTION_SIZES, "SIZE,...", 0,
     "sizes of copies, 1 to 1GiB, as 256,64KiB,1MiB (256 to 256MiB, with --baseline to 1GiB)", 0},
    {"pairs", OPTION_PAIRS, "N", 0, "rounds of samples for each row, 15 to 999 (31)", 0},
    {"quick", OPTION_QUICK, NULL, 0, "few rounds and small sizes: shows that everything runs; budgets do not count", 0},
    {"json", OPTION_JSON, NULL, 0, "print JSON Lines (gpuhal.bench/2), which gpuhal-plot draws, instead of a table", 0},
    {"replay", OPTION_REPLAY, "FILE", 0,
     "instead of groups: send the requests of a trace of pools, or of a log of RMM, to a pool on --device (cpu:0), and "
     "with --baseline also to the driver; -: standard input",
     0},
    {"hang", OPTION_HANG, "SECONDS", 0, "end the run if a driver does not return from a call in this time (30)", 0},
    {0},
};

/* Calls @take with each word of a comma-separated list. Returns false at the first refused word and stores it in
 * *out_word. */
static bool each_word(char *list, bool (*take)(gpuhal_bench_options *options, const char *word),
                      gpuhal_bench_options *options, const char **out_word)
{
    *out_word = list;
    for (char *word = list; word != NULL;) {
        char *comma = strchr(word, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        *out_word = word;
        if (!take(options, word)) {
            return false;
        }
        word = comma;
    }
    return true;
}

static bool take_size(gpuhal_bench_options *options, const char *word)
{
    uint64_t *size = &options->sizes[options->size_count];
    return options->size_count < GPUHAL_BENCH_SIZES_MAX && gpuhal_tool_read_size(word, largest_size, size) &&
           *size > 0 && ++options->size_count;
}

static bool take_group(gpuhal_bench_options *options, const char *word)
{
    for (unsigned group = 0; group < GPUHAL_BENCH_GROUPS; group++) {
        if (strcmp(word, groups[group]) == 0) {
            options->groups |= 1u << group;
            return true;
        }
    }
    return false;
}

static void set_defaults(gpuhal_bench_options *options)
{
    const uint64_t largest = options->baseline ? largest_size : largest_brief_size;
    const bool sizes_given = options->size_count > 0;
    for (uint64_t bytes = 256; !sizes_given && bytes <= largest; bytes *= 4) {
        if (!options->quick || bytes == 256 || bytes == 64 << 10 || bytes == 1 << 20) {
            options->sizes[options->size_count++] = bytes;
        }
    }
    options->pairs_given = options->pairs > 0;
    if (!options->pairs_given) {
        options->pairs = options->quick ? QUICK_PAIRS : USUAL_PAIRS;
    }
    if (options->groups == 0) {
        options->groups = (1u << GPUHAL_BENCH_GROUPS) - 1;
    }
}

static error_t parse(int key, char *value, struct argp_state *state)
{
    gpuhal_bench_options *options = state->input;
    const char *word;
    uint64_t number;
    switch (key) {
    case OPTION_BASELINE:
        options->baseline = true;
        return 0;
    case OPTION_DEVICE:
        options->device = value;
        return 0;
    case OPTION_ONLY:
        return each_word(value, take_group, options, &word)
                   ? 0
                   : gpuhal_tool_mistake(state, "only", word, "groups of rows, with commas: " GROUPS);
    case OPTION_SIZES:
        return each_word(value, take_size, options, &word)
                   ? 0
                   : gpuhal_tool_mistake(state, "sizes", word, "at most 64 sizes from 1 to 1GiB");
    case OPTION_PAIRS:
        if (!gpuhal_tool_read_number(value, GPUHAL_BENCH_PAIRS_MIN, GPUHAL_BENCH_SAMPLES_MAX, &number, NULL)) {
            return gpuhal_tool_mistake(state, "pairs", value, "a number from 15 to 999");
        }
        options->pairs = (size_t)number;
        return 0;
    case OPTION_QUICK:
        options->quick = true;
        return 0;
    case OPTION_JSON:
        options->json = true;
        return 0;
    case OPTION_REPLAY:
        options->replay = value;
        return 0;
    case OPTION_HANG:
        return gpuhal_tool_read_seconds(value, 0.1, 86400, &options->hang_ns)
                   ? 0
                   : gpuhal_tool_mistake(state, "hang", value, "seconds from 0.1 to 86400");
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument \"%s\"", value);
        return EINVAL;
    case ARGP_KEY_END:
        set_defaults(options);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void print_version(FILE *out)
{
    fprintf(out, "gpuhal-bench %s\n", gpuhal_version());
}

bool gpuhal_bench_options_read(int argc, char **argv, gpuhal_bench_options *out_options, int *out_exit)
{
    static const struct argp argp = {known, parse, NULL, doc, NULL, NULL, NULL};
    *out_options = (gpuhal_bench_options){.hang_ns = usual_hang_ns};
    /* The program runs itself with this option to measure in a fresh process. The option is not for users, so the help
     * does not list it. */
    if (argc > 2 && strcmp(argv[1], "--child") == 0) {
        out_options->child = (const char *const *)&argv[2];
        return true;
    }
    *out_exit = gpuhal_tool_command_line("gpuhal-bench", &argp, out_options, stdout, print_version, argc, argv);
    return *out_exit == GPUHAL_TOOL_GO_ON;
}
