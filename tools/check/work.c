/* work.c: see work.h. */
#include "work.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Queues are optional, because the core implements queues for plugins that have none. */
bool gpuhal_work_offered(const gpuhal_context *context, bool slot, const char *name)
{
    if (context->opened.slots.queues.queue_create == NULL) {
        gpuhal_skip("queues and events are not offered");
        return false;
    }
    return gpuhal_offered(slot, name);
}

gpuhal_plugin_queue *gpuhal_work_queue(const gpuhal_opened *opened, uint32_t flags)
{
    gpuhal_plugin_queue *queue = NULL;
    const gpuhal_plugin_queue_desc desc = {.size = sizeof desc, .flags = flags};
    gpuhal_step("the slot queue_create");
    gpuhal_expect_ok(opened->slots.queues.queue_create(opened->device, &desc, &queue), "queue_create");
    if (queue == NULL) {
        gpuhal_fail("queue_create returned OK and no queue");
    }
    return queue;
}

gpuhal_plugin_event *gpuhal_work_event(const gpuhal_opened *opened, uint32_t flags)
{
    gpuhal_plugin_event *event = NULL;
    const gpuhal_plugin_event_desc desc = {.size = sizeof desc, .flags = flags};
    gpuhal_step("the slot event_create");
    gpuhal_expect_ok(opened->slots.queues.event_create(opened->device, &desc, &event), "event_create");
    if (event == NULL) {
        gpuhal_fail("event_create returned OK and no event");
    }
    return event;
}

/* The memory is filled with blocking calls before anything is enqueued. */
void gpuhal_work_init(gpuhal_work *work, const gpuhal_context *context, uint32_t flags)
{
    const uint64_t bytes = gpuhal_area_usual(context);
    *work = (gpuhal_work){.opened = &context->opened, .slots = &context->opened.slots};
    work->queue = gpuhal_work_queue(work->opened, flags);
    work->event = gpuhal_work_event(work->opened, flags);
    gpuhal_area_init(&work->from, context, work->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_init(&work->to, context, work->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&work->from, 1, ROUTE_ANY);
    gpuhal_area_reset(&work->to, 2, ROUTE_ANY);
}

void gpuhal_work_finish(gpuhal_work *work)
{
    gpuhal_area_finish(&work->to);
    gpuhal_area_finish(&work->from);
    gpuhal_step("the slot event_destroy");
    work->slots->queues.event_destroy(work->event);
    gpuhal_step("the slot queue_destroy");
    work->slots->queues.queue_destroy(work->queue);
}

static atomic_uint times_full;

unsigned gpuhal_work_times_full(void)
{
    return atomic_load(&times_full);
}

/* Flushes the queue, because entries leave a full ring only if the work has been submitted. */
bool gpuhal_work_full(const gpuhal_work *work, gpuhal_plugin_queue *queue, gpuhal_status status)
{
    if (status != GPUHAL_NOT_READY) {
        return false;
    }
    atomic_fetch_add(&times_full, 1);
    gpuhal_status flushed = work->slots->queues.queue_flush(queue);
    gpuhal_expect_ok(flushed == GPUHAL_NOT_READY ? GPUHAL_OK : flushed, "queue_flush");
    nanosleep(&(const struct timespec){.tv_nsec = 200000}, NULL);
    return true;
}

void gpuhal_work_flush(const gpuhal_work *work, gpuhal_plugin_queue *queue)
{
    gpuhal_status status;
    gpuhal_step("the slot queue_flush");
    while (gpuhal_work_full(work, queue, status = work->slots->queues.queue_flush(queue))) {
    }
    gpuhal_expect_ok(status, "queue_flush");
}

void gpuhal_work_copy(const gpuhal_work *work, gpuhal_plugin_queue *queue, const gpuhal_area *to, uint64_t to_offset,
                      const gpuhal_area *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status;
    gpuhal_step("the slot copy with a queue");
    do {
        status = work->slots->ops.copy(work->opened->device, queue, &to->memory, to_offset, &from->memory, from_offset,
                                       bytes);
    } while (gpuhal_work_full(work, queue, status));
    gpuhal_expect_ok(status, "copy with a queue");
}

void gpuhal_work_record(const gpuhal_work *work, gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_status status;
    gpuhal_step("the slot event_record");
    while (gpuhal_work_full(work, queue, status = work->slots->queues.event_record(queue, event))) {
    }
    gpuhal_expect_ok(status, "event_record");
}

void gpuhal_work_await(const gpuhal_work *work, gpuhal_plugin_event *event)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    gpuhal_step("an event that is never done, polled by event_query");
    while ((status = work->slots->queues.event_query(event)) == GPUHAL_NOT_READY) {
        nanosleep(&(const struct timespec){.tv_nsec = 20000}, NULL);
    }
    gpuhal_expect_ok(status, "event_query");
}

void gpuhal_work_walk(gpuhal_work *work, unsigned steps, uint64_t piece)
{
    const uint64_t places = work->to.bytes / piece;
    gpuhal_work_copy(work, work->queue, &work->to, 0, &work->from, 0, piece);
    memcpy(work->to.expected, work->from.expected, (size_t)piece);
    for (unsigned s = 0; s + 1 < steps; s++) {
        const uint64_t from = s % places * piece, to = (s + 1) % places * piece;
        gpuhal_work_copy(work, work->queue, &work->to, to, &work->to, from, piece);
        memcpy(work->to.expected + to, work->to.expected + from, (size_t)piece);
    }
}
