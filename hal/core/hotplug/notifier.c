/* hotplug/notifier.c: delivers device events to listeners; see change.h. */
#include "hotplug/change.h"

#include "base/job.h"
#include "queue/completion_service.h"
#include "queue/queue.h"
#include "transfer/staging.h"

#include <stdio.h>
#include <stdlib.h>

gpuhal_notifier *gpuhal_notifier_create(void)
{
    gpuhal_notifier *notifier = calloc(1, sizeof *notifier);
    if (notifier) {
        atomic_init(&notifier->generation, 1);
        gpuhal_mutex_init(&notifier->mutex);
        gpuhal_condition_init(&notifier->condition);
        notifier->descriptor = -1;
        notifier->heard.sources = (gpuhal_hotplug_sources){.kernel = -1, .announced = -1};
    }
    return notifier;
}

static void close_descriptor(intptr_t *descriptor)
{
    if (*descriptor >= 0) {
        gpuhal_os_descriptor_close(*descriptor);
        *descriptor = -1;
    }
}

void gpuhal_watch_forget(gpuhal_notifier *notifier)
{
    gpuhal_hotplug_sources *sources = &notifier->heard.sources;
    gpuhal_host_unwatch(&notifier->announcements);
    gpuhal_os_file_watch_destroy(sources->files);
    sources->files = NULL;
    close_descriptor(&sources->kernel);
    close_descriptor(&sources->announced);
}

void gpuhal_notifier_destroy(gpuhal_notifier *notifier)
{
    if (notifier) {
        gpuhal_watch_forget(notifier);
        close_descriptor(&notifier->descriptor);
        free(notifier->kept);
        gpuhal_condition_finish(&notifier->condition);
        gpuhal_mutex_finish(&notifier->mutex);
        free(notifier);
    }
}

/* ---- delivery */

/* A pending call of the listener. */
typedef struct delivery {
    gpuhal *gpu;
    gpuhal_change change;
} delivery;

/* Runs on the callback thread. */
static void deliver(void *user, gpuhal_status status)
{
    (void)status;
    delivery *due = user;
    gpuhal_notifier *notifier = due->gpu->layers.notifier;
    gpuhal_mutex_lock(&notifier->mutex);
    gpuhal_change_fn *listener = notifier->listener;
    void *of_listener = notifier->user;
    bool notify_requested = listener && due->change.generation > notifier->from;
    notifier->calling = notify_requested;
    notifier->caller = gpuhal_job_caller();
    gpuhal_mutex_unlock(&notifier->mutex);
    if (notify_requested) {
        listener(of_listener, &due->change);
        gpuhal_mutex_lock(&notifier->mutex);
        notifier->calling = false;
        gpuhal_condition_signal_all(&notifier->condition);
        gpuhal_mutex_unlock(&notifier->mutex);
    }
    free(due);
}

/* Call with the mutex held. If host memory is short, the listener misses this event, but can detect the gap in the
 * generations. */
static void send(gpuhal *gpu, const gpuhal_change *change)
{
    delivery *due = malloc(sizeof *due);
    if (due) {
        *due = (delivery){.gpu = gpu, .change = *change};
        if (!gpuhal_service_call(gpu, deliver, due)) {
            free(due);
        }
    }
}

/* Call with the mutex held. */
static void keep(gpuhal_notifier *notifier, const gpuhal_change *change)
{
    if (notifier->count == GPUHAL_CHANGES_KEPT) {
        notifier->first = (notifier->first + 1) % GPUHAL_CHANGES_KEPT;
        notifier->count--;
    }
    notifier->kept[(notifier->first + notifier->count++) % GPUHAL_CHANGES_KEPT] = *change;
    if (notifier->descriptor >= 0) {
        gpuhal_os_notifier_set(notifier->descriptor);
    }
}

void gpuhal_change_notify(gpuhal_device *device, gpuhal_change_kind kind, const char *sentence)
{
    gpuhal_notifier *notifier = device->gpu->layers.notifier;
    gpuhal_change change = {.size = sizeof change, .kind = kind, .device = device};
    snprintf(change.sentence, sizeof change.sentence, "%s", sentence);
    gpuhal_mutex_lock(&notifier->mutex);
    change.generation = atomic_fetch_add(&notifier->generation, 1) + 1;
    if (notifier->kept) {
        keep(notifier, &change);
    }
    if (notifier->listener) {
        send(device->gpu, &change);
    }
    gpuhal_mutex_unlock(&notifier->mutex);
}

void gpuhal_change_lost(gpuhal_device *device)
{
    char sentence[sizeof((gpuhal_change *)NULL)->sentence];
    snprintf(sentence, sizeof sentence, "%s", gpuhal_last_error()->sentence);
    gpuhal_queues_lost(device);
    gpuhal_staging_wake(device);
    gpuhal_change_notify(device, GPUHAL_CHANGE_LOST, sentence);
}

void gpuhal_change_facts(gpuhal_device *device, const char *sentence)
{
    gpuhal_change_notify(device, GPUHAL_CHANGE_CHANGED, sentence);
}

uint64_t gpuhal_generation(const gpuhal *gpu)
{
    return gpu ? atomic_load(&gpu->layers.notifier->generation) : 0;
}
