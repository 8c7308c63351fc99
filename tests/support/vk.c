/* tests/support/vk.c: see vk.h. */
#include "support/vk.h"

#include <dlfcn.h>

static bool give_up(const char **out_why, const char *why)
{
    *out_why = why;
    return false;
}

bool vk_open_instance(vk *v, uint32_t api, const char *layer, const char **out_why)
{
    *v = (vk){.api = api};
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        return give_up(out_why, "there is no libvulkan.so.1");
    }
    *(void **)&v->get_instance_proc = dlsym(library, "vkGetInstanceProcAddr");
    assert_non_null(v->get_instance_proc);
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)v->get_instance_proc(NULL, "vkCreateInstance");
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = api};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application,
                                       .enabledLayerCount = layer != NULL,
                                       .ppEnabledLayerNames = &layer};
    VkResult result = create(&info, NULL, &v->instance);
    if (result) {
        return give_up(out_why, result == VK_ERROR_LAYER_NOT_PRESENT ? "the validation layer is not installed"
                                                                     : "no Vulkan driver works");
    }
#define VK_LOAD(name)                                                                                                  \
    v->name = (PFN_##name)v->get_instance_proc(v->instance, #name);                                                    \
    assert_non_null(v->name);
    VK_INSTANCE_FUNCTIONS(VK_LOAD)
#undef VK_LOAD
    uint32_t count = 1;
    if (v->vkEnumeratePhysicalDevices(v->instance, &count, &v->physical) < 0 || count == 0) {
        return give_up(out_why, "Vulkan lists no device");
    }
    v->vkGetPhysicalDeviceMemoryProperties(v->physical, &v->memory);
    return true;
}

void vk_open_device(vk *v, const char *const *extensions, uint32_t extension_count, const void *features)
{
    static const float priorities[VK_QUEUES] = {1, 1, 1, 1};
    VkQueueFamilyProperties families[VK_FAMILIES];
    VkDeviceQueueCreateInfo queues[VK_FAMILIES];
    v->vkGetPhysicalDeviceQueueFamilyProperties(v->physical, &v->family_count, NULL);
    v->family_count = v->family_count < VK_FAMILIES ? v->family_count : VK_FAMILIES;
    v->vkGetPhysicalDeviceQueueFamilyProperties(v->physical, &v->family_count, families);
    for (uint32_t f = 0; f < v->family_count; f++) {
        queues[f] = (VkDeviceQueueCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                              .queueFamilyIndex = f,
                                              .queueCount = families[f].queueCount < VK_QUEUES ? families[f].queueCount
                                                                                               : VK_QUEUES,
                                              .pQueuePriorities = priorities};
    }
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = features,
                                     .queueCreateInfoCount = v->family_count, .pQueueCreateInfos = queues,
                                     .enabledExtensionCount = extension_count, .ppEnabledExtensionNames = extensions};
    assert_int_equal(v->vkCreateDevice(v->physical, &info, NULL, &v->device), VK_SUCCESS);
#define VK_LOAD(name)                                                                                                  \
    v->name = (PFN_##name)v->vkGetDeviceProcAddr(v->device, #name);                                                    \
    assert_non_null(v->name);
    VK_DEVICE_FUNCTIONS(VK_LOAD)
#undef VK_LOAD
#define VK_LOAD(name) v->name = (PFN_##name)v->vkGetDeviceProcAddr(v->device, #name);
    VK_SHADER_FUNCTIONS(VK_LOAD)
#undef VK_LOAD
    for (uint32_t f = 0; f < v->family_count; f++) {
        v->vkGetDeviceQueue(v->device, f, 0, &v->queues[f]);
    }
}

void vk_close_device(vk *v)
{
    v->vkDestroyDevice(v->device, NULL);
    v->device = NULL;
}

VkBuffer vk_buffer(const vk *v, VkDeviceSize bytes, VkBufferUsageFlags usage)
{
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
    VkBuffer buffer = VK_NULL_HANDLE;
    assert_int_equal(v->vkCreateBuffer(v->device, &info, NULL, &buffer), VK_SUCCESS);
    return buffer;
}

VkDeviceMemory vk_memory(const vk *v, VkBuffer buffer, VkMemoryPropertyFlags wanted)
{
    VkMemoryRequirements needs;
    v->vkGetBufferMemoryRequirements(v->device, buffer, &needs);
    uint32_t type = 0;
    while (type < v->memory.memoryTypeCount &&
           (!(needs.memoryTypeBits >> type & 1) || (v->memory.memoryTypes[type].propertyFlags & wanted) != wanted)) {
        type++;
    }
    assert_true(type < v->memory.memoryTypeCount);
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    assert_int_equal(v->vkAllocateMemory(v->device, &info, NULL, &memory), VK_SUCCESS);
    assert_int_equal(v->vkBindBufferMemory(v->device, buffer, memory, 0), VK_SUCCESS);
    return memory;
}

VkCommandPool vk_pool(const vk *v, uint32_t family)
{
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = family,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    VkCommandPool pool = VK_NULL_HANDLE;
    assert_int_equal(v->vkCreateCommandPool(v->device, &info, NULL, &pool), VK_SUCCESS);
    return pool;
}

VkCommandBuffer vk_begin(const vk *v, VkCommandPool pool)
{
    const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    assert_int_equal(v->vkAllocateCommandBuffers(v->device, &info, &commands), VK_SUCCESS);
    assert_int_equal(v->vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
    return commands;
}

void vk_run(const vk *v, uint32_t family, VkCommandBuffer commands)
{
    const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    VkFence fence = VK_NULL_HANDLE;
    assert_int_equal(v->vkEndCommandBuffer(commands), VK_SUCCESS);
    assert_int_equal(v->vkCreateFence(v->device, &info, NULL, &fence), VK_SUCCESS);
    assert_int_equal(v->vkQueueSubmit(v->queues[family], 1, &submit, fence), VK_SUCCESS);
    assert_int_equal(v->vkWaitForFences(v->device, 1, &fence, VK_TRUE, UINT64_C(10000000000)), VK_SUCCESS);
    v->vkDestroyFence(v->device, fence, NULL);
}
