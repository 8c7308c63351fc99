/* transfer/host_point.c: points that the host ends, of events with GPUHAL_EVENT_HOST. Such a point belongs to no queue and reaches no driver:
 * drivers with one queue, or that work inside the call, would wait for themselves. */
#include "transfer/point.h"

#include <stdlib.h>

typedef struct host_point {
    gpuhal_point point;         /* first: one is the other */
    gpuhal_mutex mutex;         /* protects the point */
    gpuhal_condition condition; /* it is done */
} host_point;

static host_point *of(gpuhal_point *point)
{
    return (host_point *)point;
}

gpuhal_point *gpuhal_host_point_create(void)
{
    host_point *made = calloc(1, sizeof *made);
    if (!made) {
        return NULL;
    }
    atomic_init(&made->point.references, 1);
    atomic_init(&made->point.state, GPUHAL_POINT_HELD);
    atomic_init(&made->point.retired, true);
    gpuhal_mutex_init(&made->mutex);
    gpuhal_condition_init(&made->condition);
    return &made->point;
}

void gpuhal_host_point_free(gpuhal_point *point)
{
    gpuhal_cause_release(point->cause);
    gpuhal_condition_finish(&of(point)->condition);
    gpuhal_mutex_finish(&of(point)->mutex);
    free(of(point));
}

void gpuhal_host_point_lock(gpuhal_point *point)
{
    gpuhal_mutex_lock(&of(point)->mutex);
}

void gpuhal_host_point_unlock(gpuhal_point *point)
{
    gpuhal_mutex_unlock(&of(point)->mutex);
}

bool gpuhal_host_point_signal(gpuhal_point *point, gpuhal_cause *cause)
{
    gpuhal_watcher *told = NULL;
    gpuhal_host_point_lock(point);
    bool first = gpuhal_point_now(point) != GPUHAL_POINT_DONE;
    gpuhal_point_finish(point, cause, &told);
    gpuhal_condition_signal_all(&of(point)->condition);
    gpuhal_host_point_unlock(point);
    gpuhal_watchers_tell(told);
    return first;
}

gpuhal_status gpuhal_host_point_wait(gpuhal_point *point, uint64_t deadline_ns)
{
    gpuhal_host_point_lock(point);
    while (gpuhal_point_now(point) != GPUHAL_POINT_DONE && gpuhal_os_monotonic_ns() < deadline_ns) {
        if (deadline_ns == UINT64_MAX) {
            gpuhal_condition_wait(&of(point)->condition, &of(point)->mutex);
        } else {
            gpuhal_condition_wait_until(&of(point)->condition, &of(point)->mutex, deadline_ns);
        }
    }
    gpuhal_host_point_unlock(point);
    return gpuhal_point_now(point) == GPUHAL_POINT_DONE
               ? gpuhal_point_result(point)
               : gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "the host has not signalled the event");
}
