/* baseline_vulkan.c: Vulkan on the VkDevice and VkQueue that the library uses, with nothing made anew that can be used again: one
 * command buffer, one fence, one timeline semaphore.
 *
 * Nothing is linked: every function comes from the get_instance_proc_addr of the described device. */
#include "baseline_vulkan.h"
#include "measure.h"
#include "vulkan_functions.h"

#include <gpuhal/native.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE_BYTES = 4096, FEW_BYTES = 32 << 10 };

typedef struct vulkan_baseline {
    gpuhal_bench_baseline base;
    gpuhal_bench_vulkan_functions vk;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    VkSemaphore timeline; /* VK_NULL_HANDLE: the device was made without. */
    uint64_t reached;     /* Its last value. */
    bool has_addresses;   /* Buffers can be given addresses of the device. */
    bool is_software;     /* Its memory is ordinary host memory. */
    VkPhysicalDeviceMemoryProperties memory;
} vulkan_baseline;

static vulkan_baseline *vulkan_of(gpuhal_bench_baseline *baseline)
{
    return (vulkan_baseline *)baseline;
}

static bool failed(const char *call, VkResult code)
{
    return gpuhal_bench_failed("%s answered %d", call, (int)code);
}

static bool has_extension(const gpuhal_vulkan_device *device, const char *name)
{
    for (uint32_t i = 0; i < device->extension_count; i++) {
        if (strcmp(device->extensions[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* What the VkDevice was made with, which the chain of its features tells. */
static void read_features(const gpuhal_vulkan_device *device, bool *out_timeline, bool *out_address)
{
    const VkPhysicalDeviceFeatures2 *features = device->features;
    *out_timeline = *out_address = false;
    for (const VkBaseInStructure *link = features != NULL ? features->pNext : NULL; link != NULL; link = link->pNext) {
        const void *found = link;
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
            const VkPhysicalDeviceVulkan12Features *all = found;
            *out_timeline = all->timelineSemaphore;
            *out_address = all->bufferDeviceAddress;
        } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES) {
            *out_timeline = ((const VkPhysicalDeviceTimelineSemaphoreFeatures *)found)->timelineSemaphore;
        } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES) {
            *out_address = ((const VkPhysicalDeviceBufferDeviceAddressFeatures *)found)->bufferDeviceAddress;
        }
    }
}

/* After the last command of a submission: what was written is there for the host too, as it is when a call of the library has
 * returned. */
static void make_visible(const vulkan_baseline *v)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    v->vk.barrier(v->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static bool record(const vulkan_baseline *v, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes, uint64_t pieces)
{
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkResult code = v->vk.begin(v->commands, &begin);
    if (code != VK_SUCCESS) {
        return failed("vkBeginCommandBuffer", code);
    }
    for (uint64_t piece = 0; piece < pieces; piece++) {
        const VkBufferCopy region = {.srcOffset = piece * bytes, .dstOffset = piece * bytes, .size = bytes};
        v->vk.copy(v->commands, (VkBuffer)from->values[0], (VkBuffer)to->values[0], 1, &region);
    }
    make_visible(v);
    code = v->vk.end(v->commands);
    return code == VK_SUCCESS || failed("vkEndCommandBuffer", code);
}

static bool vulkan_copy(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                        uint64_t count)
{
    const vulkan_baseline *v = vulkan_of(baseline);
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &v->commands,
    };
    for (uint64_t i = 0; i < count; i++) {
        if (!record(v, to, from, bytes, 1)) {
            return false;
        }
        VkResult code = v->vk.submit(v->queue, 1, &submit, v->fence);
        if (code != VK_SUCCESS) {
            return failed("vkQueueSubmit", code);
        }
        code = v->vk.wait_fences(v->device, 1, &v->fence, VK_TRUE, UINT64_MAX);
        if (code != VK_SUCCESS) {
            return failed("vkWaitForFences", code);
        }
        v->vk.reset_fences(v->device, 1, &v->fence);
    }
    return true;
}

static bool vulkan_batch(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from, uint64_t bytes,
                         uint64_t pieces, uint64_t count)
{
    vulkan_baseline *v = vulkan_of(baseline);
    if (v->timeline == VK_NULL_HANDLE) {
        return gpuhal_bench_failed("the Vulkan device was made without timeline semaphores");
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t value = v->reached + 1;
        const VkTimelineSemaphoreSubmitInfo values = {
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .signalSemaphoreValueCount = 1,
            .pSignalSemaphoreValues = &value,
        };
        const VkSubmitInfo submit = {
            .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
            .pNext = &values,
            .commandBufferCount = 1,
            .pCommandBuffers = &v->commands,
            .signalSemaphoreCount = 1,
            .pSignalSemaphores = &v->timeline,
        };
        const VkSemaphoreWaitInfo wait = {
            .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
            .semaphoreCount = 1,
            .pSemaphores = &v->timeline,
            .pValues = &value,
        };
        if (!record(v, to, from, bytes, pieces)) {
            return false;
        }
        VkResult code = v->vk.submit(v->queue, 1, &submit, VK_NULL_HANDLE);
        if (code != VK_SUCCESS) {
            return failed("vkQueueSubmit", code);
        }
        v->reached = value;
        code = v->vk.wait_semaphores(v->device, &wait, UINT64_MAX);
        if (code != VK_SUCCESS) {
            return failed("vkWaitSemaphores", code);
        }
    }
    return true;
}

/* The first type among @types that has all of @wanted; the types are in the driver's order of preference. */
static uint32_t type_with(const vulkan_baseline *v, uint32_t types, VkMemoryPropertyFlags wanted)
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
    VkDeviceAddress address; /* 0: none. */
    uint32_t type;
} vulkan_memory;

static void let_go(const vulkan_baseline *v, const vulkan_memory *memory)
{
    v->vk.destroy_buffer(v->device, memory->buffer, NULL);
    v->vk.free(v->device, memory->memory, NULL);
}

/* A buffer with memory of its own, and with the address that the library's buffers have too. @buffer_chain, @memory_chain and
 * @types: what an import adds, and the types that it allows. */
static bool create(const vulkan_baseline *v, uint64_t bytes, const void *buffer_chain, const void *memory_chain, uint32_t types,
                   vulkan_memory *out_memory)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = buffer_chain,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                 (v->has_addresses ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0u),
    };
    const VkMemoryAllocateFlagsInfo flags = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
        .pNext = memory_chain,
        .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT,
    };
    *out_memory = (vulkan_memory){0};
    VkResult code = v->vk.create_buffer(v->device, &info, NULL, &out_memory->buffer);
    if (code != VK_SUCCESS) {
        return failed("vkCreateBuffer", code);
    }
    VkMemoryRequirements needs;
    v->vk.requirements(v->device, out_memory->buffer, &needs);
    types &= needs.memoryTypeBits;
    out_memory->type = type_with(v, types, memory_chain == NULL ? VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT : 0);
    const VkMemoryAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = v->has_addresses ? &flags : memory_chain,
        .allocationSize = memory_chain == NULL ? needs.size : bytes,
        .memoryTypeIndex = out_memory->type,
    };
    if (out_memory->type == UINT32_MAX) {
        let_go(v, out_memory);
        return gpuhal_bench_failed("no memory type of the Vulkan device fits");
    }
    code = v->vk.allocate(v->device, &allocate, NULL, &out_memory->memory);
    if (code == VK_SUCCESS) {
        code = v->vk.bind(v->device, out_memory->buffer, out_memory->memory, 0);
    }
    if (code != VK_SUCCESS) {
        let_go(v, out_memory);
        return failed("vkAllocateMemory or vkBindBufferMemory", code);
    }
    if (v->has_addresses) {
        const VkBufferDeviceAddressInfo question = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                                    .buffer = out_memory->buffer};
        out_memory->address = v->vk.address(v->device, &question);
    }
    return true;
}

/* Memory of a software device is ordinary memory, whose pages come at their first touch: that is now, by one call where they are
 * many. */
static void bring_pages(void *start, uint64_t bytes)
{
    volatile char *at = start;
    const uint64_t before = (uintptr_t)start % PAGE_BYTES;
    const uint64_t length = (before + bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    if (length > FEW_BYTES && madvise((char *)start - before, length, MADV_POPULATE_WRITE) == 0) {
        return;
    }
    for (uint64_t i = 0; i < bytes; i += PAGE_BYTES) {
        at[i] = 0;
    }
}

/* Where the host sees the memory the library's buffer has an address, so this one gets one too. */
static bool commit(const vulkan_baseline *v, const vulkan_memory *memory, uint64_t bytes)
{
    void *address;
    if ((v->memory.memoryTypes[memory->type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) {
        return true;
    }
    const VkResult code = v->vk.map(v->device, memory->memory, 0, VK_WHOLE_SIZE, 0, &address);
    if (code != VK_SUCCESS) {
        return failed("vkMapMemory", code);
    }
    if (v->is_software) {
        bring_pages(address, bytes);
    }
    return true;
}

static bool vulkan_allocate(gpuhal_bench_baseline *baseline, uint64_t bytes, uint64_t count)
{
    const vulkan_baseline *v = vulkan_of(baseline);
    for (uint64_t i = 0; i < count; i++) {
        vulkan_memory memory;
        if (!create(v, bytes, NULL, NULL, UINT32_MAX, &memory)) {
            return false;
        }
        const bool good = commit(v, &memory, bytes);
        let_go(v, &memory);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool vulkan_import_host(gpuhal_bench_baseline *baseline, void *memory, uint64_t bytes, uint64_t count)
{
    const vulkan_baseline *v = vulkan_of(baseline);
    const VkExternalMemoryHandleTypeFlagBits handle_type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = handle_type,
    };
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = handle_type,
        .pHostPointer = memory,
    };
    if (v->vk.host_pointer_properties == NULL) {
        return gpuhal_bench_failed("the Vulkan device was made without VK_EXT_external_memory_host");
    }
    for (uint64_t i = 0; i < count; i++) {
        VkMemoryHostPointerPropertiesEXT properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
        vulkan_memory imported;
        const VkResult code = v->vk.host_pointer_properties(v->device, handle_type, memory, &properties);
        if (code != VK_SUCCESS) {
            return failed("vkGetMemoryHostPointerPropertiesEXT", code);
        }
        if (!create(v, bytes, &external, &import, properties.memoryTypeBits, &imported)) {
            return false;
        }
        let_go(v, &imported);
    }
    return true;
}

static void vulkan_destroy(gpuhal_bench_baseline *baseline)
{
    vulkan_baseline *v = vulkan_of(baseline);
    v->vk.destroy_semaphore(v->device, v->timeline, NULL);
    v->vk.destroy_fence(v->device, v->fence, NULL);
    v->vk.destroy_pool(v->device, v->pool, NULL);
    free(v);
}

static const gpuhal_bench_baseline_calls vulkan_calls = {
    .destroy = vulkan_destroy,
    .copy = vulkan_copy,
    .batch = vulkan_batch,
    .allocate = vulkan_allocate,
    .import_host = vulkan_import_host,
};

static bool start_commands(vulkan_baseline *v, uint32_t family)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = family,
    };
    VkResult code = v->vk.create_pool(v->device, &pool, NULL, &v->pool);
    if (code != VK_SUCCESS) {
        return failed("vkCreateCommandPool", code);
    }
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = v->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    code = v->vk.allocate_commands(v->device, &commands, &v->commands);
    return code == VK_SUCCESS || failed("vkAllocateCommandBuffers", code);
}

static bool start_waiting(vulkan_baseline *v, bool timeline)
{
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkResult code = v->vk.create_fence(v->device, &fence, NULL, &v->fence);
    if (code != VK_SUCCESS) {
        return failed("vkCreateFence", code);
    }
    if (!timeline) {
        return true;
    }
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    code = v->vk.create_semaphore(v->device, &semaphore, NULL, &v->timeline);
    return code == VK_SUCCESS || failed("vkCreateSemaphore", code);
}

gpuhal_bench_baseline *gpuhal_bench_vulkan_create(const gpuhal_native *device)
{
    const gpuhal_vulkan_device *described = device->typed;
    const PFN_vkGetInstanceProcAddr get = (PFN_vkGetInstanceProcAddr)described->get_instance_proc_addr;
    VkInstance instance = described->instance;
    const PFN_vkGetDeviceProcAddr get_device = (PFN_vkGetDeviceProcAddr)get(instance, "vkGetDeviceProcAddr");
    const PFN_vkGetPhysicalDeviceMemoryProperties get_memory =
        (PFN_vkGetPhysicalDeviceMemoryProperties)get(instance, "vkGetPhysicalDeviceMemoryProperties");
    const PFN_vkGetPhysicalDeviceProperties get_properties =
        (PFN_vkGetPhysicalDeviceProperties)get(instance, "vkGetPhysicalDeviceProperties");
    vulkan_baseline *v = calloc(1, sizeof *v);
    if (get_device == NULL || get_memory == NULL || get_properties == NULL || v == NULL) {
        gpuhal_bench_failed("the Vulkan instance lacks functions, or memory is short");
        free(v);
        return NULL;
    }
    v->base.calls = &vulkan_calls;
    v->device = described->device;
    v->queue = described->queues[0].queue;
    VkPhysicalDeviceProperties properties;
    get_properties(described->physical_device, &properties);
    get_memory(described->physical_device, &v->memory);
    v->is_software = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (!gpuhal_bench_vulkan_find_functions(v->device, get_device, &v->vk)) {
        free(v);
        return NULL;
    }
    if (!has_extension(described, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
        v->vk.host_pointer_properties = NULL;
    }
    bool timeline;
    read_features(described, &timeline, &v->has_addresses);
    v->has_addresses = v->has_addresses && v->vk.address != NULL;
    if (!start_commands(v, described->queues[0].family) || !start_waiting(v, timeline && v->vk.wait_semaphores != NULL)) {
        vulkan_destroy(&v->base);
        return NULL;
    }
    return &v->base;
}
