/* queue/fast_path.c: submits transfers with the same buffers as before, and launches, without the mutex.
 *
 * After a submission the fast path is open, unless work is deferred, a timepoint was recorded after the submission, or
 * the submission is a run of a recording. The path stays open until gpuhal_queue_lock(), gpuhal_queue_wait_at() or a
 * call that the plugin does not accept closes it. The next transfer with the same buffers, or the next launch after a
 * launch, acquires the right to call with one atomic exchange and releases it with another. The transfer or launch
 * takes no lock, and joins the newest submission, which already keeps the buffers alive. A launch with a different
 * kernel or buffers adds its uses to that submission's list.
 *
 * gpuhal_queue_lock() and gpuhal_queue_wait_at() close the fast path once they have the mutex. From then on, state
 * protected by the mutex does not change, except that one call may still be in progress on the fast path. This last
 * call counts its submission. When it ends, it finds the path closed, locks the mutex, seals the submission and wakes
 * the waiting threads.
 */
#include "memory/buffer.h"
#include "queue/queue.h"
#include "transfer/account.h"

gpuhal_submission *gpuhal_queue_last_submission(gpuhal_queue *queue)
{
    return &queue->submissions[(queue->first_submission + queue->submission_count - 1) % queue->submission_space];
}

void gpuhal_queue_seal_submission(gpuhal_queue *queue)
{
    gpuhal_submission *last = queue->submission_count > 0 ? gpuhal_queue_last_submission(queue) : NULL;
    if (last && last->number == UINT64_MAX) {
        last->number = queue->submitted;
    }
}

/* The caller holds the mutex, so that no other thread can open the path. The first load may be relaxed, because the
 * closed bit changes only with the mutex held. The exchange has acquire order because sealing needs the submission
 * number, which the last call on the path wrote before it left. */
static void shut(gpuhal_queue *queue)
{
    if (atomic_load_explicit(&queue->fast_path, memory_order_relaxed) & GPUHAL_FAST_PATH_CLOSED) {
        return;
    }
    uint32_t before = atomic_fetch_or_explicit(&queue->fast_path, GPUHAL_FAST_PATH_CLOSED, memory_order_acq_rel);
    if (!(before & GPUHAL_FAST_PATH_TAKEN)) {
        gpuhal_queue_seal_submission(queue);
    }
}

void gpuhal_queue_lock(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    shut(queue);
}

void gpuhal_queue_wait_at(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns)
{
    queue->waiting[place]++;
    if (deadline_ns == UINT64_MAX) {
        gpuhal_condition_wait(&queue->condition, &queue->mutex);
    } else {
        gpuhal_condition_wait_until(&queue->condition, &queue->mutex, deadline_ns);
    }
    queue->waiting[place]--;
    shut(queue);
}

bool gpuhal_queue_is_called(const gpuhal_queue *queue)
{
    return queue->right != GPUHAL_QUEUE_FREE ||
           (atomic_load_explicit(&queue->fast_path, memory_order_acquire) & GPUHAL_FAST_PATH_TAKEN);
}

void gpuhal_queue_open_fast_path(gpuhal_queue *queue)
{
    /* After a timepoint the submission may end and be retired before more is added to it. It may even have ended
     * already, since recording releases the mutex. */
    if (gpuhal_queue_has_deferred(queue) || gpuhal_queue_has_failed(queue) || queue->life != GPUHAL_QUEUE_OPEN ||
        gpuhal_queue_unrecorded(queue) == 0) {
        return;
    }
    gpuhal_submission *last = gpuhal_queue_last_submission(queue);
    if (last->uses && last->uses->alone) {
        return;
    }
    last->number = UINT64_MAX;
    queue->fast_to = last->to;
    queue->fast_from = last->from;
    queue->fast_uses = last->uses;
    /* Stored last, with release order: from now on a thread without the mutex may read the members above. */
    atomic_store_explicit(&queue->fast_path, 0, memory_order_release);
}

/* The exchange has release order, because the next thread that takes or closes the path must see this call's count. If
 * the exchange fails, the path was closed in the meantime. Then this thread clears TAKEN, since no other thread may
 * clear it, and does the steps that the closing thread left to it: it seals the submission and wakes the threads that
 * wait for the call to end. gpuhal_queue_lock() would not seal the submission, because the path is already closed. */
static void leave(gpuhal_queue *queue)
{
    uint32_t mine = GPUHAL_FAST_PATH_TAKEN;
    if (atomic_compare_exchange_strong_explicit(&queue->fast_path, &mine, 0, memory_order_release,
                                                memory_order_relaxed)) {
        return;
    }
    gpuhal_mutex_lock(&queue->mutex);
    atomic_store_explicit(&queue->fast_path, GPUHAL_FAST_PATH_CLOSED, memory_order_release);
    gpuhal_queue_seal_submission(queue);
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
}

/* Turns a fast-path call into an ordinary call. The path is closed and the right to call is taken under one lock, so
 * that no thread sees the right as free in between. The newest submission stays open until gpuhal_queue_end_call()
 * seals it. */
static void keep_the_right(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    gpuhal_queue_change(&queue->right, GPUHAL_QUEUE_CALLED);
    atomic_store_explicit(&queue->fast_path, GPUHAL_FAST_PATH_CLOSED, memory_order_release);
    gpuhal_mutex_unlock(&queue->mutex);
}

/* Returns a copy of a launch's uses for the newest submission's list. The copy's buffers are entered, and its reference
 * belongs to the list. Returns NULL if the uses cannot be added here; the general path then finds the reason. */
static gpuhal_uses *keep_more(const gpuhal_uses *uses)
{
    gpuhal_uses *kept = uses->needs_clean ? NULL : uses->kind->keep(uses);
    if (kept && gpuhal_uses_enter(kept)) {
        gpuhal_uses_release(kept);
        kept = NULL;
    }
    return kept;
}

/* Returns whether the work can join the newest submission, and sets *out_more to the uses that must be added. Jobs are
 * never submitted, and work that only keeps buffers alive needs a submission of its own. Mapped buffers must be refused
 * even if the driver has no mapping; for launches the caller has checked the buffers. */
static bool fits(const gpuhal_queue *queue, const gpuhal_op *op, gpuhal_uses **out_more)
{
    if (op->uses && op->uses->alone) {
        return false;
    }
    if (op->uses) {
        const bool joins = !op->uses->first && gpuhal_uses_are_alike(op->uses, queue->fast_uses);
        return queue->fast_uses && (joins || (*out_more = keep_more(op->uses)));
    }
    return !op->kept && !queue->fast_uses && op->to == queue->fast_to && op->from == queue->fast_from &&
           op->kind->submit && !gpuhal_buffer_is_mapped(op->to) && !gpuhal_buffer_is_mapped(op->from);
}

bool gpuhal_queue_try_fast_path(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status *out_status)
{
    uint32_t open = 0;
    if (atomic_load_explicit(&queue->fast_path, memory_order_relaxed) != 0 ||
        !atomic_compare_exchange_strong_explicit(&queue->fast_path, &open, GPUHAL_FAST_PATH_TAKEN, memory_order_acquire,
                                                 memory_order_relaxed)) {
        return false;
    }
    /* Checked after the exchange, because until this thread leaves the path no other thread submits or records. The
     * general path records the next timepoint. */
    gpuhal_uses *more = NULL;
    if (gpuhal_queue_unrecorded(queue) + 1 >= GPUHAL_TIMEPOINT_EVERY || !fits(queue, op, &more)) {
        leave(queue);
        return false;
    }
    /* TAKEN is the right to call. The newest submission has no number until the path is closed. */
    *out_status = op->kind->submit(queue->vendor, op);
    if (*out_status == GPUHAL_OK) {
        if (more) {
            /* Needs release order, because a thread with the mutex may be walking the list. */
            atomic_store_explicit(&queue->fast_uses->next, more, memory_order_release);
            queue->fast_uses = more;
        }
        const uint64_t before = atomic_load_explicit(&queue->submitted, memory_order_relaxed);
        atomic_store_explicit(&queue->submitted, before + 1, memory_order_relaxed);
        if (op->counter) {
            gpuhal_count(op->counter, op->bytes, 0);
        }
        leave(queue);
    } else {
        gpuhal_uses_leave(more);
        gpuhal_uses_release(more);
        keep_the_right(queue);
    }
    return true;
}
