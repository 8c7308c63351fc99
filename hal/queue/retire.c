/* queue/retire.c: giving back what completed work held: buffers, events of the plugin, and work that was dropped.
 *
 * One thread at a time retires a queue's work, in the order of submission: a thread that waited, else the one that noticed the end, else
 * the queue's own. A wait returns OK once that is over for the work that it was for, so what was released before can be allocated
 * after. Retiring calls the plugin, and no function of the application (gpuhal_buffer_drop()): it waits for no queue. */
#include "core/error.h"
#include "memory/buffer.h"
#include "queue/queue.h"

/* How many submissions are ended between two looks at the queue. */
enum { AT_ONCE = 8 };

typedef struct completed {
    gpuhal_point *points;
    gpuhal_held *dropped;
    gpuhal_flight flights[AT_ONCE];
    size_t count;
} completed;

/* The plugin still has to notify of the others. With the mutex held. */
static gpuhal_point *take_points(gpuhal_queue *queue)
{
    gpuhal_point *taken = NULL;
    for (gpuhal_point **link = &queue->ended; *link;) {
        gpuhal_point *point = *link;
        if (point->armed && !point->noticed) {
            link = &point->next;
            continue;
        }
        *link = point->next;
        point->next = taken;
        taken = point;
    }
    return taken;
}

/* With the mutex held. */
static void take(gpuhal_queue *queue, completed *out)
{
    out->points = take_points(queue);
    out->dropped = queue->dropped;
    queue->dropped = NULL;
    for (out->count = 0; out->count < AT_ONCE && gpuhal_queue_has_ended(queue); out->count++) {
        out->flights[out->count] = queue->flights[queue->flight_first];
        queue->flight_first = (queue->flight_first + 1) % queue->flight_space;
        queue->flight_count--;
    }
}

static void end_flight(const gpuhal_flight *flight)
{
    gpuhal_buffers_leave(flight->to, flight->from);
    gpuhal_buffer_drop(flight->from);
    gpuhal_buffer_drop(flight->to);
    gpuhal_buffer_drop(flight->kept);
    gpuhal_point_release(flight->awaited);
}

static void give_back(completed *work)
{
    for (size_t i = 0; i < work->count; i++) {
        end_flight(&work->flights[i]);
    }
    while (work->points) {
        gpuhal_point *point = work->points;
        work->points = point->next;
        gpuhal_point_release(point);
    }
    while (work->dropped) {
        gpuhal_held *held = work->dropped;
        work->dropped = held->next;
        gpuhal_held_free(held);
    }
}

bool gpuhal_queue_reap_locked(gpuhal_queue *queue)
{
    bool any = false;
    while (gpuhal_queue_has_rest(queue)) {
        completed work;
        take(queue, &work);
        queue->retiring = work.count > 0 ? work.flights[0].number : UINT64_MAX;
        gpuhal_mutex_unlock(&queue->mutex);
        give_back(&work);
        gpuhal_queue_lock(queue);
        queue->retiring = 0;
        any = true;
        if (gpuhal_queue_has_waiters(queue) || queue->waiting[GPUHAL_WAITS_WORK] > 0) {
            gpuhal_condition_signal_all(&queue->condition);
        }
    }
    return any;
}

bool gpuhal_queue_reap(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    bool any = gpuhal_queue_reap_locked(queue);
    gpuhal_mutex_unlock(&queue->mutex);
    return any;
}

gpuhal_status gpuhal_queue_retire(gpuhal_queue *queue, uint64_t number, uint64_t deadline_ns)
{
    gpuhal_status status = GPUHAL_OK;
    if (!gpuhal_device_is_reachable(queue->device)) {
        return GPUHAL_OK;
    }
    gpuhal_queue_lock(queue);
    (void)gpuhal_queue_reap_locked(queue);
    while (!status && queue->retiring != 0 && queue->retiring <= number) {
        status = deadline_ns == 0 ? GPUHAL_NOT_READY : gpuhal_queue_sleep(queue, GPUHAL_WAITS_RETIREMENT, deadline_ns);
        status = status ? status : gpuhal_queue_check(queue);
        (void)gpuhal_queue_reap_locked(queue);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return status;
}


