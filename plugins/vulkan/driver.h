/* vulkan/driver.h: the Vulkan functions that this plugin calls, and their result codes.
 *
 * There are three tables, since Vulkan resolves functions per object: global functions from the loader library,
 * instance functions, and device functions. Device functions bypass the loader's dispatch. The plugin's instance has
 * one table until the process exits. Each opened device has its own tables, because an adopted device belongs to
 * another instance. Functions that became core in Vulkan 1.2 are looked up under their extension names first.
 */
#ifndef GPUHAL_VULKAN_DRIVER_H
#define GPUHAL_VULKAN_DRIVER_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <gpuhal/plugin.h>

#include <stdbool.h>

#define GPUHAL_VULKAN_GLOBAL_FUNCTIONS(REQUIRED, OPTIONAL)                                                            \
    REQUIRED(vkCreateInstance)                                                                                        \
    REQUIRED(vkEnumerateInstanceVersion) /* missing from Vulkan 1.0 loaders, which this plugin cannot use */

#define GPUHAL_VULKAN_INSTANCE_FUNCTIONS(REQUIRED, OPTIONAL)                                                          \
    REQUIRED(vkDestroyInstance)                                                                                       \
    REQUIRED(vkEnumeratePhysicalDevices)                                                                              \
    REQUIRED(vkGetPhysicalDeviceProperties) /* called to read the version, before any newer query */                 \
    REQUIRED(vkGetPhysicalDeviceProperties2)                                                                          \
    REQUIRED(vkGetPhysicalDeviceFeatures2)                                                                            \
    REQUIRED(vkGetPhysicalDeviceMemoryProperties2)                                                                    \
    REQUIRED(vkGetPhysicalDeviceQueueFamilyProperties)                                                                \
    REQUIRED(vkGetPhysicalDeviceExternalBufferProperties)                                                             \
    REQUIRED(vkEnumerateDeviceExtensionProperties)                                                                    \
    REQUIRED(vkGetDeviceProcAddr)                                                                                     \
    REQUIRED(vkCreateDevice)

#define GPUHAL_VULKAN_DEVICE_FUNCTIONS(REQUIRED, OPTIONAL)                                                            \
    REQUIRED(vkDestroyDevice)                                                                                         \
    REQUIRED(vkGetDeviceQueue)                                                                                        \
    REQUIRED(vkQueueSubmit)                                                                                           \
    REQUIRED(vkAllocateMemory)                                                                                        \
    REQUIRED(vkFreeMemory)                                                                                            \
    REQUIRED(vkMapMemory)                                                                                             \
    REQUIRED(vkFlushMappedMemoryRanges)                                                                               \
    REQUIRED(vkInvalidateMappedMemoryRanges)                                                                          \
    REQUIRED(vkBindBufferMemory)                                                                                      \
    REQUIRED(vkGetBufferMemoryRequirements2)                                                                          \
    REQUIRED(vkCreateBuffer)                                                                                          \
    REQUIRED(vkDestroyBuffer)                                                                                         \
    REQUIRED(vkCreateFence)                                                                                           \
    REQUIRED(vkDestroyFence)                                                                                          \
    REQUIRED(vkResetFences)                                                                                           \
    REQUIRED(vkWaitForFences)                                                                                         \
    REQUIRED(vkCreateSemaphore)                                                                                       \
    REQUIRED(vkDestroySemaphore)                                                                                      \
    REQUIRED(vkCreateQueryPool)                                                                                       \
    REQUIRED(vkDestroyQueryPool)                                                                                      \
    REQUIRED(vkGetQueryPoolResults)                                                                                   \
    REQUIRED(vkCreateCommandPool)                                                                                     \
    REQUIRED(vkDestroyCommandPool)                                                                                    \
    REQUIRED(vkAllocateCommandBuffers)                                                                                \
    REQUIRED(vkBeginCommandBuffer)                                                                                    \
    REQUIRED(vkResetCommandBuffer)                                                                                    \
    REQUIRED(vkEndCommandBuffer)                                                                                      \
    REQUIRED(vkCmdCopyBuffer)                                                                                         \
    REQUIRED(vkCmdFillBuffer)                                                                                         \
    REQUIRED(vkCmdPipelineBarrier)                                                                                    \
    REQUIRED(vkCmdWriteTimestamp)                                                                                     \
    REQUIRED(vkCreateShaderModule)                                                                                    \
    REQUIRED(vkDestroyShaderModule)                                                                                   \
    REQUIRED(vkCreatePipelineCache)                                                                                   \
    REQUIRED(vkDestroyPipelineCache)                                                                                  \
    REQUIRED(vkGetPipelineCacheData)                                                                                  \
    REQUIRED(vkCreateDescriptorSetLayout)                                                                             \
    REQUIRED(vkDestroyDescriptorSetLayout)                                                                            \
    REQUIRED(vkCreatePipelineLayout)                                                                                  \
    REQUIRED(vkDestroyPipelineLayout)                                                                                 \
    REQUIRED(vkCreateComputePipelines)                                                                                \
    REQUIRED(vkDestroyPipeline)                                                                                       \
    REQUIRED(vkCreateDescriptorPool)                                                                                  \
    REQUIRED(vkDestroyDescriptorPool)                                                                                 \
    REQUIRED(vkResetDescriptorPool)                                                                                   \
    REQUIRED(vkAllocateDescriptorSets)                                                                                \
    REQUIRED(vkUpdateDescriptorSets)                                                                                  \
    REQUIRED(vkCmdBindPipeline)                                                                                       \
    REQUIRED(vkCmdBindDescriptorSets)                                                                                 \
    REQUIRED(vkCmdPushConstants)                                                                                      \
    REQUIRED(vkCmdDispatch)                                                                                           \
    REQUIRED(vkCmdDispatchBase)                                                                                       \
    REQUIRED(vkCmdDispatchIndirect)                                                                                   \
    OPTIONAL(vkCmdPushDescriptorSetKHR)  /* VK_KHR_push_descriptor */                                                 \
    OPTIONAL(vkGetSemaphoreCounterValue) /* 1.2 or VK_KHR_timeline_semaphore */                                       \
    OPTIONAL(vkWaitSemaphores)                                                                                        \
    OPTIONAL(vkResetQueryPool)         /* 1.2 or VK_EXT_host_query_reset */                                           \
    OPTIONAL(vkGetBufferDeviceAddress) /* 1.2 or VK_KHR_buffer_device_address */                                      \
    OPTIONAL(vkGetMemoryFdKHR)                                                                                        \
    OPTIONAL(vkGetMemoryFdPropertiesKHR)                                                                              \
    OPTIONAL(vkGetMemoryHostPointerPropertiesEXT)

#define GPUHAL_VULKAN_MEMBER(name) PFN_##name name;
typedef struct gpuhal_vulkan_global_functions {
    GPUHAL_VULKAN_GLOBAL_FUNCTIONS(GPUHAL_VULKAN_MEMBER, GPUHAL_VULKAN_MEMBER)
} gpuhal_vulkan_global_functions;
typedef struct gpuhal_vulkan_instance_functions {
    GPUHAL_VULKAN_INSTANCE_FUNCTIONS(GPUHAL_VULKAN_MEMBER, GPUHAL_VULKAN_MEMBER)
} gpuhal_vulkan_instance_functions;
typedef struct gpuhal_vulkan_device_functions {
    GPUHAL_VULKAN_DEVICE_FUNCTIONS(GPUHAL_VULKAN_MEMBER, GPUHAL_VULKAN_MEMBER)
} gpuhal_vulkan_device_functions;
#undef GPUHAL_VULKAN_MEMBER

/* Opens the library and creates the process's only instance. An instance in use is never destroyed, because destroying
 * it would unload drivers whose threads and thread-local data still exist. */
gpuhal_status gpuhal_vulkan_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);

/* Valid after gpuhal_vulkan_start(). */
typedef struct gpuhal_vulkan_instance {
    VkInstance handle;
    uint32_t api_version; /* requested API version: the lower of the loader's version and 1.3 */
    PFN_vkGetInstanceProcAddr get_proc;
    gpuhal_vulkan_instance_functions api;
} gpuhal_vulkan_instance;
const gpuhal_vulkan_instance *gpuhal_vulkan_our_instance(void);

/* Fill in a table. If a required function is missing, return false with the function's name in @p out_missing. */
bool gpuhal_vulkan_load_instance(PFN_vkGetInstanceProcAddr get_proc, VkInstance instance,
                                 gpuhal_vulkan_instance_functions *out_api, const char **out_missing);
bool gpuhal_vulkan_load_device(PFN_vkGetDeviceProcAddr get_proc, VkDevice device,
                               gpuhal_vulkan_device_functions *out_api, const char **out_missing);

gpuhal_status gpuhal_vulkan_status(VkResult code);
/* Reports an error to the host under its VK_… name, and returns the matching status. */
gpuhal_status gpuhal_vulkan_report(const gpuhal_host *host, const char *call, VkResult code);

#endif
