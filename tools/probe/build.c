/* build.c: see build.h. */
#include "build.h"

#include <stdlib.h>

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

json_t *gpuhal_probe_number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
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
