/* baseline_vulkan_memory.c: allocates, commits and frees Vulkan memory as a program without the library does. */
#include "baseline_vulkan_memory.h"
#include "measure.h"

#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE_BYTES = 4096, FEW_BYTES = 32 << 10 };

static bool failed(const char *call, VkResult code)
{
    return gpuhal_bench_failed("%s returned %d", call, (int)code);
}

/* Returns the first type in @types with all of the @wanted flags. The driver has sorted the types by preference. */
static uint32_t type_with(const gpuhal_bench_vulkan *v, uint32_t types, VkMemoryPropertyFlags wanted)
{
    for (uint32_t i = 0; i < v->memory.memoryTypeCount; i++) {
        if ((types >> i & 1) != 0 && (v->memory.memoryTypes[i].propertyFlags & wanted) == wanted) {
            return i;
        }
    }
    return UINT32_MAX;
}

typedef struct vulkan_memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceAddress address; /* 0 if none */
    uint32_t type;
} vulkan_memory;

static void release(const gpuhal_bench_vulkan *v, const vulkan_memory *memory)
{
    v->vk.vkDestroyBuffer(v->device, memory->buffer, NULL);
    v->vk.vkFreeMemory(v->device, memory->memory, NULL);
}

/* Creates a buffer with memory of its own and, if buffers can have addresses, a device address, like the library's
 * buffers. */
static bool create(const gpuhal_bench_vulkan *v, uint64_t bytes, vulkan_memory *out_memory)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                 (v->has_addresses ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0u),
    };
    const VkMemoryAllocateFlagsInfo flags = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    *out_memory = (vulkan_memory){0};
    VkResult code = v->vk.vkCreateBuffer(v->device, &info, NULL, &out_memory->buffer);
    if (code != VK_SUCCESS) {
        return failed("vkCreateBuffer", code);
    }
    /* Some drivers prefer or require dedicated memory for certain buffers, so this function queries that too. */
    VkMemoryDedicatedRequirements alone = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, .pNext = &alone};
    const VkBufferMemoryRequirementsInfo2 of_buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2,
                                                       .buffer = out_memory->buffer};
    v->vk.vkGetBufferMemoryRequirements2(v->device, &of_buffer, &needs);
    out_memory->type = type_with(v, needs.memoryRequirements.memoryTypeBits, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    const VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
        .pNext = v->has_addresses ? &flags : NULL,
        .buffer = out_memory->buffer,
    };
    const bool is_alone = alone.requiresDedicatedAllocation || alone.prefersDedicatedAllocation;
    const VkMemoryAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = is_alone ? &dedicated : dedicated.pNext,
        .allocationSize = needs.memoryRequirements.size,
        .memoryTypeIndex = out_memory->type,
    };
    if (out_memory->type == UINT32_MAX) {
        release(v, out_memory);
        return gpuhal_bench_failed("no memory type of the Vulkan device fits");
    }
    code = v->vk.vkAllocateMemory(v->device, &allocate, NULL, &out_memory->memory);
    if (code == VK_SUCCESS) {
        code = v->vk.vkBindBufferMemory(v->device, out_memory->buffer, out_memory->memory, 0);
    }
    if (code != VK_SUCCESS) {
        release(v, out_memory);
        return failed("vkAllocateMemory or vkBindBufferMemory", code);
    }
    if (v->has_addresses) {
        const VkBufferDeviceAddressInfo question = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                                    .buffer = out_memory->buffer};
        out_memory->address = v->vk.vkGetBufferDeviceAddress(v->device, &question);
    }
    return true;
}

/* Touches all pages. A software device uses host memory, and the system commits its pages on the first access. One
 * madvise() call commits many pages. */
static void bring_pages(void *start, uint64_t bytes)
{
    volatile char *at = start;
    const uint64_t before = (uintptr_t)start % PAGE_BYTES;
    const uint64_t length = (before + bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (length > FEW_BYTES && madvise((char *)start - before, (size_t)length, MADV_POPULATE_WRITE) == 0) {
        return;
    }
    for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) {
        at[i] = 0;
    }
}

/* Maps host-visible memory, as the library does. */
static bool commit(const gpuhal_bench_vulkan *v, const vulkan_memory *memory, uint64_t bytes)
{
    void *address;
    if ((v->memory.memoryTypes[memory->type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) {
        return true;
    }
    const VkResult code = v->vk.vkMapMemory(v->device, memory->memory, 0, VK_WHOLE_SIZE, 0, &address);
    if (code != VK_SUCCESS) {
        return failed("vkMapMemory", code);
    }
    if (v->is_software) {
        bring_pages(address, bytes);
    }
    return true;
}

bool gpuhal_bench_vulkan_allocate(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count)
{
    const gpuhal_bench_vulkan *v = (const gpuhal_bench_vulkan *)baseline;
    for (uint64_t i = 0; i < count; i++) {
        vulkan_memory memory;
        if (!create(v, bytes, &memory)) {
            return false;
        }
        const bool good = commit(v, &memory, bytes);
        release(v, &memory);
        if (!good) {
            return false;
        }
    }
    return true;
}
