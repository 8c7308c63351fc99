/* vulkan/wrapper.c: submits to VkQueues.
 *
 * Vulkan allows only one thread at a time to submit to a VkQueue, so a submission holds the wrapper's mutex during
 * vkQueueSubmit. Native access may own the wrapper for any length of time, and any thread may end it. Native access is
 * therefore a flag under the mutex rather than a lock. If the thread that began native access makes a call that would
 * wait for its end, the call fails, because the thread would wait for itself.
 */
#include "../common/clock.h"
#include "device.h"

/* Returns a number that no other thread ever has. pthread_self() values are reused after a thread has ended. */
static uint64_t this_thread(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t own;
    own = own ? own : atomic_fetch_add(&last, 1) + 1;
    return own;
}

void gpuhal_vulkan_wrapper_init(gpuhal_vulkan_wrapper *wrapper)
{
    pthread_mutex_init(&wrapper->mutex, NULL);
    gpuhal_plugin_condition_init(&wrapper->freed);
}

void gpuhal_vulkan_wrapper_finish(gpuhal_vulkan_wrapper *wrapper)
{
    pthread_cond_destroy(&wrapper->freed);
    pthread_mutex_destroy(&wrapper->mutex);
}

static void lock_of_caller(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper)
{
    if (device->lock) {
        device->lock(device->lock_user, wrapper->queue);
    }
}

static void unlock_of_caller(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper)
{
    if (device->unlock) {
        device->unlock(device->lock_user, wrapper->queue);
    }
}

gpuhal_status gpuhal_vulkan_wrapper_busy(const gpuhal_plugin_device *device)
{
    return device->host->report(device->host, GPUHAL_ERROR_BUSY, NULL, 0,
                                "this thread has begun native access, which holds the VkQueue");
}

/* If the function returns true, the thread holds the mutex and the caller's lock. All code acquires the mutex first. So
 * no thread holds the caller's lock while it waits for native access to end. */
bool gpuhal_vulkan_wrapper_enter(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper, bool may_wait)
{
    pthread_mutex_lock(&wrapper->mutex);
    while (wrapper->taken && may_wait && wrapper->taker != this_thread()) {
        pthread_cond_wait(&wrapper->freed, &wrapper->mutex);
    }
    if (wrapper->taken) {
        pthread_mutex_unlock(&wrapper->mutex);
        return false;
    }
    lock_of_caller(device, wrapper);
    return true;
}

void gpuhal_vulkan_wrapper_leave(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper)
{
    unlock_of_caller(device, wrapper);
    pthread_mutex_unlock(&wrapper->mutex);
}

gpuhal_status gpuhal_vulkan_wrapper_take(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper,
                                         uint64_t timeout_ns)
{
    const uint64_t now = gpuhal_plugin_now_ns(), end = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
    const struct timespec until = gpuhal_plugin_time(end);
    int waited = 0;
    pthread_mutex_lock(&wrapper->mutex);
    while (wrapper->taken && wrapper->taker != this_thread() && waited == 0) {
        waited = pthread_cond_timedwait(&wrapper->freed, &wrapper->mutex, &until);
    }
    const bool free = !wrapper->taken, own = wrapper->taken && wrapper->taker == this_thread();
    if (free) {
        wrapper->taken = true;
        wrapper->taker = this_thread();
    }
    pthread_mutex_unlock(&wrapper->mutex);
    if (own) {
        return gpuhal_vulkan_wrapper_busy(device);
    }
    if (free) { /* without the mutex: `taken` already excludes all others */
        lock_of_caller(device, wrapper);
    }
    return free ? GPUHAL_OK : GPUHAL_NOT_READY;
}

/* Releases the caller's lock first: the next owner acquires it as soon as `taken` is false. */
void gpuhal_vulkan_wrapper_give(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper)
{
    unlock_of_caller(device, wrapper);
    pthread_mutex_lock(&wrapper->mutex);
    wrapper->taken = false;
    pthread_cond_broadcast(&wrapper->freed);
    pthread_mutex_unlock(&wrapper->mutex);
}

VkResult gpuhal_vulkan_submit(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper, const VkSubmitInfo *submit,
                              VkFence fence)
{
    if (!gpuhal_vulkan_wrapper_enter(device, wrapper, true)) {
        return VK_NOT_READY;
    }
    VkResult code = device->api.vkQueueSubmit(wrapper->queue, 1, submit, fence);
    gpuhal_vulkan_wrapper_leave(device, wrapper);
    return code;
}
