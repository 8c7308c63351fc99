/* queue/call.c: application functions that a queue calls in order, and buffers that a queue keeps alive. */
#include "base/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"

/* The watchdog sets no time limit, because the thread is not inside a plugin. The call fails with CANCELLED if the
 * function returns a status that is neither OK nor an error, or an error that has another meaning for queues. */
static gpuhal_status call_function(gpuhal_queue *queue, const gpuhal_op *op, const gpuhal_native *native)
{
    atomic_store(&queue->caller, gpuhal_os_thread_id());
    gpuhal_error_clear();
    gpuhal_status status = native ? op->native_fn(op->user, native) : op->fn(op->user);
    atomic_store(&queue->caller, 0);
    if (!status) {
        return GPUHAL_OK;
    }
    /* If a library call failed inside the function, that call's error detail is available. */
    gpuhal_error_detail why;
    gpuhal_error_save(&why);
    bool is_known = why.error.status == status;
    gpuhal_error_set(gpuhal_error_is_cause(status) ? status : GPUHAL_ERROR_CANCELLED,
                     "%s: a function that the queue called returned \"%s\"%s%s", queue->device->id,
                     gpuhal_status_name(status), is_known ? ": " : "", is_known ? why.error.sentence : "");
    gpuhal_error_add_device(queue->device->candidate->name, queue->device->id);
    return gpuhal_last_error()->status;
}

static gpuhal_status run_call(const gpuhal_op *op)
{
    return call_function(op->queue, op, NULL);
}

/* Never waits for the vendor's queue. If the vendor's queue is locked, the worker retries. */
static gpuhal_status submit_native(gpuhal_plugin_queue *vendor, const gpuhal_op *op)
{
    gpuhal_device *device = op->queue->device;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_call call = gpuhal_call_prompt(device);
    gpuhal_status status = gpuhal_device_result(device, call, device->native.native_queue(vendor, &native));
    if (!status) {
        call = gpuhal_call_prompt(device);
        status =
            device->native.native_lock ? device->native.native_lock(vendor, 0) : device->queues.queue_flush(vendor);
        status = gpuhal_device_result(device, call, status);
    }
    if (status) {
        return status == GPUHAL_NOT_READY ? status : gpuhal_device_failed(device, status, "getting the vendor's queue");
    }
    atomic_fetch_add(&device->native_accesses, 1);
    status = call_function(op->queue, op, &native);
    atomic_fetch_sub(&device->native_accesses, 1);
    if (device->native
            .native_unlock) { /* even if the device hangs: other threads may be waiting for the vendor's queue */
        call = gpuhal_call_prompt(device);
        device->native.native_unlock(vendor);
        gpuhal_call_end(call);
    }
    return status;
}

static gpuhal_status run_nothing(const gpuhal_op *op)
{
    (void)op;
    return GPUHAL_OK;
}

static gpuhal_status submit_nothing(gpuhal_plugin_queue *vendor, const gpuhal_op *op)
{
    (void)vendor, (void)op;
    return GPUHAL_OK;
}

static const gpuhal_op_kind call_kind = {NULL, run_call, GPUHAL_OP_CALL};
static const gpuhal_op_kind native_kind = {submit_native, run_nothing, GPUHAL_OP_CALL};
static const gpuhal_op_kind keep_kind = {submit_nothing, run_nothing, GPUHAL_OP_KEEP};

static gpuhal_status null_error(const char *name)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", name);
}

gpuhal_status gpuhal_queue_call(gpuhal_queue *queue, gpuhal_call_fn *fn, void *user)
{
    return queue && fn
               ? gpuhal_queue_defer(queue, &(gpuhal_op){.kind = &call_kind, .queue = queue, .fn = fn, .user = user})
               : null_error("gpuhal_queue_call");
}

gpuhal_status gpuhal_queue_native_call(gpuhal_queue *queue, gpuhal_native_fn *fn, void *user)
{
    if (!queue || !fn) {
        return null_error("gpuhal_queue_native_call");
    }
    gpuhal_status status = gpuhal_queue_check(queue);
    if (status) {
        return status;
    }
    if (!gpuhal_queue_has_native(queue)) {
        return gpuhal_device_failed(queue->device, GPUHAL_ERROR_NOT_SUPPORTED,
                                    "calling with the vendor's queue: the queue has no vendor's object");
    }
    return gpuhal_queue_defer(queue, &(gpuhal_op){.kind = &native_kind, .queue = queue, .native_fn = fn, .user = user});
}

/* During native access no other work is enqueued, and the application's own submissions have no number yet. */
static gpuhal_status keep(gpuhal_queue *queue, gpuhal_buffer *buffer)
{
    const gpuhal_op op = {.kind = &keep_kind, .kept = buffer};
    gpuhal_status status = gpuhal_queue_check(queue);
    if (status) {
        return status;
    }
    gpuhal_queue_lock(queue);
    bool inside = queue->right == GPUHAL_QUEUE_NATIVE;
    if (inside && gpuhal_queue_has_failed(queue)) {
        status = gpuhal_failure_status(queue->failure);
    } else if (inside && !gpuhal_queue_reserve(queue, &op)) {
        status = gpuhal_error_host_memory();
    } else if (inside) {
        gpuhal_queue_track(queue, &op);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return inside ? status : gpuhal_queue_enqueue(queue, &op);
}

gpuhal_status gpuhal_queue_keep(gpuhal_queue *queue, gpuhal_buffer *const *buffers, uint32_t count)
{
    if (!queue || (!buffers && count > 0)) {
        return null_error("gpuhal_queue_keep");
    }
    gpuhal *gpu = queue->device->gpu;
    gpuhal_status status = gpuhal_check(gpu);
    for (uint32_t i = 0; i < count && !status; i++) {
        if (!buffers[i]) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_queue_keep: a buffer is NULL");
        }
        if (buffers[i]->device->gpu != gpu) {
            return gpuhal_two_objects("gpuhal_queue_keep", "queue and buffers", gpu, buffers[i]->device->gpu);
        }
    }
    for (uint32_t i = 0; i < count && !status; i++) {
        status = gpuhal_queue_uses(queue, buffers[i]);
        status = status ? status : keep(queue, buffers[i]->whole);
    }
    return status;
}

/* Returns whether another thread's call must end first. If work is deferred and the queue has not failed, no wait is
 * needed. A function that this queue calls must not wait for itself. */
static bool must_wait(const gpuhal_queue *queue)
{
    const bool defers = gpuhal_queue_has_deferred(queue) && !gpuhal_queue_has_failed(queue);
    return queue->right != GPUHAL_QUEUE_NATIVE && gpuhal_queue_is_called(queue) && !defers &&
           atomic_load(&queue->caller) != gpuhal_os_thread_id();
}

static gpuhal_status track_unlocks(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_status status = GPUHAL_OK;
    while (!status && must_wait(queue)) {
        status = gpuhal_queue_wait_for_call(queue, GPUHAL_WAITS_CALL, UINT64_MAX);
    }
    if (status || queue->life == GPUHAL_QUEUE_FINISHED) {
        return status;
    }
    if (gpuhal_queue_has_deferred(queue) && !gpuhal_queue_has_failed(queue)) {
        return gpuhal_queue_append_deferred(queue, op, false);
    }
    if (!gpuhal_queue_reserve(queue, op)) {
        return gpuhal_error_host_memory();
    }
    gpuhal_queue_track(queue, op);
    return GPUHAL_OK;
}

/* The timepoint makes the library notice the end of the work. If the queue refuses to record it, the end is noticed by
 * a later timepoint (after native access), or by the queue's reset or end. */
gpuhal_status gpuhal_queue_hold(gpuhal_queue *queue, gpuhal_buffer *buffer)
{
    const gpuhal_op op = {.kind = &keep_kind, .kept = buffer};
    gpuhal_timepoint *timepoint = NULL;
    gpuhal_queue_lock(queue);
    gpuhal_status status = track_unlocks(queue, &op);
    gpuhal_queue_unlock_and_wake(queue);
    if (!status && gpuhal_queue_record(queue, false, &timepoint) == GPUHAL_OK) {
        gpuhal_timepoint_release(timepoint);
    }
    return status;
}
