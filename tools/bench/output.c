/* output.c: prints each row as it comes, and counts the verdicts.
 *
 * Results go to stdout, everything else to stderr. */
#include "output.h"
#include "json.h"
#include "measure.h"
#include "progress.h"
#include "table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_bench_output {
    bool json;
    bool quick;
    bool lost; /* A line was not written. */
    gpuhal_bench_verdicts verdicts;
    gpuhal_bench_progress_bar progress;
    gpuhal_bench_table table;
};

gpuhal_bench_output *gpuhal_bench_output_create(const gpuhal_bench_options *options, const char *cpu_name)
{
    gpuhal_bench_output *output = calloc(1, sizeof *output);
    if (output == NULL) {
        gpuhal_bench_failed("memory is short");
        return NULL;
    }
    output->json = options->json;
    output->quick = options->quick;
    gpuhal_bench_progress_start(&output->progress);
    gpuhal_bench_table_start(&output->table, options->baseline);
    output->lost = output->json && !gpuhal_bench_json_header(stdout, options, cpu_name);
    return output;
}

void gpuhal_bench_output_destroy(gpuhal_bench_output *output)
{
    free(output);
}

int gpuhal_bench_verdict(const gpuhal_bench_row *row)
{
    if (row->error != NULL) {
        return 0;
    }
    if (isnan(row->budget)) {
        return -1;
    }
    return row->kind == GPUHAL_BENCH_AMOUNT ? row->result.low <= row->budget : row->result.high >= row->budget;
}

void gpuhal_bench_output_group(gpuhal_bench_output *output, double share, size_t steps)
{
    gpuhal_bench_progress_group(&output->progress, share, steps);
}

void gpuhal_bench_progress(gpuhal_bench_output *output, const char *device, const char *test, uint64_t bytes)
{
    gpuhal_bench_progress_step(&output->progress, device, test, bytes);
}

static void count(gpuhal_bench_verdicts *verdicts, const gpuhal_bench_row *row)
{
    const int verdict = gpuhal_bench_verdict(row);
    if (row->error != NULL) {
        verdicts->errors++;
    } else if (verdict > 0) {
        verdicts->held++;
    } else if (verdict == 0) {
        verdicts->missed++;
    }
}

void gpuhal_bench_row_add(gpuhal_bench_output *output, const gpuhal_bench_row *row)
{
    gpuhal_bench_row shown = *row;
    if (output->quick) {
        shown.budget = NAN;
    }
    count(&output->verdicts, &shown);
    gpuhal_bench_progress_clear(&output->progress);
    if (output->json) {
        output->lost = !gpuhal_bench_json_row(stdout, &shown) || output->lost;
    } else if (shown.error == NULL) {
        gpuhal_bench_table_row(&output->table, &shown);
    }
}

void gpuhal_bench_remark(gpuhal_bench_output *output, const char *device, const char *test, const char *why)
{
    gpuhal_bench_progress_clear(&output->progress);
    fprintf(stderr, "gpuhal-bench: %s %s: not measured: %s\n", device, test, why);
}

void gpuhal_bench_failed_row(gpuhal_bench_output *output, const char *device, const char *test, const char *why)
{
    gpuhal_bench_progress_clear(&output->progress);
    fprintf(stderr, "gpuhal-bench: %s %s: failed: %s\n", device, test, why);
    gpuhal_bench_row_add(output, &(gpuhal_bench_row){
                                     .kind = GPUHAL_BENCH_AMOUNT,
                                     .device = device,
                                     .test = test,
                                     .ours = NAN,
                                     .baseline = NAN,
                                     .result = {NAN, NAN, NAN},
                                     .budget = NAN,
                                     .error = why,
                                 });
}

bool gpuhal_bench_output_finish(gpuhal_bench_output *output)
{
    gpuhal_bench_progress_clear(&output->progress);
    if (output->json) {
        output->lost = !gpuhal_bench_json_verdict(stdout, &output->verdicts) || output->lost;
    } else {
        gpuhal_bench_table_finish(&output->table, &output->verdicts);
    }
    /* Results are flushed as they come: the last one may find room again. */
    const bool flushed = fflush(stdout) == 0;
    const bool whole = flushed && !output->lost && ferror(stdout) == 0;
    if (!whole) {
        fprintf(stderr, "gpuhal-bench: writing the results: %s\n",
                flushed ? "some of them were lost" : strerror(errno));
    }
    return whole && output->verdicts.missed == 0 && output->verdicts.errors == 0;
}
