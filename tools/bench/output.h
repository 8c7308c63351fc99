/* output.h: rows, and where they go, as they come. */
#ifndef GPUHAL_BENCH_OUTPUT_H
#define GPUHAL_BENCH_OUTPUT_H

#include "options.h"
#include "statistics.h"

#include <gpuhal/gpuhal.h>

/* What the result of a row is, and so what its budget limits. */
typedef enum gpuhal_bench_kind {
    GPUHAL_BENCH_RATIO,       /* Time of the baseline over ours, of a copy; the budget is the least. */
    GPUHAL_BENCH_SLOWER_HALF, /* Time of the slower half of a copy over the whole; the budget is the least. */
    GPUHAL_BENCH_TIMES,       /* Time of the baseline over ours, of what is no copy of one size; the budget is the least. */
    GPUHAL_BENCH_AMOUNT       /* Ours, or ours less the baseline, in the row's unit; the budget is the most. */
} gpuhal_bench_kind;

/* One result. Numbers that do not apply are NAN. Ours and baseline are nanoseconds for @bytes, or in @unit. */
typedef struct gpuhal_bench_row {
    gpuhal_bench_kind kind;
    const char *device;
    const char *peer; /* NULL: none. */
    const char *test;
    const char *path; /* The way between two devices; NULL: one device. */
    const char *unit; /* "ns", "KiB" or "count" for amounts, "ns" for times. */
    uint64_t bytes;   /* Of a copy; 0: none, and there is a unit. */
    double ours;
    double baseline;
    gpuhal_bench_interval result;
    double budget;
    bool software; /* The device is a software device: the figure describes the host's processor. */
    bool peer_software;
    const char *error; /* Why there is no result; NULL: there is one. */
} gpuhal_bench_row;

/* How many rows held their budget, missed it, or have no result. */
typedef struct gpuhal_bench_verdicts {
    unsigned held;
    unsigned missed;
    unsigned errors;
} gpuhal_bench_verdicts;

/* The verdict on a row: 1 held, 0 missed or without a result, -1 none, because it has no budget. */
int gpuhal_bench_verdict(const gpuhal_bench_row *row);

typedef struct gpuhal_bench_output gpuhal_bench_output;

/* Starts the output. NULL with gpuhal_bench_failure(). */
gpuhal_bench_output *gpuhal_bench_output_create(const gpuhal_bench_options *options, const char *cpu_name);
void gpuhal_bench_output_destroy(gpuhal_bench_output *output);

/* What is measured from now on: it takes about @share (of 1) of the time of the run, and tells about @steps times of its
 * progress. */
void gpuhal_bench_output_group(gpuhal_bench_output *output, double share, size_t steps);

/* Tells on a terminal what is being measured now. */
void gpuhal_bench_progress(gpuhal_bench_output *output, const char *device, const char *test, uint64_t bytes);

/* Shows a result and remembers whether it failed. */
void gpuhal_bench_row_add(gpuhal_bench_output *output, const gpuhal_bench_row *row);

/* Something could not be measured: a message, no row. A failure makes the run fail, a remark does not. */
void gpuhal_bench_remark(gpuhal_bench_output *output, const char *device, const char *test, const char *why);
void gpuhal_bench_failed_row(gpuhal_bench_output *output, const char *device, const char *test, const char *why);

/* Prints what is left to print; true when no row and no call failed. */
bool gpuhal_bench_output_finish(gpuhal_bench_output *output);

#endif
