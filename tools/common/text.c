/* text.c: see text.h. */
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpuhal_tool_append(char *to, size_t bytes, const char *between, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(to);
    if (used > 0 && used + strlen(between) < bytes) {
        used += (size_t)snprintf(to + used, bytes - used, "%s", between);
    }
    va_start(arguments, format);
    vsnprintf(to + used, bytes - used, format, arguments);
    va_end(arguments);
}

double gpuhal_tool_scale_bytes(uint64_t bytes, const char **out_unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof units / sizeof *units) {
        value /= 1024;
        unit++;
    }
    *out_unit = units[unit];
    return value;
}

char *gpuhal_tool_trimmed(char *text)
{
    text += strspn(text, " \t");
    for (size_t length = strlen(text); length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL; length--) {
        text[length - 1] = '\0';
    }
    return text;
}

bool gpuhal_tool_read_number(const char *text, uint64_t low, uint64_t high, uint64_t *out_number, const char **out_rest)
{
    char *rest;
    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    *out_number = strtoull(text, &rest, 10);
    if (out_rest != NULL) {
        *out_rest = rest;
    }
    return errno == 0 && (out_rest != NULL || *rest == '\0') && *out_number >= low && *out_number <= high;
}

bool gpuhal_tool_read_size(const char *text, uint64_t high, uint64_t *out_bytes)
{
    static const struct {
        const char *suffix;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"K", UINT64_C(1) << 10},
                 {"KiB", UINT64_C(1) << 10},
                 {"M", UINT64_C(1) << 20},
                 {"MiB", UINT64_C(1) << 20},
                 {"G", UINT64_C(1) << 30},
                 {"GiB", UINT64_C(1) << 30},
                 {"T", UINT64_C(1) << 40},
                 {"TiB", UINT64_C(1) << 40},
                 {"kB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", UINT64_C(1000000000000)}};
    const char *rest;
    if (!gpuhal_tool_read_number(text, 0, high, out_bytes, &rest)) {
        return false;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(rest, units[i].suffix) == 0 && *out_bytes <= high / units[i].bytes) {
            *out_bytes *= units[i].bytes;
            return true;
        }
    }
    return false;
}

const char *gpuhal_tool_in_options(const char *sentence, const char *devices, char *space, size_t bytes)
{
    const char *const names[][2] = {
        {"config.backends", "--backends"}, {"config.devices", devices}, {"config.retry", "--retry"}};
    enum { NAMES = sizeof names / sizeof *names };
    size_t used = 0;
    bool quoted = false; /* quotes contain user input, which is copied unchanged */
    while (*sentence && used + 1 < bytes) {
        size_t n = quoted ? NAMES : 0;
        while (n < NAMES && strncmp(sentence, names[n][0], strlen(names[n][0])) != 0) {
            n++;
        }
        if (n < NAMES) {
            int count = snprintf(space + used, bytes - used, "%s", names[n][1]);
            used += count > 0 ? (size_t)count : 0;
            sentence += strlen(names[n][0]);
        } else {
            quoted = quoted != (*sentence == '"');
            space[used++] = *sentence++;
        }
    }
    space[used < bytes ? used : bytes - 1] = 0;
    return space;
}

bool gpuhal_tool_read_seconds(const char *text, double low, double high, uint64_t *out_ns)
{
    char *rest;
    errno = 0;
    const double seconds = strtod(text, &rest);
    const bool good = errno == 0 && rest != text && *rest == '\0' && seconds >= low && seconds <= high;
    *out_ns = good ? (uint64_t)(seconds * 1e9) : 0;
    return good;
}
