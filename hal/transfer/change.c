/* transfer/change.c: see change.h. */
#include "transfer/change.h"

#include "core/error.h"
#include "transfer/async.h"
#include "transfer/queue.h"
#include "transfer/staging.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 256u

static _Thread_local char thread_mark; /* its address names the thread */

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

void gpuhal_herald_destroy(gpuhal_herald *herald)
{
    if (herald) {
        gpuhal_watch_end(herald);
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

/* With the mutex held. The listener itself may want to end it: then there is nothing to wait for. */
static void silence(gpuhal_herald *herald)
{
    herald->listener = NULL;
    while (herald->calling && herald->caller != &thread_mark) {
        gpuhal_condition_wait(&herald->condition, &herald->mutex);
    }
}

void gpuhal_herald_end(gpuhal *gpu)
{
    gpuhal_herald *herald = gpu->herald;
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
    gpuhal_herald *herald = due->gpu->herald;
    gpuhal_herald_lock(herald);
    gpuhal_change_fn *listener = herald->listener;
    void *of_listener = herald->user;
    bool wanted = listener && due->change.generation > herald->from;
    herald->calling = wanted;
    herald->caller = &thread_mark;
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
    if (herald->count == KEPT) {
        herald->first = (herald->first + 1) % KEPT;
        herald->count--;
    }
    herald->kept[(herald->first + herald->count++) % KEPT] = *change;
    if (herald->notifier >= 0) {
        gpuhal_os_notifier_set(herald->notifier);
    }
}

void gpuhal_change_tell(gpuhal_device *device, gpuhal_change_kind kind, const char *sentence)
{
    gpuhal_herald *herald = device->gpu->herald;
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

/* ---- listening */

uint64_t gpuhal_generation(const gpuhal *gpu)
{
    return gpu ? atomic_load(&gpu->herald->generation) : 0;
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
    gpuhal_herald *herald = gpu->herald;
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
    gpuhal_herald *herald = gpu->herald;
    gpuhal_herald_lock(herald);
    herald->kept = herald->kept ? herald->kept : calloc(KEPT, sizeof *herald->kept);
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
    gpuhal_herald *herald = gpu->herald;
    gpuhal_change change = {0};
    gpuhal_herald_lock(herald);
    bool has = herald->count > 0;
    if (has) {
        change = herald->kept[herald->first];
        herald->first = (herald->first + 1) % KEPT;
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
