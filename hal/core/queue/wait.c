/* queue/wait.c: notices when timepoints are done, and waits for them on the queue's condition. */
#include "base/error.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

/* Polling period for a timepoint whose queue cannot have a worker. */
#define ALONE_NS UINT64_C(1000000)

gpuhal_status gpuhal_timepoint_retire(gpuhal_timepoint *timepoint, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_OK;
    if (timepoint->failure) {
        return gpuhal_timepoint_result(timepoint);
    }
    if (!atomic_load_explicit(&timepoint->retired, memory_order_acquire)) {
        status = gpuhal_queue_wait_retired(timepoint->queue, timepoint->number, deadline_ns);
        atomic_store_explicit(&timepoint->retired, status == GPUHAL_OK, memory_order_release);
    }
    return status;
}

/* The caller holds the mutex, which is released during the wait. */
static gpuhal_status sleep_once(gpuhal_timepoint *timepoint, uint64_t deadline_ns)
{
    gpuhal_queue *queue = timepoint->queue;
    bool alone = queue->worker == GPUHAL_QUEUE_UNATTENDED && !timepoint->armed;
    uint64_t soon = alone ? gpuhal_deadline(ALONE_NS) : UINT64_MAX;
    gpuhal_status status =
        gpuhal_queue_wait_until(queue, GPUHAL_WAITS_TIMEPOINT, deadline_ns < soon ? deadline_ns : soon);
    if (status || !alone) {
        return status ? status : gpuhal_queue_check(queue);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    status = gpuhal_timepoint_poll(timepoint);
    gpuhal_queue_lock(queue);
    return status == GPUHAL_NOT_READY ? GPUHAL_OK : status;
}

/* Blocks in the plugin on this thread; only one thread at a time does so. Returns NOT_READY if the timepoint is not
 * submitted yet, if another thread or a callback will notice its end, if the plugin cannot block or may not return in
 * time, or if the deadline has passed. Then the caller waits on the queue's condition. */
static gpuhal_status wait_in_plugin(gpuhal_timepoint *timepoint, uint64_t deadline_ns)
{
    gpuhal_queue *queue = timepoint->queue;
    gpuhal_device *device = queue->device;
    if (!gpuhal_device_honors_timeouts(device) || !device->queues.event_block) {
        return GPUHAL_NOT_READY;
    }
    gpuhal_status status = gpuhal_timepoint_poll(timepoint);
    if (status != GPUHAL_NOT_READY) {
        return status;
    }
    gpuhal_queue_lock(queue);
    bool mine = gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED && !timepoint->blocked_on &&
                !timepoint->notify_requested && gpuhal_timepoint_use_event(timepoint);
    timepoint->blocked_on = timepoint->blocked_on || mine;
    gpuhal_mutex_unlock(&queue->mutex);
    if (!mine) {
        return status;
    }
    int cancel = gpuhal_os_cancel_defer();
    for (uint64_t now = gpuhal_os_monotonic_ns(); status == GPUHAL_NOT_READY && now < deadline_ns;
         now = gpuhal_os_monotonic_ns()) {
        status = gpuhal_plugin_event_block(device, timepoint->event,
                                           deadline_ns - now < GPUHAL_BLOCK_NS ? deadline_ns - now : GPUHAL_BLOCK_NS);
        if (status == GPUHAL_NOT_READY) {
            status = gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED ? GPUHAL_NOT_READY : GPUHAL_OK;
        } else if (status) {
            gpuhal_timepoint_failed(timepoint, status);
        } else {
            gpuhal_timepoint_settle(timepoint, GPUHAL_OK);
        }
    }
    gpuhal_timepoint_leave_event(timepoint);
    gpuhal_os_cancel_restore(cancel);
    gpuhal_queue_lock(queue);
    timepoint->blocked_on = false;
    if (gpuhal_timepoint_now(timepoint) != GPUHAL_TIMEPOINT_DONE) {
        gpuhal_condition_signal_all(&queue->condition);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE ? gpuhal_timepoint_result(timepoint)
                                                                    : GPUHAL_NOT_READY;
}

static gpuhal_status wait_for(gpuhal_timepoint *timepoint, uint64_t deadline_ns)
{
    gpuhal_queue *queue = timepoint->queue;
    gpuhal_status status =
        gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE ? GPUHAL_OK : gpuhal_queue_check(queue);
    if (!status && deadline_ns != UINT64_MAX && gpuhal_os_monotonic_ns() >= deadline_ns) {
        status = gpuhal_timepoint_poll(timepoint);
        if (status == GPUHAL_NOT_READY) {
            gpuhal_queue_lock(queue);
            status = gpuhal_queue_late(queue, "the work before an event is not done");
            gpuhal_mutex_unlock(&queue->mutex);
        }
        return status;
    }
    if (!status && (status = wait_in_plugin(timepoint, deadline_ns)) != GPUHAL_NOT_READY) {
        return status;
    }
    status = status == GPUHAL_NOT_READY ? GPUHAL_OK : status;
    if (!status) {
        (void)gpuhal_timepoint_request_notify(timepoint);
    }
    gpuhal_queue_lock(queue);
    while (!status && gpuhal_timepoint_now(timepoint) != GPUHAL_TIMEPOINT_DONE) {
        status = sleep_once(timepoint, deadline_ns);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE ? gpuhal_timepoint_result(timepoint) : status;
}

gpuhal_status gpuhal_timepoint_wait(gpuhal_timepoint *timepoint, uint64_t deadline_ns)
{
    if (!timepoint->queue) {
        return gpuhal_host_timepoint_wait(timepoint, deadline_ns);
    }
    gpuhal_status status =
        gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE ? GPUHAL_OK : gpuhal_queue_own_call(timepoint->queue);
    status = status ? status : wait_for(timepoint, deadline_ns);
    return status ? status : gpuhal_timepoint_retire(timepoint, deadline_ns);
}

/* The plugin calls this function on any thread, even inside event_notify. The function must not call the plugin, so it
 * releases nothing: the timepoint stays in its queue until `signaled` is set. */
static void notified(void *user, gpuhal_status status)
{
    gpuhal_timepoint *timepoint = user;
    gpuhal_queue *queue = gpuhal_queue_retain(timepoint->queue);
    if (status) {
        status = gpuhal_device_failed(queue->device, status, "the work before an event");
    }
    gpuhal_timepoint_settle_notified(timepoint, status);
    gpuhal_queue_lock(queue);
    timepoint->signaled = true;
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_queue_release(queue);
}

int gpuhal_timepoint_request_notify(gpuhal_timepoint *timepoint)
{
    gpuhal_queue *queue = timepoint->queue;
    gpuhal_device *device = queue->device;
    int error = 0;
    /* Polling first avoids a thread switch if the timepoint is already done. */
    if (gpuhal_device_honors_timeouts(device) && gpuhal_timepoint_poll(timepoint) != GPUHAL_NOT_READY &&
        gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE) {
        return 0;
    }
    gpuhal_queue_lock(queue);
    timepoint->notify_requested = true;
    bool arm =
        gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED && !timepoint->armed &&
        device->queues.event_notify && gpuhal_timepoint_use_event(timepoint);
    if (arm) {
        timepoint->armed = true;
    } else if (gpuhal_timepoint_now(timepoint) != GPUHAL_TIMEPOINT_DONE && !timepoint->armed) {
        error = gpuhal_queue_need_thread(queue);
        gpuhal_condition_signal_all(&queue->condition);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    if (!arm) {
        return error;
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    if (gpuhal_device_result(device, call, device->queues.event_notify(timepoint->event, notified, timepoint))) {
        gpuhal_queue_lock(queue);
        timepoint->armed = false;
        error = gpuhal_queue_need_thread(queue);
        gpuhal_condition_signal_all(&queue->condition);
        gpuhal_mutex_unlock(&queue->mutex);
    }
    gpuhal_timepoint_leave_event(timepoint);
    return error;
}

/* Returns false if the timepoint has ended and taken the completion. */
static bool forget(gpuhal_timepoint *timepoint, const gpuhal_completion *completion)
{
    gpuhal_timepoint_lock(timepoint);
    gpuhal_completion **link = &timepoint->completions;
    while (*link && *link != completion) {
        link = &(*link)->next;
    }
    bool found = *link != NULL;
    if (found) {
        *link = completion->next;
    }
    gpuhal_timepoint_unlock(timepoint);
    return found;
}

gpuhal_status gpuhal_timepoint_add_completion(gpuhal_timepoint *timepoint, gpuhal_completion *completion)
{
    completion->next = NULL;
    gpuhal_timepoint_lock(timepoint);
    bool ended = gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE;
    if (ended) {
        completion->status = timepoint->failure ? timepoint->failure->detail.error.status : GPUHAL_OK;
    } else {
        gpuhal_completion **link = &timepoint->completions;
        while (*link) {
            link = &(*link)->next;
        }
        *link = completion;
    }
    gpuhal_timepoint_unlock(timepoint);
    if (ended) {
        gpuhal_completions_notify(completion);
        return GPUHAL_OK;
    }
    const int error = timepoint->queue ? gpuhal_timepoint_request_notify(timepoint) : 0;
    if (!error || !forget(timepoint, completion)) {
        return GPUHAL_OK;
    }
    gpuhal_completion_free(completion);
    return gpuhal_error_no_thread(error);
}

void gpuhal_timepoint_block(gpuhal_timepoint *timepoint)
{
    gpuhal_device *device = timepoint->queue->device;
    gpuhal_status status = GPUHAL_NOT_READY;
    uint64_t pause_ns = 0;
    if (!gpuhal_timepoint_use_event(timepoint)) {
        return;
    }
    while (status == GPUHAL_NOT_READY && gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_SUBMITTED) {
        if (device->queues.event_block) {
            status = gpuhal_plugin_event_block(device, timepoint->event, GPUHAL_BLOCK_NS);
        } else if ((status = gpuhal_plugin_event_query(device, timepoint->event)) == GPUHAL_NOT_READY) {
            pause_ns = gpuhal_poll_longer(pause_ns);
            gpuhal_os_sleep(pause_ns);
        }
    }
    gpuhal_timepoint_leave_event(timepoint);
    if (status && status != GPUHAL_NOT_READY) {
        gpuhal_timepoint_failed(timepoint, status);
    } else if (!status) {
        gpuhal_timepoint_settle(timepoint, GPUHAL_OK);
    }
}
