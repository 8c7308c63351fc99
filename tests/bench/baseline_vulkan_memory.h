/* baseline_vulkan_memory.h: the state of the direct Vulkan calls, and the calls that allocate memory (baseline.h). */
#ifndef GPUHAL_BENCH_BASELINE_VULKAN_MEMORY_H
#define GPUHAL_BENCH_BASELINE_VULKAN_MEMORY_H

#include "baseline.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

/* The functions of the VkDevice that the baseline calls. The optional functions exist only on some devices. */
#define GPUHAL_BENCH_VULKAN_REQUIRED(X)                                                                              \
    X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkAllocateCommandBuffers) X(vkBeginCommandBuffer)               \
    X(vkEndCommandBuffer) X(vkCmdCopyBuffer) X(vkCmdPipelineBarrier) X(vkQueueSubmit) X(vkCreateFence)               \
    X(vkDestroyFence) X(vkResetFences) X(vkWaitForFences) X(vkCreateBuffer) X(vkDestroyBuffer)                       \
    X(vkGetBufferMemoryRequirements2) X(vkAllocateMemory) X(vkFreeMemory) X(vkBindBufferMemory) X(vkMapMemory)
#define GPUHAL_BENCH_VULKAN_OPTIONAL(X) X(vkGetBufferDeviceAddress)

#define GPUHAL_BENCH_VULKAN_MEMBER(name) PFN_##name name;
typedef struct gpuhal_bench_vulkan_functions {
    GPUHAL_BENCH_VULKAN_REQUIRED(GPUHAL_BENCH_VULKAN_MEMBER)
    GPUHAL_BENCH_VULKAN_OPTIONAL(GPUHAL_BENCH_VULKAN_MEMBER) /* NULL if the device was created without it */
} gpuhal_bench_vulkan_functions;

typedef struct gpuhal_bench_vulkan {
    gpuhal_bench_baseline base;
    gpuhal_bench_vulkan_functions vk;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    bool recording;     /* Commands have been recorded, but not submitted. */
    bool has_addresses; /* Buffers can have device addresses. */
    bool is_software;   /* The device's memory is host memory. */
    VkPhysicalDeviceMemoryProperties memory;
} gpuhal_bench_vulkan;

bool gpuhal_bench_vulkan_allocate(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count);

#endif
