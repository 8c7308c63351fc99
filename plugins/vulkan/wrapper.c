/* vulkan/port.c: submitting to a VkQueue, which Vulkan allows one thread at a time.
 *
 * A submission holds the port's mutex, for as long as vkQueueSubmit takes. A native section takes the port for as long as the
 * caller likes, and may be ended by another thread than began it, so it is a flag under that mutex and no lock of a thread. The thread
 * that began it is refused what would wait for its end: it would wait for itself.
 */
#include "device.h"

#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

/* Names this thread, as no other is ever named: pthread_self() is given anew once its thread has ended. */
static uint64_t this_thread(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t own;
    own = own ? own : atomic_fetch_add(&last, 1) + 1;
    return own;
}

void gpuhal_vulkan_port_init(gpuhal_vulkan_port *port)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&port->mutex, NULL);
    pthread_cond_init(&port->freed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void gpuhal_vulkan_port_finish(gpuhal_vulkan_port *port)
{
    pthread_cond_destroy(&port->freed);
    pthread_mutex_destroy(&port->mutex);
}

static void lock_of_caller(gpuhal_plugin_device *device, gpuhal_vulkan_port *port)
{
    if (device->lock) {
        device->lock(device->lock_user, port->queue);
    }
}

static void unlock_of_caller(gpuhal_plugin_device *device, gpuhal_vulkan_port *port)
{
    if (device->unlock) {
        device->unlock(device->lock_user, port->queue);
    }
}

gpuhal_status gpuhal_vulkan_port_busy(const gpuhal_plugin_device *device)
{
    return device->host->report(device->host, GPUHAL_ERROR_BUSY, NULL, 0, "this thread is in a native section, which holds the VkQueue");
}

bool gpuhal_vulkan_port_enter(gpuhal_plugin_device *device, gpuhal_vulkan_port *port, bool may_wait)
{
    pthread_mutex_lock(&port->mutex);
    while (port->taken && may_wait && port->taker != this_thread()) {
        pthread_cond_wait(&port->freed, &port->mutex);
    }
    if (port->taken) {
        pthread_mutex_unlock(&port->mutex);
        return false;
    }
    lock_of_caller(device, port);
    return true;
}

void gpuhal_vulkan_port_leave(gpuhal_plugin_device *device, gpuhal_vulkan_port *port)
{
    unlock_of_caller(device, port);
    pthread_mutex_unlock(&port->mutex);
}

gpuhal_status gpuhal_vulkan_port_take(gpuhal_plugin_device *device, gpuhal_vulkan_port *port, uint64_t timeout_ns)
{
    struct timespec until = {0};
    clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t now = (uint64_t)until.tv_sec * SECOND_NS + (uint64_t)until.tv_nsec;
    const uint64_t end = timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
    until = (struct timespec){.tv_sec = (time_t)(end / SECOND_NS), .tv_nsec = (long)(end % SECOND_NS)};
    int waited = 0;
    pthread_mutex_lock(&port->mutex);
    while (port->taken && port->taker != this_thread() && waited == 0) {
        waited = pthread_cond_timedwait(&port->freed, &port->mutex, &until);
    }
    const bool free = !port->taken, own = port->taken && port->taker == this_thread();
    if (free) {
        port->taken = true;
        port->taker = this_thread();
    }
    pthread_mutex_unlock(&port->mutex);
    if (own) {
        return gpuhal_vulkan_port_busy(device);
    }
    if (free) {
        lock_of_caller(device, port);
    }
    return free ? GPUHAL_OK : GPUHAL_NOT_READY;
}

void gpuhal_vulkan_port_give(gpuhal_plugin_device *device, gpuhal_vulkan_port *port)
{
    unlock_of_caller(device, port);
    pthread_mutex_lock(&port->mutex);
    port->taken = false;
    pthread_cond_broadcast(&port->freed);
    pthread_mutex_unlock(&port->mutex);
}

VkResult gpuhal_vulkan_submit(gpuhal_plugin_device *device, gpuhal_vulkan_port *port, const VkSubmitInfo *submit, VkFence fence)
{
    if (!gpuhal_vulkan_port_enter(device, port, true)) {
        return VK_NOT_READY;
    }
    VkResult code = device->api.vkQueueSubmit(port->queue, 1, submit, fence);
    gpuhal_vulkan_port_leave(device, port);
    return code;
}
