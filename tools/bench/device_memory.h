/* device_memory.h: how much memory of a device is taken, by all processes together, by other sources than the
 * library. */
#ifndef GPUHAL_BENCH_DEVICE_MEMORY_H
#define GPUHAL_BENCH_DEVICE_MEMORY_H

#include <stdbool.h>

/* Of the device of that backend ("cuda", "rocm") at a PCI address. NVML knows it of NVIDIA's, the kernel's driver of
 * AMD's; neither takes memory for that. False with gpuhal_bench_failure(). */
bool gpuhal_bench_device_memory(const char *backend, const char *pci, double *out_kib);

#endif
