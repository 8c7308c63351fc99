/* queue/timeline_ring.c: see timeline.h; the ring, the begin and end of a trace, and a queue's list of pieces. Nothing
 * here calls a plugin. */
#include "queue/timeline.h"

#include "base/error.h"
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 65536, PIECES_MOST = 1 << 24 };

static void empty(gpuhal_timeline *timeline)
{
    for (uint64_t i = 0; timeline->ring && i < timeline->capacity; i++) {
        free(timeline->ring[i].name);
    }
    if (timeline->ring) {
        gpuhal_os_pages_unmap(timeline->ring, timeline->capacity * sizeof *timeline->ring);
    }
    timeline->ring = NULL;
}

gpuhal_timeline *gpuhal_timeline_create(void)
{
    gpuhal_timeline *timeline = calloc(1, sizeof *timeline);
    if (timeline) {
        gpuhal_mutex_init(&timeline->mutex);
        timeline->first = 1;
    }
    return timeline;
}

void gpuhal_timeline_destroy(gpuhal_timeline *timeline)
{
    if (timeline) {
        empty(timeline);
        gpuhal_mutex_finish(&timeline->mutex);
        free(timeline);
    }
}

/* Of two pieces for one place the newer one stays. What an earlier trace began is not of this one. */
void gpuhal_timeline_keep(gpuhal_timeline *timeline, gpuhal_traced_record *record)
{
    gpuhal_mutex_lock(&timeline->mutex);
    gpuhal_traced_record *place =
        record->number >= timeline->first ? &timeline->ring[record->number % timeline->capacity] : NULL;
    if (place) {
        timeline->ended++;
        timeline->dropped += place->number != 0;
    }
    if (place && place->number < record->number) {
        char *old = place->name;
        *place = *record;
        record->name = old;
    }
    gpuhal_mutex_unlock(&timeline->mutex);
    free(record->name);
}

gpuhal_status gpuhal_timeline_start(gpuhal_timeline *timeline, uint32_t pieces)
{
    const uint64_t capacity = pieces ? pieces : PIECES;
    if (pieces > PIECES_MOST) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_trace_start: %u pieces are more than %d", pieces,
                                PIECES_MOST);
    }
    gpuhal_mutex_lock(&timeline->mutex);
    empty(timeline);
    timeline->ring = gpuhal_os_pages_map(capacity * sizeof *timeline->ring);
    timeline->capacity = capacity;
    timeline->first = timeline->ring ? timeline->count + 1 : UINT64_MAX;
    timeline->ended = timeline->dropped = 0;
    const bool good = timeline->ring != NULL;
    atomic_store(&timeline->on, good);
    gpuhal_mutex_unlock(&timeline->mutex);
    return good ? GPUHAL_OK : gpuhal_error_host_memory();
}

/* ---- pieces of a queue */

void gpuhal_timeline_order(gpuhal_queue *queue, gpuhal_traced *traced)
{
    if (traced) {
        queue->trace.last = traced->record.number;
        memcpy(traced->record.after, queue->trace.after, sizeof traced->record.after);
        memset(queue->trace.after, 0, sizeof queue->trace.after);
    }
}

void gpuhal_timeline_dropped(gpuhal_traced *traced, gpuhal_status status)
{
    if (!traced) {
        return;
    }
    gpuhal_queue *queue = traced->queue;
    traced->record.begin_ns = traced->record.end_ns = gpuhal_os_monotonic_ns();
    traced->record.clock = GPUHAL_CLOCK_NONE;
    traced->record.path = GPUHAL_TRACED_WORKER;
    traced->record.status = (int16_t)(status ? status : traced->record.status);
    gpuhal_timepoint_release(traced->begin);
    traced->begin = NULL;
    gpuhal_queue_lock(queue);
    gpuhal_timeline_append(queue, traced);
    gpuhal_mutex_unlock(&queue->mutex);
}

/* More than there is room for are not shown. */
void gpuhal_timeline_wait(gpuhal_queue *queue, const gpuhal_timepoint *timepoint)
{
    if (!gpuhal_timeline_is_on(queue) || !timepoint->queue || timepoint->queue == queue || timepoint->piece == 0) {
        return;
    }
    gpuhal_queue_lock(queue);
    for (int i = 0; i < GPUHAL_TRACED_AFTER; i++) {
        uint64_t *after = &queue->trace.after[i];
        if (*after == 0 || *after == timepoint->piece) {
            *after = timepoint->piece;
            break;
        }
    }
    gpuhal_mutex_unlock(&queue->mutex);
}
