/* hotplug/rescan.c: looking at the machine again, because the application asks, or because watch.c has news. */
#include "core/error.h"
#include "core/job.h"
#include "hotplug/change.h"
#include "queue/queue.h"

#include <stdlib.h>

/* Work on what is gone ends before its end is told. The news is told in the order of the list. */
static gpuhal_status look(gpuhal *gpu)
{
    gpuhal_news news;
    gpuhal_status status = gpuhal_devices_list(gpu, &news);
    for (uint32_t i = 0; !status && i < news.count; i++) {
        const gpuhal_change *change = &news.list[i];
        if (change->kind == GPUHAL_CHANGE_VANISHED) {
            (void)gpuhal_device_unusable(change->device);
            gpuhal_queues_lost(change->device);
        }
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_INFO, "%s", change->sentence);
        gpuhal_change_tell(change->device, change->kind, change->sentence);
    }
    free(news.list);
    return status;
}

/* A look that began before the call may have missed what the caller knows: only a later one counts, which others may share. The function
 * that takes lines of the log may call this in the midst of a look. */
static gpuhal_status look_or_wait(gpuhal *gpu)
{
    gpuhal_herald *herald = gpu->layers.herald;
    gpuhal_status status = GPUHAL_OK;
    gpuhal_herald_lock(herald);
    uint64_t wanted = herald->begun + 1;
    bool by_itself = herald->running && herald->looker == gpuhal_job_caller();
    while (!status && herald->ended < wanted && !herald->closing && !by_itself) {
        if (herald->running) {
            gpuhal_condition_wait(&herald->condition, &herald->mutex);
            continue;
        }
        uint64_t mine = ++herald->begun;
        herald->running = true;
        herald->looker = gpuhal_job_caller();
        gpuhal_mutex_unlock(&herald->mutex);
        status = look(gpu);
        gpuhal_herald_lock(herald);
        herald->running = false;
        herald->ended = status ? herald->ended : mine;
        gpuhal_condition_signal_all(&herald->condition);
    }
    bool refused = !status && herald->ended < wanted;
    gpuhal_mutex_unlock(&herald->mutex);
    return refused ? gpuhal_error_set(GPUHAL_ERROR_BUSY, "gpuhal_rescan: %s",
                                      by_itself ? "this very thread is looking" : "the object is being closed")
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
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    /* A thread that is cancelled while it looks would keep all others waiting for the end of that. */
    int cancel = gpuhal_os_cancel_defer();
    gpuhal_status status = look_or_wait(gpu);
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
