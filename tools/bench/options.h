/* options.h: the command line. */
#ifndef GPUHAL_BENCH_OPTIONS_H
#define GPUHAL_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum gpuhal_bench_group {
    GPUHAL_BENCH_CALL,
    GPUHAL_BENCH_QUEUE,
    GPUHAL_BENCH_BATCH,
    GPUHAL_BENCH_LAUNCH,
    GPUHAL_BENCH_RECORDING,
    GPUHAL_BENCH_ALLOCATE,
    GPUHAL_BENCH_OPEN,
    GPUHAL_BENCH_SAMPLE,
    GPUHAL_BENCH_SHARE,
    GPUHAL_BENCH_FILE,
    GPUHAL_BENCH_COPY,
    GPUHAL_BENCH_PAIRS,
    GPUHAL_BENCH_BLOCKS,
    GPUHAL_BENCH_PLACE,
    GPUHAL_BENCH_GROUPS
} gpuhal_bench_group;

/* A confidence interval needs GPUHAL_BENCH_PAIRS_MIN pairs. Fewer pairs are only for smoke tests. */
enum { GPUHAL_BENCH_SIZES_MAX = 64, GPUHAL_BENCH_PAIRS_MIN = 15 };

enum {
    GPUHAL_BENCH_EXIT_OK = 0,
    GPUHAL_BENCH_EXIT_FAILED = 1,
    GPUHAL_BENCH_EXIT_USAGE = 2,
    GPUHAL_BENCH_EXIT_NO_DEVICE = 3,
    GPUHAL_BENCH_EXIT_NOT_FOUND = 5
};

typedef struct gpuhal_bench_options {
    const char *device; /* A selector; NULL for all devices. */
    uint64_t sizes[GPUHAL_BENCH_SIZES_MAX];
    size_t size_count;
    size_t pairs; /* Rounds of samples. */
    bool pairs_given;
    uint32_t groups;          /* Bits 1 << gpuhal_bench_group. */
    uint64_t hang_ns;         /* A driver counts as hung after this long in a call. */
    bool baseline;            /* Also measure the baselines. Without them, only amounts are compared with budgets. */
    bool quick;
    bool json;                /* JSON Lines instead of a table. */
    const char *replay;       /* A file of recorded requests, or "-" for standard input. NULL to run groups of rows. */
    const char *const *child; /* The words after --child, ended by NULL. NULL without --child. */
} gpuhal_bench_options;

/* Reads the command line. Returns false if the program must exit now, with the exit code @out_exit. */
bool gpuhal_bench_options_read(int argc, char **argv, gpuhal_bench_options *out_options, int *out_exit);

#endif
