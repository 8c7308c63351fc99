/* vma.cpp: the comparison with the Vulkan Memory Allocator, a header-only C++ library. The comparison calls no Vulkan
 * function, so no Vulkan library is linked. The allocator's assertions are disabled, as in a release build. */
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS  0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#define VMA_ASSERT(expression)       ((void)0)
#define VMA_HEAVY_ASSERT(expression) ((void)0)
#define VK_NO_PROTOTYPES
#include <vk_mem_alloc.h>

#include "members.h"

static volatile uint64_t sum_of_offsets; /* volatile: keeps the compiler from removing the work */

bool gpuhal_bench_vma_replay(const gpuhal_bench_trace *trace, uint64_t arena_bytes, uint64_t *handles)
{
    VmaVirtualBlockCreateInfo info = {};
    VmaVirtualBlock arena;
    uint64_t sum = 0;
    bool good = true;
    info.size = arena_bytes;
    if (vmaCreateVirtualBlock(&info, &arena) != VK_SUCCESS) {
        return false;
    }
    for (uint64_t i = 0; good && i < trace->count; i++) {
        const gpuhal_bench_step step = trace->steps[i];
        if (step.units > 0) {
            VmaVirtualAllocationCreateInfo wanted = {};
            VmaVirtualAllocation given;
            VkDeviceSize offset;
            wanted.size = (VkDeviceSize)step.units * GPUHAL_BENCH_TRACE_UNIT;
            wanted.alignment = GPUHAL_BENCH_TRACE_UNIT;
            good = vmaVirtualAllocate(arena, &wanted, &given, &offset) == VK_SUCCESS;
            handles[step.slot] = (uint64_t)given;
            sum += offset;
        } else {
            vmaVirtualFree(arena, (VmaVirtualAllocation)handles[step.slot]);
        }
    }
    vmaClearVirtualBlock(arena);
    vmaDestroyVirtualBlock(arena);
    sum_of_offsets = sum;
    return good;
}
