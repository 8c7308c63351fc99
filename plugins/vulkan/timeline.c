/* vulkan/timeline.c: timelines and timestamps.
 *
 * Semaphores are not destroyed before the device is closed. With Mesa's emulated timelines (22.3.6,
 * vk_sync_timeline_point_release) a queue's thread still writes to an awaited semaphore after the waiting submission
 * has been reported as finished. The specification allows destroying the semaphore at that time. So an unreferenced
 * timeline is kept and reused by the next queue.
 *
 * Reached values are cached, so that repeated queries need no call. Drivers do not always report a hung device to every
 * thread. So a wait is split into slices, and ends after a slice if another thread has found the device lost.
 */
#include "queue.h"

#include <stdlib.h>

static gpuhal_vulkan_timeline *create_timeline(gpuhal_plugin_device *device, gpuhal_status *out_status)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo create = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    gpuhal_vulkan_timeline *timeline = calloc(1, sizeof *timeline);
    if (!timeline) {
        *out_status = device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
        return NULL;
    }
    VkResult code = device->api.vkCreateSemaphore(device->handle, &create, NULL, &timeline->semaphore);
    if (code != VK_SUCCESS) {
        free(timeline);
        *out_status = gpuhal_vulkan_result(device, "vkCreateSemaphore", code);
        return NULL;
    }
    timeline->device = device;
    atomic_init(&timeline->references, 1);
    return timeline;
}

gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_take(gpuhal_plugin_device *device, gpuhal_status *out_status)
{
    pthread_mutex_lock(&device->growing);
    gpuhal_vulkan_timeline *timeline = device->idle_timelines;
    device->idle_timelines = timeline ? timeline->next : NULL;
    pthread_mutex_unlock(&device->growing);
    if (!timeline) {
        return create_timeline(device, out_status);
    }
    /* The timeline has no references, and no other thread can find it after its removal from the list. */
    atomic_store(&timeline->dropped, 0);
    atomic_store(&timeline->references, 1);
    return timeline;
}

/* Relaxed order is enough, because the caller has a reference and the count cannot drop to 0. */
gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_retain(gpuhal_vulkan_timeline *timeline)
{
    atomic_fetch_add_explicit(&timeline->references, 1, memory_order_relaxed);
    return timeline;
}

/* No batch in flight uses an idle timeline, because batches retain the timelines that they wait for, and a queue is
 * destroyed only after its own work has finished. */
void gpuhal_vulkan_timeline_release(gpuhal_vulkan_timeline *timeline)
{
    if (timeline && atomic_fetch_sub(&timeline->references, 1) == 1) {
        gpuhal_plugin_device *device = timeline->device;
        pthread_mutex_lock(&device->growing);
        timeline->next = device->idle_timelines;
        device->idle_timelines = timeline;
        pthread_mutex_unlock(&device->growing);
    }
}

/* Drains every VkQueue first, because threads that emulate timelines use the semaphores until then. If draining fails,
 * the semaphores are leaked with the VkDevice. */
void gpuhal_vulkan_timelines_stop(gpuhal_plugin_device *device)
{
    if (!device->idle_timelines) {
        return;
    }
    if (!gpuhal_vulkan_drain(device)) {
        atomic_store(&device->stuck, true);
        return;
    }
    while (device->idle_timelines) {
        gpuhal_vulkan_timeline *timeline = device->idle_timelines;
        device->idle_timelines = timeline->next;
        device->api.vkDestroySemaphore(device->handle, timeline->semaphore, NULL);
        free(timeline);
    }
}

/* Never decreases the value, because threads may report values out of order. A relaxed load is enough, because an old
 * value only costs one more iteration. */
void gpuhal_vulkan_timeline_advance(gpuhal_vulkan_timeline *timeline, uint64_t value)
{
    uint64_t known = atomic_load_explicit(&timeline->reached, memory_order_relaxed);
    while (known < value && !atomic_compare_exchange_weak(&timeline->reached, &known, value)) {
    }
}

/* A call that fails without memory says nothing about the work, and an error would mean that the work has ended. */
static gpuhal_status call_failed(gpuhal_plugin_device *device, const char *call, VkResult code)
{
    return code == VK_ERROR_OUT_OF_HOST_MEMORY || code == VK_ERROR_OUT_OF_DEVICE_MEMORY
               ? GPUHAL_NOT_READY
               : gpuhal_vulkan_result(device, call, code);
}

/* On a lost device, fails even for values that were already reached, because the contents of the memory may be lost. */
gpuhal_status gpuhal_vulkan_timeline_query(gpuhal_vulkan_timeline *timeline, uint64_t value)
{
    gpuhal_plugin_device *device = timeline->device;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK || atomic_load(&timeline->reached) >= value) {
        return status;
    }
    uint64_t now = 0;
    VkResult code = device->api.vkGetSemaphoreCounterValue(device->handle, timeline->semaphore, &now);
    if (code != VK_SUCCESS) {
        return call_failed(device, "vkGetSemaphoreCounterValue", code);
    }
    gpuhal_vulkan_timeline_advance(timeline, now);
    return now >= value ? GPUHAL_OK : GPUHAL_NOT_READY;
}

VkResult gpuhal_vulkan_timeline_await(const gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    const VkSemaphoreWaitInfo wait = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline->semaphore,
        .pValues = &value,
    };
    VkResult code;
    uint32_t tries = 0;
    do {
        code = timeline->device->api.vkWaitSemaphores(timeline->device->handle, &wait, timeout_ns);
    } while (gpuhal_vulkan_wait_again(code, tries++));
    return code;
}

/* Only the last slice exhausts the timeout. */
gpuhal_status gpuhal_vulkan_timeline_wait(gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    gpuhal_plugin_device *device = timeline->device;
    for (;;) {
        gpuhal_status status = gpuhal_vulkan_alive(device);
        if (status != GPUHAL_OK || atomic_load(&timeline->reached) >= value) {
            return status;
        }
        uint64_t slice = timeout_ns < GPUHAL_VULKAN_SLICE_NS ? timeout_ns : GPUHAL_VULKAN_SLICE_NS;
        VkResult code = gpuhal_vulkan_timeline_await(timeline, value, slice);
        if (code == VK_SUCCESS) {
            gpuhal_vulkan_timeline_advance(timeline, value);
            return GPUHAL_OK;
        }
        if (code != VK_TIMEOUT) {
            return call_failed(device, "vkWaitSemaphores", code);
        }
        timeout_ns -= slice;
        if (timeout_ns == 0) {
            return GPUHAL_NOT_READY;
        }
    }
}

gpuhal_vulkan_stamp *gpuhal_vulkan_stamp_create(gpuhal_plugin_device *device, gpuhal_status *out_status)
{
    const VkQueryPoolCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = 1,
    };
    gpuhal_vulkan_stamp *stamp = calloc(1, sizeof *stamp);
    if (!stamp) {
        *out_status = device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
        return NULL;
    }
    VkResult code = device->api.vkCreateQueryPool(device->handle, &create, NULL, &stamp->pool);
    if (code != VK_SUCCESS) {
        free(stamp);
        *out_status = gpuhal_vulkan_result(device, "vkCreateQueryPool", code);
        return NULL;
    }
    stamp->device = device;
    atomic_init(&stamp->references, 1);
    return stamp;
}

void gpuhal_vulkan_stamp_release(gpuhal_vulkan_stamp *stamp)
{
    if (stamp && atomic_fetch_sub(&stamp->references, 1) == 1) {
        stamp->device->api.vkDestroyQueryPool(stamp->device->handle, stamp->pool, NULL);
        free(stamp);
    }
}
