/* queue/reset.c: makes a failed queue usable again.
 *
 * The worker resets the queue, because a reset needs blocking plugin calls and must wait for other queues' work on
 * memory that this queue has taken over. So the caller returns in time even if the queue becomes usable only later. If
 * there is no plugin queue, no deferred work and no work to wait for, the caller's thread resets the queue. */
#include "base/error.h"
#include "queue/queue.h"

/* Pause before retrying to record an event that the plugin cannot record now, for example while the application
 * captures the vendor's queue. */
#define RETRY_NS UINT64_C(1000000)

/* Records an event after all work of the old plugin queue, and waits until it is done. Sets *out_refused if the plugin
 * does not record the event. Fails if there is no event, because a later reset may get one. */
static gpuhal_status record_and_wait_unlocks(gpuhal_queue *queue, bool *out_refused)
{
    gpuhal_plugin_event *event = NULL;
    gpuhal_timepoint *timepoint = gpuhal_timepoint_create(queue, false);
    gpuhal_status made = timepoint ? gpuhal_queue_begin_late_call(queue) : gpuhal_error_host_memory();
    gpuhal_status status = made;
    if (!made) {
        gpuhal_mutex_unlock(&queue->mutex);
        made = gpuhal_queue_make_event(queue, false, &event);
        status = made ? made : gpuhal_queue_record_event_in(queue, timepoint, event);
        gpuhal_queue_lock(queue);
        if (!status) {
            gpuhal_queue_append_timepoint(queue, timepoint);
        }
        gpuhal_queue_end_call(queue);
    }
    const bool later = !made && (status == GPUHAL_NOT_READY || status == GPUHAL_ERROR_BUSY);
    *out_refused = status && !later;
    gpuhal_mutex_unlock(&queue->mutex);
    if (!status) {
        gpuhal_timepoint_block(timepoint);
    } else if (later) {
        gpuhal_os_sleep(RETRY_NS);
    }
    gpuhal_timepoint_release(timepoint);
    gpuhal_queue_lock(queue);
    return made ? made : gpuhal_queue_check(queue);
}

/* Waits until the old plugin queue's work has ended, or no event keeps the old plugin queue, and replaces the old
 * plugin queue. An event can also end because an earlier one failed; then work after the earlier one may not have
 * ended. */
static gpuhal_status renew_unlocks(gpuhal_queue *queue)
{
    const uint64_t number = queue->submitted;
    bool refused = false;
    gpuhal_status status = GPUHAL_OK;
    do {
        status = record_and_wait_unlocks(queue, &refused);
    } while (!status && queue->done < number && !(refused && gpuhal_queue_await_events_unlocks(queue)));
    return status ? status : gpuhal_queue_replace_vendor_unlocks(queue, true);
}

/* All work of the queue has ended. So the objects that the work kept alive can be released. The caller holds the
 * mutex. */
static void clear_failure(gpuhal_queue *queue, gpuhal_completion **completions)
{
    gpuhal_queue_fail(queue, queue->failure, true, completions);
    gpuhal_failure_release(queue->failure);
    queue->failure = NULL;
    atomic_store(&queue->in_flight, false);
    gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_USABLE);
    queue->done = queue->recorded = queue->submitted;
    gpuhal_queue_note_busy(queue);
}

/* First ends this queue's work, because other queues may wait for it. Then waits for the work that this queue
 * follows. */
static gpuhal_status settle_unlocks(gpuhal_queue *queue)
{
    gpuhal_status status = queue->vendor ? renew_unlocks(queue) : GPUHAL_OK;
    if (!status) {
        atomic_store(&queue->in_flight, false);
        gpuhal_mutex_unlock(&queue->mutex);
        gpuhal_queue_await_followed(queue);
        gpuhal_queue_lock(queue);
    }
    return status ? status : gpuhal_queue_check(queue);
}

void gpuhal_queue_run_reset_unlocks(gpuhal_queue *queue)
{
    gpuhal_completion *completions = NULL;
    gpuhal_status status = settle_unlocks(queue);
    status = status ? status : gpuhal_queue_begin_late_call(queue);
    if (queue->health != GPUHAL_QUEUE_RESETTING) {
        /* another thread has reset the queue in the meantime; possible only without a plugin queue */
    } else if (status) {
        queue->refusal = gpuhal_failure_create();
        gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_FAILED);
    } else {
        clear_failure(queue, &completions);
    }
    if (!status) {
        gpuhal_queue_end_call(queue);
    }
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_completions_notify(completions);
    gpuhal_queue_lock(queue);
}

/* The caller holds the mutex. */
static gpuhal_status begin(gpuhal_queue *queue)
{
    if (queue->health == GPUHAL_QUEUE_RESETTING) {
        return GPUHAL_OK;
    }
    const int error = gpuhal_queue_need_thread(queue);
    if (error) {
        return gpuhal_error_no_thread(error);
    }
    gpuhal_failure_release(queue->refusal);
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
    gpuhal_completion *completions = NULL;
    gpuhal_status status = gpuhal_queue_check(queue);
    status = status ? status : gpuhal_queue_own_call(queue);
    if (status) {
        return status;
    }
    gpuhal_queue_lock(queue);
    if (queue->right == GPUHAL_QUEUE_NATIVE) {
        status = gpuhal_queue_native_error(queue);
    } else if (gpuhal_queue_has_failed(queue) && !queue->vendor && !gpuhal_queue_has_deferred(queue) &&
               !gpuhal_queue_follows(queue)) {
        clear_failure(queue, &completions);
    } else if (gpuhal_queue_has_failed(queue)) {
        status = begin(queue);
    }
    while (!status && queue->health == GPUHAL_QUEUE_RESETTING) {
        status = gpuhal_queue_wait_until(queue, GPUHAL_WAITS_RESET, deadline);
        status = status ? status : gpuhal_queue_check(queue);
    }
    if (status == GPUHAL_ERROR_TIMEOUT && !queue->timepoints && gpuhal_queue_has_events(queue)) {
        status = gpuhal_queue_late(queue, "the driver records no event in the queue that has failed: destroy its timed "
                                          "events, and wait for the queues that have waited for its events");
    }
    if (!status && gpuhal_queue_has_failed(queue)) {
        status = gpuhal_failure_status(queue->refusal ? queue->refusal : queue->failure);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_completions_notify(completions);
    return status;
}
