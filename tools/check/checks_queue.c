/* checks_queue.c: using queues and events again and again, and their times. checks_slow.c has order and waits. */
#include "resources.h"
#include "work.h"

#include <inttypes.h>

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
