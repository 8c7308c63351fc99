/* progress.c: how far the run is, by estimate: a group that takes more steps than expected waits at its end. */
#include "progress.h"
#include "table.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CELLS = 24 };

void gpuhal_bench_progress_start(gpuhal_bench_progress_bar *bar)
{
    *bar = (gpuhal_bench_progress_bar){.terminal = isatty(STDERR_FILENO) == 1};
}

void gpuhal_bench_progress_group(gpuhal_bench_progress_bar *bar, double share, size_t steps)
{
    bar->done += bar->share;
    bar->share = share;
    bar->steps = steps > 0 ? steps : 1;
    bar->step = 0;
}

void gpuhal_bench_progress_step(gpuhal_bench_progress_bar *bar, const char *device, const char *test, uint64_t bytes)
{
    char cells[CELLS + 1];
    char size[GPUHAL_BENCH_WORD] = "";
    if (!bar->terminal) {
        return;
    }
    const double inside = bar->step < bar->steps ? (double)bar->step / (double)bar->steps : 1;
    const double done = bar->done + bar->share * inside;
    const size_t full = (size_t)(done * (double)CELLS);
    bar->step++;
    for (size_t i = 0; i < CELLS; i++) {
        cells[i] = i < full ? '#' : '.';
    }
    cells[CELLS] = '\0';
    if (bytes > 0) {
        gpuhal_bench_size_text(bytes, size);
    }
    fprintf(stderr, "\r\033[K[%s] %3.0f %%  %.14s %.18s %.10s", cells, done * 100, device, test, size);
}

void gpuhal_bench_progress_clear(const gpuhal_bench_progress_bar *bar)
{
    if (bar->terminal) {
        fputs("\r\033[K", stderr);
    }
}
