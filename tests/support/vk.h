/* tests/support/vk.h: a small Vulkan application for tests, with an instance and a device that do not belong to the
 * library. Every function fails the test on error, except vk_open_instance(), which returns whether a device exists. */
#ifndef GPUHAL_TEST_VK_H
#define GPUHAL_TEST_VK_H

#include "test.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#define VK_INSTANCE_FUNCTIONS(DO)                                                                                      \
    DO(vkDestroyInstance)                                                                                              \
    DO(vkEnumeratePhysicalDevices) DO(vkGetPhysicalDeviceProperties) DO(vkGetPhysicalDeviceFeatures2)                  \
        DO(vkGetPhysicalDeviceMemoryProperties) DO(vkGetPhysicalDeviceQueueFamilyProperties) DO(vkCreateDevice)        \
            DO(vkGetDeviceProcAddr)

#define VK_DEVICE_FUNCTIONS(DO)                                                                                        \
    DO(vkDestroyDevice)                                                                                                \
    DO(vkGetDeviceQueue) DO(vkQueueSubmit) DO(vkAllocateMemory) DO(vkFreeMemory) DO(vkMapMemory)                       \
        DO(vkFlushMappedMemoryRanges) DO(vkInvalidateMappedMemoryRanges) DO(vkCreateBuffer) DO(vkDestroyBuffer)        \
            DO(vkGetBufferMemoryRequirements) DO(vkBindBufferMemory) DO(vkCreateFence) DO(vkDestroyFence)              \
                DO(vkResetFences) DO(vkWaitForFences) DO(vkCreateSemaphore) DO(vkDestroySemaphore)                     \
                    DO(vkCreateCommandPool) DO(vkDestroyCommandPool) DO(vkAllocateCommandBuffers)                      \
                        DO(vkBeginCommandBuffer) DO(vkEndCommandBuffer) DO(vkCmdCopyBuffer) DO(vkCmdFillBuffer)        \
                            DO(vkCmdPipelineBarrier)

/* Functions for running shaders. */
#define VK_SHADER_FUNCTIONS(DO)                                                                                        \
    DO(vkCreateShaderModule)                                                                                           \
    DO(vkDestroyShaderModule) DO(vkCreateDescriptorSetLayout) DO(vkDestroyDescriptorSetLayout)                         \
        DO(vkCreatePipelineLayout) DO(vkDestroyPipelineLayout) DO(vkCreateComputePipelines) DO(vkDestroyPipeline)      \
            DO(vkCreateDescriptorPool) DO(vkDestroyDescriptorPool) DO(vkAllocateDescriptorSets)                        \
                DO(vkUpdateDescriptorSets) DO(vkCmdBindPipeline) DO(vkCmdBindDescriptorSets) DO(vkCmdDispatch)

enum { VK_FAMILIES = 4, VK_QUEUES = 4 }; /* maximum number of families per device, and of queues per family */

typedef struct vk {
    PFN_vkGetInstanceProcAddr get_instance_proc;
    uint32_t api;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceMemoryProperties memory;
    VkDevice device;
    uint32_t family_count;
    VkQueue queues[VK_FAMILIES]; /* the first queue of each family */
#define VK_MEMBER(name) PFN_##name name;
    VK_INSTANCE_FUNCTIONS(VK_MEMBER)
    VK_DEVICE_FUNCTIONS(VK_MEMBER)
    VK_SHADER_FUNCTIONS(VK_MEMBER)
#undef VK_MEMBER
} vk;

/* Opens the loader library and creates an instance; `layer` may be NULL. Returns false with a message if the loader,
 * the layer or a device is missing. */
bool vk_open_instance(vk *v, uint32_t api, const char *layer, const char **out_why);
/* The chain is NULL or begins with VkPhysicalDeviceFeatures2. */
void vk_open_device(vk *v, const char *const *extensions, uint32_t extension_count, const void *features);
void vk_close_device(vk *v);

VkBuffer vk_buffer(const vk *v, VkDeviceSize bytes, VkBufferUsageFlags usage);
/* Allocates memory of the first type that has the wanted properties, and binds the memory to the buffer. */
VkDeviceMemory vk_memory(const vk *v, VkBuffer buffer, VkMemoryPropertyFlags wanted);
VkCommandPool vk_pool(const vk *v, uint32_t family);
VkCommandBuffer vk_begin(const vk *v, VkCommandPool pool);
/* Ends the command buffer, submits it to a queue of the family, and waits. */
void vk_run(const vk *v, uint32_t family, VkCommandBuffer commands);

#endif
