/* fakes/vulkan/device.c: devices. Destroying a device reports the objects that were not destroyed. */
#include "fake.h"

#include <string.h>

static VkResult read_extensions(const VkDeviceCreateInfo *info, uint32_t *out_extensions)
{
    *out_extensions = 0;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        unsigned e = 0;
        while (e < EXTENSION_COUNT && strcmp(info->ppEnabledExtensionNames[i], fake_extension_names[e]) != 0) {
            e++;
        }
        if (e == EXTENSION_COUNT || !fake_offers((fake_extension)e)) {
            return VK_ERROR_EXTENSION_NOT_PRESENT;
        }
        *out_extensions |= 1u << e;
    }
    if (*out_extensions >> EXTERNAL_MEMORY_DMA_BUF & 1 && !(*out_extensions >> EXTERNAL_MEMORY_FD & 1)) {
        fake_violation("vkCreateDevice: VK_EXT_external_memory_dma_buf without VK_KHR_external_memory_fd");
    }
    return VK_SUCCESS;
}

/* Features that Vulkan 1.2 added to the core require Vulkan 1.2 or their extension. */
static void check_features(const fake_device *device)
{
    static const fake_extension promoted[] = {TIMELINE_SEMAPHORE, HOST_QUERY_RESET, BUFFER_DEVICE_ADDRESS};
    for (unsigned p = 0; p < sizeof promoted / sizeof *promoted; p++) {
        bool there = device->api >= VK_API_VERSION_1_2 || device->extensions >> promoted[p] & 1;
        if (device->enabled >> promoted[p] & 1 && !there) {
            fake_violation("vkCreateDevice: the feature of %s without the extension",
                           fake_extension_names[promoted[p]]);
        }
    }
}

static bool start_queues(fake_device *device, const VkDeviceCreateInfo *info)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < info->queueCreateInfoCount; i++) {
        const VkDeviceQueueCreateInfo *wanted = &info->pQueueCreateInfos[i];
        const uint32_t family = wanted->queueFamilyIndex;
        if (family >= fake_get_script()->family_count || seen >> family & 1 || wanted->queueCount == 0 ||
            wanted->queueCount > fake_get_script()->families[family].queueCount) {
            fake_violation("vkCreateDevice: %u queues of family %u", wanted->queueCount, family);
            return false;
        }
        seen |= 1u << family;
        for (uint32_t q = 0; q < wanted->queueCount; q++) {
            fake_queue *queue = fake_queue_start(device, family);
            if (!queue) {
                return false;
            }
            device->queues[device->queue_count++] = queue;
        }
    }
    if (device->queue_count == 0) {
        fake_violation("vkCreateDevice: a device without queues");
    }
    return device->queue_count > 0;
}

static void stop_queues(fake_device *device)
{
    for (unsigned q = 0; q < device->queue_count; q++) {
        fake_queue_stop(device->queues[q]);
    }
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
                                                   const VkAllocationCallbacks *allocator, VkDevice *out_device)
{
    (void)allocator;
    uint32_t extensions = 0, enabled = 0;
    VkResult result = fake_enter(FN_vkCreateDevice);
    if (!result) {
        result = read_extensions(info, &extensions);
    }
    if (!result && !fake_read_features(info->pNext, &enabled)) {
        result = VK_ERROR_FEATURE_NOT_PRESENT;
    }
    if (result) {
        return result;
    }
    fake_device *device = fake_make(NULL, A_DEVICE, sizeof *device);
    if (!device) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    device->physical = (fake_physical *)physical;
    device->api = device->physical->api;
    device->extensions = extensions;
    device->enabled = enabled;
    check_features(device);
    if (!start_queues(device, info)) {
        stop_queues(device);
        (void)fake_destroy(device, A_DEVICE, "vkCreateDevice");
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    *out_device = (VkDevice)device;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyDevice(VkDevice handle, const VkAllocationCallbacks *allocator)
{
    (void)allocator;
    fake_count(FN_vkDestroyDevice);
    fake_device *device = fake_destroy(handle, A_DEVICE, "vkDestroyDevice");
    if (!device) {
        return;
    }
    stop_queues(device);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        if (kind != A_QUEUE && device->alive[kind]) {
            fake_violation("vkDestroyDevice: %u %s not destroyed", device->alive[kind],
                           fake_kind_name((fake_kind)kind));
        }
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetDeviceQueue(VkDevice handle, uint32_t family, uint32_t index, VkQueue *out_queue)
{
    fake_count(FN_vkGetDeviceQueue);
    const fake_device *device = fake_find(handle, A_DEVICE, "vkGetDeviceQueue");
    *out_queue = VK_NULL_HANDLE;
    for (unsigned q = 0; device && q < device->queue_count; q++) {
        if (fake_queue_family(device->queues[q]) == family && index-- == 0) {
            *out_queue = (VkQueue)device->queues[q];
            return;
        }
    }
    fake_violation("vkGetDeviceQueue: the device has no such queue of family %u", family);
}
