/* output.c: prints each row as soon as it is measured, and counts the rows that stayed within their budget.
 *
 * Results are written to stdout, all other output to stderr. */
#include "output.h"
#include "json.h"
#include "measure.h"
#include "table.h"
#include "watch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gpuhal_bench_output {
    bool json;
    bool quick;
    bool terminal;            /* stderr is a terminal and shows the current row. */
    bool lost;                /* Writing a line has failed. */
    gpuhal_bench_row at_work; /* The row that was started last. */
    gpuhal_bench_totals totals;
    gpuhal_bench_table table;
};

gpuhal_bench_output *gpuhal_bench_output_create(const gpuhal_bench_options *options, const char *cpu_name)
{
    gpuhal_bench_output *output = calloc(1, sizeof *output);
    if (output == NULL) {
        gpuhal_bench_failed("out of memory");
        return NULL;
    }
    output->json = options->json;
    output->quick = options->quick;
    output->terminal = isatty(STDERR_FILENO) == 1;
    output->table.baseline = options->baseline;
    output->table.limits = !options->quick;
    output->at_work = (gpuhal_bench_row){.device = "all", .test = "start"};
    output->lost = output->json && !gpuhal_bench_json_header(stdout, options, cpu_name);
    return output;
}

void gpuhal_bench_output_destroy(gpuhal_bench_output *output)
{
    free(output);
}

static void clear_line(const gpuhal_bench_output *output)
{
    if (output->terminal) {
        fputs("\r\033[K", stderr);
    }
}

void gpuhal_bench_begin(gpuhal_bench_output *output, const gpuhal_bench_row *row)
{
    char size[GPUHAL_BENCH_CELL] = "";
    output->at_work = *row;
    gpuhal_bench_watch_alive();
    if (!output->terminal) {
        return;
    }
    if (row->bytes > 0) {
        gpuhal_bench_size_text(row->bytes, size);
    }
    clear_line(output);
    fprintf(stderr, "measuring %.20s%s%.20s %.20s %s ...", row->device, row->peer != NULL ? " to " : "",
            row->peer != NULL ? row->peer : "", row->test, size);
}

static void count(gpuhal_bench_totals *totals, const gpuhal_bench_row *row)
{
    const int status = gpuhal_bench_row_status(row);
    if (row->error != NULL) {
        totals->errors++;
    } else if (status > 0) {
        totals->held++;
    } else if (status == 0) {
        totals->missed++;
    }
}

void gpuhal_bench_row_add(gpuhal_bench_output *output, const gpuhal_bench_row *row)
{
    gpuhal_bench_row shown = *row;
    if (output->quick) {
        shown.budget = NAN;
    }
    count(&output->totals, &shown);
    clear_line(output);
    if (output->json) {
        output->lost = !gpuhal_bench_json_row(stdout, &shown) || output->lost;
    } else if (shown.error == NULL) {
        gpuhal_bench_table_row(&output->table, &shown);
    }
}

void gpuhal_bench_note(gpuhal_bench_output *output, const char *device, const char *test, const char *why)
{
    clear_line(output);
    fprintf(stderr, "gpuhal-bench: %s%s%s: not measured: %s\n", device, test != NULL ? " " : "",
            test != NULL ? test : "", why);
}

void gpuhal_bench_note_row(gpuhal_bench_output *output, const char *why)
{
    gpuhal_bench_note(output, output->at_work.device, output->at_work.test, why);
}

void gpuhal_bench_row_failed(gpuhal_bench_output *output, const char *why)
{
    gpuhal_bench_row row = output->at_work;
    clear_line(output);
    fprintf(stderr, "gpuhal-bench: %s %s: failed: %s\n", row.device, row.test, why);
    row.kind = GPUHAL_BENCH_AMOUNT;
    row.unit = NULL;
    row.bytes = 0;
    row.gpuhal = row.baseline = row.budget = NAN;
    row.result = (gpuhal_bench_interval){NAN, NAN, NAN};
    row.error = why;
    gpuhal_bench_row_add(output, &row);
}

bool gpuhal_bench_output_finish(gpuhal_bench_output *output)
{
    clear_line(output);
    if (output->json) {
        output->lost = !gpuhal_bench_json_totals(stdout, &output->totals) || output->lost;
    } else {
        gpuhal_bench_table_finish(&output->table, &output->totals);
    }
    /* Results are flushed immediately. Writing the last result may succeed even though writing an earlier result
     * failed. */
    const bool flushed = fflush(stdout) == 0;
    const bool whole = flushed && !output->lost && ferror(stdout) == 0;
    if (!whole) {
        fprintf(stderr, "gpuhal-bench: writing the results: %s\n",
                flushed ? "some of them were lost" : strerror(errno));
    }
    return whole && output->totals.missed == 0 && output->totals.errors == 0;
}
