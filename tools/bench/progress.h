/* progress.h: a bar on stderr where that is a terminal. */
#ifndef GPUHAL_BENCH_PROGRESS_H
#define GPUHAL_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpuhal_bench_progress_bar {
    bool terminal;
    double done;  /* Of 1, before the group at work. */
    double share; /* Of the group at work. */
    size_t steps; /* That it is expected to take. */
    size_t step;
} gpuhal_bench_progress_bar;

void gpuhal_bench_progress_start(gpuhal_bench_progress_bar *bar);
void gpuhal_bench_progress_group(gpuhal_bench_progress_bar *bar, double share, size_t steps);
void gpuhal_bench_progress_step(gpuhal_bench_progress_bar *bar, const char *device, const char *test, uint64_t bytes);

/* Makes room for other output. */
void gpuhal_bench_progress_clear(const gpuhal_bench_progress_bar *bar);

#endif
