/* vulkan_functions.h: the functions of a VkDevice that the baseline calls. */
#ifndef GPUHAL_BENCH_VULKAN_FUNCTIONS_H
#define GPUHAL_BENCH_VULKAN_FUNCTIONS_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <stdbool.h>

typedef struct gpuhal_bench_vulkan_functions {
    PFN_vkCreateCommandPool create_pool;
    PFN_vkDestroyCommandPool destroy_pool;
    PFN_vkAllocateCommandBuffers allocate_commands;
    PFN_vkBeginCommandBuffer begin;
    PFN_vkEndCommandBuffer end;
    PFN_vkCmdCopyBuffer copy;
    PFN_vkCmdPipelineBarrier barrier;
    PFN_vkQueueSubmit submit;
    PFN_vkCreateFence create_fence;
    PFN_vkDestroyFence destroy_fence;
    PFN_vkResetFences reset_fences;
    PFN_vkWaitForFences wait_fences;
    PFN_vkCreateSemaphore create_semaphore;
    PFN_vkDestroySemaphore destroy_semaphore;
    PFN_vkWaitSemaphores wait_semaphores; /* NULL: the device knows no timeline semaphores. */
    PFN_vkCreateBuffer create_buffer;
    PFN_vkDestroyBuffer destroy_buffer;
    PFN_vkGetBufferMemoryRequirements2 requirements;
    PFN_vkAllocateMemory allocate;
    PFN_vkFreeMemory free;
    PFN_vkBindBufferMemory bind;
    PFN_vkMapMemory map;
    PFN_vkGetBufferDeviceAddress address;                            /* NULL: the device knows no addresses of buffers. */
    PFN_vkGetMemoryHostPointerPropertiesEXT host_pointer_properties; /* NULL: the device was made without host pointers. */
} gpuhal_bench_vulkan_functions;

/* Fills the table. False with gpuhal_bench_failure() when a function is missing that must be there. */
bool gpuhal_bench_vulkan_find_functions(VkDevice device, PFN_vkGetDeviceProcAddr get, gpuhal_bench_vulkan_functions *out_vk);

#endif
