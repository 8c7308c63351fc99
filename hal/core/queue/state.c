/* queue/state.c: a queue's references, the right to call the plugin on it, and waits that time out. No function in this
 * file calls a plugin. */
#include "base/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"

#include <stdlib.h>

gpuhal_queue *gpuhal_queue_retain(gpuhal_queue *queue)
{
    atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
    return queue;
}

void gpuhal_queue_release(gpuhal_queue *queue)
{
    if (atomic_fetch_sub_explicit(&queue->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    gpuhal_failure_release(queue->failure);
    gpuhal_failure_release(queue->refusal);
    gpuhal_condition_finish(&queue->condition);
    gpuhal_mutex_finish(&queue->mutex);
    free(queue->followed);
    free(queue->submissions);
    free(queue);
}

void gpuhal_queue_wake(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
}

void gpuhal_queue_unlock_and_wake(gpuhal_queue *queue)
{
    const bool wakes = queue->deferred != NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    if (wakes) {
        gpuhal_condition_signal_all(&queue->condition);
    }
}

/* Returns the first element of a list, a launch or a run of a recording, whose kernels the driver may be compiling.
 * Returns NULL if there is none. */
static const gpuhal_uses *find_first(const gpuhal_uses *uses)
{
    while (uses && !uses->first) {
        uses = gpuhal_uses_next(uses);
    }
    return uses;
}

/* Returns a launch or run of a recording whose kernels the driver may be compiling, or NULL. It was submitted, or the
 * worker is running it. Polling callers call this function often, so it walks the submissions only if the device has
 * any such launch or run. */
static const gpuhal_uses *find_compiling(const gpuhal_queue *queue)
{
    if (atomic_load_explicit(&queue->device->compiling, memory_order_relaxed) == 0) {
        return NULL;
    }
    const bool runs = queue->deferred && queue->worker == GPUHAL_QUEUE_RUNNING;
    const gpuhal_uses *found = NULL;
    for (size_t i = 0; i < queue->submission_count && !found; i++) {
        const gpuhal_submission *at = &queue->submissions[(queue->first_submission + i) % queue->submission_space];
        found = at->number > queue->done ? find_first(at->uses) : NULL;
    }
    return found || !runs ? found : find_first(queue->deferred->op.uses);
}

gpuhal_status gpuhal_queue_late(gpuhal_queue *queue, const char *what)
{
    const gpuhal_uses *compiling = find_compiling(queue);
    return !compiling ? gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "%s: %s", queue->device->id, what)
           : compiling->alone
               ? gpuhal_error_set(GPUHAL_ERROR_TIMEOUT,
                                  "%s: %s; recording %s ran for the first time, and the driver may still be compiling "
                                  "its kernels",
                                  queue->device->id, what, compiling->name)
               : gpuhal_error_set(GPUHAL_ERROR_TIMEOUT,
                                  "%s: %s; kernel %s was launched for the first time, and the driver may still be "
                                  "compiling it",
                                  queue->device->id, what, compiling->name);
}

gpuhal_status gpuhal_queue_wait_until(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns)
{
    uint64_t now = gpuhal_os_monotonic_ns();
    if (now >= deadline_ns) {
        return gpuhal_queue_late(queue, "the work of a queue has not ended in time");
    }
    gpuhal_queue_wait_at(queue, place, deadline_ns);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_queue_native_error(const gpuhal_queue *queue)
{
    return gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s: the queue is in native access", queue->device->id);
}

gpuhal_status gpuhal_queue_own_call(const gpuhal_queue *queue)
{
    uint64_t caller = atomic_load_explicit(&queue->caller, memory_order_relaxed);
    if (caller == 0 || caller != gpuhal_os_thread_id()) {
        return GPUHAL_OK;
    }
    return gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s: a function that the queue calls cannot wait for that queue",
                            queue->device->id);
}

gpuhal_status gpuhal_queue_refusal(const gpuhal_queue *queue)
{
    return gpuhal_queue_has_failed(queue)               ? gpuhal_failure_status(queue->failure)
           : queue->right == GPUHAL_QUEUE_NATIVE ? gpuhal_queue_native_error(queue)
                                                 : GPUHAL_OK;
}

gpuhal_status gpuhal_queue_wait_for_call(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns)
{
    gpuhal_status status = queue->right == GPUHAL_QUEUE_NATIVE ? gpuhal_queue_native_error(queue)
                                                               : gpuhal_queue_wait_until(queue, place, deadline_ns);
    return status ? status : gpuhal_queue_check(queue);
}

gpuhal_status gpuhal_queue_begin_call_unlocks(gpuhal_queue *queue, uint64_t deadline_ns)
{
    while (gpuhal_queue_is_called(queue)) {
        gpuhal_status status = gpuhal_queue_wait_for_call(queue, GPUHAL_WAITS_CALL, deadline_ns);
        if (status) {
            return status;
        }
    }
    gpuhal_queue_change(&queue->right, GPUHAL_QUEUE_CALLED);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_queue_begin_late_call(gpuhal_queue *queue)
{
    gpuhal_status status = gpuhal_queue_begin_call_unlocks(queue, UINT64_MAX);
    while (status == GPUHAL_ERROR_BUSY && gpuhal_queue_check(queue) == GPUHAL_OK) {
        gpuhal_queue_wait_at(queue, GPUHAL_WAITS_NATIVE_END, UINT64_MAX);
        status = gpuhal_queue_begin_call_unlocks(queue, UINT64_MAX);
    }
    return status;
}

void gpuhal_queue_end_call(gpuhal_queue *queue)
{
    gpuhal_queue_seal_submission(queue);
    gpuhal_queue_change(&queue->right, GPUHAL_QUEUE_FREE);
    queue->joined = false;
    if (gpuhal_queue_has_waiters(queue) ||
        (queue->worker != GPUHAL_QUEUE_UNATTENDED && gpuhal_queue_has_completed(queue))) {
        gpuhal_condition_signal_all(&queue->condition);
    }
}

/* Many applications enqueue batches of work with the same buffers. The buffers are retained once, until the last work
 * of the batch has ended. */
bool gpuhal_queue_reserve(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_submission *last = queue->submission_count > 0 ? gpuhal_queue_last_submission(queue) : NULL;
    queue->joined = last && op->kind && last->to == op->to && last->from == op->from && !last->awaited && !last->kept &&
                    !op->kept && !last->uses && !op->uses && !gpuhal_buffer_is_mapped(op->to) &&
                    !gpuhal_buffer_is_mapped(op->from);
    if (queue->joined) {
        last->number = UINT64_MAX;
    }
    if (queue->joined || queue->submission_count < queue->submission_space) {
        return true;
    }
    size_t space = queue->submission_space ? queue->submission_space * 2 : 64;
    gpuhal_submission *grown = calloc(space, sizeof *grown);
    if (!grown) {
        return false;
    }
    for (size_t i = 0; i < queue->submission_count; i++) {
        grown[i] = queue->submissions[(queue->first_submission + i) % queue->submission_space];
    }
    free(queue->submissions);
    queue->submissions = grown;
    queue->first_submission = 0;
    queue->submission_space = space;
    return true;
}

void gpuhal_queue_count_busy(gpuhal_queue *queue)
{
    const bool works = queue->submitted != queue->done || queue->worker == GPUHAL_QUEUE_RUNNING;
    if (works != queue->busy) {
        queue->busy = works;
        (works ? gpuhal_busy_begin : gpuhal_busy_end)(queue->device);
    }
}

bool gpuhal_queue_is_idle(const gpuhal_queue *queue)
{
    return !gpuhal_queue_has_deferred(queue) && !gpuhal_queue_is_called(queue) && !queue->timepoints &&
           queue->done == queue->submitted;
}

bool gpuhal_queue_has_completed(const gpuhal_queue *queue)
{
    bool any = queue->dropped || gpuhal_queue_oldest_has_ended(queue);
    for (const gpuhal_timepoint *timepoint = queue->ended; timepoint && !any; timepoint = timepoint->next) {
        any = !timepoint->armed || timepoint->signaled;
    }
    return any && queue->retiring == 0 && gpuhal_device_is_reachable(queue->device);
}

bool gpuhal_queue_has_finished(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    bool finished = queue->life == GPUHAL_QUEUE_FINISHED;
    gpuhal_mutex_unlock(&queue->mutex);
    return finished;
}

bool gpuhal_queue_is_quiet(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    bool quiet = !queue->adopted && !gpuhal_queue_has_failed(queue) && !gpuhal_queue_is_closed(queue) &&
                 gpuhal_queue_is_idle(queue);
    gpuhal_mutex_unlock(&queue->mutex);
    return quiet;
}

bool gpuhal_queue_has_native(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex); /* a reset replaces the plugin's queue */
    bool native = queue->vendor && queue->device->native.native_queue;
    gpuhal_mutex_unlock(&queue->mutex);
    return native;
}

bool gpuhal_queue_is_broken(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    bool broken = gpuhal_queue_has_failed(queue);
    gpuhal_mutex_unlock(&queue->mutex);
    return broken;
}
