/* load.c: see load.h. Plugins that do the work inside their calls run the same checks. */
#include "load.h"

#include <inttypes.h>
#include <string.h>

#define MILLISECOND_NS UINT64_C(1000000)
#define ENOUGH_NS      (8 * MILLISECOND_NS) /* shorter work cannot be observed */
/* If the calls take this long, and 20 times as long as the work that remains after the last call, the device does the
 * work inside the calls. */
#define GIVE_UP_NS (100 * MILLISECOND_NS)
/* At the speed of device memory (3 TB/s) COPIES_MAX copies of LOAD_BYTES still last a third of a second. */
#define LOAD_BYTES (UINT64_C(16) << 20)
enum { COPIES_MAX = 32768 };

void gpuhal_load_enqueue(const gpuhal_load *made, gpuhal_plugin_queue *queue)
{
    for (unsigned c = 0; c < made->copies; c++) {
        gpuhal_work_copy(&made->work, queue, &made->to, 0, &made->from, 0, made->to.bytes);
    }
}

void gpuhal_load_mark(gpuhal_load *made, uint64_t seed)
{
    gpuhal_work *work = &made->work;
    gpuhal_area_reset(&work->from, seed, ROUTE_ANY);
    gpuhal_load_enqueue(made, work->queue);
    gpuhal_work_copy(work, work->queue, &work->to, 0, &work->from, 0, work->to.bytes);
    gpuhal_work_record(work, work->queue, work->event);
    memcpy(work->to.expected, work->from.expected, (size_t)work->to.bytes);
}

void gpuhal_load_expect_ended(gpuhal_load *made, const char *call)
{
    gpuhal_area_verify(&made->work.to, (gpuhal_claim){.bytes = made->work.to.bytes}, ROUTE_ANY,
                       "%s said that the work before the event has ended, and it has not", call);
}

/* Returns how long the work continues after the last call has returned. */
static uint64_t try_load(gpuhal_load *made, uint64_t *out_calls_ns)
{
    const uint64_t begin = gpuhal_tool_now_ns();
    gpuhal_load_mark(made, made->copies);
    const uint64_t called = gpuhal_tool_now_ns();
    gpuhal_work_await(&made->work, made->work.event);
    const uint64_t ended = gpuhal_tool_now_ns();
    gpuhal_load_expect_ended(made, "event_query");
    *out_calls_ns = called - begin;
    return ended - called;
}

/* Returns the shorter time of two tries. A single try may take long because another program has delayed this thread
 * after the last call. If both tries take long, the device is really busy. The second try is skipped if the first one
 * is too short to be observed. */
static uint64_t confirmed(gpuhal_load *made, uint64_t *out_calls_ns)
{
    const uint64_t first = try_load(made, out_calls_ns);
    const uint64_t second = first < ENOUGH_NS ? first : try_load(made, out_calls_ns);
    return first < second ? first : second;
}

void gpuhal_load_finish(gpuhal_load *made)
{
    gpuhal_area_finish(&made->to);
    gpuhal_area_finish(&made->from);
    gpuhal_work_finish(&made->work);
}

void gpuhal_load_init(gpuhal_load *made, const gpuhal_context *context, uint32_t flags, uint64_t lasts_ns)
{
    const uint64_t total = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    const uint64_t bytes = total / 32 < LOAD_BYTES ? total / 32 : LOAD_BYTES;
    uint64_t calls = 0;
    made->lasts_ns = 0;
    gpuhal_work_init(&made->work, context, flags);
    gpuhal_area_init(&made->from, context, &context->opened, GPUHAL_MEMORY_DEVICE,
                     gpuhal_round_up(bytes + 16384, gpuhal_copy_unit(context)));
    gpuhal_area_init(&made->to, context, &context->opened, GPUHAL_MEMORY_DEVICE, made->from.bytes);
    gpuhal_area_reset(&made->from, 3, ROUTE_ANY);
    gpuhal_area_reset(&made->to, 4, ROUTE_ANY);
    made->copies = 1;
    made->lasts_ns = confirmed(made, &calls);
    while (made->lasts_ns < lasts_ns && (calls < GIVE_UP_NS || made->lasts_ns > calls / 20) &&
           made->copies < COPIES_MAX) {
        made->copies *= 2;
        made->lasts_ns = confirmed(made, &calls);
    }
    made->lasts = made->lasts_ns >= ENOUGH_NS;
    if (!made->lasts) {
        gpuhal_note("%u copies of %" PRIu64 " KiB have ended when the calls return: there is no slow work to wait for",
                    made->copies, made->to.bytes >> 10);
    }
}
