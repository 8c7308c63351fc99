/* hotplug/herald.c: news of devices on its way to whoever listens; see change.h. */
#include "hotplug/change.h"

#include "core/error.h"
#include "core/job.h"
#include "queue/async.h"
#include "queue/queue.h"
#include "transfer/staging.h"

#include <stdio.h>
#include <stdlib.h>

gpuhal_herald *gpuhal_herald_create(void)
{
    gpuhal_herald *herald = calloc(1, sizeof *herald);
    if (herald) {
        atomic_init(&herald->generation, 1);
        gpuhal_mutex_init(&herald->mutex);
        gpuhal_condition_init(&herald->condition);
        herald->fork_generation = gpuhal_os_fork_generation();
        herald->notifier = -1;
        herald->sources = (gpuhal_hotplug_sources){.kernel = -1, .announced = -1, .wake = -1};
    }
    return herald;
}

static void close_descriptor(intptr_t *descriptor)
{
    if (*descriptor >= 0) {
        gpuhal_os_descriptor_close(*descriptor);
        *descriptor = -1;
    }
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

void gpuhal_herald_destroy(gpuhal_herald *herald)
{
    if (herald) {
        gpuhal_watch_forget(herald);
        close_descriptor(&herald->notifier);
        free(herald->kept);
        gpuhal_condition_finish(&herald->condition);
        gpuhal_mutex_finish(&herald->mutex);
        free(herald);
    }
}

/* The child of a fork has none of its parent's threads, and must not take the parent's messages. */
void gpuhal_herald_lock(gpuhal_herald *herald)
{
    gpuhal_mutex_lock(&herald->mutex);
    if (herald->fork_generation == gpuhal_os_fork_generation()) {
        return;
    }
    herald->fork_generation = gpuhal_os_fork_generation();
    herald->listener = NULL;
    herald->calling = herald->running = herald->watches = herald->asked = false;
    herald->first = herald->count = 0;
    close_descriptor(&herald->notifier);
    gpuhal_watch_forget(herald);
}

/* ---- handing on */

/* One call of the listener that is still to be made. */
typedef struct delivery {
    gpuhal *gpu;
    gpuhal_change change;
} delivery;

/* On the thread that calls back. */
static void deliver(void *user, gpuhal_status status)
{
    (void)status;
    delivery *due = user;
    gpuhal_herald *herald = due->gpu->layers.herald;
    gpuhal_herald_lock(herald);
    gpuhal_change_fn *listener = herald->listener;
    void *of_listener = herald->user;
    bool wanted = listener && due->change.generation > herald->from;
    herald->calling = wanted;
    herald->caller = gpuhal_job_caller();
    gpuhal_mutex_unlock(&herald->mutex);
    if (wanted) {
        listener(of_listener, &due->change);
        gpuhal_herald_lock(herald);
        herald->calling = false;
        gpuhal_condition_signal_all(&herald->condition);
        gpuhal_mutex_unlock(&herald->mutex);
    }
    free(due);
}

/* With the mutex held. Without memory the listener misses this one; the generation tells. */
static void send(gpuhal *gpu, const gpuhal_change *change)
{
    delivery *due = malloc(sizeof *due);
    gpuhal_watcher *watcher = calloc(1, sizeof *watcher);
    if (!due || !watcher) {
        free(due);
        free(watcher);
        return;
    }
    *due = (delivery){.gpu = gpu, .change = *change};
    *watcher = (gpuhal_watcher){.done = deliver, .user = due, .gpu = gpu};
    atomic_fetch_add(&gpu->references, 1);
    gpuhal_async_ended(watcher);
}

/* With the mutex held. */
static void keep(gpuhal_herald *herald, const gpuhal_change *change)
{
    if (herald->count == GPUHAL_CHANGES_KEPT) {
        herald->first = (herald->first + 1) % GPUHAL_CHANGES_KEPT;
        herald->count--;
    }
    herald->kept[(herald->first + herald->count++) % GPUHAL_CHANGES_KEPT] = *change;
    if (herald->notifier >= 0) {
        gpuhal_os_notifier_set(herald->notifier);
    }
}

void gpuhal_change_tell(gpuhal_device *device, gpuhal_change_kind kind, const char *sentence)
{
    gpuhal_herald *herald = device->gpu->layers.herald;
    gpuhal_change change = {.size = sizeof change, .kind = kind, .device = device};
    snprintf(change.sentence, sizeof change.sentence, "%s", sentence);
    gpuhal_herald_lock(herald);
    change.generation = atomic_fetch_add(&herald->generation, 1) + 1;
    if (herald->kept) {
        keep(herald, &change);
    }
    if (herald->listener) {
        send(device->gpu, &change);
    }
    gpuhal_mutex_unlock(&herald->mutex);
}

void gpuhal_change_lost(gpuhal_device *device)
{
    char sentence[sizeof((gpuhal_change *)NULL)->sentence];
    snprintf(sentence, sizeof sentence, "%s", gpuhal_last_error()->sentence);
    gpuhal_queues_lost(device);
    gpuhal_staging_wake(device);
    gpuhal_change_tell(device, GPUHAL_CHANGE_LOST, sentence);
}

void gpuhal_change_facts(gpuhal_device *device, const char *sentence)
{
    gpuhal_change_tell(device, GPUHAL_CHANGE_CHANGED, sentence);
}

uint64_t gpuhal_generation(const gpuhal *gpu)
{
    return gpu ? atomic_load(&gpu->layers.herald->generation) : 0;
}
