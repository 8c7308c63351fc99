/* build.h: building a JSON document without looking at each step. */
#ifndef PROBE_BUILD_H
#define PROBE_BUILD_H

#include "../common/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* `failed`: something was lost. */
typedef struct gpuhal_probe_json {
    bool failed;
    bool in_one_line;
} gpuhal_probe_json;

/* Both take the value over; NULL counts as lost. */
void gpuhal_probe_put(gpuhal_probe_json *builder, json_t *object, const char *key, json_t *value);
void gpuhal_probe_append(gpuhal_probe_json *builder, json_t *array, json_t *value);
/* JSON itself has no limit here; jansson's integers end at 2^63 - 1, and what is above loses its last digits. */
json_t *gpuhal_probe_number(uint64_t value);
/* Prints the document and gives it up. false when something was lost. */
bool gpuhal_probe_json_print(const gpuhal_probe_json *builder, json_t *document, FILE *out);

#endif
