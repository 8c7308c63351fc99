/* pool/trace_calls.c: the public functions that begin, end and write traces. This is the lowest layer that can access
 * both pool traces and queue traces (queue/timeline.h). */
#include "pool/pool.h"

#include "base/error.h"
#include "queue/timeline.h"

#include <gpuhal/trace.h>

#include <string.h>

static const gpuhal_trace_kind every_kind = GPUHAL_TRACE_QUEUES | GPUHAL_TRACE_POOLS;

static gpuhal_status check(const char *call, const gpuhal *gpu, gpuhal_trace_kind kinds)
{
    if (!gpu || kinds == 0 || (kinds & ~every_kind)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: gpu is NULL, or there is no such kind of trace",
                                call);
    }
    return gpuhal_check(gpu);
}

static void stop(gpuhal *gpu, gpuhal_trace_kind kinds)
{
    if (kinds & GPUHAL_TRACE_QUEUES) {
        atomic_store(&gpu->layers.timeline->on, false);
    }
    if (kinds & GPUHAL_TRACE_POOLS) {
        atomic_store(&gpu->layers.pools->trace.on, false);
    }
}

gpuhal_status gpuhal_trace_start(gpuhal *gpu, const gpuhal_trace_desc *given)
{
    gpuhal_trace_desc desc = {.size = sizeof desc};
    if (given && given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_trace_start: the size of the description is 0");
    }
    if (given) {
        memcpy(&desc, given, given->size < sizeof desc ? given->size : sizeof desc);
    }
    const gpuhal_trace_kind kinds = desc.kinds ? desc.kinds : GPUHAL_TRACE_QUEUES;
    gpuhal_status status = check("gpuhal_trace_start", gpu, kinds);
    if (!status && (kinds & GPUHAL_TRACE_QUEUES)) {
        status = gpuhal_timeline_start(gpu->layers.timeline, desc.pieces);
    }
    if (!status && (kinds & GPUHAL_TRACE_POOLS)) {
        status = gpuhal_trace_begin(&gpu->layers.pools->trace);
        if (status) {
            stop(gpu, kinds);
        }
    }
    return status;
}

gpuhal_status gpuhal_trace_stop(gpuhal *gpu, gpuhal_trace_kind kinds)
{
    const gpuhal_status status = check("gpuhal_trace_stop", gpu, kinds);
    if (!status) {
        stop(gpu, kinds);
    }
    return status;
}

gpuhal_status gpuhal_trace_write(gpuhal *gpu, gpuhal_trace_kind kind, const char *path)
{
    if (!path || kind == every_kind) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_trace_write: path is NULL, or there is more than one kind");
    }
    const gpuhal_status status = check("gpuhal_trace_write", gpu, kind);
    if (status) {
        return status;
    }
    return kind == GPUHAL_TRACE_QUEUES ? gpuhal_timeline_write(gpu, path) : gpuhal_trace_write_pools(gpu, path);
}
