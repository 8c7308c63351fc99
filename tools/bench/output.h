/* output.h: the output of rows, as they come. */
#ifndef GPUHAL_BENCH_OUTPUT_H
#define GPUHAL_BENCH_OUTPUT_H

#include "options.h"
#include "row.h"

typedef struct gpuhal_bench_output gpuhal_bench_output;

/* Starts the output. NULL with gpuhal_bench_failure(). */
gpuhal_bench_output *gpuhal_bench_output_create(const gpuhal_bench_options *options, const char *cpu_name);
void gpuhal_bench_output_destroy(gpuhal_bench_output *output);

/* Records the row that is measured from now on, and shows it on a terminal. The row's texts must outlive the
 * measurement. */
void gpuhal_bench_begin(gpuhal_bench_output *output, const gpuhal_bench_row *row);

/* Shows and counts a result. */
void gpuhal_bench_row_add(gpuhal_bench_output *output, const gpuhal_bench_row *row);

/* Reports that a test was not measured, for a reason that is not a failure: a message, no row. @p test may be NULL: no
 * test of the device was. */
void gpuhal_bench_note(gpuhal_bench_output *output, const char *device, const char *test, const char *why);
/* Does the same for the row that was begun last. */
void gpuhal_bench_note_row(gpuhal_bench_output *output, const char *why);

/* Reports the failure of the row that was begun last: a message, and a row without a result, which makes the run
 * fail. */
void gpuhal_bench_row_failed(gpuhal_bench_output *output, const char *why);

/* Prints the rest of the output; true if no row and no call failed. */
bool gpuhal_bench_output_finish(gpuhal_bench_output *output);

#endif
