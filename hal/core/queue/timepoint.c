/* queue/timepoint.c: see timepoint.h. */
#include "queue/timepoint.h"

#include "base/error.h"
#include "queue/completion_service.h"
#include "queue/queue.h"

#include <stdlib.h>

gpuhal_status gpuhal_waitable_create(gpuhal_waitable **out_waitable)
{
    gpuhal_waitable *waitable = calloc(1, sizeof *waitable);
    if (!waitable) {
        return gpuhal_error_host_memory();
    }
    int error = gpuhal_os_notifier_create(&waitable->notifier);
    if (error) {
        free(waitable);
        return gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor (errno %d)", error);
    }
    atomic_init(&waitable->references, 1);
    gpuhal_mutex_init(&waitable->mutex);
    *out_waitable = waitable;
    return GPUHAL_OK;
}

void gpuhal_waitable_release(gpuhal_waitable *waitable)
{
    if (waitable && atomic_fetch_sub_explicit(&waitable->references, 1, memory_order_acq_rel) == 1) {
        gpuhal_os_descriptor_close(waitable->notifier);
        gpuhal_mutex_finish(&waitable->mutex);
        free(waitable);
    }
}

/* Clears the descriptor and increments the number under one lock. If the previous recording ends later, its number is
 * out of date, so its end does not make the descriptor readable. */
uint64_t gpuhal_waitable_arm(gpuhal_waitable *waitable)
{
    gpuhal_mutex_lock(&waitable->mutex);
    uint64_t turn = ++waitable->turn;
    gpuhal_os_notifier_clear(waitable->notifier);
    gpuhal_mutex_unlock(&waitable->mutex);
    return turn;
}

static void light(gpuhal_waitable *waitable, uint64_t turn)
{
    gpuhal_mutex_lock(&waitable->mutex);
    if (waitable->turn == turn) {
        gpuhal_os_notifier_set(waitable->notifier);
    }
    gpuhal_mutex_unlock(&waitable->mutex);
}

/* ---- queue timepoints, with plugin events */

static _Atomic uint64_t newest_ordinal;

uint64_t gpuhal_timepoint_newest(void)
{
    return atomic_load(&newest_ordinal);
}

gpuhal_timepoint *gpuhal_timepoint_create(gpuhal_queue *queue, bool timed)
{
    gpuhal_timepoint *timepoint = calloc(1, sizeof *timepoint);
    if (timepoint) {
        atomic_init(&timepoint->references, 1);
        atomic_init(&timepoint->state, GPUHAL_TIMEPOINT_DEFERRED);
        timepoint->queue = gpuhal_queue_retain(queue);
        timepoint->timed = timed;
        timepoint->ordinal = atomic_fetch_add(&newest_ordinal, 1) + 1;
    }
    return timepoint;
}

/* Relaxed order suffices, because the caller has a reference. */
gpuhal_timepoint *gpuhal_timepoint_retain(gpuhal_timepoint *timepoint)
{
    atomic_fetch_add_explicit(&timepoint->references, 1, memory_order_relaxed);
    return timepoint;
}

/* ---- host timepoints, of events with GPUHAL_EVENT_HOST. Host timepoints belong to no queue and are never passed to a
 * driver: a driver that has only one queue, or does the work inside the enqueuing call, would deadlock. */

typedef struct host_timepoint {
    gpuhal_timepoint timepoint; /* must be first, because pointers to the two types are cast to each other */
    gpuhal_mutex mutex;         /* protects the timepoint */
    gpuhal_condition condition; /* signalled when the timepoint is done */
} host_timepoint;

static host_timepoint *of(gpuhal_timepoint *timepoint)
{
    return (host_timepoint *)timepoint;
}

gpuhal_timepoint *gpuhal_host_timepoint_create(void)
{
    host_timepoint *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    atomic_init(&made->timepoint.references, 1);
    atomic_init(&made->timepoint.state, GPUHAL_TIMEPOINT_DEFERRED);
    atomic_init(&made->timepoint.retired, true);
    gpuhal_mutex_init(&made->mutex);
    gpuhal_condition_init(&made->condition);
    return &made->timepoint;
}

static void free_host_point(gpuhal_timepoint *timepoint)
{
    gpuhal_failure_release(timepoint->failure);
    gpuhal_condition_finish(&of(timepoint)->condition);
    gpuhal_mutex_finish(&of(timepoint)->mutex);
    free(of(timepoint));
}

/* ---- queue and host timepoints */

/* Needs acquire and release order, because the thread that frees the timepoint must see all writes that other threads
 * made before they released it. The queue is released last, because the event is returned to the queue. */
void gpuhal_timepoint_release(gpuhal_timepoint *timepoint)
{
    if (!timepoint || atomic_fetch_sub_explicit(&timepoint->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (!timepoint->queue) {
        free_host_point(timepoint);
        return;
    }
    if (timepoint->timed && timepoint->event) {
        gpuhal_timepoint_leave_event(timepoint);
    }
    gpuhal_failure_release(timepoint->failure);
    gpuhal_queue_release(timepoint->queue);
    free(timepoint);
}

void gpuhal_timepoint_lock(gpuhal_timepoint *timepoint)
{
    if (timepoint->queue) {
        gpuhal_queue_lock(timepoint->queue);
    } else {
        gpuhal_mutex_lock(&of(timepoint)->mutex);
    }
}

void gpuhal_timepoint_unlock(gpuhal_timepoint *timepoint)
{
    if (timepoint->queue) {
        gpuhal_mutex_unlock(&timepoint->queue->mutex);
    } else {
        gpuhal_mutex_unlock(&of(timepoint)->mutex);
    }
}

gpuhal_status gpuhal_timepoint_result(const gpuhal_timepoint *timepoint)
{
    return timepoint->failure ? gpuhal_failure_status(timepoint->failure) : GPUHAL_OK;
}

/* DONE is stored with release order, after the failure and the time. Both can then be read without the mutex, and never
 * change. Completions are only collected here, because notifying them calls the application and the mutex is held. */
void gpuhal_timepoint_finish(gpuhal_timepoint *timepoint, gpuhal_failure *failure, gpuhal_completion **list)
{
    if (gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE) {
        return;
    }
    timepoint->failure = gpuhal_failure_retain(failure);
    timepoint->done_ns = timepoint->timed || timepoint->stamped ? gpuhal_os_monotonic_ns() : 0;
    gpuhal_status status = failure ? failure->detail.error.status : GPUHAL_OK;
    atomic_store_explicit(&timepoint->state, GPUHAL_TIMEPOINT_DONE, memory_order_release);
    while (timepoint->completions) {
        gpuhal_completion *completion = timepoint->completions;
        timepoint->completions = completion->next;
        completion->status = status;
        completion->next = *list;
        *list = completion;
    }
}

static gpuhal_status order_error(void)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                            "gpuhal_event_elapsed: the second event was recorded before the first");
}

/* Device clocks wrap around, so within one queue the number of submissions decides the order. */
gpuhal_status gpuhal_timepoint_elapsed(const gpuhal_timepoint *from, const gpuhal_timepoint *to, uint64_t *out_ns)
{
    gpuhal_device *device = from->queue->device;
    if ((from->event == NULL) != (to->event == NULL)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_event_elapsed: the two have no clock in common");
    }
    if (from->queue == to->queue && from->number > to->number) {
        return order_error();
    }
    if (!from->event) {
        *out_ns = to->done_ns - from->done_ns;
        return to->done_ns >= from->done_ns ? GPUHAL_OK : order_error();
    }
    gpuhal_status status = gpuhal_device_check(device);
    if (status) {
        return status;
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    status =
        device->queues.elapsed ? device->queues.elapsed(from->event, to->event, out_ns) : GPUHAL_ERROR_NOT_SUPPORTED;
    status = gpuhal_device_result(device, call, status);
    return status && status != GPUHAL_NOT_READY
               ? gpuhal_device_failed(device, status, "reading the time between two events")
               : status;
}

void gpuhal_completion_free(gpuhal_completion *completion)
{
    gpuhal *gpu = completion->done ? completion->gpu : NULL;
    if (completion->queue) {
        gpuhal_queue_release(completion->queue);
    }
    gpuhal_waitable_release(completion->waitable);
    free(completion);
    if (gpu) {
        gpuhal_unreference(gpu);
    }
}

static void notify(gpuhal_completion *completion)
{
    if (completion->done || completion->listed) {
        gpuhal_service_ended(completion);
        return;
    }
    if (completion->queue) {
        gpuhal_queue_wake(completion->queue);
    } else {
        light(completion->waitable, completion->turn);
    }
    gpuhal_completion_free(completion);
}

void gpuhal_completions_notify(gpuhal_completion *list)
{
    gpuhal_completion *in_order = NULL;
    while (list) {
        gpuhal_completion *completion = list;
        list = completion->next;
        completion->next = in_order;
        in_order = completion;
    }
    while (in_order) {
        gpuhal_completion *completion = in_order;
        in_order = completion->next;
        notify(completion);
    }
}

bool gpuhal_host_timepoint_signal(gpuhal_timepoint *timepoint, gpuhal_failure *failure)
{
    gpuhal_completion *completions = NULL;
    gpuhal_timepoint_lock(timepoint);
    bool first = gpuhal_timepoint_now(timepoint) != GPUHAL_TIMEPOINT_DONE;
    gpuhal_timepoint_finish(timepoint, failure, &completions);
    gpuhal_condition_signal_all(&of(timepoint)->condition);
    gpuhal_timepoint_unlock(timepoint);
    gpuhal_completions_notify(completions);
    return first;
}

gpuhal_status gpuhal_host_timepoint_wait(gpuhal_timepoint *timepoint, uint64_t deadline_ns)
{
    gpuhal_timepoint_lock(timepoint);
    while (gpuhal_timepoint_now(timepoint) != GPUHAL_TIMEPOINT_DONE && gpuhal_os_monotonic_ns() < deadline_ns) {
        if (deadline_ns == UINT64_MAX) {
            gpuhal_condition_wait(&of(timepoint)->condition, &of(timepoint)->mutex);
        } else {
            gpuhal_condition_wait_until(&of(timepoint)->condition, &of(timepoint)->mutex, deadline_ns);
        }
    }
    gpuhal_timepoint_unlock(timepoint);
    return gpuhal_timepoint_now(timepoint) == GPUHAL_TIMEPOINT_DONE
               ? gpuhal_timepoint_result(timepoint)
               : gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "the host has not signalled the event");
}
