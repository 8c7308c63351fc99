/* queue/hang.c: handles the queues of lost devices and of devices whose driver hangs (queue/watchdog.c). */
#include "memory/buffer.h"
#include "queue/completion_service.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

/* Returns whether the worker may be inside this device's driver, because its current work uses the device. The caller
 * holds the mutex. */
static bool works_on(const gpuhal_queue *queue, const gpuhal_device *device)
{
    const gpuhal_op *op = queue->worker == GPUHAL_QUEUE_RUNNING && queue->deferred ? &queue->deferred->op : NULL;
    return op && ((op->to && op->to->device == device) || (op->from && op->from->device == device));
}

/* Abandons a worker that may be stuck. The worker keeps its work and may use any object later, so the gpuhal object is
 * never freed. */
static void give_up(gpuhal_queue *queue, const gpuhal_device *device, gpuhal_failure *failure)
{
    gpuhal_completion *completions = NULL;
    gpuhal_queue_lock(queue);
    bool concerned = queue->device == device || works_on(queue, device);
    bool stuck = concerned && queue->worker != GPUHAL_QUEUE_UNATTENDED && !queue->uncounted;
    queue->uncounted = queue->uncounted || stuck;
    if (concerned) {
        gpuhal_queue_fail(queue, failure, true, &completions);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_completions_notify(completions);
    if (stuck) {
        atomic_fetch_add(&queue->device->gpu->references, 1);
        gpuhal_worker_ends(queue->device->gpu);
    }
}

void gpuhal_queues_lost(gpuhal_device *device)
{
    bool hung = atomic_load(&device->lost) == GPUHAL_LOST_HUNG;
    gpuhal_failure *failure = gpuhal_failure_create();
    gpuhal_device *whose = hung ? NULL : device;
    gpuhal_queue *queue = NULL;
    while ((queue = gpuhal_service_next(device->gpu, whose, queue)) != NULL) {
        if (hung) {
            give_up(queue, device, failure);
        } else {
            gpuhal_queue_break(queue, failure, true);
        }
    }
    gpuhal_failure_release(failure);
}

/* Returns whether the newest submitted timepoint of a queue shows that work is still executing. If there is no
 * timepoint after all submissions, makes the worker record one as soon as it has the right to call. */
static bool goes_on(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    bool unfinished = queue->vendor && queue->submitted != queue->done;
    gpuhal_timepoint *last = unfinished ? queue->timepoints : NULL;
    while (last && last->next) {
        last = last->next;
    }
    if (unfinished && (!last || queue->recorded != queue->submitted)) {
        queue->probed = queue->probed || gpuhal_queue_need_thread(queue) == 0;
        gpuhal_condition_signal_all(&queue->condition);
    }
    last = last ? gpuhal_timepoint_retain(last) : NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    bool any = false;
    if (last && gpuhal_timepoint_use_event(last)) {
        any = gpuhal_plugin_event_query(queue->device, last->event) == GPUHAL_NOT_READY;
        gpuhal_timepoint_leave_event(last);
    }
    gpuhal_timepoint_release(last);
    return any;
}

bool gpuhal_queues_go_on(gpuhal_device *device)
{
    bool any = false;
    gpuhal_queue *queue = NULL;
    while ((queue = gpuhal_service_next(device->gpu, device, queue)) != NULL) {
        any = goes_on(queue) || any;
    }
    return any;
}
