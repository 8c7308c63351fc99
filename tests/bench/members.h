/* members.h: the functions that the files of this folder contribute to the table in baselines.c. baselines.h describes
 * these functions. */
#ifndef GPUHAL_BENCH_MEMBERS_H
#define GPUHAL_BENCH_MEMBERS_H

#include "baselines.h"

#ifdef __cplusplus
extern "C" {
#endif

gpuhal_bench_baseline *gpuhal_bench_cuda_create(void *library, const gpuhal_native *device);
bool gpuhal_bench_cuda_list(void *library, uint32_t *out_count);
bool gpuhal_bench_cuda_memory(const char *pci, double *out_kib);

gpuhal_bench_baseline *gpuhal_bench_hip_create(void *library, const gpuhal_native *device);
bool gpuhal_bench_hip_list(void *library, uint32_t *out_count);
bool gpuhal_bench_hip_memory(const char *pci, double *out_kib);

gpuhal_bench_baseline *gpuhal_bench_opencl_create(void *library, const gpuhal_native *device);
bool gpuhal_bench_opencl_list(void *library, uint32_t *out_count);
void gpuhal_bench_opencl_rows_launch(struct gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_opencl_rows_step(struct gpuhal_bench *bench, gpuhal_device *device);

gpuhal_bench_baseline *gpuhal_bench_vulkan_create(void *library, const gpuhal_native *device);
bool gpuhal_bench_vulkan_list(void *library, uint32_t *out_count);
void gpuhal_bench_vulkan_rows_launch(struct gpuhal_bench *bench, gpuhal_device *device);

/* Comparisons with the C++ library's hash table, and with the bookkeeping of the Vulkan Memory Allocator. Neither side
 * accesses the memory or calls a driver. Both comparisons are optional (GPUHAL_BENCH_MAP, GPUHAL_BENCH_VMA). */
gpuhal_bench_map *gpuhal_bench_map_create(const gpuhal_bench_key *keys, size_t count);
void gpuhal_bench_map_destroy(gpuhal_bench_map *map);
bool gpuhal_bench_map_has(const gpuhal_bench_map *map, const gpuhal_bench_key *key);
bool gpuhal_bench_vma_replay(const gpuhal_bench_trace *trace, uint64_t arena_bytes, uint64_t *handles);

#ifdef __cplusplus
}
#endif

#endif
