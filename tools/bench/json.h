/* json.h: results as JSON Lines, schema "gpuhal.bench/2": a header, a line for each row, and the status of the run.
 * Every key is always there; what does not apply is null. Each line is flushed: a run that is stopped leaves all that
 * it has measured. */
#ifndef GPUHAL_BENCH_JSON_H
#define GPUHAL_BENCH_JSON_H

#include "options.h"
#include "row.h"

#include <stdio.h>

/* What went wrong before there was a result, in the place of all lines; to standard output. */
void gpuhal_bench_json_error(int exit_code, const char *message);

/* Each prints one line. False when memory is short or the line was not written. */
bool gpuhal_bench_json_header(FILE *to, const gpuhal_bench_options *options, const char *cpu_name);
bool gpuhal_bench_json_row(FILE *to, const gpuhal_bench_row *row);
bool gpuhal_bench_json_totals(FILE *to, const gpuhal_bench_totals *totals);

#endif
