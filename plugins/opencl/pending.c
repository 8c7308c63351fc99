/* opencl/pending.c: the events of a queue's commands that are not known to have ended. */
#include "device.h"

#include <stdlib.h>
#include <string.h>

/* Number of commands between two checks of earlier commands. */
#define LOOK_EVERY 16u

/* If a command fails, the driver also fails the later commands that were enqueued before the failure. With some drivers
 * (PoCL) commands that are enqueued after the failure run normally, so each command is checked after it has ended. Only
 * errors of commands after the last recording are stored for the next recording, because the last recording reports
 * earlier errors itself. */
void gpuhal_opencl_queue_retire(gpuhal_plugin_queue *queue)
{
    uint32_t gone = 0;
    while (gone < queue->pending_count) {
        cl_int execution = CL_COMPLETE;
        const bool known = gpuhal_opencl_execution(queue->pending[gone], &execution) == CL_SUCCESS;
        if (known && execution > CL_COMPLETE) {
            break;
        }
        if (known && execution < CL_COMPLETE && gone >= queue->recorded && queue->error == CL_SUCCESS) {
            queue->error = execution;
        }
        gpuhal_opencl_api.clReleaseEvent(queue->pending[gone++]);
    }
    queue->pending_count -= gone;
    queue->recorded -= gone < queue->recorded ? gone : queue->recorded;
    if (gone > 0) {
        memmove(queue->pending, queue->pending + gone, queue->pending_count * sizeof *queue->pending);
    }
}

bool gpuhal_opencl_queue_grow(gpuhal_plugin_queue *queue)
{
    const uint32_t space = queue->pending_space + LOOK_EVERY + queue->pending_space / 2;
    cl_event *grown = realloc(queue->pending, space * sizeof *grown);
    if (grown) {
        queue->pending = grown;
        queue->pending_space = space;
    }
    return grown != NULL;
}

/* Retains events until their commands have ended, because PoCL 3.1 aborts if a command fails and its event has no
 * references. Checks several events at a time, because the driver's threads are using the latest events. If out of
 * memory, releases the previous event unchecked, whether recorded or not. A previous event always exists, since a new
 * queue has space for events. */
void gpuhal_opencl_queue_keep(gpuhal_plugin_queue *queue, cl_event event)
{
    if (queue->pending_count % LOOK_EVERY == 0) {
        gpuhal_opencl_queue_retire(queue);
    }
    if (queue->pending_count == queue->pending_space && !gpuhal_opencl_queue_grow(queue)) {
        gpuhal_opencl_api.clReleaseEvent(queue->pending[--queue->pending_count]);
        queue->recorded = queue->recorded < queue->pending_count ? queue->recorded : queue->pending_count;
    }
    queue->pending[queue->pending_count++] = event;
}
