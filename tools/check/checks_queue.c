/* checks_queue.c: repeated use of queues and events, and times between events. Order and waits are in checks_slow.c. */
#include "load.h"
#include "resources.h"

#include <inttypes.h>
#include <time.h>

#define TICK_NS UINT64_C(1000000) /* device clocks have a coarse resolution */

/* Events are reused. If an event still reports its previous state, the application reads the new work's results too
 * early. */
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

static uint64_t seen_unfinished(const gpuhal_work *work)
{
    uint64_t seen = 0, now = gpuhal_tool_now_ns();
    while (work->slots->queues.event_query(work->event) == GPUHAL_NOT_READY) {
        seen = now;
        nanosleep(&(const struct timespec){.tv_nsec = 200000}, NULL);
        now = gpuhal_tool_now_ns();
    }
    return seen != 0 ? seen : now;
}

/* The result of one comparison of the two clocks, in nanoseconds. */
typedef struct times {
    uint64_t device, least, most; /* `least` and `most` are limits from the host's clock; `least` is 0 if work ends
                                   * inside its call */
} times;

static times time_work(gpuhal_context *context)
{
    gpuhal_load slow;
    gpuhal_load_init(&slow, context, GPUHAL_TIMED, GPUHAL_LOAD_NS / 4);
    const gpuhal_work *work = &slow.work;
    gpuhal_plugin_event *begin = gpuhal_work_event(work->opened, GPUHAL_TIMED);
    const uint64_t started = gpuhal_tool_now_ns();
    gpuhal_work_record(work, work->queue, begin);
    gpuhal_work_await(work, begin);
    const uint64_t begun = gpuhal_tool_now_ns();
    gpuhal_load_enqueue(&slow, work->queue);
    gpuhal_work_record(work, work->queue, work->event);
    const uint64_t least = seen_unfinished(work) - begun;
    gpuhal_work_await(work, work->event);
    times found = {.device = UINT64_MAX, .least = slow.lasts ? least : 0, .most = gpuhal_tool_now_ns() - started};
    gpuhal_step("the slot elapsed");
    gpuhal_expect_ok(work->slots->queues.elapsed(begin, work->event, &found.device), "elapsed");
    work->slots->queues.event_destroy(begin);
    gpuhal_load_finish(&slow);
    return found;
}

/* Devices count ticks of their own clock. If a plugin does not convert ticks, the result is wrong by a factor;
 * comparing with the host's clock detects this. A driver needs some time to report that the work has ended, and may be
 * late on a busy machine. A small result is therefore a failure only if it is below half in every try. */
void gpuhal_check_elapsed(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, context->opened.slots.queues.elapsed != NULL, "elapsed")) {
        return;
    }
    times found = {0};
    bool is_short = true;
    for (int tries = 0; tries < 3 && is_short; tries++) {
        found = time_work(context);
        is_short = found.least > 2 * TICK_NS && found.device < found.least / 2;
        /* Device clocks drift a little and have a coarse resolution. */
        if (found.device > found.most + found.most / 10 + TICK_NS) {
            gpuhal_fail("elapsed says %" PRIu64 " ns between two events; by the host's clock it was %" PRIu64
                        " ns at most",
                        found.device, found.most);
        }
    }
    if (is_short) {
        gpuhal_fail("elapsed says %" PRIu64 " ns between two events; by the host's clock the work between them took "
                    "%" PRIu64 " ns at least",
                    found.device, found.least);
    }
}

/* Works in the queue before destroying it, since drivers create a queue's thread or descriptor only on first use. */
static void make_and_destroy(void *user)
{
    const gpuhal_context *context = user;
    const gpuhal_work work = {.opened = &context->opened, .slots = &context->opened.slots};
    gpuhal_plugin_queue *queue = gpuhal_work_queue(&context->opened, 0);
    gpuhal_plugin_event *event = gpuhal_work_event(&context->opened, 0);
    gpuhal_work_record(&work, queue, event);
    gpuhal_work_await(&work, event);
    work.slots->queues.event_destroy(event);
    work.slots->queues.queue_destroy(queue);
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
