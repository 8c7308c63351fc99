/* queue/timeline.c: traces pieces of work, determines their times, and keeps the ring; see timeline.h.
 *
 * The device and host clocks have no fixed relation: one clock may be slower than the other, or restart. So device
 * times are used only over short intervals: from the end of one piece to the begin of the next piece, and from a
 * piece's begin to its end. Host times limit both values: a piece cannot begin before the driver received it, or end
 * after the host noticed its end.
 */
#include "queue/timeline.h"

#include "base/error.h"
#include "base/text.h"
#include "memory/buffer.h"
#include "queue/queue.h"
#include "transfer/file.h"

#include <stdlib.h>
#include <string.h>

/* ---- the ring */

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

/* Moves an ended piece's record into the ring. If two pieces have the same slot, the newer piece stays. Pieces that
 * were enqueued in an earlier trace are dropped. */
static void keep(gpuhal_timeline *timeline, gpuhal_traced_record *record)
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

/* ---- the times of a piece */

/* Measures the piece with the device's clock, relative to the end of the last measured piece if there is one. Returns
 * false if the device has no times for the piece. Only the thread that takes pieces from the list may call this
 * function. */
static bool measure(gpuhal_queue *queue, gpuhal_traced *traced)
{
    gpuhal_queue_timeline *own = &queue->trace;
    gpuhal_traced_record *record = &traced->record;
    const bool is_event = record->form == GPUHAL_OP_EVENT;
    const gpuhal_timepoint *begin = is_event && traced->end->timed ? traced->end : traced->begin;
    uint64_t before = 0, lasted = 0;
    if (!begin || !begin->event || !traced->end->event) {
        return false;
    }
    gpuhal_status status = is_event ? GPUHAL_OK : gpuhal_timepoint_elapsed(begin, traced->end, &lasted);
    status = status || !own->base ? status : gpuhal_timepoint_elapsed(own->base, begin, &before);
    if (status) {
        if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
            atomic_store(&queue->has_times, false); /* the device will not report times later either */
        }
        gpuhal_timepoint_release(own->base);
        own->base = NULL;
        return false;
    }
    const uint64_t earliest = record->begin_ns, latest = traced->end->done_ns;
    const uint64_t begun = own->base ? own->base_ns + before : earliest;
    uint64_t from = begun < earliest ? earliest : begun, to = from + lasted;
    from = to > latest ? from - (from < to - latest ? from : to - latest) : from;
    to = to > latest ? latest : to;
    record->begin_ns = from < earliest ? earliest : from;
    record->end_ns = to < record->begin_ns ? record->begin_ns : to;
    record->clock = GPUHAL_CLOCK_DEVICE;
    gpuhal_timepoint_release(own->base);
    own->base = traced->end;
    own->base_ns = record->end_ns;
    traced->end = NULL;
    return true;
}

static void finish(gpuhal_queue *queue, gpuhal_traced *traced)
{
    gpuhal_queue_timeline *own = &queue->trace;
    gpuhal_traced_record *record = &traced->record;
    const gpuhal_timepoint *end = traced->end;
    const bool is_done = end && gpuhal_timepoint_now(end) == GPUHAL_TIMEPOINT_DONE;
    if (end && (!is_done || end->failure)) {
        record->status = (int16_t)(is_done ? end->failure->detail.error.status : GPUHAL_ERROR_DEVICE_LOST);
        record->clock = is_done ? GPUHAL_CLOCK_HOST : GPUHAL_CLOCK_NONE;
        record->end_ns = is_done ? end->done_ns : gpuhal_os_monotonic_ns();
    } else if (end && !measure(queue, traced)) {
        record->clock = GPUHAL_CLOCK_HOST;
        record->end_ns = end->done_ns;
    }
    /* Some viewers (speedscope) add begin and duration in floating point. If a piece begins exactly at another piece's
     * end, these viewers would nest the second piece inside the first. */
    record->begin_ns = record->begin_ns <= own->last_ns ? own->last_ns + 1 : record->begin_ns;
    record->end_ns = record->end_ns < record->begin_ns ? record->begin_ns : record->end_ns;
    if (record->form != GPUHAL_OP_EVENT || record->clock == GPUHAL_CLOCK_DEVICE) {
        own->last_ns = record->end_ns; /* not for an event with host time: its end may have been noticed after the next
                                        * piece began */
    }
    keep(queue->device->gpu->layers.timeline, record);
    gpuhal_timepoint_release(traced->begin);
    gpuhal_timepoint_release(traced->end);
    free(traced);
}

static bool has_ended_unlocks(gpuhal_queue *queue, const gpuhal_traced *traced)
{
    gpuhal_timepoint *end = traced->end;
    if (!end || gpuhal_timepoint_now(end) == GPUHAL_TIMEPOINT_DONE) {
        return true;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    (void)gpuhal_timepoint_poll(end);
    gpuhal_queue_lock(queue);
    return gpuhal_timepoint_now(end) == GPUHAL_TIMEPOINT_DONE;
}

void gpuhal_timeline_take(gpuhal_queue *queue)
{
    gpuhal_queue_timeline *own = &queue->trace;
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_queue_lock(queue);
    gpuhal_timepoint *base = NULL;
    if (!own->taking) {
        own->taking = true;
        for (gpuhal_traced *traced = own->first;
             traced && (gpuhal_queue_is_closed(queue) || has_ended_unlocks(queue, traced)); traced = own->first) {
            own->first = traced->next;
            own->end = own->first ? own->end : &own->first;
            gpuhal_mutex_unlock(&queue->mutex);
            finish(queue, traced);
            gpuhal_queue_lock(queue);
        }
        base = gpuhal_queue_is_closed(queue) || gpuhal_queue_has_failed(queue) ? own->base : NULL;
        own->base = base ? NULL : own->base;
        own->taking = false;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_timepoint_release(base);
    (void)gpuhal_error_restore(&before);
}

/* ---- the transitions of pieces */

static gpuhal_trace_usage usage_of(const gpuhal_op *op)
{
    const bool both = op->to && op->from;
    switch (op->kind->form) {
    case GPUHAL_OP_FILL:
        return GPUHAL_USAGE_FILLED;
    case GPUHAL_OP_JOB:
        return ((const gpuhal_file_job *)op->job)->writes ? GPUHAL_USAGE_READ : GPUHAL_USAGE_WRITTEN;
    case GPUHAL_OP_WRITE:
    case GPUHAL_OP_READ:
    case GPUHAL_OP_COPY:
    case GPUHAL_OP_RECT:
        return both       ? (op->to->device == op->from->device ? GPUHAL_USAGE_COPIED : GPUHAL_USAGE_PAIR)
               : op->from ? GPUHAL_USAGE_READ
                          : GPUHAL_USAGE_WRITTEN;
    default:
        return GPUHAL_USAGE_NONE;
    }
}

static void describe(gpuhal_traced_record *record, const gpuhal_op *op)
{
    if (op->record) {
        record->form = GPUHAL_OP_EVENT;
        return;
    }
    record->form = (uint8_t)op->kind->form;
    record->usage = (uint8_t)usage_of(op);
    record->bytes = op->kind->form == GPUHAL_OP_JOB  ? ((const gpuhal_file_job *)op->job)->bytes
                    : record->usage != GPUHAL_USAGE_NONE ? op->bytes
                                                         : 0;
    if (record->usage == GPUHAL_USAGE_PAIR) {
        record->from = op->from->device;
        record->to = op->to->device;
    }
    if (op->uses) {
        record->name = gpuhal_text_copy(op->uses->name);
        if (op->uses->groups) {
            memcpy(record->groups, op->uses->groups, sizeof record->groups);
        }
    }
}

static void *enqueue(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_timeline *timeline = queue->device->gpu->layers.timeline;
    gpuhal_timeline_take(queue);
    gpuhal_traced *traced = !op->record && op->kind->form == GPUHAL_OP_KEEP ? NULL : calloc(1, sizeof *traced);
    if (!traced) {
        return NULL;
    }
    traced->record.device = queue->device;
    traced->record.queue = queue->trace.number;
    describe(&traced->record, op);
    traced->record.enqueued_ns = traced->record.begin_ns = gpuhal_os_monotonic_ns();
    gpuhal_mutex_lock(&timeline->mutex);
    traced->record.number = ++timeline->count;
    gpuhal_mutex_unlock(&timeline->mutex);
    return traced;
}

/* Records a timepoint at this position of the plugin's queue. Returns NULL on failure. If the plugin refuses the
 * timepoint for good, the queue fails. The caller has the right to call, but not the mutex. */
static gpuhal_timepoint *stamp(gpuhal_queue *queue, bool timed)
{
    gpuhal_error_detail before;
    gpuhal_completion *none = NULL;
    gpuhal_timepoint *timepoint = gpuhal_timepoint_create(queue, timed);
    if (!timepoint) {
        return NULL;
    }
    gpuhal_error_save(&before);
    timepoint->stamped = true;
    const gpuhal_status status = gpuhal_queue_submit_timepoint(queue, timepoint);
    if (!status) {
        gpuhal_queue_lock(queue);
        gpuhal_queue_track_timepoint(queue, timepoint, &none);
        gpuhal_mutex_unlock(&queue->mutex);
    }
    (void)gpuhal_error_restore(&before);
    if (status) {
        gpuhal_timepoint_release(timepoint);
    }
    return status ? NULL : timepoint;
}

/* Sets the work's position in the queue's order, unless it is already set. A recorded event comes after the newest
 * piece. */
static void place(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    gpuhal_traced *traced = op->observed;
    gpuhal_queue_timeline *own = &queue->trace;
    (void)status;
    if (op->record && !traced->placed) {
        op->record->observed = own->last;
    } else if (!traced->placed) {
        own->last = traced->record.number;
        memcpy(traced->record.after, own->after, sizeof own->after);
        memset(own->after, 0, sizeof own->after);
    }
    traced->placed = true;
}

/* A recorded event's end is its timepoint, even if the timepoint has failed. Only if the enqueuing call failed, the
 * timepoint is still DEFERRED, and the piece has no end. The caller holds the mutex. */
static void append(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_traced *traced = op->observed;
    if (op->record && gpuhal_timepoint_now(op->record) != GPUHAL_TIMEPOINT_DEFERRED) {
        traced->end = gpuhal_timepoint_retain(op->record);
    }
    *queue->trace.end = traced;
    queue->trace.end = &traced->next;
}

static void submits(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    gpuhal_traced *traced = op->observed;
    gpuhal_timepoint_release(traced->begin); /* from an attempt that the plugin deferred */
    traced->record.path =
        traced->record.usage == GPUHAL_USAGE_PAIR ? GPUHAL_TRACED_PATH + GPUHAL_PATH_PEER : GPUHAL_TRACED_DIRECT;
    (void)status;
    traced->record.begin_ns = traced->record.end_ns = gpuhal_os_monotonic_ns();
    traced->begin = atomic_load(&queue->has_times) ? stamp(queue, true) : NULL;
}

static void submitted_unlocks(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    gpuhal_traced *traced = op->observed;
    place(queue, op, status);
    if (!op->record) {
        gpuhal_mutex_unlock(&queue->mutex);
        traced->end = stamp(queue, traced->begin != NULL);
        gpuhal_queue_lock(queue);
    }
    append(queue, op);
}

static void runs(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    gpuhal_traced *traced = op->observed;
    (void)queue, (void)status;
    traced->record.begin_ns = gpuhal_os_monotonic_ns();
}

static void ran(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    gpuhal_traced_record *record = &((gpuhal_traced *)op->observed)->record;
    gpuhal_path path = 0;
    record->end_ns = gpuhal_os_monotonic_ns();
    record->clock = GPUHAL_CLOCK_HOST;
    record->status = (int16_t)status;
    record->bytes = op->kind->form == GPUHAL_OP_JOB ? ((const gpuhal_file_job *)op->job)->bytes : record->bytes;
    record->path = record->usage == GPUHAL_USAGE_PAIR && gpuhal_copy_path(op->to, op->from, &path) == 0
                       ? (uint8_t)(GPUHAL_TRACED_PATH + path)
                       : GPUHAL_TRACED_WORKER;
    gpuhal_queue_lock(queue);
    append(queue, op);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_timeline_take(queue);
}

static void dropped(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status status)
{
    gpuhal_traced_record *record = &((gpuhal_traced *)op->observed)->record;
    record->begin_ns = record->end_ns = gpuhal_os_monotonic_ns();
    record->clock = GPUHAL_CLOCK_NONE;
    record->path = GPUHAL_TRACED_WORKER;
    record->status = (int16_t)status;
    append(queue, op);
}

/* At most GPUHAL_TRACED_AFTER waits of each piece are traced. */
static void waits(gpuhal_queue *queue, const gpuhal_timepoint *timepoint)
{
    if (!gpuhal_queue_is_observed(queue) || timepoint->queue == queue || timepoint->observed == 0) {
        return;
    }
    gpuhal_queue_lock(queue);
    for (int i = 0; i < GPUHAL_TRACED_AFTER; i++) {
        uint64_t *after = &queue->trace.after[i];
        if (*after == 0 || *after == timepoint->observed) {
            *after = timepoint->observed;
            break;
        }
    }
    gpuhal_mutex_unlock(&queue->mutex);
}

void gpuhal_timeline_observe(gpuhal_queue *queue)
{
    static const gpuhal_observer observer = {.enqueue = enqueue,
                                             .deferred = place,
                                             .submits = submits,
                                             .runs = runs,
                                             .submitted_unlocks = submitted_unlocks,
                                             .ran = ran,
                                             .dropped = dropped,
                                             .waits = waits,
                                             .ends = gpuhal_timeline_take};
    gpuhal_timeline *timeline = queue->device->gpu->layers.timeline;
    queue->observing = &timeline->on;
    queue->observer = &observer;
    queue->trace.number = atomic_fetch_add(&timeline->queues, 1) + 1;
    queue->trace.end = &queue->trace.first;
}
