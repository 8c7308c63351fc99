/* table.c: cells, lines and headings. */
#include "table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 256 }; /* of at most 80 columns, but for names that are longer than theirs */

static const struct {
    const char *test;
    const char *heading;
} directions[GPUHAL_BENCH_DIRECTIONS] = {
    {"write", "write"},          {"read", "read"},         {"copy", "copy"},
    {"upload", "upload"},        {"readback", "readback"}, {"locked_write", "lock-wr."},
    {"locked_read", "lock-rd."},
};

void gpuhal_bench_size_text(uint64_t bytes, char text[GPUHAL_BENCH_WORD])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (bytes >= 1024 && bytes % 1024 == 0 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, GPUHAL_BENCH_WORD, "%llu %s", (unsigned long long)bytes, units[unit]);
}

/* A value in three or four digits, with the unit that suits it. */
static void amount_text(double value, const char *unit, char text[GPUHAL_BENCH_WORD])
{
    static const char *const times[] = {"ns", "us", "ms", "s"};
    static const char *const sizes[] = {"KiB", "MiB", "GiB"};
    const bool is_size = unit != NULL && strcmp(unit, "KiB") == 0;
    if (unit != NULL && strcmp(unit, "count") == 0) {
        snprintf(text, GPUHAL_BENCH_WORD, isnan(value) ? "-" : "%.0f", value);
        return;
    }
    const double step = is_size ? 1024 : 1000;
    const size_t last = is_size ? 2 : 3;
    size_t scale = 0;
    while (fabs(value) >= step * 0.9995 && scale < last) {
        value /= step;
        scale++;
    }
    const int digits = value == floor(value) ? 0 : fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0;
    if (isnan(value)) {
        snprintf(text, GPUHAL_BENCH_WORD, "-");
    } else {
        snprintf(text, GPUHAL_BENCH_WORD, "%.*f%s", digits, value, is_size ? sizes[scale] : times[scale]);
    }
}

static double rate_of(uint64_t bytes, double ns)
{
    return (double)bytes / ns * 1e9 / (1024.0 * 1024.0 * 1024.0);
}

static void rate_text(double rate, char text[GPUHAL_BENCH_WORD])
{
    if (isnan(rate)) {
        snprintf(text, GPUHAL_BENCH_WORD, "-");
    } else {
        snprintf(text, GPUHAL_BENCH_WORD, "%.*f", rate < 0.0995 ? 3 : rate < 9.995 ? 2 : 1, rate);
    }
}

/* A line without blanks at its end, where cells may be empty. */
__attribute__((format(printf, 1, 2))) static void print_line(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t length = written < 0 ? 0 : strlen(line);
    while (length > 0 && line[length - 1] == ' ') {
        length--;
    }
    printf("%.*s\n", (int)length, line);
}

/* A ratio in at most five characters: small ones are about 1, and differ in the third digit behind the point. */
static void ratio_text(double ratio, char text[GPUHAL_BENCH_WORD])
{
    snprintf(text, GPUHAL_BENCH_WORD, "%.*f", ratio < 9.9995 ? 3 : ratio < 999.95 ? 1 : 0, ratio);
}

/* True when the heading has to be printed: the section is another one than before. */
static bool begins(gpuhal_bench_table *table, const char *section)
{
    if (strcmp(table->section, section) == 0) {
        return false;
    }
    if (table->started) {
        putchar('\n');
    }
    table->started = true;
    snprintf(table->section, sizeof table->section, "%s", section);
    return true;
}

static const char *verdict_word(const gpuhal_bench_row *row)
{
    const int verdict = gpuhal_bench_verdict(row);
    return verdict < 0 ? "" : verdict > 0 ? "ok" : "FAIL";
}

/* ---- copies on one device, a line for each size */

static void print_pending(gpuhal_bench_table *table)
{
    char size[GPUHAL_BENCH_WORD];
    size_t columns = GPUHAL_BENCH_DIRECTIONS;
    if (*table->device == '\0') {
        return;
    }
    while (columns > 1 && table->rates[columns - 1] == 0) {
        columns--;
    }
    if (begins(table, table->device)) {
        printf("%s: copies in GiB/s\n%11s", table->device, "size");
        for (size_t i = 0; i < columns; i++) {
            printf("%9s", directions[i].heading);
        }
        putchar('\n');
    }
    gpuhal_bench_size_text(table->bytes, size);
    printf("%11s", size);
    for (size_t i = 0; i < columns; i++) {
        char rate[GPUHAL_BENCH_WORD] = "-";
        if (table->rates[i] > 0) {
            rate_text(table->rates[i], rate);
        }
        printf("%9s", rate);
    }
    putchar('\n');
    *table->device = '\0';
}

/* False: the row is none of these. */
static bool take_direction(gpuhal_bench_table *table, const gpuhal_bench_row *row, const char *device)
{
    size_t column = 0;
    while (column < GPUHAL_BENCH_DIRECTIONS && strcmp(directions[column].test, row->test) != 0) {
        column++;
    }
    if (row->kind != GPUHAL_BENCH_RATIO || column == GPUHAL_BENCH_DIRECTIONS) {
        return false;
    }
    if (strcmp(table->device, device) != 0 || table->bytes != row->bytes) {
        print_pending(table);
        snprintf(table->device, sizeof table->device, "%s", device);
        table->bytes = row->bytes;
        memset(table->rates, 0, sizeof table->rates);
    }
    table->rates[column] = rate_of(row->bytes, row->ours);
    return true;
}

/* ---- other rows without a baseline */

static void print_plain(gpuhal_bench_table *table, const gpuhal_bench_row *row, const char *device, const char *peer)
{
    char ours[GPUHAL_BENCH_WORD];
    char budget[GPUHAL_BENCH_WORD] = "";
    char size[GPUHAL_BENCH_WORD];
    if (row->bytes > 0) {
        rate_text(rate_of(row->bytes, row->ours), ours);
        gpuhal_bench_size_text(row->bytes, size);
        if (begins(table, "rates")) {
            print_line("%-11s %-11s %-15s %8s %8s  %s", "device", "to", "what", "size", "GiB/s", "way");
        }
        print_line("%-11s %-11s %-15s %8s %8s  %s", device, peer, row->test, size, ours,
                   row->path != NULL ? row->path : "");
        return;
    }
    amount_text(row->ours, row->unit, ours);
    if (!isnan(row->budget)) {
        amount_text(row->budget, row->unit, budget);
    }
    if (begins(table, "amounts")) {
        print_line("%-11s %-11s %-17s %9s %9s", "device", "with", "what", "ours", "at most");
    }
    print_line("%-11s %-11s %-17s %9s %9s  %s", device, peer, row->test, ours, budget, verdict_word(row));
}

/* ---- rows beside their baseline */

/* The least ratio that was asked for, or else the way that the bytes took. */
static void print_copy(gpuhal_bench_table *table, const gpuhal_bench_row *row, const char *device, const char *peer)
{
    const bool half = row->kind == GPUHAL_BENCH_SLOWER_HALF;
    char size[GPUHAL_BENCH_WORD];
    char ours[GPUHAL_BENCH_WORD];
    char baseline[GPUHAL_BENCH_WORD];
    char ratio[GPUHAL_BENCH_WORD] = "-";
    char low[GPUHAL_BENCH_WORD];
    char high[GPUHAL_BENCH_WORD];
    char interval[2 * GPUHAL_BENCH_WORD + 2] = "";
    char least[GPUHAL_BENCH_WORD] = "";
    gpuhal_bench_size_text(row->bytes, size);
    rate_text(rate_of(row->bytes, row->ours), ours);
    rate_text(rate_of(row->bytes, row->baseline), baseline);
    if (!isnan(row->result.median)) {
        ratio_text(row->result.median, ratio);
        ratio_text(row->result.low, low);
        ratio_text(row->result.high, high);
        snprintf(interval, sizeof interval, "%s..%s", low, high);
    }
    if (!isnan(row->budget)) {
        snprintf(least, sizeof least, "%.2f", row->budget);
    } else if (row->path != NULL) {
        snprintf(least, sizeof least, "%s", row->path);
    }
    if (begins(table, half ? "halves" : "copies")) {
        print_line("%-9s %-14s %8s %6s %6s %6s  %-12s %s", half ? "from" : "device", half ? "to" : "copy", "size",
                   "GiB/s", half ? "half" : "vendor", "ratio", "95 % int.", "least, way");
    }
    table->halves = table->halves || half;
    const char *what = strcmp(row->test, "ceiling") == 0 ? "(both at once)" : row->peer != NULL ? peer : row->test;
    print_line("%-9s %-14s %8s %6s %6s %6s  %-12s %s %s", device, what, size, ours, baseline, ratio, interval, least,
               verdict_word(row));
}

/* What belongs to two devices has a table of its own, with both, where the result is ours or a difference to the
 * vendor's. */
static void print_amount(gpuhal_bench_table *table, const gpuhal_bench_row *row, const char *device, const char *peer)
{
    const bool ratio = row->kind == GPUHAL_BENCH_TIMES;
    char ours[GPUHAL_BENCH_WORD];
    char baseline[GPUHAL_BENCH_WORD];
    char value[3][GPUHAL_BENCH_WORD];
    char interval[2 * GPUHAL_BENCH_WORD + 2] = "";
    char limit[GPUHAL_BENCH_WORD + 8] = "";
    const double values[] = {row->result.median, row->result.low, row->result.high};
    amount_text(row->ours, row->unit, ours);
    amount_text(row->baseline, row->unit, baseline);
    for (size_t i = 0; i < 3; i++) {
        if (isnan(values[i]) || !ratio) {
            amount_text(values[i], row->unit, value[i]);
        } else {
            ratio_text(values[i], value[i]);
        }
    }
    if (!isnan(row->result.median)) {
        snprintf(interval, sizeof interval, "%s..%s", value[1], value[2]);
    }
    if (!isnan(row->budget) && ratio) {
        snprintf(limit, sizeof limit, ">=%.2f", row->budget);
    } else if (!isnan(row->budget)) {
        char most[GPUHAL_BENCH_WORD];
        amount_text(row->budget, row->unit, most);
        snprintf(limit, sizeof limit, "<=%s", most);
    }
    if (row->peer != NULL) {
        if (begins(table, "between")) {
            print_line("%-9s %-9s %-14s %7s %7s %15s  %s", "device", "with", "what", "result", "vendor",
                       "95 % interval", "limit");
        }
        print_line("%-9s %-9s %-14s %7s %7s %15s  %s %s", device, peer, row->test, value[0], baseline, interval, limit,
                   verdict_word(row));
        return;
    }
    if (begins(table, "times")) {
        print_line("%-9s %-15s %7s %7s %7s %16s  %s", "device", "what", "ours", "vendor", "result", "95 % interval",
                   "limit");
    }
    print_line("%-9s %-15s %7s %7s %7s %16s  %s %s", device, row->test, ours, baseline, value[0], interval, limit,
               verdict_word(row));
}

void gpuhal_bench_table_start(gpuhal_bench_table *table, bool baseline)
{
    *table = (gpuhal_bench_table){.baseline = baseline};
}

void gpuhal_bench_table_row(gpuhal_bench_table *table, const gpuhal_bench_row *row)
{
    char device[GPUHAL_BENCH_WORD];
    char peer[GPUHAL_BENCH_WORD];
    snprintf(device, sizeof device, "%s%s", row->device, row->software ? "*" : "");
    snprintf(peer, sizeof peer, "%s%s", row->peer != NULL ? row->peer : "", row->peer_software ? "*" : "");
    table->software = table->software || row->software || row->peer_software;
    if (!table->baseline && take_direction(table, row, device)) {
        return;
    }
    print_pending(table);
    if (!table->baseline) {
        print_plain(table, row, device, peer);
    } else if (row->bytes > 0) {
        print_copy(table, row, device, peer);
    } else {
        print_amount(table, row, device, peer);
    }
    fflush(stdout);
}

void gpuhal_bench_table_finish(gpuhal_bench_table *table, const gpuhal_bench_verdicts *verdicts)
{
    const unsigned judged = verdicts->held + verdicts->missed;
    print_pending(table);
    if (table->software || table->halves || judged > 0) {
        putchar('\n');
    }
    if (table->halves) {
        puts("half: the slower one of the two halves of the way, measured alone");
    }
    if (table->software) {
        puts("* a software device: the figure describes this machine's processor");
    }
    if (judged > 0) {
        printf("%u of %u budgets held\n", verdicts->held, judged);
    }
}
