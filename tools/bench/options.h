/* options.h: what the command line asks for. */
#ifndef GPUHAL_BENCH_OPTIONS_H
#define GPUHAL_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Groups of rows, for --only. Bits. */
enum {
    GPUHAL_BENCH_CALL = 1u << 0,
    GPUHAL_BENCH_QUEUE = 1u << 1,
    GPUHAL_BENCH_BATCH = 1u << 2,
    GPUHAL_BENCH_ALLOCATE = 1u << 3,
    GPUHAL_BENCH_OPEN = 1u << 4,
    GPUHAL_BENCH_SHARE = 1u << 5,
    GPUHAL_BENCH_FILE = 1u << 6,
    GPUHAL_BENCH_COPY = 1u << 7,
    GPUHAL_BENCH_PAIRS = 1u << 8,
    GPUHAL_BENCH_ALL = (1u << 9) - 1
};

enum { GPUHAL_BENCH_SIZES_MAX = 64 };

/* Exit codes of the program. */
enum {
    GPUHAL_BENCH_EXIT_OK = 0,
    GPUHAL_BENCH_EXIT_FAILED = 1,
    GPUHAL_BENCH_EXIT_USAGE = 2,
    GPUHAL_BENCH_EXIT_NO_DEVICE = 3,
    GPUHAL_BENCH_EXIT_NOT_FOUND = 5
};

typedef struct gpuhal_bench_options {
    const char *device; /* A selector; NULL: every device. */
    uint64_t sizes[GPUHAL_BENCH_SIZES_MAX];
    size_t size_count;
    bool sizes_given;
    size_t pairs; /* Rounds of samples. */
    bool pairs_given;
    uint32_t groups;
    bool baseline; /* Measure what there is to compare with, and judge. */
    bool quick;
    bool json;                  /* JSON Lines, not a table. */
    uint64_t callgrind_count;   /* Not 0: run the loop for counting instructions and nothing else. */
    const char *callgrind_kind; /* "ours" or "direct". */
    const char *const *child;   /* Not NULL: the words behind --child, ended by NULL. */
} gpuhal_bench_options;

/* Reads the command line. False when the program is to end now, with @out_exit. */
bool gpuhal_bench_options_read(int argc, char **argv, gpuhal_bench_options *out_options, int *out_exit);

#endif
