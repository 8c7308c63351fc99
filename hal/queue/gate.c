/* queue/gate.c: the short way into a queue, for a batch of work with the same buffers.
 *
 * Work that the plugin was given leaves the gate open, as long as nothing else is going on in the queue. What comes next with the same
 * buffers passes it by one exchange, which is the right to call the plugin, and leaves it by another one: no lock is taken, and the
 * last flight goes on holding the buffers. Whoever locks the mutex shuts the gate first, for whatever reason he came: so everything that
 * the mutex protects stays as it is under it, but for a call that may still be on its way through the gate. That one counts its submission,
 * and closes the flight when it comes out and finds the gate shut; it locks the mutex then, and wakes whoever waits for it.
 */
#include "core/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"
#include "transfer/account.h"

gpuhal_flight *gpuhal_queue_last_flight(gpuhal_queue *queue)
{
    return &queue->flights[(queue->flight_first + queue->flight_count - 1) % queue->flight_space];
}

void gpuhal_queue_close_flight(gpuhal_queue *queue)
{
    gpuhal_flight *last = queue->flight_count > 0 ? gpuhal_queue_last_flight(queue) : NULL;
    if (last && last->number == UINT64_MAX) {
        last->number = queue->submitted;
    }
}

/* With the mutex held, so that nobody opens it meanwhile. */
static void shut(gpuhal_queue *queue)
{
    if (atomic_load_explicit(&queue->gate, memory_order_relaxed) & GPUHAL_GATE_SHUT) {
        return;
    }
    uint32_t before = atomic_fetch_or_explicit(&queue->gate, GPUHAL_GATE_SHUT, memory_order_acq_rel);
    if (!(before & GPUHAL_GATE_TAKEN)) {
        gpuhal_queue_close_flight(queue);
    }
}

void gpuhal_queue_lock(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    shut(queue);
}

void gpuhal_queue_doze(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns)
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
    return queue->right != GPUHAL_QUEUE_FREE || (atomic_load_explicit(&queue->gate, memory_order_acquire) & GPUHAL_GATE_TAKEN);
}

void gpuhal_queue_open_gate(gpuhal_queue *queue)
{
    if (gpuhal_queue_has_deferred(queue) || gpuhal_queue_has_failed(queue) || queue->life != GPUHAL_QUEUE_OPEN) {
        return;
    }
    gpuhal_flight *last = gpuhal_queue_last_flight(queue);
    last->number = UINT64_MAX;
    queue->gate_to = last->to;
    queue->gate_from = last->from;
    atomic_store_explicit(&queue->gate, 0, memory_order_release);
}

static void leave(gpuhal_queue *queue)
{
    uint32_t mine = GPUHAL_GATE_TAKEN;
    if (atomic_compare_exchange_strong_explicit(&queue->gate, &mine, 0, memory_order_release, memory_order_relaxed)) {
        return;
    }
    gpuhal_mutex_lock(&queue->mutex);
    atomic_store_explicit(&queue->gate, GPUHAL_GATE_SHUT, memory_order_release);
    gpuhal_queue_close_flight(queue);
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
}

/* From now on it is a call like others. */
static void leave_with_the_right(gpuhal_queue *queue)
{
    gpuhal_mutex_lock(&queue->mutex);
    gpuhal_queue_change(&queue->right, GPUHAL_QUEUE_CALLED);
    atomic_store_explicit(&queue->gate, GPUHAL_GATE_SHUT, memory_order_release);
    gpuhal_mutex_unlock(&queue->mutex);
}

/* Whether the work is like that of the last flight; jobs are never handed over, and what is only kept needs a flight. Who maps a buffer that the driver does not map is not kept
 * from it by a flight. */
static bool fits(const gpuhal_queue *queue, const gpuhal_op *op)
{
    return !op->kept && op->to == queue->gate_to && op->from == queue->gate_from && op->kind->submit && !gpuhal_buffer_is_mapped(op->to) &&
           !gpuhal_buffer_is_mapped(op->from);
}

bool gpuhal_queue_pass_gate(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status *out_status)
{
    uint32_t open = 0;
    uint64_t before = atomic_load_explicit(&queue->submitted, memory_order_relaxed);
    if (atomic_load_explicit(&queue->gate, memory_order_relaxed) != 0 || (before + 1) % GPUHAL_POINT_EVERY == 0 ||
        !atomic_compare_exchange_strong_explicit(&queue->gate, &open, GPUHAL_GATE_TAKEN, memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    if (!fits(queue, op)) {
        leave(queue);
        return false;
    }
    *out_status = op->kind->submit(queue->vendor, op);
    if (*out_status == GPUHAL_OK) {
        before = atomic_load_explicit(&queue->submitted, memory_order_relaxed);
        atomic_store_explicit(&queue->submitted, before + 1, memory_order_relaxed); /* nobody else counts meanwhile */
        gpuhal_count(op->counter, op->bytes, 0);
        leave(queue);
    } else {
        leave_with_the_right(queue);
    }
    return true;
}
