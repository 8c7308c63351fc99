/* json.h: results as JSON, schema "gpuhal.bench/1". Every key is always there; what does not apply is null. */
#ifndef GPUHAL_BENCH_JSON_H
#define GPUHAL_BENCH_JSON_H

#include "output.h"

#include <jansson.h>

#include <stdio.h>

/* The verdict on a row: 1 good, 0 failed, -1 none, because it has no budget. */
int gpuhal_bench_verdict(const gpuhal_bench_row *row);

/* The whole document without results, and one result. NULL when memory is short. */
json_t *gpuhal_bench_json_document(const gpuhal_bench_options *options, const char *cpu_name);
json_t *gpuhal_bench_json_row(const gpuhal_bench_row *row);

/* The result of what could not be measured. */
json_t *gpuhal_bench_json_error(const char *device, const char *test, const char *why);

/* Results as CSV: the names of the columns, which are the keys of a result, and one result; null is an empty field. */
void gpuhal_bench_csv_header(FILE *to);
void gpuhal_bench_csv_row(FILE *to, const json_t *row);

#endif
