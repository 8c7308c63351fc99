/* output.c: hands each row to whoever shows it, and keeps the verdict over all of them.
 *
 * Results go to stdout, everything else to stderr. */
#include "output.h"
#include "curves.h"
#include "json.h"
#include "measure.h"
#include "progress.h"
#include "svg.h"
#include "table.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpuhal_bench_output {
    const gpuhal_bench_options *options;
    const char *cpu_name;
    bool failed;
    bool has_results;
    gpuhal_bench_progress_bar progress;
    gpuhal_bench_table table;
    gpuhal_bench_curves curves;
    FILE *svg;
};

gpuhal_bench_output *gpuhal_bench_output_create(const gpuhal_bench_options *options, const char *cpu_name)
{
    gpuhal_bench_output *output = calloc(1, sizeof *output);
    if (output == NULL) {
        gpuhal_bench_failed("memory is short");
        return NULL;
    }
    output->options = options;
    output->cpu_name = cpu_name;
    gpuhal_bench_progress_start(&output->progress);
    gpuhal_bench_table_start(&output->table, options->baseline);
    if (options->svg != NULL && (output->svg = fopen(options->svg, "we")) == NULL) {
        gpuhal_bench_failed("--svg %s: %s", options->svg, strerror(errno));
        gpuhal_bench_output_destroy(output);
        return NULL;
    }
    if (options->format == GPUHAL_BENCH_CSV) {
        gpuhal_bench_csv_header(stdout);
    }
    if (options->format == GPUHAL_BENCH_JSON && !gpuhal_bench_json_begin(stdout, options, cpu_name)) {
        gpuhal_bench_failed("memory is short");
        gpuhal_bench_output_destroy(output);
        return NULL;
    }
    return output;
}

void gpuhal_bench_output_destroy(gpuhal_bench_output *output)
{
    if (output == NULL) {
        return;
    }
    if (output->svg != NULL) {
        fclose(output->svg);
    }
    gpuhal_bench_curves_release(&output->curves);
    free(output);
}

void gpuhal_bench_output_group(gpuhal_bench_output *output, double share, size_t steps)
{
    gpuhal_bench_progress_group(&output->progress, share, steps);
}

void gpuhal_bench_progress(gpuhal_bench_output *output, const char *device, const char *test, uint64_t bytes)
{
    gpuhal_bench_progress_step(&output->progress, device, test, bytes);
}

/* Takes the reference to @object. */
static void show(gpuhal_bench_output *output, json_t *object)
{
    if (output->options->format == GPUHAL_BENCH_CSV) {
        gpuhal_bench_csv_row(stdout, object);
    } else if (output->options->format == GPUHAL_BENCH_JSON) {
        gpuhal_bench_json_result(stdout, object, !output->has_results);
        output->has_results = true;
    }
    json_decref(object);
}

void gpuhal_bench_row_add(gpuhal_bench_output *output, const gpuhal_bench_row *row)
{
    gpuhal_bench_row shown = *row;
    if (output->options->quick) {
        shown.budget = NAN;
    }
    output->failed = output->failed || gpuhal_bench_verdict(&shown) == 0;
    gpuhal_bench_progress_clear(&output->progress);
    if (output->options->format == GPUHAL_BENCH_TABLE) {
        gpuhal_bench_table_row(&output->table, &shown);
    }
    if (output->svg != NULL && !gpuhal_bench_curves_add(&output->curves, &shown)) {
        fputs("gpuhal-bench: memory is short: the drawing lacks points\n", stderr);
        output->failed = true;
    }
    show(output, gpuhal_bench_json_row(&shown));
}

void gpuhal_bench_remark(gpuhal_bench_output *output, const char *device, const char *test, const char *why)
{
    gpuhal_bench_progress_clear(&output->progress);
    fprintf(stderr, "gpuhal-bench: %s %s: not measured: %s\n", device, test, why);
}

void gpuhal_bench_failed_row(gpuhal_bench_output *output, const char *device, const char *test, const char *why)
{
    gpuhal_bench_progress_clear(&output->progress);
    output->failed = true;
    fprintf(stderr, "gpuhal-bench: %s %s: failed: %s\n", device, test, why);
    show(output, gpuhal_bench_json_error(device, test, why));
}

static bool draw(gpuhal_bench_output *output)
{
    gpuhal_bench_svg_draw(output->svg, &output->curves, output->cpu_name);
    const bool good = ferror(output->svg) == 0 && fflush(output->svg) == 0;
    if (!good) {
        fprintf(stderr, "gpuhal-bench: --svg %s: %s\n", output->options->svg, strerror(errno));
    }
    return good;
}

bool gpuhal_bench_output_finish(gpuhal_bench_output *output)
{
    gpuhal_bench_progress_clear(&output->progress);
    if (output->options->format == GPUHAL_BENCH_TABLE) {
        gpuhal_bench_table_finish(&output->table);
    } else if (output->options->format == GPUHAL_BENCH_JSON) {
        gpuhal_bench_json_end(stdout);
    }
    if (output->svg != NULL && !draw(output)) {
        output->failed = true;
    }
    /* Results are flushed as they come: the last one may find room again. */
    const bool flushed = fflush(stdout) == 0;
    if (!flushed || ferror(stdout) != 0) {
        fprintf(stderr, "gpuhal-bench: writing the results: %s\n", flushed ? "some of them were lost" : strerror(errno));
        output->failed = true;
    }
    return !output->failed;
}
