/* queue/worker.c: the thread of a queue. It exists only where something has to be waited for or done by blocking calls, works the
 * held list off in order, and waits for the points whose end is wanted.
 *
 * The thread is nobody's to join: the queue outlives its user until the thread has ended, and gpuhal_async_settle() waits for that. */
#include "core/error.h"
#include "memory/buffer.h"
#include "queue/async.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>
#include <string.h>

/* What the first piece held, once it is done or was handed over. RUNNING keeps it in its place meanwhile, so that nothing behind it ends
 * before its memory is given back. With the mutex held, which is let go meanwhile. */
static void empty_first(gpuhal_queue *queue, gpuhal_held *held)
{
    gpuhal_buffer *to = held->op.to, *from = held->op.from, *kept = held->op.kept;
    void *job = held->op.kind && held->op.kind->form == GPUHAL_OP_JOB ? held->op.job : NULL;
    held->op.to = held->op.from = held->op.kept = NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_buffer_drop(from);
    gpuhal_buffer_drop(to);
    gpuhal_buffer_drop(kept);
    if (job) {
        held->op.free_job(job);
    }
    gpuhal_queue_lock(queue);
    if (job) {
        held->op.job = NULL;
    }
}

/* Takes the first piece out of the list. With the mutex held; the caller frees it without. */
static gpuhal_held *take_first(gpuhal_queue *queue)
{
    gpuhal_held *held = queue->held;
    queue->held = held->next;
    if (!queue->held) {
        queue->held_end = &queue->held;
    }
    return held;
}

/* The first piece is done, or failed with this thread's last error. With the mutex held, which is let go meanwhile. */
static void finish_first(gpuhal_queue *queue, gpuhal_status status)
{
    gpuhal_watcher *told = NULL;
    gpuhal_cause *cause = status ? gpuhal_cause_create() : NULL;
    gpuhal_held *held = take_first(queue);
    if (status) {
        gpuhal_queue_fail(queue, cause, false, &told);
    }
    if (held->op.record && (status || !queue->vendor)) {
        held->op.record->number = queue->submitted;
        gpuhal_point_finish(held->op.record, gpuhal_queue_has_failed(queue) ? queue->cause : NULL, &told);
    }
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    gpuhal_cause_release(cause);
    gpuhal_held_free(held);
    (void)gpuhal_queue_reap(queue);
    gpuhal_queue_lock(queue);
}

/* With the mutex held, which is let go meanwhile: waits for a point of this queue by whatever way the plugin has. */
static void wait_for(gpuhal_queue *queue, gpuhal_point *point)
{
    gpuhal_point_retain(point);
    bool tells = queue->device->ops.event_notify && !queue->probed;
    gpuhal_mutex_unlock(&queue->mutex);
    if (tells) {
        (void)gpuhal_queue_want(point);
        gpuhal_queue_lock(queue);
        bool sleeps = gpuhal_point_now(point) == GPUHAL_POINT_SUBMITTED && point->armed;
        if (sleeps) {
            gpuhal_queue_doze(queue, GPUHAL_WAITS_NOTIFICATION, UINT64_MAX);
        }
        gpuhal_mutex_unlock(&queue->mutex);
        tells = sleeps || gpuhal_point_now(point) != GPUHAL_POINT_SUBMITTED;
    }
    if (!tells) {
        gpuhal_point_block(point);
    }
    (void)gpuhal_queue_reap(queue);
    gpuhal_point_release(point);
    gpuhal_queue_lock(queue);
}

/* The plugin would have to wait for somebody: asks again in a while. With the mutex held, which is let go meanwhile. */
static void sleep_before_retry(gpuhal_queue *queue)
{
    queue->retry_ns = gpuhal_poll_longer(queue->retry_ns);
    gpuhal_queue_doze(queue, GPUHAL_WAITS_RETRY, gpuhal_deadline(queue->retry_ns));
}

/* A point of the queue's own behind everything handed over. Where there can be none, the queue has failed. With the mutex held, which is let
 * go meanwhile. */
static void mark_tail(gpuhal_queue *queue)
{
    gpuhal_watcher *told = NULL;
    gpuhal_cause *cause = NULL;
    gpuhal_point *point = gpuhal_point_create(queue, false);
    gpuhal_status status = point ? gpuhal_queue_begin_late_call(queue) : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_mutex_unlock(&queue->mutex);
        status = gpuhal_queue_hand_over_point(queue, point);
        gpuhal_queue_lock(queue);
        if (!status) {
            gpuhal_queue_list_point(queue, point);
        }
        gpuhal_queue_end_call(queue);
    }
    if (status == GPUHAL_NOT_READY || status == GPUHAL_ERROR_BUSY) {
        sleep_before_retry(queue);
    } else if (status) {
        cause = gpuhal_cause_create();
        gpuhal_queue_fail(queue, cause, false, &told);
        if (queue->health == GPUHAL_QUEUE_FAILED) { /* a reset may have begun meanwhile */
            gpuhal_queue_change(&queue->health, GPUHAL_QUEUE_SILENT);
        }
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    gpuhal_cause_release(cause);
    gpuhal_point_release(point);
    gpuhal_queue_lock(queue);
}

/* Everything handed over so far has to have ended. With the mutex held. True when it has. */
static bool tail_has_ended(gpuhal_queue *queue)
{
    if (!queue->vendor || (queue->done == queue->submitted && !queue->points)) {
        return true;
    }
    if (queue->points && (queue->health == GPUHAL_QUEUE_SILENT || queue->marked == queue->submitted)) {
        gpuhal_point *last = queue->points;
        while (last->next) {
            last = last->next;
        }
        wait_for(queue, last);
        return false;
    }
    if (queue->health != GPUHAL_QUEUE_SILENT) {
        mark_tail(queue);
    }
    return false;
}

/* Does the first piece by blocking calls, once the tail has ended. */
static void run_first(gpuhal_queue *queue)
{
    gpuhal_held *held = queue->held;
    if (!tail_has_ended(queue) || queue->held != held) {
        return;
    }
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_RUNNING);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_status status = held->op.kind->run(&held->op);
    gpuhal_queue_lock(queue);
    empty_first(queue, held);
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
    finish_first(queue, gpuhal_queue_has_failed(queue) ? gpuhal_cause_status(queue->cause) : status);
}

/* What the plugin cannot take now: the vendor's queue is captured, or in another section. A mapping is the program's own to end. */
static bool comes_later(const gpuhal_op *op, gpuhal_status status)
{
    const bool mapped = (op->to && gpuhal_buffer_is_mapped(op->to)) || (op->from && gpuhal_buffer_is_mapped(op->from));
    return status == GPUHAL_NOT_READY || (status == GPUHAL_ERROR_BUSY && !mapped);
}

/* Hands the first piece to the plugin. */
static void submit_first(gpuhal_queue *queue)
{
    gpuhal_held *held = queue->held;
    gpuhal_status status = gpuhal_queue_begin_late_call(queue);
    if (status || queue->held != held) {
        if (!status) {
            gpuhal_queue_end_call(queue);
        }
        return; /* it was dropped meanwhile */
    }
    bool space = gpuhal_queue_reserve(queue, &held->op);
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_RUNNING); /* so that it stays where it is */
    gpuhal_mutex_unlock(&queue->mutex);
    if (!space) {
        status = gpuhal_error_host_memory();
    } else {
        status = held->op.record ? gpuhal_queue_hand_over_point(queue, held->op.record) : gpuhal_queue_hand_over(queue, &held->op);
    }
    gpuhal_queue_lock(queue);
    bool refused = status == GPUHAL_ERROR_NOT_SUPPORTED && !held->op.record;
    bool later = comes_later(&held->op, status);
    gpuhal_watcher *told = NULL;
    if (status == GPUHAL_OK && held->op.record) {
        gpuhal_queue_note_point(queue, held->op.record, &told);
    } else if (status == GPUHAL_OK) {
        gpuhal_queue_note(queue, &held->op);
        empty_first(queue, held);
        if (held->op.kind->form == GPUHAL_OP_CALL) {
            gpuhal_queue_mark_access(queue, &told);
        }
    }
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
    queue->submitted += refused && queue->adopted; /* as in submit.c */
    gpuhal_queue_end_call(queue);
    if ((refused || later) && !gpuhal_queue_has_failed(queue)) {
        held->on_host = refused;
        if (later) {
            sleep_before_retry(queue);
        }
        return;
    }
    queue->retry_ns = 0;
    bool wanted = status == GPUHAL_OK && held->op.record && held->op.record->wanted;
    gpuhal_point *point = wanted ? gpuhal_point_retain(held->op.record) : NULL;
    finish_first(queue, status);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    if (point) {
        (void)gpuhal_queue_want(point);
        gpuhal_point_release(point);
    }
    gpuhal_queue_lock(queue);
}

/* The first piece waits for somebody else's point. With the mutex held. True when something was done about it. */
static bool look_at_await(gpuhal_queue *queue)
{
    gpuhal_held *held = queue->held;
    gpuhal_point *point = held->op.await;
    if (gpuhal_point_now(point) == GPUHAL_POINT_DONE) {
        finish_first(queue, gpuhal_point_result(point));
        return true;
    }
    if (held->on_host) { /* it is being watched */
        return false;
    }
    gpuhal_watcher *watcher = calloc(1, sizeof *watcher);
    if (!watcher) {
        finish_first(queue, gpuhal_error_host_memory());
        return true;
    }
    watcher->queue = gpuhal_queue_retain(queue);
    held->on_host = true;
    gpuhal_point_retain(point);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_status status = gpuhal_point_watch(point, watcher);
    gpuhal_point_release(point);
    gpuhal_queue_lock(queue);
    if (status && queue->held == held) {
        finish_first(queue, status);
    }
    return true;
}

/* With the mutex held: the next thing to do. False when there is nothing but to sleep. */
static bool step(gpuhal_queue *queue)
{
    gpuhal_held *held = queue->held;
    if (held && gpuhal_queue_has_failed(queue)) { /* enqueued while it failed */
        finish_first(queue, gpuhal_cause_status(queue->cause));
        return true;
    }
    if (!held && queue->health == GPUHAL_QUEUE_RESETTING) {
        gpuhal_queue_renew(queue);
        return true;
    }
    if (held && held->op.await) {
        if (look_at_await(queue)) {
            return true;
        }
    } else if (held && held->op.record && !queue->vendor) {
        finish_first(queue, GPUHAL_OK);
        return true;
    } else if (held && (held->on_host || !queue->vendor)) {
        run_first(queue);
        return true;
    } else if (held) {
        submit_first(queue);
        return true;
    }
    if (queue->probed && queue->vendor && !gpuhal_queue_has_failed(queue)) {
        queue->probed = !tail_has_ended(queue) && (queue->points || queue->health != GPUHAL_QUEUE_SILENT);
        return true;
    }
    gpuhal_point *wanted = queue->points;
    while (wanted && (!wanted->wanted || wanted->armed || wanted->blocked_on)) {
        wanted = wanted->next;
    }
    if (wanted) {
        wait_for(queue, wanted);
        return true;
    }
    return false;
}

/* Once its user is gone and nothing is held: whether nothing is left to do. With the mutex held, which is let go only when there is. */
static bool may_end(gpuhal_queue *queue)
{
    if (!gpuhal_device_is_reachable(queue->device)) {
        return true;
    }
    if (!tail_has_ended(queue) && !(queue->health == GPUHAL_QUEUE_SILENT && !queue->points)) {
        return false;
    }
    if (queue->ended || gpuhal_queue_is_called(queue)) { /* the plugin still has to tell of it; somebody waits for the device */
        gpuhal_queue_doze(queue, GPUHAL_WAITS_LAST, UINT64_MAX);
        return false;
    }
    return !queue->held;
}

static void work(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    for (bool ends = false; !ends;) {
        if (step(queue)) {
            continue;
        }
        if (gpuhal_queue_has_rest(queue)) {
            gpuhal_mutex_unlock(&queue->mutex);
            (void)gpuhal_queue_reap(queue);
            gpuhal_queue_lock(queue);
        } else if (queue->life != GPUHAL_QUEUE_OPEN && !queue->held) {
            ends = may_end(queue);
            if (ends) {
                gpuhal_queue_change(&queue->life, GPUHAL_QUEUE_CLOSED);
            }
        } else {
            gpuhal_queue_doze(queue, GPUHAL_WAITS_WORK, UINT64_MAX);
        }
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_queue_finish(queue);
}

/* An abandoned worker does not touch the gpuhal object any more, which may end without it. */
void *gpuhal_queue_thread(void *user)
{
    gpuhal_queue *queue = user;
    gpuhal *gpu = queue->device->gpu;
    gpuhal_async_worker_is_this(gpu);
    work(queue);
    gpuhal_queue_lock(queue);
    bool counted = !queue->uncounted;
    queue->uncounted = true; /* a thread that has come back is not abandoned later */
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_queue_release(queue);
    if (counted) {
        gpuhal_async_worker_ends(gpu);
    }
    return NULL;
}

void gpuhal_queue_work_off(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
    queue->uncounted = true;
    gpuhal_mutex_unlock(&queue->mutex);
    work(queue);
}
