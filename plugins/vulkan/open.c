/* vulkan/open.c: opens a device with a new or an adopted VkDevice, and closes it. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>

/* Fills in one structure for each family, with the number of queues that the plan uses. The plan lists the queues of a
 * family consecutively, so only the last structure has to be compared. */
static uint32_t list_queues(const gpuhal_vulkan_plan *plan, VkDeviceQueueCreateInfo *out_queues)
{
    static const float priorities[GPUHAL_VULKAN_WRAPPERS] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
        if (count == 0 || out_queues[count - 1].queueFamilyIndex != plan->wrappers[i].family) {
            out_queues[count++] = (VkDeviceQueueCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                                            .queueFamilyIndex = plan->wrappers[i].family,
                                                            .pQueuePriorities = priorities};
        }
        out_queues[count - 1].queueCount++;
    }
    return count;
}

/* Reports the result codes that have a different meaning for vkCreateDevice. */
static gpuhal_status not_made(gpuhal_plugin_device *device, VkResult code)
{
    const gpuhal_host *host = device->host;
    switch (code) {
    case VK_ERROR_TOO_MANY_OBJECTS:
        return host->report(host, GPUHAL_ERROR_BUSY, "vkCreateDevice", code,
                            "VK_ERROR_TOO_MANY_OBJECTS: the driver makes no more devices while others are open");
    case VK_ERROR_INITIALIZATION_FAILED:
        return host->report(host, GPUHAL_ERROR_DRIVER, "vkCreateDevice", code,
                            "VK_ERROR_INITIALIZATION_FAILED: the driver could not start the device");
    case VK_ERROR_DEVICE_LOST:
        return host->report(host, GPUHAL_ERROR_DEVICE_LOST, "vkCreateDevice", code,
                            "VK_ERROR_DEVICE_LOST: the device failed, or was unplugged, before it was opened");
    default:
        return gpuhal_vulkan_report(host, "vkCreateDevice", code);
    }
}

/* Extension names are constants of this plugin; the opened device owns the list. */
static gpuhal_status create_device(gpuhal_plugin_device *device, const gpuhal_vulkan_plan *plan)
{
    const gpuhal_vulkan_hardware *hardware = &device->hardware;
    gpuhal_vulkan_extensions offered;
    VkResult code = gpuhal_vulkan_list_extensions(&device->instance_api, hardware->handle, &offered);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_report(device->host, "vkEnumerateDeviceExtensionProperties", code);
    }
    device->features =
        gpuhal_vulkan_features_ask(&device->instance_api, hardware->handle, hardware->api_version, &offered);
    device->extensions = calloc(GPUHAL_VULKAN_EXTENSIONS, sizeof *device->extensions);
    if (!device->features || !device->extensions) {
        free(offered.list);
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    device->extension_count =
        gpuhal_vulkan_features_extensions(device->features, hardware->api_version, &offered, device->extensions);
    free(offered.list);
    VkDeviceQueueCreateInfo queues[GPUHAL_VULKAN_WRAPPERS];
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = gpuhal_vulkan_features_chain(device->features),
        .queueCreateInfoCount = list_queues(plan, queues),
        .pQueueCreateInfos = queues,
        .enabledExtensionCount = device->extension_count,
        .ppEnabledExtensionNames = device->extensions,
    };
    code = device->instance_api.vkCreateDevice(hardware->handle, &info, NULL, &device->handle);
    if (code != VK_SUCCESS) {
        /* A failed call may have written anything; free_opening() would destroy any handle that is set. */
        device->handle = VK_NULL_HANDLE;
        return not_made(device, code);
    }
    return GPUHAL_OK;
}

static gpuhal_status load_table(gpuhal_plugin_device *device)
{
    const char *missing;
    if (gpuhal_vulkan_load_device(device->instance_api.vkGetDeviceProcAddr, device->handle, &device->api, &missing)) {
        return GPUHAL_OK;
    }
    char text[96];
    snprintf(text, sizeof text, "the Vulkan driver lacks %s", missing);
    return device->host->report(device->host, GPUHAL_ERROR_DRIVER, "vkGetDeviceProcAddr", 0, text);
}

/* gpuhal_vulkan_open() cleans up after a failure. */
static gpuhal_status open_own(gpuhal_plugin_device *device)
{
    const gpuhal_vulkan_instance *instance = gpuhal_vulkan_our_instance();
    device->instance = instance->handle;
    device->get_proc = instance->get_proc;
    device->instance_api = instance->api;
    const gpuhal_vulkan_plan plan = gpuhal_vulkan_plan_wrappers(&device->hardware);
    gpuhal_status status = create_device(device, &plan);
    if (status == GPUHAL_OK) {
        status = load_table(device);
    }
    if (status != GPUHAL_OK) {
        return status;
    }
    /* Bits for features are set if the feature was enabled. All other bits depend only on an extension, and supported
     * extensions are enabled. */
    device->enabled = gpuhal_vulkan_features_bits(device->features) |
                      (device->hardware.offered & ~(uint32_t)GPUHAL_VULKAN_FEATURE_BITS);
    for (uint32_t i = 0; i < plan.count; i++) {
        device->wrappers[i].family = plan.wrappers[i].family;
        device->wrappers[i].index = plan.wrappers[i].index;
        device->api.vkGetDeviceQueue(device->handle, plan.wrappers[i].family, plan.wrappers[i].index,
                                     &device->wrappers[i].queue);
    }
    device->wrapper_count = plan.count;
    device->copy_wrapper = plan.copy_wrapper;
    return GPUHAL_OK;
}

static gpuhal_status open_adopted(gpuhal_plugin_device *device, const gpuhal_vulkan_entry *entry,
                                  const gpuhal_native *native)
{
    gpuhal_status status = gpuhal_vulkan_adopt(device, entry, native);
    return status == GPUHAL_OK ? load_table(device) : status;
}

/* Clears the bit of each feature that has a missing function, even if the driver reports the feature. Called before
 * gpuhal_vulkan_clear_slots(), because that function reads the same bits. */
static void believe_functions(gpuhal_plugin_device *device)
{
    const gpuhal_vulkan_device_functions *api = &device->api;
    const struct {
        bool there;
        uint32_t bits;
    } all[] = {
        {api->vkGetSemaphoreCounterValue && api->vkWaitSemaphores, GPUHAL_VULKAN_TIMELINE},
        {api->vkResetQueryPool != NULL, GPUHAL_VULKAN_HOST_QUERY_RESET},
        {api->vkGetBufferDeviceAddress != NULL, GPUHAL_VULKAN_BUFFER_ADDRESS},
        {api->vkGetMemoryHostPointerPropertiesEXT != NULL, GPUHAL_VULKAN_HOST_IMPORT},
        {api->vkCmdPushDescriptorSetKHR != NULL, GPUHAL_VULKAN_PUSH_DESCRIPTOR},
        {api->vkGetMemoryFdKHR != NULL, GPUHAL_VULKAN_OPAQUE_FD},
        {api->vkGetMemoryFdKHR && api->vkGetMemoryFdPropertiesKHR, GPUHAL_VULKAN_DMABUF_FD},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        device->enabled &= all[i].there ? UINT32_MAX : ~all[i].bits;
    }
}

/* Lists each family of the wrappers once. Vulkan forbids duplicates in the families that share a buffer. */
static void list_families(gpuhal_plugin_device *device)
{
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < device->family_count; k++) {
            known = known || device->families[k] == device->wrappers[i].family;
        }
        if (!known) {
            device->families[device->family_count++] = device->wrappers[i].family;
        }
    }
}

/* Fills in the description for native_device. It is the same for new and adopted devices, and never contains the
 * caller's lock. */
static void describe(gpuhal_plugin_device *device)
{
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        const gpuhal_vulkan_wrapper *wrapper = &device->wrappers[i];
        device->described_queues[i] =
            (gpuhal_vulkan_queue){.queue = wrapper->queue, .family = wrapper->family, .index = wrapper->index};
    }
    device->described = (gpuhal_vulkan_device){
        .size = sizeof device->described,
        .api_version = device->hardware.api_version,
        .instance = device->instance,
        .physical_device = device->hardware.handle,
        .device = device->handle,
        .get_instance_proc_addr = (void (*)(void))device->get_proc,
        .extensions = device->extensions,
        .extension_count = device->extension_count,
        .queue_count = device->wrapper_count,
        .queues = device->described_queues,
        .features = gpuhal_vulkan_features_chain(device->features),
    };
}

/* The caller owns an adopted VkDevice. A VkDevice with work that never finished is leaked, because destroying it could
 * hang. */
static void free_opening(gpuhal_plugin_device *device)
{
    if (device->handle && !device->adopted && device->api.vkDestroyDevice && !atomic_load(&device->stuck)) {
        device->api.vkDestroyDevice(device->handle, NULL);
    }
    free(device->features);
    free((void *)device->extensions);
    free(device);
}

gpuhal_status gpuhal_vulkan_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    *out_device = NULL;
    const gpuhal_vulkan_entry *entry = gpuhal_vulkan_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_plugin_device *device = calloc(1, sizeof *device);
    if (!device) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    device->host = host;
    device->hardware = entry->hardware;
    gpuhal_status status = adopt ? open_adopted(device, entry, adopt) : open_own(device);
    if (status != GPUHAL_OK) {
        free_opening(device);
        return status;
    }
    believe_functions(device);
    list_families(device);
    describe(device);
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        /* The first internal stream, created next, submits through one of these wrappers. */
        gpuhal_vulkan_wrapper_init(&device->wrappers[i]);
    }
    status = gpuhal_vulkan_streams_start(device);
    if (status != GPUHAL_OK) {
        for (uint32_t i = 0; i < device->wrapper_count; i++) {
            gpuhal_vulkan_wrapper_finish(&device->wrappers[i]);
        }
        free_opening(device);
        return status;
    }
    gpuhal_vulkan_clear_slots(device, ops);
    *out_device = device;
    return GPUHAL_OK;
}

/* Destroying timelines first drains the VkQueues; draining requires the wrappers and a stream's fence. Streams are
 * freed next, together with the wrappers of individually adopted queues. The VkDevice owns all of these, so it is
 * destroyed last. */
void gpuhal_vulkan_close(gpuhal_plugin_device *device)
{
    gpuhal_vulkan_timelines_stop(device);
    gpuhal_vulkan_streams_stop(device);
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        gpuhal_vulkan_wrapper_finish(&device->wrappers[i]);
    }
    free_opening(device);
}
