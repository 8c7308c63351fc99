/* queue/completion_service.c: see completion_service.h. */
#include "queue/completion_service.h"

#include "base/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"

#include <stdlib.h>

struct gpuhal_service {
    gpuhal_mutex mutex; /* protects the members below */
    gpuhal_condition condition;
    gpuhal_queue *queues;
    uint64_t places; /* number of queues that were ever added */
    gpuhal_completion *callbacks, **callbacks_end;
    gpuhal_buffer *released, **released_end; /* buffers whose owners the service thread must call back */
    gpuhal_completion *listed, **listed_end;
    intptr_t notifier;    /* readable while `listed` is not empty; -1 if not requested yet */
    gpuhal_thread thread;
    bool has_thread, stop, thread_destroys;
};

gpuhal_service *gpuhal_service_create(void)
{
    gpuhal_service *service = calloc(1, sizeof *service);
    if (service) {
        gpuhal_mutex_init(&service->mutex);
        gpuhal_condition_init(&service->condition);
        service->callbacks_end = &service->callbacks;
        service->released_end = &service->released;
        service->listed_end = &service->listed;
        service->notifier = -1;
    }
    return service;
}

static void release(gpuhal_service *service)
{
    while (service->listed) {
        gpuhal_completion *completion = service->listed;
        service->listed = completion->next;
        free(completion);
    }
    if (service->notifier >= 0) {
        gpuhal_os_descriptor_close(service->notifier);
    }
    gpuhal_condition_finish(&service->condition);
    gpuhal_mutex_finish(&service->mutex);
    free(service);
}

/* The thread makes all pending callbacks before it ends. If a callback, or the service thread after a callback,
 * released the last reference to the gpuhal object, this function runs on the service thread itself. Then the service
 * thread frees the service when it ends. */
void gpuhal_service_destroy(gpuhal_service *service)
{
    if (!service) {
        return;
    }
    gpuhal_mutex_lock(&service->mutex);
    bool has_thread = service->has_thread;
    bool itself = has_thread && gpuhal_thread_is_this(&service->thread);
    service->stop = true;
    service->thread_destroys = itself;
    gpuhal_condition_signal_all(&service->condition);
    gpuhal_mutex_unlock(&service->mutex);
    if (itself) {
        return;
    }
    if (has_thread) {
        gpuhal_thread_join(&service->thread);
    }
    release(service);
}

void gpuhal_service_add(gpuhal_queue *queue)
{
    gpuhal_service *service = queue->device->gpu->layers.service;
    gpuhal_mutex_lock(&service->mutex);
    queue->place = ++service->places;
    queue->next = service->queues;
    service->queues = queue;
    gpuhal_mutex_unlock(&service->mutex);
}

void gpuhal_service_remove(gpuhal_queue *queue)
{
    gpuhal_service *service = queue->device->gpu->layers.service;
    gpuhal_mutex_lock(&service->mutex);
    gpuhal_queue **link = &service->queues;
    while (*link && *link != queue) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = queue->next;
    }
    gpuhal_mutex_unlock(&service->mutex);
}

/* `previous` may have left the list, so its place is compared. */
gpuhal_queue *gpuhal_service_next(gpuhal *gpu, const gpuhal_device *device, gpuhal_queue *previous)
{
    gpuhal_service *service = gpu->layers.service;
    gpuhal_mutex_lock(&service->mutex);
    gpuhal_queue *queue = service->queues;
    while (queue && ((previous && queue->place >= previous->place) || (device && queue->device != device))) {
        queue = queue->next;
    }
    queue = queue ? gpuhal_queue_retain(queue) : NULL;
    gpuhal_mutex_unlock(&service->mutex);
    if (previous) {
        gpuhal_queue_release(previous);
    }
    return queue;
}

gpuhal_queue **gpuhal_service_queues(gpuhal *gpu, const gpuhal_device *device, size_t *out_count)
{
    gpuhal_service *service = gpu->layers.service;
    size_t count = 0;
    *out_count = 0;
    gpuhal_mutex_lock(&service->mutex);
    for (gpuhal_queue *queue = service->queues; queue; queue = queue->next) {
        count++;
    }
    gpuhal_queue **list = calloc(count + 1, sizeof *list);
    for (gpuhal_queue *queue = service->queues; list && queue; queue = queue->next) {
        if (!device || queue->device == device) {
            list[(*out_count)++] = gpuhal_queue_retain(queue);
        }
    }
    gpuhal_mutex_unlock(&service->mutex);
    return list;
}

bool gpuhal_service_has_unfinished(const gpuhal_device *device)
{
    gpuhal_service *service = device->gpu->layers.service;
    bool any = false;
    gpuhal_mutex_lock(&service->mutex);
    for (gpuhal_queue *queue = service->queues; queue && !any; queue = queue->next) {
        any = queue->device == device && atomic_load(&queue->submitted) != atomic_load(&queue->done);
    }
    gpuhal_mutex_unlock(&service->mutex);
    return any;
}

/* Makes the next callback without holding a lock. Returns false if there is none. The caller holds the mutex. */
static bool call_next_unlocks(gpuhal *gpu, gpuhal_service *service)
{
    gpuhal_completion *completion = service->callbacks;
    gpuhal_buffer *released = completion ? NULL : service->released;
    if (completion) {
        service->callbacks = completion->next;
        service->callbacks_end = service->callbacks ? service->callbacks_end : &service->callbacks;
        gpuhal_mutex_unlock(&service->mutex);
        completion->done(completion->user, completion->status);
        free(completion);
        gpuhal_unreference(gpu);
        gpuhal_mutex_lock(&service->mutex);
    } else if (released) {
        service->released = released->next_released;
        service->released_end = service->released ? service->released_end : &service->released;
        gpuhal_mutex_unlock(&service->mutex);
        gpuhal_buffer_end(released);
        gpuhal_mutex_lock(&service->mutex);
    }
    return completion || released;
}

static void *serve(void *user)
{
    gpuhal *const gpu = user;
    gpuhal_service *service = gpu->layers.service;
    const uint32_t generation = gpuhal_os_fork_generation();
    gpuhal_os_thread_name("gpuhal-serve");
    gpuhal_mutex_lock(&service->mutex);
    /* If a callback forks, it also returns in the child, which must stop here. The gpuhal object may have been freed
     * after its last callback. */
    while (generation == gpuhal_os_fork_generation()) {
        if (call_next_unlocks(gpu, service)) {
            continue;
        }
        if (service->stop) {
            break;
        } else {
            gpuhal_condition_wait(&service->condition, &service->mutex);
        }
    }
    bool destroys = service->thread_destroys;
    gpuhal_mutex_unlock(&service->mutex);
    if (destroys) {
        gpuhal_thread_detach(&service->thread);
        release(service);
    }
    return NULL;
}

int gpuhal_service_serve(gpuhal *gpu)
{
    gpuhal_service *service = gpu->layers.service;
    gpuhal_mutex_lock(&service->mutex);
    const int error = service->has_thread ? 0 : gpuhal_thread_start(&service->thread, serve, gpu);
    service->has_thread = error == 0;
    gpuhal_mutex_unlock(&service->mutex);
    return error;
}

void gpuhal_service_released(gpuhal_buffer *buffer)
{
    gpuhal_service *service = buffer->device->gpu->layers.service;
    buffer->next_released = NULL;
    gpuhal_mutex_lock(&service->mutex);
    *service->released_end = buffer;
    service->released_end = &buffer->next_released;
    gpuhal_condition_signal_all(&service->condition);
    gpuhal_mutex_unlock(&service->mutex);
}

void gpuhal_service_ended(gpuhal_completion *completion)
{
    gpuhal_service *service = completion->gpu->layers.service;
    completion->next = NULL;
    gpuhal_mutex_lock(&service->mutex);
    if (completion->done) {
        *service->callbacks_end = completion;
        service->callbacks_end = &completion->next;
        gpuhal_condition_signal_all(&service->condition);
    } else {
        *service->listed_end = completion;
        service->listed_end = &completion->next;
        if (service->notifier >= 0) {
            gpuhal_os_notifier_set(service->notifier);
        }
    }
    gpuhal_mutex_unlock(&service->mutex);
}

bool gpuhal_service_call(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user)
{
    gpuhal_completion *completion = calloc(1, sizeof *completion);
    if (!completion) {
        return false;
    }
    *completion = (gpuhal_completion){.done = call, .user = user, .gpu = gpu};
    atomic_fetch_add(&gpu->references, 1);
    gpuhal_service_ended(completion);
    return true;
}

gpuhal_status gpuhal_completion_descriptor(gpuhal *gpu, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    if (!gpu || !out_descriptor) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_completion_descriptor: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    gpuhal_service *service = gpu->layers.service;
    gpuhal_mutex_lock(&service->mutex);
    int error = service->notifier < 0 ? gpuhal_os_notifier_create(&service->notifier) : 0;
    if (!error && service->listed) {
        gpuhal_os_notifier_set(service->notifier);
    }
    *out_descriptor = error ? -1 : gpuhal_os_descriptor_copy(service->notifier);
    gpuhal_mutex_unlock(&service->mutex);
    return *out_descriptor >= 0 ? GPUHAL_OK
                                : gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
}

gpuhal_status gpuhal_next_completion(gpuhal *gpu, void **out_user, gpuhal_status *out_status)
{
    if (!gpu || !out_user || !out_status) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_next_completion: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    *out_user = NULL;
    *out_status = GPUHAL_OK;
    gpuhal_service *service = gpu->layers.service;
    gpuhal_mutex_lock(&service->mutex);
    gpuhal_completion *completion = service->listed;
    if (completion) {
        service->listed = completion->next;
        service->listed_end = service->listed ? service->listed_end : &service->listed;
    }
    if (!service->listed && service->notifier >= 0) {
        gpuhal_os_notifier_clear(service->notifier);
    }
    gpuhal_mutex_unlock(&service->mutex);
    if (!completion) {
        return GPUHAL_NOT_READY;
    }
    *out_user = completion->user;
    *out_status = completion->status;
    free(completion);
    return GPUHAL_OK;
}
