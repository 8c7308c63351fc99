/* queue/reclaim.c: retires the completed work of all queues when device memory is short, counts the memory that queued
 * work keeps alive, and waits for that work. */
#include "base/error.h"
#include "memory/buffer.h"
#include "queue/completion_service.h"
#include "queue/queue.h"

#include <stdlib.h>
#include <string.h>

/* One reference of a queue to a buffer of the device in `holds`. */
typedef struct hold {
    const gpuhal_buffer *buffer;
    uint64_t bytes;
    uint32_t references; /* the buffer's reference count, which includes all owners */
} hold;

typedef struct holds {
    const gpuhal_device *device;
    hold *list; /* may be NULL; a reference is not counted if out of memory */
    size_t count, space;
} holds;

/* The caller holds the mutex of the queue that has the reference. */
static void add_hold(holds *all, const gpuhal_buffer *buffer)
{
    if (!buffer || buffer->device != all->device || buffer->charged == 0) {
        return;
    }
    if (all->count == all->space) {
        size_t space = all->space ? all->space * 2 : 64;
        hold *grown = realloc(all->list, space * sizeof *grown);
        if (!grown) {
            return;
        }
        all->list = grown;
        all->space = space;
    }
    all->list[all->count++] = (hold){buffer, buffer->charged, atomic_load(&buffer->references)};
}

/* A run of a recording has no references to the buffers. */
static void add_holds_of_uses(holds *all, const gpuhal_uses *uses)
{
    for (uint32_t i = 0; uses && !uses->alone && i < uses->count; i++) {
        add_hold(all, uses->buffers[i].buffer);
    }
}

static void add_holds_of(holds *all, gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    for (size_t i = 0; i < queue->submission_count; i++) {
        const gpuhal_submission *submission =
            &queue->submissions[(queue->first_submission + i) % queue->submission_space];
        add_hold(all, submission->to);
        add_hold(all, submission->from);
        add_hold(all, submission->kept);
        for (const gpuhal_uses *uses = submission->uses; uses; uses = gpuhal_uses_next(uses)) {
            add_holds_of_uses(all, uses);
        }
    }
    for (const gpuhal_deferred *deferred = queue->deferred; deferred; deferred = deferred->next) {
        add_hold(all, deferred->op.to);
        add_hold(all, deferred->op.from);
        add_hold(all, deferred->op.kept);
        add_holds_of_uses(all, deferred->op.uses);
    }
    gpuhal_mutex_unlock(&queue->mutex);
}

static int by_buffer(const void *one, const void *other)
{
    uintptr_t a = (uintptr_t)((const hold *)one)->buffer, b = (uintptr_t)((const hold *)other)->buffer;
    return (a > b) - (a < b);
}

static uint64_t bytes_of_queues_alone(holds *all)
{
    uint64_t bytes = 0;
    if (all->count > 0) {
        qsort(all->list, all->count, sizeof *all->list, by_buffer);
    }
    for (size_t i = 0, next; i < all->count; i = next) {
        for (next = i; next < all->count && all->list[next].buffer == all->list[i].buffer;) {
            next++;
        }
        bytes += next - i >= all->list[i].references ? all->list[i].bytes : 0;
    }
    return bytes;
}

void gpuhal_queue_look_through(gpuhal_queue *queue)
{
    for (bool more = true; more;) {
        gpuhal_queue_lock(queue);
        gpuhal_timepoint *oldest = queue->timepoints ? gpuhal_timepoint_retain(queue->timepoints) : NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        more = oldest && gpuhal_timepoint_poll(oldest) == GPUHAL_OK;
        gpuhal_timepoint_release(oldest);
    }
}

/* Completed work that no thread waited for keeps released buffers alive, even work of other devices' queues. Waits for
 * threads that are retiring work, at most as long as a driver call may take. */
void gpuhal_queues_reclaim(gpuhal_device *device, uint64_t *out_pending)
{
    holds all = {.device = device};
    uint64_t deadline = gpuhal_deadline(device->gpu->settings.hang_ns);
    gpuhal_queue *queue = NULL;
    while ((queue = gpuhal_service_next(device->gpu, NULL, queue)) != NULL) {
        gpuhal_queue_look_through(queue);
        (void)gpuhal_queue_wait_retired(queue, UINT64_MAX, deadline);
        add_holds_of(&all, queue);
    }
    *out_pending = bytes_of_queues_alone(&all);
    free(all.list);
}

/* ---- waiting */

gpuhal_status gpuhal_queues_mark(gpuhal *gpu, gpuhal_queue_marks *out_marks)
{
    size_t count = 0;
    *out_marks = (gpuhal_queue_marks){0};
    gpuhal_queue **queues = gpuhal_service_queues(gpu, NULL, &count);
    gpuhal_timepoint **list = count ? calloc(count, sizeof *list) : NULL;
    for (size_t i = 0; i < count; i++) {
        gpuhal_timepoint *timepoint = NULL;
        const bool busy = list && !gpuhal_queue_has_finished(queues[i]) && !gpuhal_queue_is_quiet(queues[i]);
        if (busy && gpuhal_queue_record(queues[i], false, &timepoint) == GPUHAL_OK) {
            list[out_marks->count++] = timepoint;
        } else if (busy) {
            out_marks->refused = true;
        }
        gpuhal_queue_release(queues[i]);
    }
    free(queues);
    out_marks->list = list;
    return !queues || (count && !list) ? gpuhal_error_host_memory() : GPUHAL_OK;
}

/* Removes the first timepoint or, if `keep` is true, moves it to the end of the list. */
static void move_first(gpuhal_queue_marks *marks, bool keep)
{
    gpuhal_timepoint *first = marks->list[0];
    marks->count -= !keep;
    memmove(marks->list, marks->list + 1, (marks->count - keep) * sizeof(gpuhal_timepoint *));
    if (keep) {
        marks->list[marks->count - 1] = first;
    } else {
        gpuhal_timepoint_release(first);
    }
}

/* How long to wait for one timepoint before checking the other timepoints, whose ends a hanging queue must not hide. */
enum { SLICE_NS = 10000000 };

bool gpuhal_queues_wait_mark(gpuhal_queue_marks *marks, uint64_t deadline_ns)
{
    bool ended = false;
    while (marks->count > 0 && !ended && gpuhal_os_monotonic_ns() < deadline_ns) {
        const uint64_t slice_ns = gpuhal_deadline(SLICE_NS);
        const gpuhal_status status =
            gpuhal_timepoint_wait(marks->list[0], slice_ns < deadline_ns ? slice_ns : deadline_ns);
        ended = gpuhal_timepoint_now(marks->list[0]) == GPUHAL_TIMEPOINT_DONE;
        /* Any other status, such as BUSY in a function that the queue calls, would be returned on every retry. */
        move_first(marks, !ended && status == GPUHAL_ERROR_TIMEOUT);
    }
    return ended;
}

void gpuhal_queue_marks_free(gpuhal_queue_marks *marks)
{
    while (marks->count > 0) {
        move_first(marks, false);
    }
    free(marks->list);
}
