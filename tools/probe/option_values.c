/* option_values.c: see option_values.h. */
#include "option_values.h"

#include "../common/command_line.h"
#include "../common/text.h"

#include <stdlib.h>
#include <string.h>

bool gpuhal_probe_keep_one(struct argp_state *state, const char **to, const char *option, const char *value,
                           const char *remedy)
{
    if (*to) {
        argp_error(state, "--%s is given twice%s", option, remedy);
        return false;
    }
    if (!*value) {
        argp_error(state, "--%s is given without a value", option);
        return false;
    }
    *to = value;
    return true;
}

bool gpuhal_probe_keep_once(struct argp_state *state, const char **to, const char *option, const char *value)
{
    return gpuhal_probe_keep_one(state, to, option, value, "; separate several values by commas");
}

bool gpuhal_probe_keep_names(struct argp_state *state, const char **to, const char *option, const char *value)
{
    return gpuhal_probe_keep_once(state, to, option, value + strspn(value, ", \t"));
}

bool gpuhal_probe_keep_file(struct argp_state *state, const char **to, const char *option, const char *value)
{
    if (strcmp(value, "-") == 0) {
        argp_error(state, "--%s takes the name of a file, and \"-\" is not one", option);
        return false;
    }
    return gpuhal_probe_keep_one(state, to, option, value, "");
}

bool gpuhal_probe_keep_seconds(struct argp_state *state, uint64_t *to, const char *value)
{
    if (!gpuhal_tool_read_seconds(value, 0.01, 86400, to)) {
        gpuhal_tool_mistake(state, "timeout", value, "seconds from 0.01 to 86400");
        return false;
    }
    return true;
}

bool gpuhal_probe_keep_count(struct argp_state *state, uint32_t *to, const char *option, const char *value)
{
    char *end;
    const unsigned long count = strspn(value, "0123456789") ? strtoul(value, &end, 10) : 0;
    if (count == 0 || *end || count > 1000) {
        gpuhal_tool_mistake(state, option, value, "a number from 1 to 1000");
        return false;
    }
    *to = (uint32_t)count;
    return true;
}

bool gpuhal_probe_keep_period(struct argp_state *state, uint64_t *to, const char *option, const char *value)
{
    if (!gpuhal_tool_read_seconds(value, 0.1, 86400, to)) {
        gpuhal_tool_mistake(state, option, value, "seconds from 0.1 to 86400");
        return false;
    }
    return true;
}

static const char *const formats[] = {
    [PROBE_FORMAT_TABLE] = "table",           [PROBE_FORMAT_WIDE] = "wide", [PROBE_FORMAT_JSON] = "json",
    [PROBE_FORMAT_JSON_LINES] = "jsonl",      [PROBE_FORMAT_CSV] = "csv",   [PROBE_FORMAT_OPENMETRICS] = "openmetrics",
    [PROBE_FORMAT_PROMETHEUS] = "prometheus", [PROBE_FORMAT_GRES] = "gres", [PROBE_FORMAT_CDI] = "cdi",
};

const char *gpuhal_probe_format_name(gpuhal_probe_format format)
{
    return formats[format];
}

/* Returns the index of the word in the list, or `count` if the list does not contain the word. */
static size_t find_word(const char *const *words, size_t count, const char *value)
{
    size_t place = 0;
    while (place < count && (!words[place] || strcmp(words[place], value) != 0)) {
        place++;
    }
    return place;
}

/* Sets the format. A second, different format is an error, because one of the two formats would be ignored. */
static bool set_format(struct argp_state *state, gpuhal_probe_options *options, gpuhal_probe_format format)
{
    if (options->format_given && options->format != format) {
        argp_error(state, "two formats are given; give one of them");
        return false;
    }
    options->format = format;
    options->format_given = true;
    return true;
}

bool gpuhal_probe_keep_format(struct argp_state *state, gpuhal_probe_options *options, const char *value)
{
    const size_t count = sizeof formats / sizeof *formats, format = find_word(formats, count, value);
    if (format == count) {
        gpuhal_tool_mistake(state, "format", value,
                            "table, wide, json, jsonl, csv, openmetrics, prometheus, gres or cdi");
        return false;
    }
    return set_format(state, options, (gpuhal_probe_format)format);
}

bool gpuhal_probe_keep_json(struct argp_state *state, gpuhal_probe_options *options, const char *value)
{
    static const char *const versions[] = {"1", "2"};
    const size_t version = value ? find_word(versions, 2, value) : 1;
    if (version == 2) {
        gpuhal_tool_mistake(state, "json", value, "1 or 2, or nothing");
        return false;
    }
    options->json_version = (uint32_t)version + 1;
    return set_format(state, options, PROBE_FORMAT_JSON);
}

bool gpuhal_probe_keep_check(struct argp_state *state, gpuhal_probe_options *options, const char *value)
{
    if (strcmp(value, "healthy") != 0) {
        gpuhal_tool_mistake(state, "check", value, "healthy");
        return false;
    }
    options->check = true;
    return true;
}

bool gpuhal_probe_keep_color(struct argp_state *state, gpuhal_probe_options *options, const char *value)
{
    static const char *const words[] = {
        [PROBE_COLOR_AUTO] = "auto", [PROBE_COLOR_ALWAYS] = "always", [PROBE_COLOR_NEVER] = "never"};
    const size_t color = find_word(words, sizeof words / sizeof *words, value);
    if (color == sizeof words / sizeof *words) {
        gpuhal_tool_mistake(state, "color", value, "auto, always or never");
        return false;
    }
    options->color = (gpuhal_probe_color)color;
    return true;
}
