/* baseline_vulkan_memory.h: what the direct calls of Vulkan work with, and those of them that make memory (baseline.h). */
#ifndef GPUHAL_BENCH_BASELINE_VULKAN_MEMORY_H
#define GPUHAL_BENCH_BASELINE_VULKAN_MEMORY_H

#include "baseline.h"
#include "vulkan_functions.h"

typedef struct gpuhal_bench_vulkan {
    gpuhal_bench_baseline base;
    gpuhal_bench_vulkan_functions vk;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    VkSemaphore timeline; /* VK_NULL_HANDLE: the device was made without. */
    uint64_t reached;     /* Its last value. */
    bool recording;       /* Commands were enqueued that are not submitted. */
    bool has_addresses;   /* Buffers can be given addresses of the device. */
    bool is_software;     /* Its memory is ordinary host memory. */
    VkPhysicalDeviceMemoryProperties memory;
} gpuhal_bench_vulkan;

bool gpuhal_bench_vulkan_allocate(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count);
bool gpuhal_bench_vulkan_import_host(gpuhal_bench_baseline *baseline, void *memory, uint64_t bytes, uint64_t count);

#endif
