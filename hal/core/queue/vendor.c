/* queue/vendor.c: creates, adopts and releases plugin queues. */
#include "base/error.h"
#include "queue/completion_service.h"
#include "queue/queue.h"

#include <stdlib.h>

static gpuhal_status create(gpuhal_queue *queue, uint32_t flags, const gpuhal_native *adopt,
                            gpuhal_plugin_queue **out_vendor)
{
    gpuhal_device *device = queue->device;
    const gpuhal_plugin_queue_desc desc = {
        .size = sizeof desc, .flags = flags, .priority = queue->priority, .adopt = adopt};
    const gpuhal_call call = gpuhal_call_prompt(device);
    return gpuhal_device_result(
        device, call, device->queues.queue_create(device->handle, &desc, out_vendor));
}

gpuhal_status gpuhal_queue_make_vendor(gpuhal_queue *queue, gpuhal_vendor_queue **out_vendor)
{
    gpuhal_device *device = queue->device;
    const gpuhal_native *adopt = queue->adopted ? &queue->adopt : NULL;
    const char *what = adopt ? "adopting a queue" : "creating a queue";
    *out_vendor = NULL;
    if (!device->queues.queue_create) {
        return adopt ? gpuhal_device_lacks(device, what) : GPUHAL_OK;
    }
    gpuhal_vendor_queue *vendor = gpuhal_vendor_queue_create();
    if (!vendor) {
        return gpuhal_error_host_memory();
    }
    const bool timed = queue->flags & GPUHAL_QUEUE_TIMED,
               observed = !timed && !adopt && gpuhal_queue_is_observed(queue);
    gpuhal_status status = create(queue, timed || observed ? GPUHAL_TIMED : 0, adopt, &vendor->queue);
    const bool plain = status && observed; /* without device times */
    if (plain) {
        status = create(queue, 0, adopt, &vendor->queue);
    }
    atomic_store(&queue->has_times, (timed || (observed && !plain)) && device->queues.elapsed);
    if (status) {
        free(vendor);
        return gpuhal_device_failed(device, status, "%s", what);
    }
    *out_vendor = vendor;
    return GPUHAL_OK;
}

/* How long to wait for other users of the plugin queue's events. */
#define EVENTS_NS UINT64_C(100000000)

/* The observer also uses events. Work of a lost device counts as ended. */
bool gpuhal_queue_await_events_unlocks(gpuhal_queue *queue)
{
    while (queue->timepoints) {
        gpuhal_timepoint *oldest = gpuhal_timepoint_retain(queue->timepoints);
        gpuhal_mutex_unlock(&queue->mutex);
        gpuhal_timepoint_block(oldest);
        gpuhal_timepoint_release(oldest);
        gpuhal_queue_lock(queue);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    queue->observer->ends(queue);
    gpuhal_queue_lock(queue);
    (void)gpuhal_queue_retire_unlocks(queue);
    if (gpuhal_queue_has_events(queue) && !atomic_load(&queue->device->lost)) {
        gpuhal_queue_wait_at(queue, GPUHAL_WAITS_RETRY, gpuhal_deadline(EVENTS_NS));
    }
    return !gpuhal_queue_has_events(queue) || atomic_load(&queue->device->lost);
}

/* The old plugin queue is released only after the new one was created. If the creation fails, the queue keeps the old
 * one. */
gpuhal_status gpuhal_queue_replace_vendor_unlocks(gpuhal_queue *queue, bool renews)
{
    gpuhal_vendor_queue *fresh = NULL;
    gpuhal_status status = gpuhal_queue_begin_late_call(queue);
    if (status) {
        return status;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    status = renews ? gpuhal_queue_make_vendor(queue, &fresh) : GPUHAL_OK;
    if (!status) {
        gpuhal_queue_drop_vendor(queue);
    }
    gpuhal_queue_lock(queue);
    if (!status) {
        queue->counted = fresh;
        queue->vendor = fresh ? fresh->queue : NULL;
        queue->done = queue->recorded = queue->submitted;
        gpuhal_queue_note_busy(queue);
    }
    gpuhal_queue_end_call(queue);
    (void)gpuhal_queue_retire_unlocks(queue);
    return status;
}

void gpuhal_queue_finish(gpuhal_queue *queue)
{
    atomic_store(&queue->in_flight, false);
    gpuhal_queue_await_followed(queue);
    gpuhal_queue_forget_awaited(queue);
    gpuhal_service_remove(queue);
    queue->observer->ends(queue);
    gpuhal_queue_drop_vendor(queue);
    gpuhal_queue_lock(queue);
    queue->vendor = NULL;
    do { /* repeated, because a pool may still call gpuhal_queue_hold() */
        queue->done = queue->submitted;
    } while (gpuhal_queue_retire_unlocks(queue));
    gpuhal_queue_note_busy(queue);
    gpuhal_queue_change(&queue->life, GPUHAL_QUEUE_FINISHED);
    gpuhal_condition_signal_all(&queue->condition);
    gpuhal_mutex_unlock(&queue->mutex);
}
