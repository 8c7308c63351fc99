/* queue/vendor_event.c: a queue's plugin events, and the plugin queue that they keep alive.
 *
 * A plugin must never receive an event of a queue that was destroyed. So the plugin's queue is destroyed only after all
 * of its events. A timepoint has its event from submission until the timepoint is done, no thread is in a call with
 * the event, and no other queue's work waits for the event. A timed timepoint keeps its event, because the application
 * may compare the event's time with that of a much later event. */
#include "queue/queue.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>

gpuhal_vendor_queue *gpuhal_vendor_queue_create(void)
{
    gpuhal_vendor_queue *vendor = calloc(1, sizeof *vendor);
    if (vendor) {
        atomic_init(&vendor->references, 1);
    }
    return vendor;
}

static void release(gpuhal_device *device, gpuhal_vendor_queue *vendor)
{
    if (atomic_fetch_sub_explicit(&vendor->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (gpuhal_device_is_reachable(device)) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->queues.queue_destroy(vendor->queue);
        gpuhal_call_end(call);
    }
    free(vendor);
}

static void destroy_event(gpuhal_device *device, gpuhal_plugin_event *event)
{
    if (gpuhal_device_is_reachable(device)) {
        gpuhal_plugin_event_destroy(device, event);
    }
}

void gpuhal_queue_drop_vendor(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    gpuhal_vendor_queue *vendor = queue->counted;
    queue->counted = NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    for (uint32_t timed = 0; timed < 2; timed++) {
        for (uint32_t i = 0; i < queue->spare_count[timed]; i++) {
            destroy_event(queue->device, queue->spare[timed][i]);
        }
        queue->spare_count[timed] = 0;
    }
    if (vendor) {
        release(queue->device, vendor);
    }
}

bool gpuhal_queue_has_events(const gpuhal_queue *queue)
{
    return queue->counted && atomic_load_explicit(&queue->counted->references, memory_order_acquire) > 1;
}

gpuhal_plugin_event *gpuhal_queue_take_event(gpuhal_queue *queue, bool timed)
{
    gpuhal_queue_lock(queue);
    uint32_t count = queue->spare_count[timed];
    gpuhal_plugin_event *event = count > 0 ? queue->spare[timed][--queue->spare_count[timed]] : NULL;
    gpuhal_mutex_unlock(&queue->mutex);
    return event;
}

/* `vendor` is the plugin queue that recorded the event. After a reset the queue has a different plugin queue. */
static void put_event(gpuhal_queue *queue, const gpuhal_vendor_queue *vendor, gpuhal_plugin_event *event, bool timed)
{
    gpuhal_queue_lock(queue);
    bool kept = vendor == queue->counted && !gpuhal_queue_is_closed(queue) && !gpuhal_queue_has_failed(queue) &&
                queue->spare_count[timed] < GPUHAL_SPARE_EVENTS;
    if (kept) {
        queue->spare[timed][queue->spare_count[timed]++] = event;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    if (!kept) {
        destroy_event(queue->device, event);
    }
}

void gpuhal_queue_put_event(gpuhal_queue *queue, gpuhal_plugin_event *event, bool timed)
{
    put_event(queue, queue->counted, event, timed);
}

void gpuhal_timepoint_give_event(gpuhal_timepoint *timepoint, gpuhal_plugin_event *event)
{
    gpuhal_vendor_queue *vendor = timepoint->queue->counted;
    atomic_fetch_add_explicit(&vendor->references, 1, memory_order_relaxed);
    timepoint->vendor = vendor;
    timepoint->event = event;
    atomic_store_explicit(&timepoint->users, timepoint->timed ? 2 : 1, memory_order_release);
}

/* Never increments a count of 0: the timepoint has no event yet, or the event has been or is about to be released. */
bool gpuhal_timepoint_use_event(gpuhal_timepoint *timepoint)
{
    uint32_t users = atomic_load_explicit(&timepoint->users, memory_order_acquire);
    while (users > 0 && !atomic_compare_exchange_weak_explicit(&timepoint->users, &users, users + 1,
                                                               memory_order_acquire, memory_order_acquire)) {
    }
    return users > 0;
}

void gpuhal_timepoint_leave_event(gpuhal_timepoint *timepoint)
{
    if (atomic_fetch_sub_explicit(&timepoint->users, 1, memory_order_acq_rel) == 1) {
        put_event(timepoint->queue, timepoint->vendor, timepoint->event, timepoint->timed);
        release(timepoint->queue->device, timepoint->vendor);
    }
}
