/* row.h: results. */
#ifndef GPUHAL_BENCH_ROW_H
#define GPUHAL_BENCH_ROW_H

#include "statistics.h"

#include <stdbool.h>
#include <stdint.h>

/* The kind of a row's result. The budget limits this result. */
typedef enum gpuhal_bench_kind {
    GPUHAL_BENCH_RATIO,       /* For copies, the baseline's time / gpuhal's time; the budget is the minimum. */
    GPUHAL_BENCH_SLOWER_SIDE, /* For copies, the slower side's time / the copy's time; the budget is the minimum. */
    GPUHAL_BENCH_TIMES,       /* For other work, the baseline's time / gpuhal's time; the budget is the minimum. */
    GPUHAL_BENCH_AMOUNT       /* gpuhal's number, or its difference from the baseline's number, in the unit; the budget
                               * is the maximum. */
} gpuhal_bench_kind;

/* One result. Numbers that do not apply are NAN. gpuhal and baseline are nanoseconds for @bytes, or numbers in
 * @unit. */
typedef struct gpuhal_bench_row {
    gpuhal_bench_kind kind;
    const char *device;
    const char *peer; /* The other device of a pair, or NULL. */
    const char *test;
    const char *path; /* The path between two devices; NULL for a single device. */
    const char *unit; /* "ns", "KiB", "%" or "count" for amounts, "ns" for times. */
    uint64_t bytes;   /* The size of a copy; 0 if the row is not a copy and has a unit. */
    double gpuhal;
    double baseline;
    gpuhal_bench_interval result;
    double budget;
    bool software; /* The device is a software device, so the number describes the host's CPU. */
    bool peer_software;
    const char *error; /* The reason why there is no result; NULL if there is a result. */
} gpuhal_bench_row;

/* How many rows stayed within their budget, exceeded it, or have no result. */
typedef struct gpuhal_bench_totals {
    unsigned held;
    unsigned missed;
    unsigned errors;
} gpuhal_bench_totals;

/* Returns 1 if the row stayed within its budget, 0 if it exceeded the budget or has no result, -1 if it has no
 * budget. */
int gpuhal_bench_row_status(const gpuhal_bench_row *row);

#endif
