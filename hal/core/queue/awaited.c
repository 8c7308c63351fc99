/* queue/awaited.c: the list of other queues' events that the application made a queue wait for. Pools use this list:
 * after the wait, the queue may use memory that was released before the event.
 *
 * For up to GPUHAL_AWAITED queues, the newest timepoint is kept until another queue's timepoint replaces it or this
 * queue is finished. A reset drops waits, so later work might not wait for these timepoints. A user of a timepoint must
 * therefore make the queue wait for it again. */
#include "queue/queue.h"

/* Replaces the older timepoint of the same queue, or else the oldest entry. */
void gpuhal_queue_note_awaited(gpuhal_queue *queue, gpuhal_timepoint *timepoint)
{
    if (!timepoint->queue || timepoint->queue == queue) {
        return;
    }
    gpuhal_timepoint *dropped = gpuhal_timepoint_retain(timepoint);
    gpuhal_mutex_lock(&queue->mutex);
    uint32_t place = 0;
    while (place < GPUHAL_AWAITED && !(queue->awaited[place] && queue->awaited[place]->queue == timepoint->queue)) {
        place++;
    }
    const bool is_known = place < GPUHAL_AWAITED;
    place = is_known ? place : queue->awaited_next;
    queue->awaited_next = is_known ? queue->awaited_next : (place + 1) % GPUHAL_AWAITED;
    if (queue->life == GPUHAL_QUEUE_OPEN && !(is_known && queue->awaited[place]->ordinal > timepoint->ordinal)) {
        dropped = queue->awaited[place];
        queue->awaited[place] = timepoint;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_timepoint_release(dropped);
}

gpuhal_timepoint *gpuhal_queue_get_awaited(gpuhal_queue *queue, const gpuhal_queue *other)
{
    gpuhal_timepoint *found = NULL;
    gpuhal_mutex_lock(&queue->mutex);
    for (uint32_t i = 0; i < GPUHAL_AWAITED && !found; i++) {
        found = queue->awaited[i] && queue->awaited[i]->queue == other ? queue->awaited[i] : NULL;
    }
    found = found ? gpuhal_timepoint_retain(found) : NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    return found;
}

void gpuhal_queue_forget_awaited(gpuhal_queue *queue)
{
    for (uint32_t i = 0; i < GPUHAL_AWAITED; i++) {
        gpuhal_mutex_lock(&queue->mutex);
        gpuhal_timepoint *dropped = queue->awaited[i];
        queue->awaited[i] = NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        gpuhal_timepoint_release(dropped);
    }
}
