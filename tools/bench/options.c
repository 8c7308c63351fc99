/* options.c: the command line. Every mistake in it is named, and ends the program before anything is measured. */
#include "options.h"
#include "statistics.h"

#include <gpuhal/gpuhal.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A verdict needs so many pairs; fewer are for smoke tests. */
enum { FEWEST_PAIRS = 15, USUAL_PAIRS = 31, QUICK_PAIRS = 3 };

static const uint64_t largest_size = UINT64_C(1) << 30;

/* The largest size takes half of the time of a run: without a baseline that is to be short. */
static const uint64_t largest_brief_size = UINT64_C(256) << 20;

static const struct {
    const char *name;
    uint32_t bit;
} groups[] = {
    {"call", GPUHAL_BENCH_CALL},         {"queue", GPUHAL_BENCH_QUEUE}, {"batch", GPUHAL_BENCH_BATCH},
    {"allocate", GPUHAL_BENCH_ALLOCATE}, {"open", GPUHAL_BENCH_OPEN},   {"share", GPUHAL_BENCH_SHARE},
    {"file", GPUHAL_BENCH_FILE},         {"copy", GPUHAL_BENCH_COPY},   {"pairs", GPUHAL_BENCH_PAIRS},
};

static const char help[] = "Usage: gpuhal-bench [OPTION]...\n"
                           "Measures libgpuhal, quickly; with --baseline beside the vendor's own calls and\n"
                           "memcpy, in one run, against its budgets.\n"
                           "\n"
                           "  --baseline         measure the vendor's own calls in alternating rounds, print\n"
                           "                     the ratio with its 95 % interval, and give a verdict\n"
                           "  --device SELECTOR  measure this device alone: opencl:1, cpu, name=glob ...\n"
                           "  --only GROUP,...   call, queue, batch, allocate, open, share, file, copy,\n"
                           "                     pairs; default: all\n"
                           "  --sizes SIZE,...   of the copies: 256, 64KiB, 1MiB ... up to 1GiB; default: 256 to\n"
                           "                     256MiB, with --baseline to 1GiB\n"
                           "  --pairs N          rounds of samples for a row, 15 to 999; default 31 with\n"
                           "                     --baseline\n"
                           "  --quick            few rounds and small sizes: shows that all runs, no verdict\n"
                           "  --json             print JSON Lines (schema gpuhal.bench/2), not a table;\n"
                           "                     gpuhal-plot draws them\n"
                           "  --callgrind-loop N ours|direct\n"
                           "                     make N blocking copies of 64 bytes on --device (cpu:0), by\n"
                           "                     the library or by the plugin's own function, and print\n"
                           "                     nothing: for counting instructions (instructions.sh)\n"
                           "  --help, --version\n"
                           "\n"
                           "A ratio is the baseline's time over ours: 1.0 is the same speed, more is faster.\n"
                           "A row fails when its whole 95 % interval lies on the wrong side of the budget.\n"
                           "What each row measures stands in docs/measurements/README.md.\n"
                           "\nExit status: 0 every budget held, 1 a budget or a call failed, 2 usage,\n"
                           "            3 no device, 5 the device was not found\n";

static bool usage(int *out_exit, const char *what, const char *word)
{
    fprintf(stderr, "gpuhal-bench: %s: %s (--help tells more)\n", what, word);
    *out_exit = GPUHAL_BENCH_EXIT_USAGE;
    return false;
}

static bool read_number(const char *word, uint64_t low, uint64_t high, uint64_t *out_number, const char **out_rest)
{
    if (*word < '0' || *word > '9') {
        return false;
    }
    char *rest;
    errno = 0;
    *out_number = strtoull(word, &rest, 10);
    *out_rest = rest;
    return errno == 0 && *out_number >= low && *out_number <= high;
}

static bool read_size(const char *word, uint64_t *out_bytes)
{
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = {{"", 0}, {"B", 0}, {"K", 10}, {"KiB", 10}, {"M", 20}, {"MiB", 20}, {"G", 30}, {"GiB", 30}};
    const char *rest;
    if (!read_number(word, 1, largest_size, out_bytes, &rest)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(rest, units[i].suffix) == 0 && *out_bytes <= largest_size >> units[i].shift) {
            *out_bytes <<= units[i].shift;
            return true;
        }
    }
    return false;
}

/* Hands each word of a comma list to @take; false at the first that is refused, which is left in @list. */
static bool each_word(char *list, bool (*take)(gpuhal_bench_options *options, const char *word), gpuhal_bench_options *options,
                      const char **out_word)
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
    return options->size_count < GPUHAL_BENCH_SIZES_MAX && read_size(word, &options->sizes[options->size_count]) &&
           ++options->size_count;
}

static bool take_group(gpuhal_bench_options *options, const char *word)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        if (strcmp(word, groups[i].name) == 0) {
            options->groups |= groups[i].bit;
            return true;
        }
    }
    return false;
}

static void set_defaults(gpuhal_bench_options *options)
{
    const uint64_t largest = options->baseline ? largest_size : largest_brief_size;
    options->sizes_given = options->size_count > 0;
    for (uint64_t bytes = 256; !options->sizes_given && bytes <= largest; bytes *= 4) {
        if (!options->quick || bytes == 256 || bytes == 64 << 10 || bytes == 1 << 20) {
            options->sizes[options->size_count++] = bytes;
        }
    }
    options->pairs_given = options->pairs > 0;
    if (!options->pairs_given) {
        options->pairs = options->quick ? QUICK_PAIRS : USUAL_PAIRS;
    }
    if (options->groups == 0) {
        options->groups = GPUHAL_BENCH_ALL;
    }
}

enum {
    OPTION_BASELINE = 256,
    OPTION_DEVICE,
    OPTION_ONLY,
    OPTION_SIZES,
    OPTION_PAIRS,
    OPTION_QUICK,
    OPTION_JSON,
    OPTION_CALLGRIND,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option long_options[] = {
    {"baseline", no_argument, NULL, OPTION_BASELINE},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"only", required_argument, NULL, OPTION_ONLY},
    {"sizes", required_argument, NULL, OPTION_SIZES},
    {"pairs", required_argument, NULL, OPTION_PAIRS},
    {"quick", no_argument, NULL, OPTION_QUICK},
    {"json", no_argument, NULL, OPTION_JSON},
    {"callgrind-loop", required_argument, NULL, OPTION_CALLGRIND},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static bool read_callgrind(int argc, char **argv, gpuhal_bench_options *options, int *out_exit)
{
    const char *rest;
    if (!read_number(optarg, 1, 1u << 30, &options->callgrind_count, &rest) || *rest != '\0') {
        return usage(out_exit, "--callgrind-loop wants a number of calls", optarg);
    }
    const char *kind = optind < argc ? argv[optind++] : "";
    if (strcmp(kind, "ours") != 0 && strcmp(kind, "direct") != 0) {
        return usage(out_exit, "--callgrind-loop wants ours or direct behind the number", kind);
    }
    options->callgrind_kind = kind;
    return true;
}

static bool read_option(int option, int argc, char **argv, gpuhal_bench_options *options, int *out_exit)
{
    const char *word;
    uint64_t number;
    switch (option) {
    case OPTION_BASELINE:
        options->baseline = true;
        return true;
    case OPTION_DEVICE:
        options->device = optarg;
        return true;
    case OPTION_ONLY:
        return each_word(optarg, take_group, options, &word) || usage(out_exit, "--only does not know the group", word);
    case OPTION_SIZES:
        return each_word(optarg, take_size, options, &word) || usage(out_exit, "--sizes wants 1 to 1GiB, at most 64 sizes", word);
    case OPTION_PAIRS:
        if (!read_number(optarg, FEWEST_PAIRS, GPUHAL_BENCH_SAMPLES_MAX, &number, &word) || *word != '\0') {
            return usage(out_exit, "--pairs wants 15 to 999", optarg);
        }
        options->pairs = number;
        return true;
    case OPTION_QUICK:
        options->quick = true;
        return true;
    case OPTION_JSON:
        options->json = true;
        return true;
    case OPTION_CALLGRIND:
        return read_callgrind(argc, argv, options, out_exit);
    case OPTION_HELP:
        fputs(help, stdout);
        *out_exit = GPUHAL_BENCH_EXIT_OK;
        return false;
    case OPTION_VERSION:
        printf("gpuhal-bench %s\n", gpuhal_version());
        *out_exit = GPUHAL_BENCH_EXIT_OK;
        return false;
    default: /* getopt_long() has said what is wrong. */
        fprintf(stderr, "gpuhal-bench --help lists the options\n");
        *out_exit = GPUHAL_BENCH_EXIT_USAGE;
        return false;
    }
}

bool gpuhal_bench_options_read(int argc, char **argv, gpuhal_bench_options *out_options, int *out_exit)
{
    *out_options = (gpuhal_bench_options){0};
    /* The program starts itself again for what must be measured in a fresh process. Not for users, so not in the help. */
    if (argc > 2 && strcmp(argv[1], "--child") == 0) {
        out_options->child = (const char *const *)&argv[2];
        return true;
    }
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (!read_option(option, argc, argv, out_options, out_exit)) {
            return false;
        }
    }
    if (optind < argc) {
        return usage(out_exit, "unexpected argument", argv[optind]);
    }
    set_defaults(out_options);
    return true;
}
