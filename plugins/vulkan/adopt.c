/* vulkan/adopt.c: adopts the caller's VkDevice.
 *
 * Vulkan does not report how a VkDevice was created, so the plugin relies on the caller's description and checks it as
 * far as possible. Features and extensions that the description omits count as disabled. Only handles and copies of the
 * description are kept.
 */
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpuhal_status refuse(gpuhal_plugin_device *device, const char *why)
{
    return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, why);
}

static const char *description_fault(const gpuhal_native *native)
{
    const gpuhal_vulkan_device *given = native->typed;
    if (native->type != GPUHAL_NATIVE_VULKAN_DEVICE) {
        return "the vulkan plugin adopts a GPUHAL_NATIVE_VULKAN_DEVICE only";
    }
    if (!given || given->size < sizeof *given) {
        return "typed must point to a gpuhal_vulkan_device with its size set";
    }
    if (!given->instance || !given->physical_device || !given->device || !given->get_instance_proc_addr) {
        return "gpuhal_vulkan_device lacks its instance, physical_device, device or get_instance_proc_addr";
    }
    if (given->api_version < VK_API_VERSION_1_1) {
        return "api_version of gpuhal_vulkan_device is below VK_API_VERSION_1_1";
    }
    if (given->queue_count == 0 || !given->queues) {
        return "gpuhal_vulkan_device names no queue";
    }
    if (given->extension_count > 0 && !given->extensions) {
        return "gpuhal_vulkan_device counts extensions and names none";
    }
    if (!given->lock != !given->unlock) {
        return "gpuhal_vulkan_device has one of lock and unlock; both or none are needed";
    }
    return NULL;
}

static bool is_listed(const gpuhal_vulkan_device *given, const char *name)
{
    for (uint32_t i = 0; i < given->extension_count; i++) {
        if (given->extensions[i] && strcmp(given->extensions[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* Bits for features require the enabled feature; all other bits require the extension, or the API version that includes
 * it. */
static uint32_t enabled_bits(const gpuhal_plugin_device *device, const gpuhal_vulkan_device *given)
{
    const bool fd = is_listed(given, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    uint32_t bits = gpuhal_vulkan_features_bits(device->features);
    bits |= is_listed(given, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) ? GPUHAL_VULKAN_HOST_IMPORT : 0;
    bits |= fd ? GPUHAL_VULKAN_OPAQUE_FD : 0;
    bits |= fd && is_listed(given, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME) ? GPUHAL_VULKAN_DMABUF_FD : 0;
    bits |= is_listed(given, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME) ? GPUHAL_VULKAN_PUSH_DESCRIPTOR : 0;
    const bool spirv = given->api_version >= VK_API_VERSION_1_2 || is_listed(given, VK_KHR_SPIRV_1_4_EXTENSION_NAME);
    bits |= spirv ? GPUHAL_VULKAN_SPIRV_1_4 : 0;
    return bits & device->hardware.offered;
}

/* Copies the names into one allocation, after the array of pointers to them. */
static bool copy_extensions(gpuhal_plugin_device *device, const gpuhal_vulkan_device *given)
{
    size_t bytes = 1;
    for (uint32_t i = 0; i < given->extension_count; i++) {
        bytes += given->extensions[i] ? strlen(given->extensions[i]) + 1 : 0;
    }
    const size_t pointers = ((size_t)given->extension_count + 1) * sizeof(char *);
    device->extensions = malloc(pointers + bytes);
    if (!device->extensions) {
        return false;
    }
    char *at = (char *)(void *)device->extensions + pointers;
    for (uint32_t i = 0; i < given->extension_count; i++) {
        if (given->extensions[i]) {
            const size_t length = strlen(given->extensions[i]) + 1;
            memcpy(at, given->extensions[i], length);
            device->extensions[device->extension_count++] = at;
            at += length;
        }
    }
    return true;
}

/* Returns 2 for compute, 1 for copies without compute, 0 for neither. */
static uint32_t usefulness(const gpuhal_vulkan_hardware *hardware, uint32_t family)
{
    const VkQueueFlags flags = family < hardware->family_count ? hardware->families[family].queueFlags : 0;
    return flags & VK_QUEUE_COMPUTE_BIT ? 2 : flags & (VK_QUEUE_TRANSFER_BIT | VK_QUEUE_GRAPHICS_BIT) ? 1 : 0;
}

static bool is_wrapper(const gpuhal_plugin_device *device, const void *queue)
{
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        if ((const void *)device->wrappers[i].queue == queue) {
            return true;
        }
    }
    return false;
}

static bool has_family(const gpuhal_plugin_device *device, uint32_t family)
{
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        if (device->wrappers[i].family == family) {
            return true;
        }
    }
    return false;
}

/* A VkQueue that is listed twice gets only one wrapper, because two wrappers would not exclude each other. */
static void take_useful(gpuhal_plugin_device *device, const gpuhal_vulkan_device *given, uint32_t wanted,
                        bool new_families)
{
    for (uint32_t i = 0; i < given->queue_count && device->wrapper_count < GPUHAL_VULKAN_WRAPPERS; i++) {
        const gpuhal_vulkan_queue *queue = &given->queues[i];
        if (usefulness(&device->hardware, queue->family) != wanted || is_wrapper(device, queue->queue) ||
            (new_families && has_family(device, queue->family))) {
            continue;
        }
        gpuhal_vulkan_wrapper *wrapper = &device->wrappers[device->wrapper_count++];
        wrapper->queue = queue->queue;
        wrapper->family = queue->family;
        wrapper->index = queue->index;
    }
}

/* Takes one queue of each family before a second queue of any family, because buffers are shared between the families
 * that are taken. In both rounds, takes compute queues before queues without compute.
 */
static void take_queues(gpuhal_plugin_device *device, const gpuhal_vulkan_device *given)
{
    const VkQueueFlags other = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT;
    take_useful(device, given, 2, true);
    take_useful(device, given, 1, true);
    take_useful(device, given, 2, false);
    take_useful(device, given, 1, false);
    /* Iterates backwards so that the first copy-only queue is selected. If there is none, copy_wrapper stays 0. */
    for (uint32_t i = device->wrapper_count; i-- > 0;) {
        if (!(device->hardware.families[device->wrappers[i].family].queueFlags & other)) {
            device->copy_wrapper = i;
        }
    }
}

static const char *queue_fault(const gpuhal_plugin_device *device, const gpuhal_vulkan_device *given)
{
    for (uint32_t i = 0; i < given->queue_count; i++) {
        if (!given->queues[i].queue) {
            return "a queue of gpuhal_vulkan_device is NULL";
        }
        if (given->queues[i].family >= device->hardware.family_count) {
            return "a queue of gpuhal_vulkan_device is of a family that the physical device does not have";
        }
    }
    return NULL;
}

/* In the caller's instance the physical device has another handle than in the plugin's instance, so read its properties
 * again. */
static gpuhal_status survey(gpuhal_plugin_device *device, const gpuhal_vulkan_entry *entry,
                            const gpuhal_vulkan_device *given)
{
    const char *missing;
    char why[192], text[256];
    device->instance = given->instance;
    device->get_proc = (PFN_vkGetInstanceProcAddr)given->get_instance_proc_addr;
    if (!gpuhal_vulkan_load_instance(device->get_proc, device->instance, &device->instance_api, &missing)) {
        snprintf(text, sizeof text, "get_instance_proc_addr does not find %s", missing);
        return refuse(device, text);
    }
    if (!gpuhal_vulkan_survey(&device->instance_api, given->physical_device, given->api_version, &device->hardware,
                              why, sizeof why)) {
        snprintf(text, sizeof text, "the physical device cannot be used: %s", why);
        return refuse(device, text);
    }
    if (memcmp(device->hardware.id.deviceUUID, entry->hardware.id.deviceUUID, VK_UUID_SIZE) != 0 ||
        memcmp(device->hardware.id.driverUUID, entry->hardware.id.driverUUID, VK_UUID_SIZE) != 0) {
        snprintf(text, sizeof text, "the VkDevice is of other hardware, or another driver, than vulkan:%" PRIu32,
                 entry->index);
        return refuse(device, text);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_adopt(gpuhal_plugin_device *device, const gpuhal_vulkan_entry *entry,
                                  const gpuhal_native *native)
{
    /* Set before anything can fail, so that free_opening() never destroys the caller's VkDevice. */
    device->adopted = true;
    const char *fault = description_fault(native);
    if (fault) {
        return refuse(device, fault);
    }
    const gpuhal_vulkan_device *given = native->typed;
    gpuhal_status status = survey(device, entry, given);
    if (status != GPUHAL_OK) {
        return status;
    }
    fault = queue_fault(device, given);
    if (fault) {
        return refuse(device, fault);
    }
    take_queues(device, given);
    if (device->wrapper_count == 0) {
        return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                    "none of the queues of gpuhal_vulkan_device can copy");
    }
    device->features = gpuhal_vulkan_features_copy(given->features);
    if (!device->features || !copy_extensions(device, given)) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    device->handle = given->device;
    device->enabled = enabled_bits(device, given);
    device->lock = given->lock;
    device->unlock = given->unlock;
    device->lock_user = given->user;
    return GPUHAL_OK;
}
