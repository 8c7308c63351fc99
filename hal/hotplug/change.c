/* hotplug/change.c: what the application asks of changes: listening, the descriptor, and the end of both. */
#include "hotplug/change.h"

#include "core/error.h"
#include "core/job.h"
#include "queue/async.h"

#include <stdlib.h>
#include <string.h>

/* With the mutex held. The listener itself may want to end it: then there is nothing to wait for. */
static void silence(gpuhal_herald *herald)
{
    herald->listener = NULL;
    while (herald->calling && herald->caller != gpuhal_job_caller()) {
        gpuhal_condition_wait(&herald->condition, &herald->mutex);
    }
}

void gpuhal_herald_end(gpuhal *gpu)
{
    gpuhal_herald *herald = gpu->layers.herald;
    gpuhal_herald_lock(herald);
    herald->closing = true;
    silence(herald);
    gpuhal_mutex_unlock(&herald->mutex);
    gpuhal_watch_end(herald);
    gpuhal_herald_lock(herald);
    while (herald->running) {
        gpuhal_condition_wait(&herald->condition, &herald->mutex);
    }
    gpuhal_mutex_unlock(&herald->mutex);
}

gpuhal_status gpuhal_on_change(gpuhal *gpu, gpuhal_change_fn *listener, void *user)
{
    if (!gpu) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_on_change: gpu is NULL");
    }
    const int error = listener ? gpuhal_async_serve(gpu) : 0;
    if (error) {
        return gpuhal_error_no_thread(error);
    }
    gpuhal_herald *herald = gpu->layers.herald;
    gpuhal_herald_lock(herald);
    silence(herald);
    herald->listener = listener;
    herald->user = user;
    herald->from = atomic_load(&herald->generation);
    gpuhal_mutex_unlock(&herald->mutex);
    if (listener) {
        gpuhal_watch_kernel(gpu);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_change_descriptor(gpuhal *gpu, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    if (!gpu || !out_descriptor) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_change_descriptor: an argument is NULL");
    }
    gpuhal_herald *herald = gpu->layers.herald;
    gpuhal_herald_lock(herald);
    herald->kept = herald->kept ? herald->kept : calloc(GPUHAL_CHANGES_KEPT, sizeof *herald->kept);
    bool no_memory = !herald->kept;
    int error = herald->notifier < 0 ? gpuhal_os_notifier_create(&herald->notifier) : 0;
    if (!error && herald->count > 0) {
        gpuhal_os_notifier_set(herald->notifier);
    }
    *out_descriptor = error || no_memory ? -1 : gpuhal_os_descriptor_copy(herald->notifier);
    gpuhal_mutex_unlock(&herald->mutex);
    if (no_memory) {
        return gpuhal_error_host_memory();
    }
    if (*out_descriptor < 0) {
        return gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
    }
    gpuhal_watch_kernel(gpu);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_take_change(gpuhal *gpu, gpuhal_change *out_change)
{
    if (!gpu || !out_change || out_change->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_take_change: an argument is NULL, or the size is 0");
    }
    gpuhal_herald *herald = gpu->layers.herald;
    gpuhal_change change = {0};
    gpuhal_herald_lock(herald);
    bool has = herald->count > 0;
    if (has) {
        change = herald->kept[herald->first];
        herald->first = (herald->first + 1) % GPUHAL_CHANGES_KEPT;
        herald->count--;
    }
    if (herald->count == 0 && herald->notifier >= 0) {
        gpuhal_os_notifier_clear(herald->notifier);
    }
    gpuhal_mutex_unlock(&herald->mutex);
    if (!has) {
        return GPUHAL_NOT_READY;
    }
    uint32_t size = out_change->size;
    memcpy(out_change, &change, size < sizeof change ? size : sizeof change);
    out_change->size = size;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_device_status(const gpuhal_device *device)
{
    return device ? gpuhal_device_check(device)
                  : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_status: device is NULL");
}
