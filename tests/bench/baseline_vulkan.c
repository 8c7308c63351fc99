/* baseline_vulkan.c: direct calls of Vulkan on the library's VkDevice and VkQueue. The calls reuse one command buffer
 * and one fence.
 *
 * No Vulkan library is linked. All functions are looked up with the get_instance_proc_addr in the device's
 * description. */
#include "baseline_vulkan_memory.h"
#include "measure.h"
#include "members.h"

#include <gpuhal/native.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef gpuhal_bench_vulkan vulkan_baseline;

static vulkan_baseline *vulkan_of(gpuhal_bench_baseline *baseline)
{
    return (vulkan_baseline *)baseline;
}

static bool failed(const char *call, VkResult code)
{
    return gpuhal_bench_failed("%s returned %d", call, (int)code);
}

/* Returns whether the VkDevice was created with buffer addresses, according to its feature chain. */
static bool has_addresses(const gpuhal_vulkan_device *device)
{
    const VkPhysicalDeviceFeatures2 *features = device->features;
    bool has = false;
    for (const VkBaseInStructure *link = features != NULL ? features->pNext : NULL; link != NULL; link = link->pNext) {
        const void *found = link;
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
            has = ((const VkPhysicalDeviceVulkan12Features *)found)->bufferDeviceAddress;
        } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES) {
            has = ((const VkPhysicalDeviceBufferDeviceAddressFeatures *)found)->bufferDeviceAddress;
        }
    }
    return has;
}

/* Records the last command of a submission. The command makes the written bytes visible to the host, as the library's
 * calls do. */
static void make_visible(const vulkan_baseline *v)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    v->vk.vkCmdPipelineBarrier(v->commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier,
                               0, NULL, 0, NULL);
}

static bool vulkan_enqueue(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from,
                           uint64_t bytes, uint64_t pieces)
{
    vulkan_baseline *v = vulkan_of(baseline);
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    const VkResult code = v->recording ? VK_SUCCESS : v->vk.vkBeginCommandBuffer(v->commands, &begin);
    if (code != VK_SUCCESS) {
        return failed("vkBeginCommandBuffer", code);
    }
    v->recording = true;
    for (uint64_t piece = 0; piece < pieces; piece++) {
        const VkBufferCopy region = {.srcOffset = piece * bytes, .dstOffset = piece * bytes, .size = bytes};
        v->vk.vkCmdCopyBuffer(v->commands, (VkBuffer)from->values[0], (VkBuffer)to->values[0], 1, &region);
    }
    return true;
}

static bool end_recording(vulkan_baseline *v)
{
    make_visible(v);
    v->recording = false;
    const VkResult code = v->vk.vkEndCommandBuffer(v->commands);
    return code == VK_SUCCESS || failed("vkEndCommandBuffer", code);
}

static bool vulkan_submit(gpuhal_bench_baseline *baseline)
{
    vulkan_baseline *v = vulkan_of(baseline);
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &v->commands,
    };
    if (!end_recording(v)) {
        return false;
    }
    const VkResult code = v->vk.vkQueueSubmit(v->queue, 1, &submit, v->fence);
    return code == VK_SUCCESS || failed("vkQueueSubmit", code);
}

static bool vulkan_await(gpuhal_bench_baseline *baseline)
{
    const vulkan_baseline *v = vulkan_of(baseline);
    VkResult code = v->vk.vkWaitForFences(v->device, 1, &v->fence, VK_TRUE, UINT64_MAX);
    if (code != VK_SUCCESS) {
        return failed("vkWaitForFences", code);
    }
    code = v->vk.vkResetFences(v->device, 1, &v->fence);
    return code == VK_SUCCESS || failed("vkResetFences", code);
}

static bool vulkan_copy(gpuhal_bench_baseline *baseline, const gpuhal_native *to, const gpuhal_native *from,
                        uint64_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!vulkan_enqueue(baseline, to, from, bytes, 1) || !vulkan_submit(baseline) || !vulkan_await(baseline)) {
            return false;
        }
    }
    return true;
}

static void vulkan_destroy(gpuhal_bench_baseline *baseline)
{
    vulkan_baseline *v = vulkan_of(baseline);
    v->vk.vkDestroyFence(v->device, v->fence, NULL);
    v->vk.vkDestroyCommandPool(v->device, v->pool, NULL);
    free(v);
}

static const gpuhal_bench_baseline_calls vulkan_calls = {
    .destroy = vulkan_destroy,
    .copy = vulkan_copy,
    .enqueue = vulkan_enqueue,
    .submit = vulkan_submit,
    .await = vulkan_await,
    .allocate = gpuhal_bench_vulkan_allocate,
};

static bool start_commands(vulkan_baseline *v, uint32_t family)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = family,
    };
    VkResult code = v->vk.vkCreateCommandPool(v->device, &pool, NULL, &v->pool);
    if (code != VK_SUCCESS) {
        return failed("vkCreateCommandPool", code);
    }
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = v->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    code = v->vk.vkAllocateCommandBuffers(v->device, &commands, &v->commands);
    return code == VK_SUCCESS || failed("vkAllocateCommandBuffers", code);
}

static bool make_fence(vulkan_baseline *v)
{
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkResult code = v->vk.vkCreateFence(v->device, &fence, NULL, &v->fence);
    return code == VK_SUCCESS || failed("vkCreateFence", code);
}

/* Looks functions up for the device, as fast programs do, because calls to them skip the loader's dispatch. A function
 * that was promoted to a later version may exist only under its older name. */
static bool find_functions(VkDevice device, PFN_vkGetDeviceProcAddr get, gpuhal_bench_vulkan_functions *out_vk)
{
#define REQUIRED(name) {#name, &out_vk->name, true},
#define OPTIONAL(name) {#name, &out_vk->name, false},
    const struct {
        const char *name;
        void *slot;
        bool required;
    } functions[] = {GPUHAL_BENCH_VULKAN_REQUIRED(REQUIRED) GPUHAL_BENCH_VULKAN_OPTIONAL(OPTIONAL)};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        char older[64];
        snprintf(older, sizeof older, "%sKHR", functions[i].name);
        PFN_vkVoidFunction function = get(device, functions[i].name);
        function = function == NULL && !functions[i].required ? get(device, older) : function;
        if (function == NULL && functions[i].required) {
            return gpuhal_bench_failed("the Vulkan device has no %s", functions[i].name);
        }
        memcpy(functions[i].slot, &function, sizeof function);
    }
    return true;
}

gpuhal_bench_baseline *gpuhal_bench_vulkan_create(void *library, const gpuhal_native *device)
{
    (void)library; /* The device's description provides all functions. */
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
        gpuhal_bench_failed("the Vulkan instance lacks functions, or out of memory");
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
    if (!find_functions(v->device, get_device, &v->vk)) {
        free(v);
        return NULL;
    }
    v->has_addresses = has_addresses(described) && v->vk.vkGetBufferDeviceAddress != NULL;
    if (!start_commands(v, described->queues[0].family) || !make_fence(v)) {
        vulkan_destroy(&v->base);
        return NULL;
    }
    return &v->base;
}
