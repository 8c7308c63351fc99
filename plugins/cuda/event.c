/* cuda/event.c: checks, creates, records and destroys CUDA's streams and events. */
#include "device.h"

#include <stdlib.h>

gpuhal_status gpuhal_cuda_check_stream(gpuhal_plugin_device *device, CUstream stream)
{
    CUcontext context = device->context; /* remains unchanged if the driver cannot report the stream's context */
    const CUresult code = gpuhal_cuda_may_lack(gpuhal_cuda_api.cuStreamGetCtx(stream, &context));
    if (code != CUDA_SUCCESS || context != device->context) {
        return gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "cuStreamGetCtx", code,
                                     "values[0] is not a CUstream of the context that this device works in");
    }
    return GPUHAL_OK;
}

void gpuhal_cuda_queue_destroy(gpuhal_plugin_queue *queue)
{
    gpuhal_cuda_scope scope;
    if (!queue->adopted && gpuhal_cuda_enter_to_release(queue->device, &scope) == CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuStreamDestroy_v2(queue->stream);
        gpuhal_cuda_leave(&scope);
    }
    free(queue);
}

/* Creates an event whose waiting thread sleeps until the device interrupts. Timing makes recording slower, so timing is
 * enabled only on request. */
CUresult gpuhal_cuda_create_events(gpuhal_plugin_event *event, bool timed)
{
    return gpuhal_cuda_api.cuEventCreate(&event->event,
                                         CU_EVENT_BLOCKING_SYNC | (timed ? 0 : CU_EVENT_DISABLE_TIMING));
}

void gpuhal_cuda_event_destroy(gpuhal_plugin_event *event)
{
    gpuhal_cuda_scope scope;
    if (gpuhal_cuda_enter_to_release(event->device, &scope) == CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuEventDestroy_v2(event->event);
        gpuhal_cuda_leave(&scope);
    }
    free(event);
}

CUresult gpuhal_cuda_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    return gpuhal_cuda_api.cuEventRecord(event->event, queue->stream);
}
