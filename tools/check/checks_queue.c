/* checks_queue.c: queues and events, where the device offers them. */
#include "resources.h"
#include "work.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

/* Host memory that is written from and read to stays valid until the event is done, as the core promises to plugins. Plugins may
 * refuse to write and read behind unfinished work; the core stages then. */
void gpuhal_check_queue_order(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, true, "")) {
        return;
    }
    gpuhal_work work;
    gpuhal_work_init(&work, context, 0);
    const gpuhal_ops *ops = work.ops;
    const uint64_t piece = gpuhal_round_up(256, gpuhal_copy_unit(context));
    unsigned char *host = gpuhal_own(malloc((size_t)work.to.bytes));
    gpuhal_work_walk(&work, 100, piece);
    if (ops->write != NULL) {
        gpuhal_pattern(host, piece, 3);
        gpuhal_step("the slot write with a queue");
        gpuhal_status status = ops->write(work.opened->device, work.queue, &work.to.memory, piece, host, piece);
        if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
            gpuhal_expect_ok(status, "write with a queue");
            memcpy(work.to.expected + piece, host, (size_t)piece);
        }
    }
    unsigned char *back = gpuhal_own(calloc(1, (size_t)work.to.bytes));
    bool reads = ops->read != NULL;
    if (reads) {
        gpuhal_step("the slot read with a queue");
        gpuhal_status status = ops->read(work.opened->device, work.queue, back, &work.to.memory, 0, work.to.bytes);
        reads = status != GPUHAL_ERROR_NOT_SUPPORTED;
        gpuhal_expect_ok(reads ? status : GPUHAL_OK, "read with a queue");
    }
    gpuhal_work_flush(&work, work.queue);
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, work.event);
    if (reads && memcmp(back, work.to.expected, (size_t)work.to.bytes) != 0) {
        gpuhal_fail("a read behind 100 copies in a queue brought bytes from before or between them");
    }
    gpuhal_area_verify(&work.to, (gpuhal_claim){.bytes = work.to.bytes}, ROUTE_ANY,
                       "100 copies in a queue, each of what the last one moved");
    gpuhal_work_finish(&work);
    free(back);
    free(host);
}

/* Events are reused: one that still shows its former answer lets the next work be read too early. */
void gpuhal_check_event_again(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, true, "")) {
        return;
    }
    gpuhal_work work;
    gpuhal_work_init(&work, context, 0);
    for (unsigned round = 0; round < 20; round++) {
        gpuhal_area_reset(&work.from, 10 + round, ROUTE_ANY);
        gpuhal_work_copy(&work, work.queue, &work.to, 0, &work.from, 0, work.from.bytes);
        gpuhal_work_record(&work, work.queue, work.event);
        gpuhal_work_await(&work, work.event);
        gpuhal_area_changed(&work.to, 0, work.from.expected, work.from.bytes);
        gpuhal_area_verify(&work.to, (gpuhal_claim){.bytes = work.to.bytes}, ROUTE_ANY,
                           "the work before an event that was recorded %u times", round + 1);
    }
    gpuhal_work_finish(&work);
}

/* Timeouts belong to the core, which asks again after one; 0 is a question like event_query(). */
void gpuhal_check_event_block(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, context->opened.slots.ops.event_block != NULL, "event_block")) {
        return;
    }
    gpuhal_work work;
    gpuhal_work_init(&work, context, 0);
    for (unsigned round = 0; round < 10; round++) {
        gpuhal_work_walk(&work, 50, gpuhal_round_up(256, gpuhal_copy_unit(context)));
        gpuhal_work_record(&work, work.queue, work.event);
        gpuhal_step("the slot event_block without time");
        gpuhal_status status = work.ops->event_block(work.event, 0);
        if (status != GPUHAL_OK && status != GPUHAL_ERROR_TIMEOUT && status != GPUHAL_NOT_READY) {
            gpuhal_fail("event_block without time returned %s", gpuhal_status_text(status));
        }
        gpuhal_step("the slot event_block with 30 s");
        gpuhal_expect_ok(work.ops->event_block(work.event, 30 * SECOND_NS), "event_block with 30 s");
        gpuhal_expect_ok(work.ops->event_query(work.event), "event_query after event_block");
        gpuhal_area_verify(&work.to, (gpuhal_claim){.bytes = work.to.bytes}, ROUTE_ANY,
                           "the work before an event that was waited for");
    }
    gpuhal_work_finish(&work);
}

typedef struct notification {
    atomic_uint calls;
    _Atomic(gpuhal_status) status;
} notification;

/* May run on any thread, also inside event_notify(). */
static void take_notification(void *user, gpuhal_status status)
{
    notification *taken = user;
    atomic_store(&taken->status, status);
    atomic_fetch_add(&taken->calls, 1);
}

/* A second call would complete another wait, since the core has reused the record by then. */
void gpuhal_check_event_notify(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, context->opened.slots.ops.event_notify != NULL, "event_notify")) {
        return;
    }
    gpuhal_work work;
    gpuhal_work_init(&work, context, 0);
    notification taken = {0};
    gpuhal_work_walk(&work, 50, gpuhal_round_up(256, gpuhal_copy_unit(context)));
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_step("the slot event_notify");
    gpuhal_expect_ok(work.ops->event_notify(work.event, take_notification, &taken), "event_notify");
    gpuhal_step("a function given to event_notify that is never called");
    while (atomic_load(&taken.calls) == 0) {
        nanosleep(&(const struct timespec){.tv_nsec = 50000}, NULL);
    }
    gpuhal_expect_ok(atomic_load(&taken.status), "the work before event_notify");
    gpuhal_expect_ok(work.ops->event_query(work.event), "event_query after the notification");
    nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
    if (atomic_load(&taken.calls) != 1) {
        gpuhal_fail("the function given to event_notify was called %u times", atomic_load(&taken.calls));
    }
    gpuhal_area_verify(&work.to, (gpuhal_claim){.bytes = work.to.bytes}, ROUTE_ANY, "the work before a notification");
    gpuhal_work_finish(&work);
}

/* A pair of queues that cannot wait for each other is allowed: the core then defers the work itself. */
void gpuhal_check_queue_wait(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, context->opened.slots.ops.queue_wait != NULL, "queue_wait")) {
        return;
    }
    gpuhal_work work;
    gpuhal_work_init(&work, context, 0);
    gpuhal_plugin_queue *second = gpuhal_work_queue(work.opened, 0);
    gpuhal_plugin_event *end = gpuhal_work_event(work.opened, 0);
    gpuhal_area last;
    gpuhal_area_init(&last, context, work.opened, GPUHAL_MEMORY_DEVICE, work.to.bytes);
    for (unsigned round = 0; round < 20; round++) {
        gpuhal_area_reset(&work.from, 30 + round, ROUTE_ANY);
        gpuhal_work_copy(&work, work.queue, &work.to, 0, &work.from, 0, work.from.bytes);
        gpuhal_work_record(&work, work.queue, work.event);
        gpuhal_work_flush(&work, work.queue);
        gpuhal_step("the slot queue_wait");
        gpuhal_status status;
        while (gpuhal_work_full(&work, second, status = work.ops->queue_wait(second, work.event))) {
        }
        if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
            gpuhal_work_await(&work, work.event);
            gpuhal_note("queue_wait does not support two queues of one opened device");
        } else {
            gpuhal_expect_ok(status, "queue_wait");
        }
        gpuhal_work_copy(&work, second, &last, 0, &work.to, 0, work.to.bytes);
        gpuhal_work_record(&work, second, end);
        gpuhal_work_await(&work, end);
        memcpy(last.expected, work.from.expected, (size_t)last.bytes);
        gpuhal_area_verify(&last, (gpuhal_claim){.bytes = last.bytes}, ROUTE_ANY, "a queue that waited for another one");
    }
    gpuhal_area_finish(&last);
    work.ops->event_destroy(end);
    work.ops->queue_destroy(second);
    gpuhal_work_finish(&work);
}

/* Devices count ticks of their own; forgetting to convert them is off by a factor, which the host's clock shows. */
void gpuhal_check_elapsed(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, context->opened.slots.ops.elapsed != NULL, "elapsed")) {
        return;
    }
    gpuhal_work work;
    gpuhal_work_init(&work, context, GPUHAL_TIMED);
    gpuhal_plugin_event *begin = gpuhal_work_event(work.opened, GPUHAL_TIMED);
    const uint64_t started = gpuhal_tool_now_ns();
    gpuhal_work_record(&work, work.queue, begin);
    gpuhal_work_walk(&work, 50, gpuhal_round_up(256, gpuhal_copy_unit(context)));
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, begin);
    gpuhal_work_await(&work, work.event);
    const uint64_t host_ns = gpuhal_tool_now_ns() - started;
    uint64_t device_ns = UINT64_MAX;
    gpuhal_step("the slot elapsed");
    gpuhal_expect_ok(work.ops->elapsed(begin, work.event, &device_ns), "elapsed");
    /* Clocks of devices drift a little and tick coarsely. */
    if (device_ns > host_ns + host_ns / 10 + 1000000) {
        gpuhal_fail("elapsed says %" PRIu64 " ns between two events; by the host's clock it was %" PRIu64 " ns at most",
                    device_ns, host_ns);
    }
    work.ops->event_destroy(begin);
    gpuhal_work_finish(&work);
}

/* With work in between, since drivers make a thread or a descriptor for a queue only when it is used. */
static void make_and_destroy(void *user)
{
    const gpuhal_context *context = user;
    const gpuhal_work work = {.opened = &context->opened, .ops = &context->opened.slots.ops};
    gpuhal_plugin_queue *queue = gpuhal_work_queue(&context->opened, 0);
    gpuhal_plugin_event *event = gpuhal_work_event(&context->opened, 0);
    gpuhal_work_record(&work, queue, event);
    gpuhal_work_await(&work, event);
    work.ops->event_destroy(event);
    work.ops->queue_destroy(queue);
}

void gpuhal_check_queue_100(gpuhal_context *context)
{
    gpuhal_session_list(context);
    gpuhal_session_open(context, &context->opened);
    if (gpuhal_work_offered(context, true, "")) {
        gpuhal_expect_no_leak("making queues and events", 20, 80, make_and_destroy, context);
    }
    gpuhal_session_close(context, &context->opened);
}
