/* hotplug/rescan.c: scans the machine again when the application requests a scan or watch.c received an event. */
#include "base/error.h"
#include "base/job.h"
#include "hotplug/change.h"
#include "queue/queue.h"

#include <stdlib.h>

/* Fails the work on a removed device before it reports the removal. Reports events in list order. */
static gpuhal_status look(gpuhal *gpu)
{
    gpuhal_device_events news;
    gpuhal_status status = gpuhal_devices_list(gpu, &news);
    for (uint32_t i = 0; !status && i < news.count; i++) {
        const gpuhal_change *change = &news.list[i];
        if (change->kind == GPUHAL_CHANGE_VANISHED) {
            (void)gpuhal_device_unusable(change->device);
            gpuhal_queues_lost(change->device);
        }
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_INFO, "%s", change->sentence);
        gpuhal_change_notify(change->device, change->kind, change->sentence);
    }
    free(news.list);
    return status;
}

/* A scan that began before this call may have missed a change that the caller knows about, so the caller needs a later
 * scan. Several callers may share a scan. The application's log function may call this function during a scan. */
static gpuhal_status look_or_wait(gpuhal *gpu)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_status status = GPUHAL_OK;
    gpuhal_mutex_lock(&notifier->mutex);
    uint64_t notify_requested = notifier->begun + 1;
    bool by_itself = notifier->running && notifier->looker == gpuhal_job_caller();
    while (!status && notifier->ended < notify_requested && !notifier->closing && !by_itself) {
        if (notifier->running) {
            gpuhal_condition_wait(&notifier->condition, &notifier->mutex);
            continue;
        }
        uint64_t mine = ++notifier->begun;
        notifier->running = true;
        notifier->looker = gpuhal_job_caller();
        gpuhal_mutex_unlock(&notifier->mutex);
        status = look(gpu);
        gpuhal_mutex_lock(&notifier->mutex);
        notifier->running = false;
        notifier->ended = status ? notifier->ended : mine;
        gpuhal_condition_signal_all(&notifier->condition);
    }
    bool refused = !status && notifier->ended < notify_requested;
    gpuhal_mutex_unlock(&notifier->mutex);
    return refused ? gpuhal_error_set(GPUHAL_ERROR_BUSY, "gpuhal_rescan: %s",
                                      by_itself ? "this thread is rescanning already" : "the object is being closed")
                   : status;
}

gpuhal_status gpuhal_rescan(gpuhal *gpu, uint64_t *out_generation)
{
    if (out_generation) {
        *out_generation = 0;
    }
    if (!gpu) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_rescan: gpu is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    /* If a thread were cancelled during a scan, all other threads would wait forever for the end of the scan. */
    int cancel = gpuhal_os_cancel_defer();
    status = look_or_wait(gpu);
    gpuhal_os_cancel_restore(cancel);
    if (status) {
        return status;
    }
    gpuhal_error_restore(&before);
    if (out_generation) {
        *out_generation = gpuhal_generation(gpu);
    }
    return GPUHAL_OK;
}
