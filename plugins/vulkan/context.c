/* vulkan/context.c: device loss, and the native handles of an opened device. */
#include "device.h"

/* Only the Vulkan call that detects the loss of the device is certain to report it. Later calls may hang, so the loss
 * is recorded here. */
gpuhal_status gpuhal_vulkan_result(gpuhal_plugin_device *device, const char *call, VkResult code)
{
    if (code == VK_SUCCESS) {
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_vulkan_report(device->host, call, code);
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        atomic_store(&device->lost, true);
    }
    return status;
}

/* Relaxed order is enough, because only the flag is read. A thread that reads an old value makes one more Vulkan call
 * and detects the loss itself. */
gpuhal_status gpuhal_vulkan_alive(gpuhal_plugin_device *device)
{
    if (!atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        return GPUHAL_OK;
    }
    return device->host->report(device->host, GPUHAL_ERROR_DEVICE_LOST, NULL, VK_ERROR_DEVICE_LOST,
                                "the device was lost in an earlier call");
}

/* Makes no Vulkan call, because a hung driver would also hang this function. */
static gpuhal_status vulkan_query_health(gpuhal_plugin_device *device)
{
    return atomic_load(&device->lost) ? GPUHAL_ERROR_DEVICE_LOST : GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_VULKAN_DEVICE;
    out_native->typed = &device->described;
    out_native->values[0] = (uintptr_t)device->instance;
    out_native->values[1] = (uintptr_t)device->hardware.handle;
    out_native->values[2] = (uintptr_t)device->handle;
    out_native->values[3] = 0;
    return GPUHAL_OK;
}

void gpuhal_vulkan_describe_context(gpuhal_ops *ops)
{
    ops->query_health = vulkan_query_health;
}
