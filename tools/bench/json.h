/* json.h: results as JSON Lines in the schema "gpuhal.bench/2": a header, a line for each row, and the run's status.
 * All keys are always present; values that do not apply are null. Each line is flushed, so an interrupted run still
 * shows all its results. */
#ifndef GPUHAL_BENCH_JSON_H
#define GPUHAL_BENCH_JSON_H

#include "options.h"
#include "row.h"

#include <stdio.h>

/* Prints an error that occurred before any result. The error replaces all other lines on standard output. */
void gpuhal_bench_json_error(int exit_code, const char *message);

/* Each function prints one line. Returns false if memory is exhausted or the line was not written. */
bool gpuhal_bench_json_header(FILE *to, const gpuhal_bench_options *options, const char *cpu_name);
bool gpuhal_bench_json_row(FILE *to, const gpuhal_bench_row *row);
bool gpuhal_bench_json_totals(FILE *to, const gpuhal_bench_totals *totals);

#endif
