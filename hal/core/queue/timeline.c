/* queue/timeline.c: see timeline.h; pieces while the plugin or the worker has their work, and their times.
 *
 * The clocks of the device and the host have no fixed relation: one is slower, or begins anew. So each interval of the
 * device's is short, from the end of one piece to the begin of the next and from there to its end, and what the host
 * knows moves them: a piece begins no earlier than it was given to the driver, and ends no later than that was noticed.
 */
#include "queue/timeline.h"

#include "base/error.h"
#include "base/text.h"
#include "memory/buffer.h"
#include "queue/queue.h"
#include "transfer/file.h"

#include <stdlib.h>
#include <string.h>

/* ---- the times of a piece */

/* By the device's clock, from where the piece before ended. False: it has none for them. Only the thread that takes
 * from the list. */
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
            atomic_store(&own->timed, false); /* it would not be another time either */
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

/* A piece that has left the list. */
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
    /* Readers that add begin and duration in floating point (speedscope) would see a piece that ends where the next one
     * begins as one around it. */
    record->begin_ns = record->begin_ns <= own->last_ns ? own->last_ns + 1 : record->begin_ns;
    record->end_ns = record->end_ns < record->begin_ns ? record->begin_ns : record->end_ns;
    if (record->form != GPUHAL_OP_EVENT || record->clock == GPUHAL_CLOCK_DEVICE) {
        own->last_ns = record->end_ns; /* else what comes next may have begun before the event was noticed */
    }
    gpuhal_timeline_keep(queue->timeline, record);
    gpuhal_timepoint_release(traced->begin);
    gpuhal_timepoint_release(traced->end);
    free(traced);
}

/* With the mutex held. */
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

void gpuhal_timeline_take(gpuhal_queue *queue, bool all)
{
    gpuhal_queue_timeline *own = &queue->trace;
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_queue_lock(queue);
    own->ends = own->ends || all;
    gpuhal_timepoint *base = NULL;
    if (!own->taking) {
        own->taking = true;
        for (gpuhal_traced *traced = own->first; traced && (own->ends || has_ended_unlocks(queue, traced));
             traced = own->first) {
            own->first = traced->next;
            own->end = own->first ? own->end : &own->first;
            gpuhal_mutex_unlock(&queue->mutex);
            finish(queue, traced);
            gpuhal_queue_lock(queue);
        }
        base = own->ends ? own->base : NULL;
        own->base = own->ends ? NULL : own->base;
        own->taking = false;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_timepoint_release(base);
    (void)gpuhal_error_restore(&before);
}

/* ---- pieces on their way */

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
        memcpy(record->groups, op->uses->groups, sizeof record->groups);
    }
}

gpuhal_traced *gpuhal_timeline_enqueue(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_timeline *timeline = queue->timeline;
    gpuhal_timeline_take(queue, false);
    gpuhal_traced *traced = op && op->kind->form == GPUHAL_OP_KEEP ? NULL : calloc(1, sizeof *traced);
    if (!traced) {
        return NULL;
    }
    traced->queue = queue;
    traced->record.device = queue->device;
    traced->record.queue = queue->trace.number;
    if (op) {
        describe(&traced->record, op);
    } else {
        traced->record.form = GPUHAL_OP_EVENT;
    }
    traced->record.enqueued_ns = traced->record.begin_ns = gpuhal_os_monotonic_ns();
    gpuhal_mutex_lock(&timeline->mutex);
    traced->record.number = ++timeline->count;
    gpuhal_mutex_unlock(&timeline->mutex);
    return traced;
}

/* A timepoint at this place of the plugin's queue; NULL: there is none. With the right to call and without the mutex.
 * As everywhere, a plugin that refuses to record for good has failed the queue. */
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

/* Without the mutex: the piece is to have no event before the work. */
static void forget_begin(gpuhal_traced *traced)
{
    gpuhal_timepoint_release(traced->begin);
    traced->begin = NULL;
}

void gpuhal_timeline_submit(gpuhal_queue *queue, gpuhal_traced *traced)
{
    if (!traced) {
        return;
    }
    forget_begin(traced); /* of an attempt that the plugin put off */
    traced->record.path =
        traced->record.usage == GPUHAL_USAGE_PAIR ? GPUHAL_TRACED_PATH + GPUHAL_PATH_PEER : GPUHAL_TRACED_DIRECT;
    traced->record.begin_ns = gpuhal_os_monotonic_ns();
    traced->begin = atomic_load(&queue->trace.timed) ? stamp(queue, true) : NULL;
}

void gpuhal_timeline_submitted_unlocks(gpuhal_queue *queue, const gpuhal_op *op)
{
    gpuhal_traced *traced = op->traced;
    if (!traced) {
        return;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    traced->end = stamp(queue, traced->begin != NULL);
    traced->record.end_ns = traced->record.begin_ns;
    gpuhal_queue_lock(queue);
    gpuhal_timeline_append(queue, traced);
}

void gpuhal_timeline_ran(gpuhal_queue *queue, const gpuhal_op *op, uint64_t begin_ns, gpuhal_status status)
{
    gpuhal_traced *traced = op->traced;
    gpuhal_path path = 0;
    if (!traced) {
        return;
    }
    traced->record.begin_ns = begin_ns;
    traced->record.end_ns = gpuhal_os_monotonic_ns();
    traced->record.clock = GPUHAL_CLOCK_HOST;
    traced->record.status = (int16_t)status;
    traced->record.path = traced->record.usage == GPUHAL_USAGE_PAIR && gpuhal_copy_path(op->to, op->from, &path) == 0
                              ? (uint8_t)(GPUHAL_TRACED_PATH + path)
                              : GPUHAL_TRACED_WORKER;
    forget_begin(traced);
    gpuhal_queue_lock(queue);
    gpuhal_timeline_append(queue, traced);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_timeline_take(queue, false);
}
