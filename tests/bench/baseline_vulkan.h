/* baseline_vulkan.h: Vulkan's own calls, as a careful program would make them. */
#ifndef GPUHAL_BENCH_BASELINE_VULKAN_H
#define GPUHAL_BENCH_BASELINE_VULKAN_H

#include "baselines.h"

/* Command buffer and fence of our own on the first queue of the VkDevice. NULL with gpuhal_bench_failure(). */
gpuhal_bench_baseline *gpuhal_bench_vulkan_create(void *library, const gpuhal_native *device);

/* Lists the devices, as baseline.h says. */
bool gpuhal_bench_vulkan_list(void *library, uint32_t *out_count);

/* Rows beside its own launches. */
void gpuhal_bench_vulkan_rows_launch(struct gpuhal_bench *bench, gpuhal_device *device);

#endif
