/* child_open.h: what a fresh process does to measure opening: with the library, and with the vendors' own calls. */
#ifndef GPUHAL_BENCH_CHILD_OPEN_H
#define GPUHAL_BENCH_CHILD_OPEN_H

#include <stdbool.h>

/* Each fills in the number that child.h tells of its word. */
bool gpuhal_bench_child_enumerate(double *out_ns);
bool gpuhal_bench_child_list(const char *backend, double *out_ns);
bool gpuhal_bench_child_list_direct(const char *const *pairs, double *out_ns);
bool gpuhal_bench_child_list_all(const char *registry, double *out_ns);
bool gpuhal_bench_child_touched(const char *registry, double *out_count);
bool gpuhal_bench_child_device_memory(const char *backend, const char *pci, double *out_kib);

#endif
