/* child_open.h: what a fresh process does to measure opening: with the library, and with the vendors' own calls. */
#ifndef GPUHAL_BENCH_CHILD_OPEN_H
#define GPUHAL_BENCH_CHILD_OPEN_H

#include <stdbool.h>

/* Each fills in the number that child.h tells of its word; @words are those behind it. */
bool gpuhal_bench_child_enumerate(const char *const *words, double *out_ns);
bool gpuhal_bench_child_list(const char *const *words, double *out_ns);
bool gpuhal_bench_child_list_direct(const char *const *words, double *out_ns);
bool gpuhal_bench_child_list_all(const char *const *words, double *out_ns);
bool gpuhal_bench_child_touched(const char *const *words, double *out_count);
bool gpuhal_bench_child_device_memory(const char *const *words, double *out_kib);

#endif
