/* queue/reclaim.c: retiring the completed work of all queues when memory of a device is short, and counting what queued
 * work keeps. */
#include "memory/buffer.h"
#include "queue/completion_service.h"
#include "queue/queue.h"

#include <stdlib.h>

/* A reference that a queue has to a buffer of the device in question. */
typedef struct hold {
    const gpuhal_buffer *buffer;
    uint64_t bytes;
    uint32_t references; /* of all owners to the buffer */
} hold;

typedef struct holds {
    const gpuhal_device *device;
    hold *list; /* NULL without memory: then nothing is known */
    size_t count, space;
} holds;

/* With the mutex of the queue held that has the reference. */
static void add_hold(holds *all, const gpuhal_buffer *buffer)
{
    if (!buffer || buffer->device != all->device || buffer->charged == 0) {
        return;
    }
    if (all->count == all->space) {
        size_t space = all->space ? all->space * 2 : 64;
        hold *grown = realloc(all->list, space * sizeof *grown);
        if (!grown) {
            return;
        }
        all->list = grown;
        all->space = space;
    }
    all->list[all->count++] = (hold){buffer, buffer->charged, atomic_load(&buffer->references)};
}

static void add_holds_of(holds *all, gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    for (size_t i = 0; i < queue->submission_count; i++) {
        const gpuhal_submission *submission =
            &queue->submissions[(queue->first_submission + i) % queue->submission_space];
        add_hold(all, submission->to);
        add_hold(all, submission->from);
        add_hold(all, submission->kept);
    }
    for (const gpuhal_deferred *deferred = queue->deferred; deferred; deferred = deferred->next) {
        add_hold(all, deferred->op.to);
        add_hold(all, deferred->op.from);
        add_hold(all, deferred->op.kept);
    }
    gpuhal_mutex_unlock(&queue->mutex);
}

static int by_buffer(const void *one, const void *other)
{
    uintptr_t a = (uintptr_t)((const hold *)one)->buffer, b = (uintptr_t)((const hold *)other)->buffer;
    return (a > b) - (a < b);
}

/* Bytes of buffers to which only queues have references. */
static uint64_t bytes_of_queues_alone(holds *all)
{
    uint64_t bytes = 0;
    if (all->count > 0) {
        qsort(all->list, all->count, sizeof *all->list, by_buffer);
    }
    for (size_t i = 0, next; i < all->count; i = next) {
        for (next = i; next < all->count && all->list[next].buffer == all->list[i].buffer;) {
            next++;
        }
        bytes += next - i >= all->list[i].references ? all->list[i].bytes : 0;
    }
    return bytes;
}

void gpuhal_queue_look_through(gpuhal_queue *queue)
{
    for (bool more = true; more;) {
        gpuhal_queue_lock(queue);
        gpuhal_timepoint *oldest = queue->timepoints ? gpuhal_timepoint_retain(queue->timepoints) : NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        more = oldest && gpuhal_timepoint_poll(oldest) == GPUHAL_OK;
        gpuhal_timepoint_release(oldest);
    }
}

/* Completed work that no thread waited for keeps released buffers, also work of other devices. Waits for threads that
 * are retiring, as long as a driver may take. */
void gpuhal_queues_reclaim(gpuhal_device *device, uint64_t *out_pending)
{
    holds all = {.device = device};
    size_t count = 0;
    uint64_t deadline = gpuhal_deadline(device->gpu->settings.hang_ns);
    gpuhal_queue **queues = gpuhal_service_queues(device->gpu, NULL, &count);
    for (size_t i = 0; i < count; i++) {
        gpuhal_queue_look_through(queues[i]);
        (void)gpuhal_queue_wait_retired(queues[i], UINT64_MAX, deadline);
        add_holds_of(&all, queues[i]);
        gpuhal_queue_release(queues[i]);
    }
    *out_pending = bytes_of_queues_alone(&all);
    free(queues);
    free(all.list);
}
