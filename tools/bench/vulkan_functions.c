/* vulkan_functions.c: finding functions by name. Asked of the device itself, they skip the loader's dispatch, as those of any
 * program that looks for speed. */
#include "vulkan_functions.h"
#include "measure.h"

#include <string.h>

bool gpuhal_bench_vulkan_find_functions(VkDevice device, PFN_vkGetDeviceProcAddr get, gpuhal_bench_vulkan_functions *out_vk)
{
    const struct {
        const char *name;
        const char *extension_name; /* NULL: must be there under the first. */
        void *slot;
        bool optional;
    } functions[] = {
        {"vkCreateCommandPool", NULL, &out_vk->create_pool, false},
        {"vkDestroyCommandPool", NULL, &out_vk->destroy_pool, false},
        {"vkAllocateCommandBuffers", NULL, &out_vk->allocate_commands, false},
        {"vkBeginCommandBuffer", NULL, &out_vk->begin, false},
        {"vkEndCommandBuffer", NULL, &out_vk->end, false},
        {"vkCmdCopyBuffer", NULL, &out_vk->copy, false},
        {"vkCmdPipelineBarrier", NULL, &out_vk->barrier, false},
        {"vkQueueSubmit", NULL, &out_vk->submit, false},
        {"vkCreateFence", NULL, &out_vk->create_fence, false},
        {"vkDestroyFence", NULL, &out_vk->destroy_fence, false},
        {"vkResetFences", NULL, &out_vk->reset_fences, false},
        {"vkWaitForFences", NULL, &out_vk->wait_fences, false},
        {"vkCreateSemaphore", NULL, &out_vk->create_semaphore, false},
        {"vkDestroySemaphore", NULL, &out_vk->destroy_semaphore, false},
        {"vkWaitSemaphores", "vkWaitSemaphoresKHR", &out_vk->wait_semaphores, true},
        {"vkCreateBuffer", NULL, &out_vk->create_buffer, false},
        {"vkDestroyBuffer", NULL, &out_vk->destroy_buffer, false},
        {"vkGetBufferMemoryRequirements2", NULL, &out_vk->requirements, false},
        {"vkAllocateMemory", NULL, &out_vk->allocate, false},
        {"vkFreeMemory", NULL, &out_vk->free, false},
        {"vkBindBufferMemory", NULL, &out_vk->bind, false},
        {"vkMapMemory", NULL, &out_vk->map, false},
        {"vkGetBufferDeviceAddress", "vkGetBufferDeviceAddressKHR", &out_vk->address, true},
        {"vkGetMemoryHostPointerPropertiesEXT", NULL, &out_vk->host_pointer_properties, true},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        PFN_vkVoidFunction function = get(device, functions[i].name);
        if (function == NULL && functions[i].extension_name != NULL) {
            function = get(device, functions[i].extension_name);
        }
        if (function == NULL && !functions[i].optional) {
            return gpuhal_bench_failed("the Vulkan device has no %s", functions[i].name);
        }
        memcpy(functions[i].slot, &function, sizeof function);
    }
    return true;
}
