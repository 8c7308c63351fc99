/* table.c: cells, lines and headings. */
#include "table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void gpuhal_bench_size_text(uint64_t bytes, char text[GPUHAL_BENCH_CELL])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, GPUHAL_BENCH_CELL, "%llu %s", (unsigned long long)bytes, units[unit]);
}

/* Formats a value in three digits, with a suitable unit; "-" for NAN. */
static void amount_text(double value, const char *unit, char text[GPUHAL_BENCH_CELL])
{
    static const struct {
        const char *unit;
        double step;
        const char *names[4];
    } scales[] = {
        {"ns", 1000, {"ns", "us", "ms", "s"}},
        {"KiB", 1024, {"KiB", "MiB", "GiB", "TiB"}},
        {"%", INFINITY, {"%"}},
        {"count", INFINITY, {""}},
        {"KiB/s", 1024, {"K/s", "M/s", "G/s", "T/s"}},
    };
    size_t kind = 0;
    size_t scale = 0;
    if (isnan(value)) {
        snprintf(text, GPUHAL_BENCH_CELL, "-");
        return;
    }
    while (strcmp(scales[kind].unit, unit) != 0) {
        kind++;
    }
    while (fabs(value) >= scales[kind].step * 0.9995 && scale < 3) {
        value /= scales[kind].step;
        scale++;
    }
    const int digits = value == floor(value) ? 0 : fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0;
    snprintf(text, GPUHAL_BENCH_CELL, "%.*f%s", digits, value, scales[kind].names[scale]);
}

/* Formats gpuhal's or the baseline's number: the bandwidth of a copy, otherwise the amount. */
static void figure_text(const gpuhal_bench_row *row, double value, char text[GPUHAL_BENCH_CELL])
{
    if (row->bytes > 0) {
        amount_text((double)row->bytes / 1024 / value * 1e9, "KiB/s", text);
    } else {
        amount_text(value, row->unit, text);
    }
}

/* Formats a result: a ratio or an amount. Ratios are about 1 and differ in the third decimal place. */
static void result_text(const gpuhal_bench_row *row, double value, char text[GPUHAL_BENCH_CELL])
{
    if (row->kind == GPUHAL_BENCH_AMOUNT || isnan(value)) {
        amount_text(value, row->unit, text);
    } else {
        snprintf(text, GPUHAL_BENCH_CELL, "%.*f", value < 9.9995 ? 3 : value < 999.95 ? 1 : 0, value);
    }
}

static void limit_text(const gpuhal_bench_row *row, char text[GPUHAL_BENCH_CELL])
{
    char most[GPUHAL_BENCH_CELL];
    if (isnan(row->budget)) {
        *text = '\0';
    } else if (row->kind == GPUHAL_BENCH_AMOUNT) {
        amount_text(row->budget, row->unit, most);
        snprintf(text, GPUHAL_BENCH_CELL, "<=%.20s", most);
    } else {
        snprintf(text, GPUHAL_BENCH_CELL, ">=%.2f", row->budget);
    }
}

static void begin_block(gpuhal_bench_table *table, const gpuhal_bench_row *row)
{
    char block[sizeof table->block];
    snprintf(block, sizeof block, "%.30s%s%s%.30s%s", row->device, row->software ? "*" : "",
             row->peer != NULL ? " and " : "", row->peer != NULL ? row->peer : "", row->peer_software ? "*" : "");
    table->software = table->software || row->software || row->peer_software;
    if (strcmp(table->block, block) == 0) {
        return;
    }
    printf("%s%s\n", *table->block != '\0' ? "\n" : "", block);
    snprintf(table->block, sizeof table->block, "%s", block);
    if (table->baseline) {
        printf("%-18s %7s %7s %8s %7s %15s%s\n", "row", "size", "gpuhal", "baseline", "result", "95 % interval",
               table->limits ? " limit" : "");
    } else {
        printf("%-18s %7s %7s%s\n", "row", "size", "gpuhal", table->limits ? " limit" : "");
    }
}

void gpuhal_bench_table_row(gpuhal_bench_table *table, const gpuhal_bench_row *row)
{
    char name[48], size[GPUHAL_BENCH_CELL] = "", own[GPUHAL_BENCH_CELL], baseline[GPUHAL_BENCH_CELL];
    char result[GPUHAL_BENCH_CELL], low[GPUHAL_BENCH_CELL], high[GPUHAL_BENCH_CELL],
        interval[2 * GPUHAL_BENCH_CELL + 2];
    char limit[GPUHAL_BENCH_CELL];
    const int status = gpuhal_bench_row_status(row);
    const char *word = status < 0 ? "" : status > 0 ? " ok" : " FAIL";
    begin_block(table, row);
    snprintf(name, sizeof name, "%s%s%s", row->test, row->path != NULL ? ", " : "", row->path != NULL ? row->path : "");
    if (row->bytes > 0) {
        gpuhal_bench_size_text(row->bytes, size);
        table->rates = true;
    }
    figure_text(row, row->gpuhal, own);
    limit_text(row, limit);
    if (!table->baseline) {
        printf("%-18s %7s %7s%s%s%s\n", name, size, own, *limit != '\0' ? " " : "", limit, word);
    } else {
        figure_text(row, row->baseline, baseline);
        result_text(row, row->result.median, result);
        result_text(row, row->result.low, low);
        result_text(row, row->result.high, high);
        if (isnan(row->result.median)) {
            snprintf(interval, sizeof interval, "-");
        } else {
            snprintf(interval, sizeof interval, "%s..%s", low, high);
        }
        table->slower_side = table->slower_side || row->kind == GPUHAL_BENCH_SLOWER_SIDE;
        printf("%-18s %7s %7s %8s %7s %15s%s%s%s\n", name, size, own, baseline, result, interval,
               *limit != '\0' ? " " : "", limit, word);
    }
    fflush(stdout);
}

void gpuhal_bench_table_finish(const gpuhal_bench_table *table, const gpuhal_bench_totals *totals)
{
    const unsigned judged = totals->held + totals->missed;
    if (table->rates || table->slower_side || table->software || judged > 0) {
        putchar('\n');
    }
    if (table->rates) {
        puts("K/s, M/s, G/s: KiB/s, MiB/s, GiB/s");
    }
    if (table->slower_side) {
        puts("staged, shared, ceiling, file_to_device, store_spill, store_restore*:\n"
             "baseline is the slower side; the result is the median of the rounds' ratios");
    }
    if (table->software) {
        puts("*: a software device, so the figures describe the host's processor");
    }
    if (judged > 0) {
        printf("%u of %u budgets held\n", totals->held, judged);
    }
}
