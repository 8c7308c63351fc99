/* queue/pending.c: the list of work that a queue holds, and the thread that it needs for that. */
#include "core/error.h"
#include "memory/buffer.h"
#include "queue/async.h"
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>

void gpuhal_held_free(gpuhal_held *held)
{
    gpuhal_buffer_drop(held->op.to);
    gpuhal_buffer_drop(held->op.from);
    gpuhal_buffer_drop(held->op.kept);
    gpuhal_point_release(held->op.record);
    gpuhal_point_release(held->op.await);
    if (held->op.kind && held->op.kind->form == GPUHAL_OP_JOB && held->op.job) {
        held->op.free_job(held->op.job);
    }
    free(held);
}

int gpuhal_queue_need_thread(gpuhal_queue *queue)
{
    if (queue->worker != GPUHAL_QUEUE_UNATTENDED) {
        return 0;
    }
    gpuhal_queue_retain(queue);
    gpuhal_async_worker_begins(queue->device->gpu);
    const int error = gpuhal_thread_start_detached(queue->thread, queue);
    if (!error) {
        gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
    } else {
        gpuhal_async_worker_ends(queue->device->gpu);
        atomic_fetch_sub(&queue->references, 1); /* never the last: the caller has one */
    }
    return error;
}

gpuhal_status gpuhal_queue_hold(gpuhal_queue *queue, const gpuhal_op *op, bool on_host)
{
    gpuhal_held *held = calloc(1, sizeof *held);
    if (!held) {
        return gpuhal_error_host_memory();
    }
    const int error = gpuhal_queue_need_thread(queue);
    if (error) {
        free(held);
        return gpuhal_error_no_thread(error);
    }
    held->op = *op;
    held->on_host = on_host;
    if (op->kind && op->kind->form == GPUHAL_OP_RECT) {
        memcpy(held->extent, op->extent, sizeof held->extent);
        held->rects[0] = *op->to_rect;
        held->rects[1] = *op->from_rect;
        held->op.extent = held->extent;
        held->op.to_rect = &held->rects[0];
        held->op.from_rect = &held->rects[1];
    }
    gpuhal_buffer_retain(op->to);
    gpuhal_buffer_retain(op->from);
    gpuhal_buffer_retain(op->kept);
    if (op->record) {
        gpuhal_point_retain(op->record);
    }
    if (op->await) {
        gpuhal_point_retain(op->await);
    }
    *queue->held_end = held;
    queue->held_end = &held->next;
    gpuhal_condition_signal_all(&queue->condition);
    return GPUHAL_OK;
}
