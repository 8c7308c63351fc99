/* row.h: results. */
#ifndef GPUHAL_BENCH_ROW_H
#define GPUHAL_BENCH_ROW_H

#include "statistics.h"

#include <stdbool.h>
#include <stdint.h>

/* The kind of a row's result, which its budget limits. */
typedef enum gpuhal_bench_kind {
    GPUHAL_BENCH_RATIO,       /* Time of the baseline over gpuhal's, of a copy; the budget is the minimum. */
    GPUHAL_BENCH_SLOWER_SIDE, /* Time of the slower side of a copy over the whole; the budget is the minimum. */
    GPUHAL_BENCH_TIMES, /* Time of the baseline over gpuhal's, of other work than copies; the budget is the minimum. */
    GPUHAL_BENCH_AMOUNT /* gpuhal's, or gpuhal's less the baseline, in the row's unit; the budget is the maximum. */
} gpuhal_bench_kind;

/* One result. Numbers that do not apply are NAN. gpuhal and baseline are nanoseconds for @bytes, or in @unit. */
typedef struct gpuhal_bench_row {
    gpuhal_bench_kind kind;
    const char *device;
    const char *peer; /* NULL: none. */
    const char *test;
    const char *path; /* The path between two devices; NULL: one device. */
    const char *unit; /* "ns", "KiB", "%" or "count" for amounts, "ns" for times. */
    uint64_t bytes;   /* Of a copy; 0: not a copy, and there is a unit. */
    double gpuhal;
    double baseline;
    gpuhal_bench_interval result;
    double budget;
    bool software; /* The device is a software device: the figure describes the host's processor. */
    bool peer_software;
    const char *error; /* Why there is no result; NULL: there is one. */
} gpuhal_bench_row;

/* How many rows held their budget, missed it, or have no result. */
typedef struct gpuhal_bench_totals {
    unsigned held;
    unsigned missed;
    unsigned errors;
} gpuhal_bench_totals;

/* 1: the row held its budget; 0: it missed it, or has no result; -1: it has no budget. */
int gpuhal_bench_row_status(const gpuhal_bench_row *row);

#endif
