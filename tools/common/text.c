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

bool gpuhal_tool_read_seconds(const char *text, double low, double high, uint64_t *out_ns)
{
    char *rest;
    errno = 0;
    const double seconds = strtod(text, &rest);
    const bool good = errno == 0 && rest != text && *rest == '\0' && seconds >= low && seconds <= high;
    *out_ns = good ? (uint64_t)(seconds * 1e9) : 0;
    return good;
}
