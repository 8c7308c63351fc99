/* build.h: builds a JSON document without a check at each step. */
#ifndef PROBE_BUILD_H
#define PROBE_BUILD_H

#include "../common/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* `failed`: a value was lost. */
typedef struct gpuhal_probe_json {
    bool failed;
    bool in_one_line;
} gpuhal_probe_json;

/* Both take the value over; NULL counts as lost. */
void gpuhal_probe_put(gpuhal_probe_json *builder, json_t *object, const char *key, json_t *value);
void gpuhal_probe_append(gpuhal_probe_json *builder, json_t *array, json_t *value);
/* Makes a number. JSON itself has no limit here; jansson's integers end at 2^63 - 1, and larger numbers lose their last
 * digits. */
json_t *gpuhal_probe_number(uint64_t value);
/* Prints the document and releases it. Returns false when a value was lost. */
bool gpuhal_probe_json_print(const gpuhal_probe_json *builder, json_t *document, FILE *out);

#endif
