/* json.h: results as JSON Lines, schema "gpuhal.bench/2": a header, a line for each row, and the status of the run.
 * Every key is always there; values that do not apply are null. Each line is flushed, so that a stopped run leaves all
 * its results. */
#ifndef GPUHAL_BENCH_JSON_H
#define GPUHAL_BENCH_JSON_H

#include "options.h"
#include "row.h"

#include <stdio.h>

/* Prints an error that came before any result, instead of all lines; to standard output. */
void gpuhal_bench_json_error(int exit_code, const char *message);

/* Each prints one line. False if memory is short or the line was not written. */
bool gpuhal_bench_json_header(FILE *to, const gpuhal_bench_options *options, const char *cpu_name);
bool gpuhal_bench_json_row(FILE *to, const gpuhal_bench_row *row);
bool gpuhal_bench_json_totals(FILE *to, const gpuhal_bench_totals *totals);

#endif
