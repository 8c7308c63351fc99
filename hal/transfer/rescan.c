/* transfer/rescan.c: looking at the machine again, because somebody asks, or because the kernel, a plugin or a file that a manifest tells to
 * watch has news. */
#include "core/error.h"
#include "core/job.h"
#include "loader/circumstances.h"
#include "transfer/change.h"
#include "transfer/queue.h"

#include <stdlib.h>
#include <string.h>

/* One thing that is plugged in makes many messages, and its files get their rights only after the first ones: wait until it is quiet,
 * though not for ever. */
#define QUIET_NS  300000000u
#define SETTLE_NS UINT64_C(3000000000)

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
    gpuhal_herald *herald = gpu->herald;
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

/* ---- news of devices */

/* What manifests tell to watch. To be done after each look: folders may be there now that were not, and plugins. */
static void watch_files(gpuhal *gpu)
{
    const gpuhal_candidates *candidates = &gpuhal_listing_now(gpu)->candidates;
    gpuhal_texts paths = {0};
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_circumstances_watched(&candidates->list[i], &paths);
    }
    for (size_t i = 0; gpu->herald->sources.files && i < paths.count; i++) {
        (void)gpuhal_os_file_watch_add(gpu->herald->sources.files, paths.list[i]);
    }
    gpuhal_texts_finish(&paths);
}

static void look_at_news(gpuhal *gpu)
{
    gpuhal_status status = gpuhal_rescan(gpu, NULL);
    if (status && status != GPUHAL_ERROR_BUSY) { /* busy: the object is being closed */
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "hardware came or went, and looking at it failed: %s",
                        gpuhal_last_error()->sentence);
    }
    watch_files(gpu);
}

static void *watch(void *user)
{
    gpuhal *const gpu = user;
    gpuhal_hotplug_sources *sources = &gpu->herald->sources;
    gpuhal_hotplug heard = GPUHAL_HOTPLUG_QUIET;
    while (heard != GPUHAL_HOTPLUG_WOKEN && !(heard == GPUHAL_HOTPLUG_GONE && sources->kernel < 0)) {
        heard = gpuhal_os_hotplug_wait(sources, UINT64_MAX);
        bool news = heard == GPUHAL_HOTPLUG_NEWS;
        uint64_t end = gpuhal_deadline(SETTLE_NS);
        while (heard == GPUHAL_HOTPLUG_NEWS && gpuhal_os_monotonic_ns() < end) {
            heard = gpuhal_os_hotplug_wait(sources, QUIET_NS);
        }
        if (heard == GPUHAL_HOTPLUG_GONE && sources->kernel >= 0) {
            gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "the system tells no more of hardware that comes and goes");
            gpuhal_os_descriptor_close(sources->kernel);
            sources->kernel = -1;
            heard = GPUHAL_HOTPLUG_QUIET;
        }
        if (news && heard != GPUHAL_HOTPLUG_WOKEN) {
            look_at_news(gpu);
        }
    }
    return NULL;
}

void gpuhal_watch_forget(gpuhal_herald *herald)
{
    gpuhal_hotplug_sources *sources = &herald->sources;
    intptr_t descriptors[] = {sources->kernel, sources->announced, sources->wake};
    gpuhal_host_unwatch(&herald->announcements);
    gpuhal_os_file_watch_destroy(sources->files);
    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
        if (descriptors[i] >= 0) {
            gpuhal_os_descriptor_close(descriptors[i]);
        }
    }
    *sources = (gpuhal_hotplug_sources){.kernel = -1, .announced = -1, .wake = -1};
}

/* Plugins that announce and files are watched as far as the system lets us; they are not worth a word of their own. */
static int open_sources(gpuhal *gpu, intptr_t kernel)
{
    gpuhal_herald *herald = gpu->herald;
    herald->sources.kernel = kernel;
    int error = gpuhal_os_notifier_create(&herald->sources.wake);
    if (!error && !gpuhal_os_notifier_create(&herald->sources.announced)) {
        gpuhal_host_watch(&herald->announcements, herald->sources.announced);
    }
    if (!error && !gpuhal_os_file_watch_create(&herald->sources.files)) {
        watch_files(gpu);
    }
    return error;
}

gpuhal_status gpuhal_watch_source(gpuhal *gpu, intptr_t source)
{
    gpuhal_herald *herald = gpu->herald;
    gpuhal_herald_lock(herald);
    bool refused = herald->watches || herald->closing;
    int error = refused ? 0 : open_sources(gpu, source);
    if (!error && !refused) {
        error = gpuhal_thread_start(&herald->watch, watch, gpu);
        herald->watches = error == 0;
        herald->asked = true;
    }
    if (refused && source >= 0) {
        gpuhal_os_descriptor_close(source);
    }
    if (error) {
        gpuhal_watch_forget(herald);
    }
    gpuhal_mutex_unlock(&herald->mutex);
    return error ? gpuhal_error_no_thread(error) : GPUHAL_OK;
}

void gpuhal_watch_kernel(gpuhal *gpu)
{
    gpuhal_herald *herald = gpu->herald;
    gpuhal_error_detail before;
    gpuhal_herald_lock(herald);
    bool asked = herald->asked;
    herald->asked = true;
    gpuhal_mutex_unlock(&herald->mutex);
    if (asked) {
        return;
    }
    gpuhal_error_save(&before);
    intptr_t source = -1;
    int error = gpuhal_os_hotplug_open(&source);
    gpuhal_status status = gpuhal_watch_source(gpu, error ? -1 : source);
    if (error || status) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING,
                        "hardware that comes or goes is not noticed by itself, only by gpuhal_rescan(): %s",
                        error ? strerror(error) : gpuhal_last_error()->sentence);
    }
    gpuhal_error_restore(&before);
}

void gpuhal_watch_end(gpuhal_herald *herald)
{
    gpuhal_herald_lock(herald);
    bool watches = herald->watches;
    herald->watches = false;
    if (watches) {
        gpuhal_os_notifier_set(herald->sources.wake);
    }
    gpuhal_mutex_unlock(&herald->mutex);
    if (watches) {
        gpuhal_thread_join(&herald->watch);
        gpuhal_watch_forget(herald);
    }
}
