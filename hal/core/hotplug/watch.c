/* hotplug/watch.c: opens the event sources that gpuhal-watch waits for (the kernel, plugins, and the files named in
 * manifests), and rescans on a worker after an event. */
#include "base/error.h"
#include "hotplug/change.h"
#include "loader/cache_key.h"
#include "queue/queue.h"

#include <string.h>

/* Watches the files that manifests name. Returns the number of watched names. */
static size_t watch_files(gpuhal *gpu)
{
    const gpuhal_candidates *candidates = &gpuhal_device_snapshot_now(gpu)->candidates;
    gpuhal_file_watch *files = gpu->layers.notifier->heard.sources.files;
    gpuhal_texts paths = {0};
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_cache_key_watched(gpu->settings.system_root, &candidates->list[i], &paths);
    }
    for (size_t i = 0; files && i < paths.count; i++) {
        (void)gpuhal_os_file_watch_add(files, paths.list[i]);
    }
    gpuhal_texts_finish(&paths);
    return files ? gpuhal_os_file_watch_count(files) : 0;
}

/* New folders may have appeared, and the scan may add plugins. Changes in a folder are noticed only while the folder is
 * watched. If a new folder was added, a second scan is needed to find changes made before the folder was watched. */
static void look_at_news(gpuhal *gpu)
{
    size_t watched = watch_files(gpu);
    for (bool again = true; again;) {
        gpuhal_status status = gpuhal_rescan(gpu, NULL);
        if (status && status != GPUHAL_ERROR_BUSY) { /* BUSY means that the object is being closed */
            gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING, "devices were added or removed, but the rescan failed: %s",
                            gpuhal_last_error()->sentence);
        }
        size_t before = watched;
        watched = watch_files(gpu);
        again = status != GPUHAL_ERROR_BUSY && watched > before;
    }
}

static void rescan(void *user)
{
    gpuhal *const gpu = user;
    unsigned found = atomic_exchange(&gpu->layers.notifier->heard.found, 0);
    gpuhal_os_thread_name("gpuhal-rescan");
    if (found & GPUHAL_HOTPLUG_GONE) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_WARNING,
                        "the system reports no more events of added and removed devices");
    }
    if (found & GPUHAL_HOTPLUG_NEWS) {
        look_at_news(gpu);
    }
}

/* Plugin announcements and files are watched as far as the system allows; a failure is not logged. */
static void open_sources(gpuhal *gpu, intptr_t kernel)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_hotplug_sources *sources = &notifier->heard.sources;
    sources->kernel = kernel;
    if (!gpuhal_os_notifier_create(&sources->announced)) {
        gpuhal_host_watch(&notifier->announcements, sources->announced);
    }
    if (!gpuhal_os_file_watch_create(&sources->files)) {
        (void)watch_files(gpu);
    }
    notifier->heard.gpu = gpu;
    notifier->heard.run = rescan;
}

gpuhal_status gpuhal_watch_source(gpuhal *gpu, intptr_t source)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    int error = 0;
    gpuhal_mutex_lock(&notifier->mutex);
    if (!notifier->watches && !notifier->closing) {
        open_sources(gpu, source);
        error = gpuhal_watchdog_listen(&notifier->heard);
        notifier->asked = true;
        notifier->watches = error == 0;
        if (error) {
            gpuhal_watch_forget(notifier);
        }
    } else if (source >= 0) {
        gpuhal_os_descriptor_close(source);
    }
    gpuhal_mutex_unlock(&notifier->mutex);
    return error ? gpuhal_error_no_thread(error) : GPUHAL_OK;
}

void gpuhal_watch_kernel(gpuhal *gpu)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_error_detail before;
    gpuhal_mutex_lock(&notifier->mutex);
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

void gpuhal_watch_end(gpuhal *gpu)
{
    gpuhal_notifier *notifier = gpu->layers.notifier;
    gpuhal_mutex_lock(&notifier->mutex);
    bool watches = notifier->watches;
    notifier->watches = false;
    gpuhal_mutex_unlock(&notifier->mutex);
    if (watches) {
        gpuhal_watchdog_unlisten(&notifier->heard);
        gpuhal_worker_await(gpu, &notifier->heard.worker);
        gpuhal_watch_forget(notifier);
    }
}
