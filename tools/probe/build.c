/* build.c: see build.h. */
#include "build.h"

#include "times.h"
#include "../common/utf8.h"

#include <stdlib.h>
#include <string.h>

void gpuhal_probe_put(gpuhal_probe_json *builder, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) {
        builder->failed = true;
    }
}

void gpuhal_probe_append(gpuhal_probe_json *builder, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) {
        builder->failed = true;
    }
}

json_t *gpuhal_probe_any_text(const char *text)
{
    char *clean = malloc(strlen(text) * 3 + 1);
    if (!clean) {
        return NULL;
    }
    size_t used = 0;
    while (*text) {
        uint32_t character;
        size_t length = gpuhal_tool_utf8_next(text, &character);
        memcpy(clean + used, length ? text : "\xef\xbf\xbd", length ? length : 3);
        used += length ? length : 3;
        text += length ? length : 1;
    }
    json_t *value = json_stringn(clean, used);
    free(clean);
    return value;
}

json_t *gpuhal_probe_text(const char *text)
{
    return text && *text ? gpuhal_probe_any_text(text) : json_null();
}

json_t *gpuhal_probe_number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

json_t *gpuhal_probe_time(uint64_t seconds)
{
    char stamp[GPUHAL_PROBE_TIME_BYTES];
    gpuhal_probe_format_stamp(seconds, stamp);
    return gpuhal_probe_text(stamp);
}

bool gpuhal_probe_json_print(const gpuhal_probe_json *builder, json_t *document, FILE *out)
{
    char *text = NULL;
    if (!builder->failed) {
        text = json_dumps(document, (builder->in_one_line ? JSON_COMPACT : JSON_INDENT(2)) | JSON_REAL_PRECISION(15));
    }
    bool printed = text != NULL;
    if (printed) {
        fprintf(out, "%s\n", text);
    }
    json_decref(document);
    free(text);
    return printed;
}
