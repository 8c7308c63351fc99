/* output.h: prints rows as soon as they are measured. */
#ifndef GPUHAL_BENCH_OUTPUT_H
#define GPUHAL_BENCH_OUTPUT_H

#include "options.h"
#include "row.h"

typedef struct gpuhal_bench_output gpuhal_bench_output;

/* Starts the output. Returns NULL and sets gpuhal_bench_failure() on failure. */
gpuhal_bench_output *gpuhal_bench_output_create(const gpuhal_bench_options *options, const char *cpu_name);
void gpuhal_bench_output_destroy(gpuhal_bench_output *output);

/* Records which row is being measured, and shows it on a terminal. The row's strings must stay valid during the
 * measurement. */
void gpuhal_bench_begin(gpuhal_bench_output *output, const gpuhal_bench_row *row);

void gpuhal_bench_row_add(gpuhal_bench_output *output, const gpuhal_bench_row *row);

/* Reports that a test was not measured, for a reason that is not a failure: prints a message but no row. @p test may be
 * NULL if none of the device's tests was measured. */
void gpuhal_bench_note(gpuhal_bench_output *output, const char *device, const char *test, const char *why);
/* Like gpuhal_bench_note(), for the row that was started last. */
void gpuhal_bench_note_row(gpuhal_bench_output *output, const char *why);

/* Reports that the row begun last has failed: prints a message to standard error, and adds a row without a result,
 * which only the JSON output contains. The run then fails. */
void gpuhal_bench_row_failed(gpuhal_bench_output *output, const char *why);

/* Prints the rest of the output. Returns true if no row failed or missed its budget, and all results were written. */
bool gpuhal_bench_output_finish(gpuhal_bench_output *output);

#endif
