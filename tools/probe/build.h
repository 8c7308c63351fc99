/* build.h: builds a JSON document without error checks at each step. */
#ifndef PROBE_BUILD_H
#define PROBE_BUILD_H

#include "../common/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* `failed` is set if a value could not be created or added. */
typedef struct gpuhal_probe_json {
    bool failed;
    bool in_one_line;
} gpuhal_probe_json;

/* Both functions take ownership of the value; NULL sets `failed`. */
void gpuhal_probe_put(gpuhal_probe_json *builder, json_t *object, const char *key, json_t *value);
void gpuhal_probe_append(gpuhal_probe_json *builder, json_t *array, json_t *value);
/* Creates a number. JSON does not limit integers, but jansson's maximum is 2^63 - 1; larger numbers lose precision. */
json_t *gpuhal_probe_number(uint64_t value);
/* Prints the document and releases it. Returns false if `failed` is set, or if out of memory. */
bool gpuhal_probe_json_print(const gpuhal_probe_json *builder, json_t *document, FILE *out);

#endif
