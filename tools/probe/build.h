/* build.h: building a JSON document without looking at each step. */
#ifndef PROBE_BUILD_H
#define PROBE_BUILD_H

#include <jansson.h>
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
/* A text in which bytes that are no UTF-8 (file names may hold any) became U+FFFD. */
json_t *gpuhal_probe_any_text(const char *text);
/* null for NULL and "". */
json_t *gpuhal_probe_text(const char *text);
/* JSON itself has no limit here; jansson's integers end at 2^63 - 1, and what is above loses its last digits. */
json_t *gpuhal_probe_number(uint64_t value);
/* "2026-11-21T13:03:00Z" for seconds since 1970; null for 0. */
json_t *gpuhal_probe_time(uint64_t seconds);
/* Prints the document and gives it up. false when something was lost. */
bool gpuhal_probe_json_print(const gpuhal_probe_json *builder, json_t *document, FILE *out);

#endif
