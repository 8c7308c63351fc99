/* queue/deferred.c: appends work to the list of deferred work, and starts the worker that processes it. */
#include "base/error.h"
#include "memory/buffer.h"
#include "queue/completion_service.h"
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>

void gpuhal_deferred_free(gpuhal_deferred *deferred)
{
    gpuhal_buffer_drop(deferred->op.to);
    gpuhal_buffer_drop(deferred->op.from);
    gpuhal_buffer_drop(deferred->op.kept);
    gpuhal_uses_release(deferred->op.uses);
    gpuhal_timepoint_release(deferred->op.record);
    gpuhal_timepoint_release(deferred->op.await);
    if (deferred->op.kind && deferred->op.kind->form == GPUHAL_OP_JOB && deferred->op.job) {
        deferred->op.free_job(deferred->op.job);
    }
    free(deferred);
}

int gpuhal_queue_need_thread(gpuhal_queue *queue)
{
    if (queue->worker != GPUHAL_QUEUE_UNATTENDED) {
        return 0;
    }
    gpuhal_queue_retain(queue);
    const int error = gpuhal_worker_start(queue->device->gpu, queue->thread, queue);
    if (!error) {
        gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
    } else {
        atomic_fetch_sub(&queue->references, 1); /* never the last reference, because the caller has one */
    }
    return error;
}

gpuhal_status gpuhal_queue_append_deferred(gpuhal_queue *queue, const gpuhal_op *op, bool on_host)
{
    const bool has_rect = op->kind && op->kind->form == GPUHAL_OP_RECT;
    gpuhal_deferred *deferred = calloc(1, sizeof *deferred + has_rect * sizeof deferred->rect[0]);
    if (!deferred) {
        return gpuhal_error_host_memory();
    }
    const int error = gpuhal_queue_need_thread(queue);
    if (error) {
        free(deferred);
        return gpuhal_error_no_thread(error);
    }
    deferred->op = *op;
    deferred->on_host = on_host;
    if (has_rect) {
        struct gpuhal_deferred_rect *own = deferred->rect;
        memcpy(own->extent, op->extent, sizeof own->extent);
        own->rects[0] = *op->to_rect;
        own->rects[1] = *op->from_rect;
        deferred->op.extent = own->extent;
        deferred->op.to_rect = &own->rects[0];
        deferred->op.from_rect = &own->rects[1];
    }
    gpuhal_buffer_retain(op->to);
    gpuhal_buffer_retain(op->from);
    gpuhal_buffer_retain(op->kept);
    gpuhal_uses_retain(op->uses);
    if (op->record) {
        gpuhal_timepoint_retain(op->record);
    }
    if (op->await) {
        gpuhal_timepoint_retain(op->await);
    }
    gpuhal_queue_notify(queue, op, queue->observer->deferred, GPUHAL_OK);
    *queue->deferred_end = deferred;
    queue->deferred_end = &deferred->next;
    return GPUHAL_OK;
}
