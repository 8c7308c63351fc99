/* output.c: the table at 80 columns, progress, and the verdict over all rows.
 *
 * Results go to stdout, everything else to stderr; progress only where stderr is a terminal. */
#include "output.h"
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Room for one cell of the table. */
enum { WORD = 32 };

struct gpuhal_bench_output {
    bool json;
    bool quick;
    bool terminal;
    bool failed;
    bool software; /* A row with the mark of a software device was printed. */
    int last_kind; /* Of the row before; -1: none. */
    json_t *document;
};

gpuhal_bench_output *gpuhal_bench_output_create(const gpuhal_bench_options *options, const char *cpu_name)
{
    gpuhal_bench_output *output = calloc(1, sizeof *output);
    if (output == NULL) {
        return NULL;
    }
    *output = (gpuhal_bench_output){
        .json = options->json,
        .quick = options->quick,
        .terminal = isatty(STDERR_FILENO) == 1,
        .last_kind = -1,
        .document = gpuhal_bench_json_document(options, cpu_name),
    };
    if (output->document == NULL) {
        free(output);
        return NULL;
    }
    return output;
}

void gpuhal_bench_output_destroy(gpuhal_bench_output *output)
{
    if (output != NULL) {
        json_decref(output->document);
        free(output);
    }
}

static void size_text(uint64_t bytes, char text[WORD])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, WORD, "%llu %s", (unsigned long long)bytes, units[unit]);
}

/* A value in three or four digits, with the unit that suits it. */
static void amount_text(double value, const char *unit, char text[WORD])
{
    static const char *const times[] = {"ns", "us", "ms", "s"};
    static const char *const sizes[] = {"KiB", "MiB", "GiB"};
    const bool is_size = unit != NULL && strcmp(unit, "KiB") == 0;
    const double step = is_size ? 1024 : 1000;
    const size_t last = is_size ? 2 : 3;
    size_t scale = 0;
    while (fabs(value) >= step * 0.9995 && scale < last) {
        value /= step;
        scale++;
    }
    const int digits = value == floor(value) ? 0 : fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0;
    if (isnan(value)) {
        snprintf(text, WORD, "-");
    } else {
        snprintf(text, WORD, "%.*f%s", digits, value, is_size ? sizes[scale] : times[scale]);
    }
}

static void bandwidth_text(uint64_t bytes, double ns, char text[WORD])
{
    if (isnan(ns)) {
        snprintf(text, WORD, "-");
    } else {
        snprintf(text, WORD, "%.2f", (double)bytes / ns * 1e9 / (1024.0 * 1024.0 * 1024.0));
    }
}

void gpuhal_bench_progress(gpuhal_bench_output *output, const char *device, const char *test, uint64_t bytes)
{
    if (!output->terminal) {
        return;
    }
    char size[WORD] = "";
    if (bytes > 0) {
        size_text(bytes, size);
    }
    fprintf(stderr, "\r\033[Kmeasuring %s %s %s", device, test, size);
}

static void end_progress(const gpuhal_bench_output *output)
{
    if (output->terminal) {
        fputs("\r\033[K", stderr);
    }
}

static void print_heading(gpuhal_bench_output *output, const gpuhal_bench_row *row)
{
    if (output->last_kind == (int)row->kind) {
        return;
    }
    if (output->last_kind >= 0) {
        putchar('\n');
    }
    output->last_kind = (int)row->kind;
    switch (row->kind) {
    case GPUHAL_BENCH_RATIO:
        printf("%-10s %-6s %8s %8s %8s %6s  %-14s %s\n", "device", "copy", "size", "GiB/s", "baseline", "ratio", "95 % interval",
               "least");
        break;
    case GPUHAL_BENCH_SLOWER_HALF:
        printf("%-9s %-9s %8s %8s %8s %6s  %-14s %s\n", "from", "to", "size", "GiB/s", "half", "ratio", "95 % interval", "least");
        break;
    case GPUHAL_BENCH_ONE_PASS:
        printf("%-9s %-9s %8s %8s %8s %6s  %-14s %s\n", "from", "to", "size", "GiB/s", "direct", "ratio", "95 % interval",
               "path");
        break;
    case GPUHAL_BENCH_TIMES:
        printf("%-9s %-15s %7s %7s %7s %16s  %s\n", "device", "what", "ours", "base", "ratio", "95 % interval", "least");
        break;
    case GPUHAL_BENCH_AMOUNT:
        printf("%-9s %-15s %7s %7s %7s %16s  %s\n", "device", "what", "ours", "base", "more", "95 % interval", "most");
        break;
    }
}

static const char *verdict_word(const gpuhal_bench_row *row)
{
    const int verdict = gpuhal_bench_verdict(row);
    return verdict < 0 ? "" : verdict > 0 ? "ok" : "FAIL";
}

static void print_ratio(const gpuhal_bench_row *row, const char *device, const char *peer)
{
    char size[WORD];
    char ours[WORD];
    char baseline[WORD];
    char ratio[WORD] = "-";
    char interval[3 * WORD] = "";
    char budget[WORD] = "";
    size_text(row->bytes, size);
    bandwidth_text(row->bytes, row->ours, ours);
    bandwidth_text(row->bytes, row->baseline, baseline);
    if (!isnan(row->result.median)) {
        snprintf(ratio, sizeof ratio, "%.3f", row->result.median);
        snprintf(interval, sizeof interval, "%.3f..%.3f", row->result.low, row->result.high);
    }
    if (!isnan(row->budget)) {
        snprintf(budget, sizeof budget, "%.2f ", row->budget);
    } else if (row->kind == GPUHAL_BENCH_ONE_PASS) {
        snprintf(budget, sizeof budget, "%s", row->path);
    }
    const int columns[2] = {peer != NULL ? 9 : 10, peer != NULL ? 9 : 6};
    if (strcmp(row->test, "ceiling") == 0) {
        printf("%-19s ", "  both at once:");
        printf("%8s %8s %8s %6s  %s\n", size, ours, baseline, ratio, interval);
        return;
    }
    printf("%-*s %-*s %8s %8s %8s %6s  %-14s %s%s\n", columns[0], device, columns[1], peer != NULL ? peer : row->test, size, ours,
           baseline, ratio, interval, budget, verdict_word(row));
}

static void print_amount(const gpuhal_bench_row *row, const char *device)
{
    char ours[WORD];
    char baseline[WORD];
    char value[WORD];
    char low[WORD];
    char high[WORD];
    char interval[3 * WORD];
    char budget[WORD] = "";
    amount_text(row->ours, row->unit, ours);
    amount_text(row->baseline, row->unit, baseline);
    amount_text(row->result.median, row->unit, value);
    amount_text(row->result.low, row->unit, low);
    amount_text(row->result.high, row->unit, high);
    if (!isnan(row->budget)) {
        amount_text(row->budget, row->unit, budget);
    }
    snprintf(interval, sizeof interval, "%s..%s", low, high);
    printf("%-9s %-15s %7s %7s %7s %16s  %s %s\n", device, row->test, ours, baseline, value, interval, budget, verdict_word(row));
}

static void print_times(const gpuhal_bench_row *row, const char *device)
{
    char ours[WORD];
    char baseline[WORD];
    char ratio[WORD];
    char interval[3 * WORD];
    char budget[WORD] = "";
    /* Some are about the same, others many times: three digits behind the point would be too many there. */
    const int digits = row->result.median < 10 ? 3 : 1;
    amount_text(row->ours, row->unit, ours);
    amount_text(row->baseline, row->unit, baseline);
    snprintf(ratio, sizeof ratio, "%.*f", digits, row->result.median);
    snprintf(interval, sizeof interval, "%.*f..%.*f", digits, row->result.low, digits, row->result.high);
    if (!isnan(row->budget)) {
        snprintf(budget, sizeof budget, "%.2f", row->budget);
    }
    printf("%-9s %-15s %7s %7s %7s %16s  %s %s\n", device, row->test, ours, baseline, ratio, interval, budget, verdict_word(row));
}

void gpuhal_bench_row_add(gpuhal_bench_output *output, const gpuhal_bench_row *row)
{
    gpuhal_bench_row shown = *row;
    if (output->quick) {
        shown.budget = NAN;
    }
    output->failed = output->failed || gpuhal_bench_verdict(&shown) == 0;
    end_progress(output);
    if (output->json) {
        json_array_append_new(json_object_get(output->document, "results"), gpuhal_bench_json_row(&shown));
        return;
    }
    char device[WORD];
    char peer[WORD];
    snprintf(device, sizeof device, "%s%s", row->device, row->software ? "*" : "");
    snprintf(peer, sizeof peer, "%s%s", row->peer != NULL ? row->peer : "", row->peer_software ? "*" : "");
    output->software = output->software || row->software || row->peer_software;
    print_heading(output, &shown);
    if (shown.kind == GPUHAL_BENCH_AMOUNT) {
        print_amount(&shown, device);
    } else if (shown.kind == GPUHAL_BENCH_TIMES) {
        print_times(&shown, device);
    } else {
        print_ratio(&shown, device, shown.peer != NULL ? peer : NULL);
    }
    fflush(stdout);
}

void gpuhal_bench_remark(gpuhal_bench_output *output, const char *device, const char *test, const char *why)
{
    end_progress(output);
    fprintf(stderr, "gpuhal-bench: %s %s: not measured: %s\n", device, test, why);
}

void gpuhal_bench_failed_row(gpuhal_bench_output *output, const char *device, const char *test, const char *why)
{
    end_progress(output);
    output->failed = true;
    fprintf(stderr, "gpuhal-bench: %s %s: failed: %s\n", device, test, why);
    if (output->json) {
        json_array_append_new(json_object_get(output->document, "results"), gpuhal_bench_json_error(device, test, why));
    }
}

bool gpuhal_bench_output_finish(gpuhal_bench_output *output)
{
    end_progress(output);
    if (output->json) {
        json_dumpf(output->document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
        putchar('\n');
    } else if (output->software) {
        puts("\n* a software device: the figure describes this machine's processor");
    }
    return !output->failed;
}
