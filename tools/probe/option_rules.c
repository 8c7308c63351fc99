/* option_rules.c: see option_rules.h. For each option, a table lists the tasks, formats and other options with which
 * the option would silently be ignored. Further checks reject conflicting options. All other combinations are allowed.
 * JSON always includes --all, --explain and --timings, and --color is only a preference for any text that is
 * printed. */
#include "option_rules.h"

#include "fields.h"
#include "option_values.h"

#include <stddef.h>
#include <stdlib.h>

/* Tasks, formats and options with which other options may have no effect. */
enum {
    REGISTRY = 1u << 0,
    DIFF = 1u << 1,
    FORGET = 1u << 2,
    EXPORT = 1u << 3,
    IMPORT = 1u << 4,
    TASKS = REGISTRY | DIFF | FORGET | EXPORT | IMPORT, /* tasks on the machine's record */
    REPORT = 1u << 5,
    TARGET = 1u << 6,
    WATCH = 1u << 7,
    JSON = 1u << 8,
    CSV = 1u << 9,
    METRICS = 1u << 10,
    GRES = 1u << 11,
    WIDE = 1u << 12,
    CDI = 1u << 13,
    PROGRAMS = CSV | METRICS | GRES | CDI, /* formats without sections for people */
    CACHED = 1u << 14,
    CHECK = 1u << 15,
};

typedef struct form {
    unsigned bit;
    const char *name;
    bool given;
} form;

typedef struct rule {
    const char *name;
    bool given;
    unsigned beside; /* forms with which the option would be ignored */
} rule;

/* Returns a given form with which the option would be ignored; NULL if there is none. */
static const form *ignores(const form *forms, size_t count, unsigned beside)
{
    for (size_t i = 0; i < count; i++) {
        if (forms[i].given && (forms[i].bit & beside)) {
            return &forms[i];
        }
    }
    return NULL;
}

static bool check(struct argp_state *state, const gpuhal_probe_options *options, const form *forms, size_t count)
{
    const bool json = options->format == PROBE_FORMAT_JSON;
    const rule rules[] = {
        {"json", json, (TASKS & ~(unsigned)(REGISTRY | DIFF)) | REPORT | TARGET},
        {"json=1", json && options->json_version == 1, CHECK},
        {"format", options->format_given && !json, TASKS | REPORT | TARGET | CHECK},
        {"columns", options->columns != NULL,
         TASKS | REPORT | TARGET | WATCH | JSON | METRICS | GRES | CDI | WIDE | CHECK},
        {"watch", options->watch_ns != 0, TASKS | REPORT | TARGET},
        {"output", options->output != NULL, TASKS | REPORT | TARGET | WATCH},
        {"every", options->every_ns != 0, TASKS | REPORT | TARGET | WATCH | CHECK},
        {"strict", options->strict, TASKS | REPORT | WATCH},
        {"expect", options->expected != 0, TASKS | REPORT | TARGET | WATCH | CACHED}, /* no GPU is read with --cached */
        {"cached", options->cached, TASKS | WATCH},
        {"refresh", options->refresh, TASKS & ~(unsigned)DIFF},
        {"explain", options->explain, TASKS | REPORT | WATCH | PROGRAMS | CHECK},
        {"report", options->report != NULL, TASKS | TARGET},
        {"verify", options->verify, TASKS | TARGET | WATCH},
        {"timings", options->timings, TASKS | REPORT | TARGET | WATCH | PROGRAMS | CHECK},
        {"env", options->environment, TASKS | REPORT | TARGET | WATCH | PROGRAMS | CHECK},
        {"all", options->all, (TASKS & ~(unsigned)REGISTRY) | REPORT | TARGET | CHECK},
        {"processes", options->processes, TASKS | REPORT | TARGET | WATCH | PROGRAMS | CACHED | CHECK},
        {"check", options->check, TASKS | REPORT | TARGET | WATCH | CACHED},
        {"links", options->links, TASKS | TARGET | WATCH | PROGRAMS | CHECK},
        {"device", options->device != NULL, TASKS},
        {"backends", options->backends != NULL, TASKS & ~(unsigned)DIFF},
        {"timeout", options->timeout_ns != 0, TASKS & ~(unsigned)DIFF},
        {"retry", options->retry != NULL, TASKS & ~(unsigned)DIFF},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const form *other = rules[i].given ? ignores(forms, count, rules[i].beside) : NULL;
        if (other) {
            argp_error(state, "--%s has no effect beside --%s", rules[i].name, other->name);
            return false;
        }
    }
    return true;
}

/* Checks that at most one task on the record is given. The list of forms begins with these tasks. */
static bool is_one_task(struct argp_state *state, const form *forms, size_t count)
{
    const form *task = NULL;
    for (size_t i = 0; i < count && (forms[i].bit & TASKS); i++) {
        if (forms[i].given && task) {
            argp_error(state, "--%s and --%s are two tasks; give one of them", task->name, forms[i].name);
            return false;
        }
        task = forms[i].given ? &forms[i] : task;
    }
    return true;
}

static bool columns_exist(struct argp_state *state, const gpuhal_probe_options *options)
{
    char sentence[256];
    if (!options->columns || options->format != PROBE_FORMAT_CSV) {
        return true;
    }
    const gpuhal_probe_field **columns = gpuhal_probe_fields_read(options->columns, sentence);
    if (!columns) {
        argp_error(state, "--columns: %s", sentence);
    }
    free(columns);
    return columns != NULL;
}

/* Checks that the format can be repeated. --watch prints no format except JSON Lines. Without --output, --every
 * requires CSV or JSON Lines, because in the other formats a second listing must not follow the first. */
static bool can_repeat(struct argp_state *state, const gpuhal_probe_options *options)
{
    const gpuhal_probe_format format = options->format;
    if (options->watch_ns && options->format_given && format != PROBE_FORMAT_JSON_LINES) {
        argp_error(state, "--watch prints no %s; --every SECONDS does", gpuhal_probe_format_name(format));
        return false;
    }
    if (options->every_ns && !options->output && format != PROBE_FORMAT_CSV && format != PROBE_FORMAT_JSON_LINES) {
        argp_error(state, "--every takes --output FILE, or --format csv or jsonl");
        return false;
    }
    return true;
}

bool gpuhal_probe_options_go_together(struct argp_state *state, const gpuhal_probe_options *options)
{
    const gpuhal_probe_format format = options->format;
    const form forms[] = {
        {REGISTRY, "registry", options->registry},
        {DIFF, "diff", options->diff},
        {FORGET, "forget", options->forget != NULL},
        {EXPORT, "export", options->export_to != NULL},
        {IMPORT, "import", options->import_from != NULL},
        {REPORT, "report", options->report != NULL},
        {TARGET, "explain TARGET", options->target != NULL},
        {WATCH, "watch", options->watch_ns != 0},
        {JSON, "format json", format == PROBE_FORMAT_JSON},
        {JSON, "format jsonl", format == PROBE_FORMAT_JSON_LINES},
        {CSV, "format csv", format == PROBE_FORMAT_CSV},
        {METRICS, "format openmetrics", format == PROBE_FORMAT_OPENMETRICS},
        {METRICS, "format prometheus", format == PROBE_FORMAT_PROMETHEUS},
        {GRES, "format gres", format == PROBE_FORMAT_GRES},
        {CDI, "format cdi", format == PROBE_FORMAT_CDI},
        {WIDE, "format wide", format == PROBE_FORMAT_WIDE},
        {CACHED, "cached", options->cached},
        {CHECK, "check", options->check},
    };
    const size_t count = sizeof forms / sizeof *forms;
    if (options->refresh && options->retry) {
        argp_error(state, "--refresh and --retry are given; give one of them");
        return false;
    }
    if (options->accept && !options->diff) {
        argp_error(state, "--accept has an effect beside --diff only");
        return false;
    }
    return is_one_task(state, forms, count) && check(state, options, forms, count) && can_repeat(state, options) &&
           columns_exist(state, options);
}
