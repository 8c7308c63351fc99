/* queue/hang.c: what becomes of the queues of a device that is lost, and of one whose driver hangs (queue/watchdog.c). Nothing here
 * calls a plugin but gpuhal_queues_go_on(). */
#include "core/error.h"
#include "memory/buffer.h"
#include "queue/async.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>

/* A piece that the queue's thread does may be in the driver of any device that it touches. With the mutex held. */
static bool works_on(const gpuhal_queue *queue, const gpuhal_device *device)
{
    const gpuhal_op *op = queue->worker == GPUHAL_QUEUE_RUNNING && queue->held ? &queue->held->op : NULL;
    return op && ((op->to && op->to->device == device) || (op->from && op->from->device == device));
}

/* A thread that may be stuck keeps what it works on; nothing below it may go, so the object stays for good. */
static void give_up(gpuhal_queue *queue, const gpuhal_device *device, gpuhal_cause *cause)
{
    gpuhal_watcher *told = NULL;
    gpuhal_queue_lock(queue);
    bool concerned = queue->device == device || works_on(queue, device);
    bool stuck = concerned && queue->worker != GPUHAL_QUEUE_UNATTENDED && !queue->uncounted;
    queue->uncounted = queue->uncounted || stuck;
    if (concerned) {
        gpuhal_queue_fail(queue, cause, true, &told);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    if (stuck) {
        atomic_fetch_add(&queue->device->gpu->references, 1);
        gpuhal_async_worker_ends(queue->device->gpu);
    }
}

void gpuhal_queues_lost(gpuhal_device *device)
{
    bool hung = atomic_load(&device->lost) == GPUHAL_LOST_HUNG;
    gpuhal_cause *cause = gpuhal_cause_create();
    size_t count = 0;
    gpuhal_queue **queues = gpuhal_async_queues(device->gpu, hung ? NULL : device, &count);
    for (size_t i = 0; i < count; i++) {
        if (hung) {
            give_up(queues[i], device, cause);
        } else {
            gpuhal_queue_break(queues[i], cause, true);
        }
        gpuhal_queue_release(queues[i]);
    }
    free(queues);
    gpuhal_cause_release(cause);
}

/* Whether the last submitted point of a queue shows that work goes on. Where there is none behind all of it, the
 * queue's thread records one as soon as it has the right to call. */
static bool goes_on(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    bool unfinished = queue->vendor && queue->submitted != queue->done;
    gpuhal_point *last = unfinished ? queue->points : NULL;
    while (last && last->next) {
        last = last->next;
    }
    if (unfinished && (!last || queue->marked != queue->submitted)) {
        queue->probed = queue->probed || gpuhal_queue_need_thread(queue) == 0;
        gpuhal_condition_signal_all(&queue->condition);
    }
    last = last ? gpuhal_point_retain(last) : NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    bool any = last && gpuhal_plugin_event_query(queue->device, last->event) == GPUHAL_NOT_READY;
    gpuhal_point_release(last);
    return any;
}

bool gpuhal_queues_go_on(gpuhal_device *device)
{
    size_t count = 0;
    bool any = false;
    gpuhal_queue **queues = gpuhal_async_queues(device->gpu, device, &count);
    for (size_t i = 0; i < count; i++) {
        any = goes_on(queues[i]) || any;
        gpuhal_queue_release(queues[i]);
    }
    free(queues);
    return any;
}
