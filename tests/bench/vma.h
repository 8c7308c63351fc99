/* vma.h: the same requests to a virtual block of the Vulkan Memory Allocator, the bookkeeping of that library by
 * itself. Neither side touches memory or calls a driver. Only where vk_mem_alloc.h was found: GPUHAL_BENCH_VMA. */
#ifndef GPUHAL_BENCH_VMA_H
#define GPUHAL_BENCH_VMA_H

#include "traces.h"

#ifdef __cplusplus
extern "C" {
#endif

bool gpuhal_bench_vma_replay(const gpuhal_bench_trace *trace, uint64_t arena_bytes, uint64_t *handles);

#ifdef __cplusplus
}
#endif

#endif
