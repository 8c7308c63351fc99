/* hotplug/change.c: the application's access to device events: the listener, the descriptor and the list. */
#include "hotplug/change.h"

#include "base/error.h"
#include "base/job.h"
#include "device/view.h"
#include "queue/completion_service.h"

#include <stdlib.h>

/* Removes the listener. Waits until the listener is not running, unless the listener itself makes this call. Call with
 * the mutex held. */
static void silence(gpuhal_notifier *notifier)
{
    notifier->listener = NULL;
    while (notifier->calling && notifier->caller != gpuhal_job_caller()) {
        gpuhal_condition_wait(&notifier->condition, &notifier->mutex);
    }
}

void gpuhal_notifier_end(gpuhal *gpu)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_mutex_lock(&notifier->mutex);
    notifier->closing = true;
    silence(notifier);
    gpuhal_mutex_unlock(&notifier->mutex);
    gpuhal_watch_end(gpu);
    gpuhal_mutex_lock(&notifier->mutex);
    while (notifier->running) {
        gpuhal_condition_wait(&notifier->condition, &notifier->mutex);
    }
    gpuhal_mutex_unlock(&notifier->mutex);
}

gpuhal_status gpuhal_on_change(gpuhal *gpu, gpuhal_change_fn *listener, void *user)
{
    if (!gpu) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_on_change: gpu is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    const int error = listener ? gpuhal_service_serve(gpu) : 0;
    if (error) {
        return gpuhal_error_no_thread(error);
    }
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_mutex_lock(&notifier->mutex);
    silence(notifier);
    notifier->listener = listener;
    notifier->user = user;
    notifier->from = atomic_load(&notifier->generation);
    gpuhal_mutex_unlock(&notifier->mutex);
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
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_mutex_lock(&notifier->mutex);
    notifier->kept = notifier->kept ? notifier->kept : calloc(GPUHAL_CHANGES_KEPT, sizeof *notifier->kept);
    bool no_memory = !notifier->kept;
    int error = notifier->descriptor < 0 ? gpuhal_os_notifier_create(&notifier->descriptor) : 0;
    if (!error && notifier->count > 0) {
        gpuhal_os_notifier_set(notifier->descriptor);
    }
    *out_descriptor = error || no_memory ? -1 : gpuhal_os_descriptor_copy(notifier->descriptor);
    gpuhal_mutex_unlock(&notifier->mutex);
    if (no_memory) {
        return gpuhal_error_host_memory();
    }
    if (*out_descriptor < 0) {
        return gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
    }
    gpuhal_watch_kernel(gpu);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_next_change(gpuhal *gpu, gpuhal_change *out_change)
{
    if (!gpu || !out_change || out_change->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_next_change: an argument is NULL, or the size is 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_change change = {0};
    gpuhal_mutex_lock(&notifier->mutex);
    bool has = notifier->count > 0;
    if (has) {
        change = notifier->kept[notifier->first];
        notifier->first = (notifier->first + 1) % GPUHAL_CHANGES_KEPT;
        notifier->count--;
    }
    if (notifier->count == 0 && notifier->descriptor >= 0) {
        gpuhal_os_notifier_clear(notifier->descriptor);
    }
    gpuhal_mutex_unlock(&notifier->mutex);
    if (!has) {
        return GPUHAL_NOT_READY;
    }
    gpuhal_record_give(out_change, &change, sizeof change);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_device_status(const gpuhal_device *device)
{
    return device ? gpuhal_device_check(device)
                  : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_status: device is NULL");
}
