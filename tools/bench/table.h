/* table.h: results for people, at most 80 columns wide. Without a baseline, copies on one device are a line for each size with a
 * column for each direction; with one, each row is a line with its ratio and verdict. */
#ifndef GPUHAL_BENCH_TABLE_H
#define GPUHAL_BENCH_TABLE_H

#include "output.h"

/* Room for one cell. */
enum { GPUHAL_BENCH_WORD = 32, GPUHAL_BENCH_DIRECTIONS = 7 };

typedef struct gpuhal_bench_table {
    bool baseline;
    bool software; /* A mark of a software device was printed. */
    bool halves;   /* A ratio to the slower half of a way was printed. */
    bool started;  /* Something was printed. */
    char section[GPUHAL_BENCH_WORD]; /* What the last heading was about. */
    /* The line at work; no device: none. Rates are 0 where there is no row. */
    char device[GPUHAL_BENCH_WORD];
    uint64_t bytes;
    double rates[GPUHAL_BENCH_DIRECTIONS];
} gpuhal_bench_table;

void gpuhal_bench_table_start(gpuhal_bench_table *table, bool baseline);
void gpuhal_bench_table_row(gpuhal_bench_table *table, const gpuhal_bench_row *row);

/* Prints the line at work, what the marks mean, and how many budgets held. */
void gpuhal_bench_table_finish(gpuhal_bench_table *table, const gpuhal_bench_verdicts *verdicts);

/* "64 KiB". */
void gpuhal_bench_size_text(uint64_t bytes, char text[GPUHAL_BENCH_WORD]);

#endif
