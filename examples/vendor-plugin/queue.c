/* Queues and events for the example plugin: the smallest group of queues that gpuhal-check accepts. The plugin is then
 * built from two files:
 *
 *     cc -shared -fPIC -fvisibility=hidden -DEXAMPLE_QUEUES -pthread -I<folder of gpuhal/> plugin.c queue.c \
 *         -o gpuhal-example.so
 *
 * A queue has a ring of copies, and a thread that does them in order. With a driver, its stream takes the place of ring
 * and thread. An event is a position in a queue: it is done once the queue has done all copies before it. */
#include "queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING 256u

typedef struct copy {
    void *to;
    const void *from;
    size_t bytes;
} copy;

/* `mutex` protects the members below it. Each number counts copies since the queue was created. */
struct gpuhal_plugin_queue {
    pthread_t thread;
    pthread_cond_t changed;
    pthread_mutex_t mutex;
    copy ring[RING];
    uint64_t enqueued, flushed, done;
    bool ends;
};

/* The core makes no other call with an event while it records or destroys the event. So only the queue's members need
 * the mutex. */
struct gpuhal_plugin_event {
    gpuhal_plugin_queue *queue;
    uint64_t number; /* of the copies before the event */
};

static void *work(void *user)
{
    gpuhal_plugin_queue *queue = user;
    pthread_mutex_lock(&queue->mutex);
    while (!queue->ends || queue->done < queue->flushed) {
        if (queue->done == queue->flushed) {
            pthread_cond_wait(&queue->changed, &queue->mutex);
            continue;
        }
        const copy next = queue->ring[queue->done % RING];
        pthread_mutex_unlock(&queue->mutex);
        memcpy(next.to, next.from, next.bytes);
        pthread_mutex_lock(&queue->mutex);
        queue->done++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

/* Priorities are hints, and times need the slot elapsed, which this plugin does not offer. */
static gpuhal_status example_queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                          gpuhal_plugin_queue **out_queue)
{
    (void)device;
    if (desc->adopt) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    pthread_cond_init(&queue->changed, NULL);
    pthread_mutex_init(&queue->mutex, NULL);
    if (pthread_create(&queue->thread, NULL, work, queue) != 0) {
        pthread_cond_destroy(&queue->changed);
        pthread_mutex_destroy(&queue->mutex);
        free(queue);
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *out_queue = queue;
    return GPUHAL_OK;
}

static gpuhal_status example_queue_flush(gpuhal_plugin_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->flushed = queue->enqueued;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    return GPUHAL_OK;
}

static void example_queue_destroy(gpuhal_plugin_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->flushed = queue->enqueued;
    queue->ends = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
    pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue);
}

/* Returns NOT_READY if the ring is full. The core then calls again later. */
gpuhal_status example_enqueue(gpuhal_plugin_queue *queue, void *to, const void *from, size_t bytes)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    pthread_mutex_lock(&queue->mutex);
    if (queue->enqueued - queue->done < RING) {
        queue->ring[queue->enqueued++ % RING] = (copy){to, from, bytes};
        status = GPUHAL_OK;
    }
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

static gpuhal_status example_event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                          gpuhal_plugin_event **out_event)
{
    (void)device, (void)desc;
    *out_event = calloc(1, sizeof **out_event);
    return *out_event ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void example_event_destroy(gpuhal_plugin_event *event)
{
    free(event);
}

static gpuhal_status example_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    pthread_mutex_lock(&queue->mutex);
    event->queue = queue;
    event->number = queue->enqueued;
    pthread_mutex_unlock(&queue->mutex);
    return example_queue_flush(queue);
}

/* A driver whose work can fail returns its error here, after host->report(). */
static gpuhal_status example_event_query(gpuhal_plugin_event *event)
{
    pthread_mutex_lock(&event->queue->mutex);
    const bool is_done = event->queue->done >= event->number;
    pthread_mutex_unlock(&event->queue->mutex);
    return is_done ? GPUHAL_OK : GPUHAL_NOT_READY;
}

/* Optional; without it the core polls. */
static gpuhal_status example_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    struct timespec until;
    int error = 0;
    timespec_get(&until, TIME_UTC);
    const uint64_t ns = (uint64_t)until.tv_nsec + timeout_ns % 1000000000u;
    until.tv_sec += (time_t)(timeout_ns / 1000000000u + ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&event->queue->mutex);
    while (event->queue->done < event->number && error == 0) {
        error = pthread_cond_timedwait(&event->queue->changed, &event->queue->mutex, &until);
    }
    const bool is_done = event->queue->done >= event->number;
    pthread_mutex_unlock(&event->queue->mutex);
    return is_done ? GPUHAL_OK : GPUHAL_NOT_READY;
}

const gpuhal_queue_ops example_queues = {
    .size = sizeof example_queues,
    .version = GPUHAL_QUEUES_VERSION,
    .queue_create = example_queue_create,
    .queue_destroy = example_queue_destroy,
    .queue_flush = example_queue_flush,
    .event_create = example_event_create,
    .event_destroy = example_event_destroy,
    .event_record = example_event_record,
    .event_query = example_event_query,
    .event_block = example_event_block,
};
