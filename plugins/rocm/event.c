/* rocm/event.c: validates HIP streams, and creates, records and destroys streams and events.
 *
 * While a thread sleeps in hipEventSynchronize, HIP holds a lock of the event (hip_event.cpp, Event::synchronize), and
 * every other call with the event waits for the lock. So each event has a twin that is recorded right after it in the
 * same stream, and threads sleep only for the twin. Sleeping must not add a wait to any stream. HIP maps all streams of
 * one priority to at most four hardware queues, and a wait in a hardware queue delays all streams that share it.
 */
#include "device.h"

#include <stdlib.h>

gpuhal_status gpuhal_rocm_check_stream(gpuhal_plugin_device *device, hipStream_t stream)
{
    const int owner = gpuhal_rocm_stream_device(stream);
    if (owner != -1 && owner != device->entry->device) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "hipStreamGetDevice", 0,
                                    "values[0] is not a hipStream_t of this device");
    }
    return GPUHAL_OK;
}

/* Every call with an event makes HIP access the stream that recorded it. So this function relies on the core's
 * guarantee that no event outlives its queue. */
void gpuhal_rocm_queue_destroy(gpuhal_plugin_queue *queue)
{
    gpuhal_rocm_scope scope;
    if (!queue->adopted && gpuhal_rocm_enter_to_release(queue->device, &scope) == hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipStreamSynchronize(queue->stream));
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipStreamDestroy(queue->stream));
        gpuhal_rocm_leave(&scope);
    }
    free(queue);
}

/* Timing makes recording slower, so `event` has it only if timed. `twin` always has it, because HIP 7 would otherwise
 * spin instead of sleeping (gpuhal_rocm_create_stream()). */
hipError_t gpuhal_rocm_create_events(gpuhal_plugin_event *event, bool timed)
{
    const unsigned flags = hipEventBlockingSync | (timed ? 0 : hipEventDisableTiming);
    hipError_t code = gpuhal_rocm_api.hipEventCreateWithFlags(&event->event, flags);
    if (code != hipSuccess) {
        return code;
    }
    code = gpuhal_rocm_api.hipEventCreateWithFlags(&event->twin, hipEventBlockingSync);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipEventDestroy(event->event));
    }
    return code;
}

void gpuhal_rocm_event_destroy(gpuhal_plugin_event *event)
{
    gpuhal_rocm_scope scope;
    if (gpuhal_rocm_enter_to_release(event->device, &scope) == hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipEventDestroy(event->twin));
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipEventDestroy(event->event));
        gpuhal_rocm_leave(&scope);
    }
    free(event);
}

hipError_t gpuhal_rocm_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    hipError_t code = gpuhal_rocm_api.hipEventRecord(event->event, queue->stream);
    return code == hipSuccess ? gpuhal_rocm_api.hipEventRecord(event->twin, queue->stream) : code;
}
