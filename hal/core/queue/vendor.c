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
