/* queue/record.c: records timepoints in the plugin's queue, and handles refusals by the plugin. */
#include "base/error.h"
#include "queue/queue.h"
#include "transfer/plugin_event.h"

/* The plugin may have enqueued part of the work, so the queue fails. BUSY is the exception, because the
 * plugin has done nothing: a buffer is mapped, this thread's own native access has locked the vendor's queue, or the
 * application is capturing the vendor's queue. */
gpuhal_status gpuhal_queue_refused(gpuhal_queue *queue, gpuhal_status status)
{
    if (status == GPUHAL_ERROR_BUSY) {
        return status;
    }
    gpuhal_failure *failure = gpuhal_failure_create();
    gpuhal_queue_break(queue, failure, false);
    status = gpuhal_failure_status(failure);
    gpuhal_failure_release(failure);
    return status;
}

gpuhal_status gpuhal_queue_make_event(gpuhal_queue *queue, bool timed, gpuhal_plugin_event **out_event)
{
    *out_event = gpuhal_queue_take_event(queue, timed);
    const gpuhal_status status =
        *out_event ? GPUHAL_OK : gpuhal_plugin_event_create(queue->device, timed ? GPUHAL_TIMED : 0, out_event);
    return status ? gpuhal_device_failed(queue->device, status, "creating an event") : GPUHAL_OK;
}

gpuhal_status gpuhal_queue_record_event_in(gpuhal_queue *queue, gpuhal_timepoint *timepoint, gpuhal_plugin_event *event)
{
    gpuhal_device *device = queue->device;
    gpuhal_status status = gpuhal_plugin_event_record(device, queue->vendor, event);
    if (status) {
        status = status == GPUHAL_NOT_READY
                     ? status
                     : gpuhal_queue_refused(queue, gpuhal_device_failed(device, status, "recording an event"));
        gpuhal_queue_put_event(queue, event, timepoint->timed);
        return status;
    }
    gpuhal_timepoint_give_event(timepoint, event);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_queue_submit_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint)
{
    gpuhal_plugin_event *event = NULL;
    const gpuhal_status status = gpuhal_queue_make_event(queue, timepoint->timed, &event);
    return status ? status : gpuhal_queue_record_event_in(queue, timepoint, event);
}

/* The list holds a reference. The state is stored last, with release order: a thread that reads SUBMITTED without the
 * mutex may poll the event immediately. */
void gpuhal_queue_append_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint)
{
    timepoint->number = queue->submitted;
    queue->recorded = queue->submitted;
    timepoint->next = NULL;
    *queue->timepoints_end = gpuhal_timepoint_retain(timepoint);
    queue->timepoints_end = &timepoint->next;
    atomic_store_explicit(&timepoint->state, GPUHAL_TIMEPOINT_SUBMITTED, memory_order_release);
}

void gpuhal_queue_track_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint, gpuhal_completion **completions)
{
    if (gpuhal_queue_has_failed(queue)) {
        gpuhal_timepoint_finish(timepoint, queue->failure, completions);
        timepoint->next = queue->ended;
        queue->ended = gpuhal_timepoint_retain(timepoint);
    } else {
        gpuhal_queue_append_timepoint(queue, timepoint);
    }
}
