/* queue/reset.c: making a queue that failed usable again.
 *
 * The queue's own thread does that, since it takes calls of the plugin that wait: whoever asked for it gets an answer in its time, and the
 * queue may turn usable later. */
#include "core/error.h"
#include "queue/queue.h"

/* How long a plugin is left alone that cannot take an event now. */
#define RETRY_NS UINT64_C(1000000)

/* Until the driver has ended what it still has of the old queue. One that takes no more events has ended as far as anybody can tell.
 * With the right to call. */
static gpuhal_status outwait(gpuhal_queue *queue)
{
    gpuhal_point *point = gpuhal_point_create(queue, false);
    if (!point) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = gpuhal_queue_hand_over_point(queue, point);
    while (status == GPUHAL_NOT_READY && gpuhal_queue_check(queue) == GPUHAL_OK) {
        gpuhal_os_sleep(RETRY_NS);
        status = gpuhal_queue_hand_over_point(queue, point);
    }
    if (status == GPUHAL_OK) {
        gpuhal_queue_lock(queue);
        gpuhal_queue_list_point(queue, point);
        gpuhal_mutex_unlock(&queue->mutex);
        gpuhal_point_block(point);
    }
    gpuhal_point_release(point);
    return gpuhal_queue_check(queue);
}

/* A new queue of the plugin in place of the one that failed. With the right to call. */
static gpuhal_status replace(gpuhal_queue *queue, gpuhal_plugin_queue **out_fresh)
{
    gpuhal_status status = outwait(queue);
    status = status ? status : gpuhal_queue_make_vendor(queue, out_fresh);
    if (!status) {
        const gpuhal_call call = gpuhal_call_blocking(queue->device, 0);
        queue->device->ops.queue_destroy(queue->vendor);
        gpuhal_call_end(call);
    }
    return status;
}

/* With the mutex held. */
static void forgive(gpuhal_queue *queue, gpuhal_watcher **told)
{
    gpuhal_queue_fail(queue, queue->cause, true, told);
    gpuhal_cause_release(queue->cause);
    queue->cause = NULL;
    gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_USABLE);
    queue->done = queue->marked = queue->submitted;
}

void gpuhal_queue_renew(gpuhal_queue *queue)
{
    gpuhal_plugin_queue *fresh = NULL;
    gpuhal_watcher *told = NULL;
    gpuhal_status status = gpuhal_queue_begin_late_call(queue);
    bool may_call = !status;
    if (may_call && queue->vendor) {
        gpuhal_mutex_unlock(&queue->mutex);
        status = replace(queue, &fresh);
        gpuhal_queue_lock(queue);
    }
    if (status) {
        queue->refusal = gpuhal_cause_create();
        gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_FAILED);
    } else {
        queue->vendor = fresh;
        forgive(queue, &told);
    }
    if (may_call) {
        gpuhal_queue_end_call(queue);
    }
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    gpuhal_queue_lock(queue);
}

/* With the mutex held. */
static gpuhal_status begin(gpuhal_queue *queue)
{
    if (queue->health == GPUHAL_QUEUE_RESETTING) {
        return GPUHAL_OK;
    }
    const int error = gpuhal_queue_need_thread(queue);
    if (error) {
        return gpuhal_error_no_thread(error);
    }
    gpuhal_cause_release(queue->refusal);
    queue->refusal = NULL;
    gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_RESETTING);
    gpuhal_condition_signal_all(&queue->condition);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_queue_reset(gpuhal_queue *queue, uint64_t timeout_ns)
{
    if (!queue) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_queue_reset: an argument is NULL");
    }
    uint64_t deadline = gpuhal_deadline(timeout_ns);
    gpuhal_watcher *told = NULL;
    gpuhal_status status = gpuhal_queue_check(queue);
    status = status ? status : gpuhal_queue_own_call(queue);
    if (status) {
        return status;
    }
    gpuhal_queue_lock(queue);
    if (queue->right == GPUHAL_QUEUE_NATIVE) {
        status = gpuhal_queue_section_error(queue);
    } else if (gpuhal_queue_has_failed(queue) && !queue->vendor && !gpuhal_queue_has_deferred(queue)) {
        forgive(queue, &told);
    } else if (gpuhal_queue_has_failed(queue)) {
        status = begin(queue);
    }
    while (!status && queue->health == GPUHAL_QUEUE_RESETTING) {
        status = gpuhal_queue_sleep(queue, GPUHAL_WAITS_RESET, deadline);
        status = status ? status : gpuhal_queue_check(queue);
    }
    if (!status && gpuhal_queue_has_failed(queue)) {
        status = gpuhal_cause_status(queue->refusal ? queue->refusal : queue->cause);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    return status;
}
