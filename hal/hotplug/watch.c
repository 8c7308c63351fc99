/* hotplug/watch.c: the thread that hears from the kernel, from plugins, and of files that manifests name, that devices may have changed. */
#include "core/error.h"
#include "hotplug/change.h"
#include "loader/cache_key.h"
#include "queue/queue.h"

#include <string.h>

/* One device that is plugged in makes many messages, and its files get their permissions only after the first ones: wait until it is quiet,
 * though not for ever. */
#define QUIET_NS  300000000u
#define SETTLE_NS UINT64_C(3000000000)

/* Watches the files that manifests name; returns how many names are watched now. */
static size_t watch_files(gpuhal *gpu)
{
    const gpuhal_candidates *candidates = &gpuhal_device_snapshot_now(gpu)->candidates;
    gpuhal_texts paths = {0};
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_cache_key_watched(&candidates->list[i], &paths);
    }
    for (size_t i = 0; gpu->layers.notifier->sources.files && i < paths.count; i++) {
        (void)gpuhal_os_file_watch_add(gpu->layers.notifier->sources.files, paths.list[i]);
    }
    gpuhal_texts_finish(&paths);
    return gpu->layers.notifier->sources.files ? gpuhal_os_file_watch_count(gpu->layers.notifier->sources.files) : 0;
}

/* Folders may have appeared, and with the look plugins. Changes in a folder are heard only from when it is watched, so if the look made one
 * more to watch, only another look shows what happened in between. */
static void look_at_news(gpuhal *gpu)
{
    size_t watched = watch_files(gpu);
    for (bool again = true; again;) {
        gpuhal_status status = gpuhal_rescan(gpu, NULL);
        if (status && status != GPUHAL_ERROR_BUSY) { /* busy: the object is being closed */
            gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "devices were added or removed, but the rescan failed: %s",
                            gpuhal_last_error()->sentence);
        }
        size_t before = watched;
        watched = watch_files(gpu);
        again = status != GPUHAL_ERROR_BUSY && watched > before;
    }
}

static void *watch(void *user)
{
    gpuhal *const gpu = user;
    gpuhal_hotplug_sources *sources = &gpu->layers.notifier->sources;
    gpuhal_hotplug heard = GPUHAL_HOTPLUG_QUIET;
    while (heard != GPUHAL_HOTPLUG_WOKEN && !(heard == GPUHAL_HOTPLUG_GONE && sources->kernel < 0)) {
        heard = gpuhal_os_hotplug_wait(sources, UINT64_MAX);
        bool news = heard == GPUHAL_HOTPLUG_NEWS;
        uint64_t end = gpuhal_deadline(SETTLE_NS);
        while (heard == GPUHAL_HOTPLUG_NEWS && gpuhal_os_monotonic_ns() < end) {
            heard = gpuhal_os_hotplug_wait(sources, QUIET_NS);
        }
        if (heard == GPUHAL_HOTPLUG_GONE && sources->kernel >= 0) {
            gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "the system reports no more events of added and removed devices");
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

/* Announcing plugins and files are watched as far as the system allows; a failure is not worth a warning of its own. */
static int open_sources(gpuhal *gpu, intptr_t kernel)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    notifier->sources.kernel = kernel;
    int error = gpuhal_os_notifier_create(&notifier->sources.wake);
    if (!error && !gpuhal_os_notifier_create(&notifier->sources.announced)) {
        gpuhal_host_watch(&notifier->announcements, notifier->sources.announced);
    }
    if (!error && !gpuhal_os_file_watch_create(&notifier->sources.files)) {
        (void)watch_files(gpu);
    }
    return error;
}

gpuhal_status gpuhal_watch_source(gpuhal *gpu, intptr_t source)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_notifier_lock(notifier);
    bool refused = notifier->watches || notifier->closing;
    int error = refused ? 0 : open_sources(gpu, source);
    if (!error && !refused) {
        error = gpuhal_thread_start(&notifier->watch, watch, gpu);
        notifier->watches = error == 0;
        notifier->asked = true;
    }
    if (refused && source >= 0) {
        gpuhal_os_descriptor_close(source);
    }
    if (error) {
        gpuhal_watch_forget(notifier);
    }
    gpuhal_mutex_unlock(&notifier->mutex);
    return error ? gpuhal_error_no_thread(error) : GPUHAL_OK;
}

void gpuhal_watch_kernel(gpuhal *gpu)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_error_detail before;
    gpuhal_notifier_lock(notifier);
    bool asked = notifier->asked;
    notifier->asked = true;
    gpuhal_mutex_unlock(&notifier->mutex);
    if (asked) {
        return;
    }
    gpuhal_error_save(&before);
    intptr_t source = -1;
    int error = gpuhal_os_hotplug_open(&source);
    gpuhal_status status = gpuhal_watch_source(gpu, error ? -1 : source);
    if (error || status) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING,
                        "added and removed devices are found only by gpuhal_rescan(): %s",
                        error ? strerror(error) : gpuhal_last_error()->sentence);
    }
    gpuhal_error_restore(&before);
}

void gpuhal_watch_end(gpuhal_notifier *notifier)
{
    gpuhal_notifier_lock(notifier);
    bool watches = notifier->watches;
    notifier->watches = false;
    if (watches) {
        gpuhal_os_notifier_set(notifier->sources.wake);
    }
    gpuhal_mutex_unlock(&notifier->mutex);
    if (watches) {
        gpuhal_thread_join(&notifier->watch);
        gpuhal_watch_forget(notifier);
    }
}
