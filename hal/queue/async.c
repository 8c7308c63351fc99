/* queue/async.c: see async.h. */
#include "queue/async.h"

#include "core/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"

#include <stdlib.h>

struct gpuhal_async {
    gpuhal_mutex mutex; /* protects what follows */
    uint32_t generation; /* fork generation that threads and workers are of */
    gpuhal_condition condition;
    gpuhal_queue *queues;
    uint64_t open_queues; /* not given up by their users */
    uint64_t workers;
    bool closing;         /* the object's user is gone */
    gpuhal_watcher *callbacks, **callbacks_end;
    gpuhal_buffer *released, **released_end; /* their owners are to be called back */
    gpuhal_watcher *listed, **listed_end;
    intptr_t notifier;    /* readable while `listed` is not empty; -1: nobody asked for it */
    gpuhal_thread thread;
    bool has_thread, stop, thread_destroys;
};

/* The child of a fork shares the parent's descriptor, has none of its threads, and makes none of its callbacks. */
static void lock(gpuhal_async *async)
{
    gpuhal_mutex_lock(&async->mutex);
    if (async->generation == gpuhal_os_fork_generation()) {
        return;
    }
    async->generation = gpuhal_os_fork_generation();
    async->workers = 0;
    async->has_thread = false;
    async->callbacks = async->listed = NULL;
    async->callbacks_end = &async->callbacks;
    async->released = NULL;
    async->released_end = &async->released;
    async->listed_end = &async->listed;
    if (async->notifier >= 0) {
        gpuhal_os_descriptor_close(async->notifier);
        async->notifier = -1;
    }
}

gpuhal_async *gpuhal_async_create(void)
{
    gpuhal_async *async = calloc(1, sizeof *async);
    if (async) {
        async->generation = gpuhal_os_fork_generation();
        gpuhal_mutex_init(&async->mutex);
        gpuhal_condition_init(&async->condition);
        async->callbacks_end = &async->callbacks;
        async->released_end = &async->released;
        async->listed_end = &async->listed;
        async->notifier = -1;
    }
    return async;
}

static void release(gpuhal_async *async)
{
    while (async->listed) {
        gpuhal_watcher *watcher = async->listed;
        async->listed = watcher->next;
        free(watcher);
    }
    if (async->notifier >= 0) {
        gpuhal_os_descriptor_close(async->notifier);
    }
    gpuhal_condition_finish(&async->condition);
    gpuhal_mutex_finish(&async->mutex);
    free(async);
}

/* All callbacks have been made before the thread ends. When a callback let go of the last thing that kept the object, this is that thread:
 * it frees the rest itself. */
void gpuhal_async_destroy(gpuhal_async *async)
{
    if (!async) {
        return;
    }
    lock(async);
    bool has_thread = async->has_thread;
    bool itself = has_thread && gpuhal_thread_is_this(&async->thread);
    async->stop = true;
    async->thread_destroys = itself;
    gpuhal_condition_signal_all(&async->condition);
    gpuhal_mutex_unlock(&async->mutex);
    if (itself) {
        return;
    }
    if (has_thread) {
        gpuhal_thread_join(&async->thread);
    }
    release(async);
}

void gpuhal_async_add(gpuhal_queue *queue)
{
    gpuhal_async *async = queue->device->gpu->layers.async;
    lock(async);
    queue->next = async->queues;
    async->queues = queue;
    gpuhal_mutex_unlock(&async->mutex);
}

void gpuhal_async_remove(gpuhal_queue *queue)
{
    gpuhal_async *async = queue->device->gpu->layers.async;
    lock(async);
    gpuhal_queue **link = &async->queues;
    while (*link && *link != queue) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = queue->next;
    }
    gpuhal_mutex_unlock(&async->mutex);
}

gpuhal_queue **gpuhal_async_queues(gpuhal *gpu, const gpuhal_device *device, size_t *out_count)
{
    gpuhal_async *async = gpu->layers.async;
    size_t count = 0;
    *out_count = 0;
    lock(async);
    for (gpuhal_queue *queue = async->queues; queue; queue = queue->next) {
        count++;
    }
    gpuhal_queue **list = calloc(count + 1, sizeof *list);
    for (gpuhal_queue *queue = async->queues; list && queue; queue = queue->next) {
        if (!device || queue->device == device) {
            list[(*out_count)++] = gpuhal_queue_retain(queue);
        }
    }
    gpuhal_mutex_unlock(&async->mutex);
    return list;
}

bool gpuhal_async_has_unfinished(const gpuhal_device *device)
{
    gpuhal_async *async = device->gpu->layers.async;
    bool any = false;
    lock(async);
    for (gpuhal_queue *queue = async->queues; queue && !any; queue = queue->next) {
        any = queue->device == device && atomic_load(&queue->submitted) != atomic_load(&queue->done);
    }
    gpuhal_mutex_unlock(&async->mutex);
    return any;
}

/* One reference to the object stands for all workers. */
void gpuhal_async_worker_begins(gpuhal *gpu)
{
    gpuhal_async *async = gpu->layers.async;
    lock(async);
    if (async->workers++ == 0) {
        atomic_fetch_add(&gpu->references, 1);
    }
    gpuhal_mutex_unlock(&async->mutex);
}

/* Lets go of a reference that is not the last one. */
static bool release_early(gpuhal *gpu)
{
    uint64_t references = atomic_load(&gpu->references);
    while (references > 1) {
        if (atomic_compare_exchange_weak(&gpu->references, &references, references - 1)) {
            return true;
        }
    }
    return false;
}

static _Thread_local const gpuhal *works_for;

void gpuhal_async_worker_is_this(const gpuhal *gpu)
{
    works_for = gpu;
}

/* The reference goes with the mutex held: whoever settles finds no worker any more and has the last one. */
void gpuhal_async_worker_ends(gpuhal *gpu)
{
    gpuhal_async *async = gpu->layers.async;
    lock(async);
    bool last = --async->workers == 0 && !release_early(gpu);
    gpuhal_condition_signal_all(&async->condition);
    gpuhal_mutex_unlock(&async->mutex);
    if (last) {
        gpuhal_unreference(gpu);
    }
}

void gpuhal_async_settle(gpuhal *gpu, bool closing)
{
    gpuhal_async *async = gpu->layers.async;
    uint64_t deadline = gpuhal_deadline(gpu->settings.hang_ns);
    lock(async);
    async->closing = async->closing || closing;
    uint64_t own = works_for == gpu ? 1 : 0; /* a function that a queue calls */
    while (async->closing && async->open_queues == 0 && async->workers > own &&
           gpuhal_os_monotonic_ns() < deadline) {
        gpuhal_condition_wait_until(&async->condition, &async->mutex, deadline);
    }
    gpuhal_mutex_unlock(&async->mutex);
}

void gpuhal_async_user(gpuhal *gpu, int change)
{
    gpuhal_async *async = gpu->layers.async;
    lock(async);
    async->open_queues += (uint64_t)(int64_t)change;
    gpuhal_mutex_unlock(&async->mutex);
}

/* Makes the next call back, with no lock held. With the mutex held, which is let go meanwhile; false when there is none. */
static bool call_next(gpuhal *gpu, gpuhal_async *async)
{
    gpuhal_watcher *watcher = async->callbacks;
    gpuhal_buffer *released = watcher ? NULL : async->released;
    if (watcher) {
        async->callbacks = watcher->next;
        async->callbacks_end = async->callbacks ? async->callbacks_end : &async->callbacks;
        gpuhal_mutex_unlock(&async->mutex);
        watcher->done(watcher->user, watcher->status);
        free(watcher);
        gpuhal_unreference(gpu);
        lock(async);
    } else if (released) {
        async->released = released->next_released;
        async->released_end = async->released ? async->released_end : &async->released;
        gpuhal_mutex_unlock(&async->mutex);
        gpuhal_buffer_end(released);
        lock(async);
    }
    return watcher || released;
}

/* Calls back, one after the other. */
static void *call_back(void *user)
{
    gpuhal *const gpu = user;
    gpuhal_async *async = gpu->layers.async;
    lock(async);
    for (;;) {
        if (call_next(gpu, async)) {
            continue;
        }
        if (async->stop) {
            break;
        } else {
            gpuhal_condition_wait(&async->condition, &async->mutex);
        }
    }
    bool destroys = async->thread_destroys;
    gpuhal_mutex_unlock(&async->mutex);
    if (destroys) {
        gpuhal_thread_detach(&async->thread);
        release(async);
    }
    return NULL;
}

int gpuhal_async_serve(gpuhal *gpu)
{
    gpuhal_async *async = gpu->layers.async;
    lock(async);
    const int error = async->has_thread ? 0 : gpuhal_thread_start(&async->thread, call_back, gpu);
    async->has_thread = error == 0;
    gpuhal_mutex_unlock(&async->mutex);
    return error;
}

void gpuhal_async_released(gpuhal_buffer *buffer)
{
    gpuhal_async *async = buffer->device->gpu->layers.async;
    buffer->next_released = NULL;
    lock(async);
    *async->released_end = buffer;
    async->released_end = &buffer->next_released;
    gpuhal_condition_signal_all(&async->condition);
    gpuhal_mutex_unlock(&async->mutex);
}

void gpuhal_async_ended(gpuhal_watcher *watcher)
{
    gpuhal_async *async = watcher->gpu->layers.async;
    watcher->next = NULL;
    lock(async);
    if (watcher->done) {
        *async->callbacks_end = watcher;
        async->callbacks_end = &watcher->next;
        gpuhal_condition_signal_all(&async->condition);
    } else {
        *async->listed_end = watcher;
        async->listed_end = &watcher->next;
        if (async->notifier >= 0) {
            gpuhal_os_notifier_set(async->notifier);
        }
    }
    gpuhal_mutex_unlock(&async->mutex);
}

gpuhal_status gpuhal_done_descriptor(gpuhal *gpu, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    if (!gpu || !out_descriptor) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_done_descriptor: an argument is NULL");
    }
    gpuhal_async *async = gpu->layers.async;
    lock(async);
    int error = async->notifier < 0 ? gpuhal_os_notifier_create(&async->notifier) : 0;
    if (!error && async->listed) {
        gpuhal_os_notifier_set(async->notifier);
    }
    *out_descriptor = error ? -1 : gpuhal_os_descriptor_copy(async->notifier);
    gpuhal_mutex_unlock(&async->mutex);
    return *out_descriptor >= 0 ? GPUHAL_OK
                                : gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
}

gpuhal_status gpuhal_take_done(gpuhal *gpu, void **out_user, gpuhal_status *out_status)
{
    if (!gpu || !out_user || !out_status) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_take_done: an argument is NULL");
    }
    *out_user = NULL;
    *out_status = GPUHAL_OK;
    gpuhal_async *async = gpu->layers.async;
    lock(async);
    gpuhal_watcher *watcher = async->listed;
    if (watcher) {
        async->listed = watcher->next;
        async->listed_end = async->listed ? async->listed_end : &async->listed;
    }
    if (!async->listed && async->notifier >= 0) {
        gpuhal_os_notifier_clear(async->notifier);
    }
    gpuhal_mutex_unlock(&async->mutex);
    if (!watcher) {
        return GPUHAL_NOT_READY;
    }
    *out_user = watcher->user;
    *out_status = watcher->status;
    free(watcher);
    return GPUHAL_OK;
}
