/* device/busy.c: measures how long queues of a device had work. The device becomes busy when work is submitted to an
 * idle queue, and idle when the library detects that its last queue has finished. A waiting thread detects this
 * immediately. */
#include "device/device.h"

void gpuhal_busy_begin(gpuhal_device *device)
{
    gpuhal_busy *busy = &device->busy;
    gpuhal_mutex_lock(&busy->mutex);
    if (busy->queues++ == 0) {
        busy->since_ns = gpuhal_os_monotonic_ns();
    }
    gpuhal_mutex_unlock(&busy->mutex);
}

void gpuhal_busy_end(gpuhal_device *device)
{
    gpuhal_busy *busy = &device->busy;
    gpuhal_mutex_lock(&busy->mutex);
    if (--busy->queues == 0) {
        busy->total_ns += gpuhal_os_monotonic_ns() - busy->since_ns;
    }
    gpuhal_mutex_unlock(&busy->mutex);
}

uint64_t gpuhal_busy_ns(gpuhal_device *device)
{
    gpuhal_busy *busy = &device->busy;
    atomic_store(&busy->wanted, true);
    gpuhal_mutex_lock(&busy->mutex);
    const uint64_t now_ns = busy->queues > 0 ? gpuhal_os_monotonic_ns() - busy->since_ns : 0;
    const uint64_t total_ns = busy->total_ns + now_ns;
    gpuhal_mutex_unlock(&busy->mutex);
    return total_ns;
}
