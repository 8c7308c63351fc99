/* tests/system/adopt.h: lets the library adopt a device that a Vulkan program has created. */
#ifndef GPUHAL_TEST_ADOPT_H
#define GPUHAL_TEST_ADOPT_H

#include "fake.h"
#include "support/vk.h"

#include <gpuhal/native.h>

/* When the library adopts the program's device, the program lists exactly the extensions and features that the device
 * was created with. */
typedef struct owner {
    vk v;
    bool timeline;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline_features;
    VkPhysicalDeviceFeatures2 features;
    gpuhal_vulkan_queue queues[VK_FAMILIES];
    gpuhal_vulkan_device described;
} owner;

/* Creates the program's instance and device. Returns false, with an error message, if there is no driver. The owner
 * must not be moved afterwards. */
static inline bool make_owner(owner *o, uint32_t api, bool timeline, const char **out_why)
{
    if (!vk_open_instance(&o->v, api, NULL, out_why)) {
        return false;
    }
    o->timeline = timeline;
    o->timeline_features = (VkPhysicalDeviceTimelineSemaphoreFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .timelineSemaphore = VK_TRUE};
    o->features = (VkPhysicalDeviceFeatures2){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                              .pNext = timeline ? &o->timeline_features : NULL};
    vk_open_device(&o->v, NULL, 0, &o->features);
    for (uint32_t f = 0; f < o->v.family_count; f++) {
        o->queues[f] = (gpuhal_vulkan_queue){.queue = o->v.queues[f], .family = f};
    }
    o->described = (gpuhal_vulkan_device){.size = sizeof o->described,
                                          .api_version = api,
                                          .instance = o->v.instance,
                                          .physical_device = o->v.physical,
                                          .device = o->v.device,
                                          .get_instance_proc_addr = (void (*)(void))o->v.get_instance_proc,
                                          .queue_count = o->v.family_count,
                                          .queues = o->queues,
                                          .features = &o->features};
    return true;
}

static inline gpuhal_native native_of(const owner *o)
{
    return (gpuhal_native){.size = sizeof(gpuhal_native),
                           .type = GPUHAL_NATIVE_VULKAN_DEVICE,
                           .typed = &o->described,
                           .values = {(uintptr_t)o->v.instance, (uintptr_t)o->v.physical, (uintptr_t)o->v.device}};
}

static inline void unmake_owner(owner *o)
{
    vk_close_device(&o->v);
    o->v.vkDestroyInstance(o->v.instance, NULL);
}

/* ---- the application's locks. Each queue has a lock, which is held during submissions. */

typedef struct locks {
    _Atomic int held, most, taken, given;
} locks;

static inline void take_lock(void *user, void *queue)
{
    locks *all = user;
    assert_non_null(queue);
    int now = ++all->held;
    if (now > all->most) {
        all->most = now;
    }
    all->taken++;
}

static inline void give_lock(void *user, void *queue)
{
    locks *all = user;
    assert_non_null(queue);
    all->held--;
    all->given++;
}

static inline VkBuffer own_buffer(const owner *o, VkDeviceSize bytes, VkDeviceMemory *out_memory)
{
    VkBuffer buffer = vk_buffer(&o->v, bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    *out_memory = vk_memory(&o->v, buffer, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    return buffer;
}

static inline gpuhal_native native_of_buffer(VkBuffer buffer, VkDeviceMemory memory)
{
    return (gpuhal_native){.size = sizeof(gpuhal_native),
                           .type = GPUHAL_NATIVE_VULKAN_BUFFER,
                           .values = {(uintptr_t)buffer, (uintptr_t)memory, 0,
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT}};
}

#endif
