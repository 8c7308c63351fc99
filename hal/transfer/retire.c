/* transfer/retire.c: giving back what completed work held: buffers, events of the plugin, and work that was dropped.
 *
 * One thread at a time retires a queue's work, in the order of submission: a thread that waited, else the one that noticed the end, else
 * the queue's own. A wait returns OK once that is over for the work that it was for, so what was released before can be allocated
 * after. Retiring calls the plugin, and no function of the application (gpuhal_buffer_drop()): it waits for no queue. */
#include "core/error.h"
#include "memory/buffer.h"
#include "transfer/async.h"
#include "transfer/queue.h"

#include <stdlib.h>

/* How many submissions are ended between two looks at the queue. */
enum { AT_ONCE = 8 };

typedef struct completed {
    gpuhal_point *points;
    gpuhal_held *dropped;
    gpuhal_flight flights[AT_ONCE];
    size_t count;
} completed;

static bool has_ended(const gpuhal_queue *queue)
{
    return queue->flight_count > 0 && queue->flights[queue->flight_first].number <= queue->done;
}

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
    for (out->count = 0; out->count < AT_ONCE && has_ended(queue); out->count++) {
        out->flights[out->count] = queue->flights[queue->flight_first];
        queue->flight_first = (queue->flight_first + 1) % queue->flight_space;
        queue->flight_count--;
    }
}

static void give_back(completed *work)
{
    for (size_t i = 0; i < work->count; i++) {
        gpuhal_flight_end(&work->flights[i]);
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

bool gpuhal_queue_has_rest(const gpuhal_queue *queue)
{
    bool any = queue->dropped || has_ended(queue);
    for (const gpuhal_point *point = queue->ended; point && !any; point = point->next) {
        any = !point->armed || point->noticed;
    }
    return any && queue->retiring == 0 && gpuhal_device_is_reachable(queue->device);
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
        if (queue->dozing > 0) {
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
        status = deadline_ns == 0 ? GPUHAL_NOT_READY : gpuhal_queue_sleep(queue, deadline_ns);
        status = status ? status : gpuhal_queue_check(queue);
        (void)gpuhal_queue_reap_locked(queue);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return status;
}

/* ---- memory is short */

/* A reference that a queue has to a buffer of the device in question. */
typedef struct hold {
    const gpuhal_buffer *buffer;
    uint64_t bytes;
    uint32_t references; /* of everybody to the buffer */
} hold;

typedef struct holds {
    const gpuhal_device *device;
    hold *list; /* NULL without memory: then nothing is known */
    size_t count, space;
} holds;

/* With the mutex of the queue held that has the reference. */
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

static void add_holds_of(holds *all, gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    for (size_t i = 0; i < queue->flight_count; i++) {
        const gpuhal_flight *flight = &queue->flights[(queue->flight_first + i) % queue->flight_space];
        add_hold(all, flight->to);
        add_hold(all, flight->from);
        add_hold(all, flight->kept);
    }
    for (const gpuhal_held *held = queue->held; held; held = held->next) {
        add_hold(all, held->op.to);
        add_hold(all, held->op.from);
        add_hold(all, held->op.kept);
    }
    gpuhal_mutex_unlock(&queue->mutex);
}

static int by_buffer(const void *one, const void *other)
{
    uintptr_t a = (uintptr_t)((const hold *)one)->buffer, b = (uintptr_t)((const hold *)other)->buffer;
    return (a > b) - (a < b);
}

/* Bytes of buffers to which nobody but queues has a reference. */
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

/* The oldest submitted point, as long as it turns out to be done. */
static void look_through(gpuhal_queue *queue)
{
    for (bool more = true; more;) {
        gpuhal_queue_lock(queue);
        gpuhal_point *oldest = queue->points ? gpuhal_point_retain(queue->points) : NULL;
        gpuhal_mutex_unlock(&queue->mutex);
        more = oldest && gpuhal_point_poll(oldest) == GPUHAL_OK;
        gpuhal_point_release(oldest);
    }
}

/* Released buffers stay with work that nobody waited for, also with that of other devices. What another thread gives back right now is
 * waited for, as long as a driver may take. */
void gpuhal_queues_reclaim(gpuhal_device *device, uint64_t *out_pending)
{
    holds all = {.device = device};
    size_t count = 0;
    uint64_t deadline = gpuhal_deadline(device->gpu->settings.hang_ns);
    gpuhal_queue **queues = gpuhal_async_queues(device->gpu, NULL, &count);
    for (size_t i = 0; i < count; i++) {
        look_through(queues[i]);
        (void)gpuhal_queue_retire(queues[i], UINT64_MAX, deadline);
        add_holds_of(&all, queues[i]);
        gpuhal_queue_release(queues[i]);
    }
    *out_pending = bytes_of_queues_alone(&all);
    free(queues);
    free(all.list);
}
