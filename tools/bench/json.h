/* json.h: results as JSON, schema "gpuhal.bench/1". Every key is always there; what does not apply is null.
 *
 * The document is written piece by piece, and each result is flushed: a run that is stopped leaves all that it has measured, a
 * member a line, and each result closed by a line of "    }". */
#ifndef GPUHAL_BENCH_JSON_H
#define GPUHAL_BENCH_JSON_H

#include "output.h"

#include <jansson.h>

#include <stdio.h>

/* The verdict on a row: 1 good, 0 failed, -1 none, because it has no budget. */
int gpuhal_bench_verdict(const gpuhal_bench_row *row);

/* All that comes before the results, one result of the two kinds below, and what comes behind them. False when memory is short.
 */
bool gpuhal_bench_json_begin(FILE *to, const gpuhal_bench_options *options, const char *cpu_name);
void gpuhal_bench_json_result(FILE *to, const json_t *result, bool is_first);
void gpuhal_bench_json_end(FILE *to);

json_t *gpuhal_bench_json_row(const gpuhal_bench_row *row);

/* The result of what could not be measured. */
json_t *gpuhal_bench_json_error(const char *device, const char *test, const char *why);

/* Results as CSV: the names of the columns, which are the keys of a result, and one result; null is an empty field. */
void gpuhal_bench_csv_header(FILE *to);
void gpuhal_bench_csv_row(FILE *to, const json_t *row);

#endif
