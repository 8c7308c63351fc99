/* table.h: results for people, at most 80 columns wide: a block for each device or pair of devices, and a line for each
 * row. */
#ifndef GPUHAL_BENCH_TABLE_H
#define GPUHAL_BENCH_TABLE_H

#include "row.h"

enum { GPUHAL_BENCH_CELL = 32 };

/* Initially zero except @baseline and @limits. */
typedef struct gpuhal_bench_table {
    bool baseline;    /* The run compares, so the table has columns for comparisons. */
    bool limits;      /* Rows may have a limit, so the table has a column for limits. */
    bool software;    /* A software device was marked. */
    bool slower_side; /* A row was compared with the slower side of a copy. */
    bool rates;       /* A bandwidth was printed. */
    char block[80];   /* The heading of the current block. */
} gpuhal_bench_table;

void gpuhal_bench_table_row(gpuhal_bench_table *table, const gpuhal_bench_row *row);

/* Explains the marks, and prints how many rows stayed within their budget. */
void gpuhal_bench_table_finish(const gpuhal_bench_table *table, const gpuhal_bench_totals *totals);

/* Formats a size, for example "64 KiB". */
void gpuhal_bench_size_text(uint64_t bytes, char text[GPUHAL_BENCH_CELL]);

#endif
