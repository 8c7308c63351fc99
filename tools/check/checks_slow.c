/* checks_slow.c: queues and events behind long work. On a fast device, a wait that returns too early or an operation
 * that runs out of order may go unnoticed. These checks therefore first enqueue enough copies to keep the device busy
 * for some time. For a plugin that does the work inside its calls, the checks test waits and order as well. */
#include "load.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MILLISECOND_NS UINT64_C(1000000)
#define LATE_NS        (300 * MILLISECOND_NS) /* at least one of TRIES tries is late by less, even on a busy machine */
enum { TRIES = 3, ROUNDS_MAX = 12 };

/* ---- waiting */

/* The minimum of several tries, because the scheduler may delay a single try. */
typedef struct lateness {
    unsigned tries;
    uint64_t ns;
} lateness;

static void add_try(lateness *late, uint64_t ns)
{
    late->ns = late->tries == 0 || ns < late->ns ? ns : late->ns;
    late->tries++;
}

/* Returns false once the work has ended. */
static bool query_unfinished(gpuhal_load *made, lateness *query)
{
    const gpuhal_slots *slots = made->work.slots;
    const uint64_t begin = gpuhal_tool_now_ns();
    gpuhal_step("the slot event_query");
    gpuhal_status status = slots->queues.event_query(made->work.event);
    add_try(query, gpuhal_tool_now_ns() - begin);
    if (status == GPUHAL_NOT_READY) {
        return true;
    }
    gpuhal_expect_ok(status, "event_query");
    gpuhal_load_expect_ended(made, "event_query");
    return false;
}

/* After OK, calls event_query() before comparing the contents, because the work may finish during the comparison and
 * hide the error. */
static void block_unfinished(gpuhal_load *made, lateness *block)
{
    const gpuhal_slots *slots = made->work.slots;
    const uint64_t begin = gpuhal_tool_now_ns();
    gpuhal_step("the slot event_block with 1 ms");
    gpuhal_status status = slots->queues.event_block(made->work.event, MILLISECOND_NS);
    add_try(block, gpuhal_tool_now_ns() - begin);
    if (status == GPUHAL_OK && slots->queues.event_query(made->work.event) == GPUHAL_NOT_READY) {
        gpuhal_fail("event_block with 1 ms returned OK, and event_query not ready right after it: it reports "
                    "unfinished work as done");
    }
    if (status == GPUHAL_OK) {
        gpuhal_load_expect_ended(made, "event_block");
    } else if (status != GPUHAL_NOT_READY) {
        gpuhal_fail("event_block returned %s when its time was over before the work; it has to be not ready (1)",
                    gpuhal_status_text(status));
    }
}

/* With a timeout of 0, event_block() is a query like event_query(). With a long enough timeout, it returns when the
 * work ends. */
static void block_until_done(gpuhal_load *made)
{
    const gpuhal_slots *slots = made->work.slots;
    gpuhal_step("the slot event_block without time");
    gpuhal_status status = slots->queues.event_block(made->work.event, 0);
    if (status != GPUHAL_OK && status != GPUHAL_NOT_READY) {
        gpuhal_fail("event_block without time returned %s", gpuhal_status_text(status));
    }
    gpuhal_step("the slot event_block with 30 s");
    gpuhal_expect_ok(slots->queues.event_block(made->work.event, 30000 * MILLISECOND_NS), "event_block with 30 s");
    gpuhal_expect_ok(slots->queues.event_query(made->work.event), "event_query after event_block");
    gpuhal_load_expect_ended(made, "event_block");
}

typedef struct notification {
    atomic_uint calls;
    _Atomic(gpuhal_status) status;
} notification;

/* May run on any thread, even inside event_notify(). */
static void take_notification(void *user, gpuhal_status status)
{
    notification *taken = user;
    atomic_store(&taken->status, status);
    atomic_fetch_add(&taken->calls, 1);
}

/* By the time of a second notification the core may have reused the record, so the notification would complete the
 * wrong wait. */
static void notify_once(gpuhal_load *made)
{
    notification taken = {0};
    gpuhal_step("the slot event_notify");
    gpuhal_expect_ok(made->work.slots->queues.event_notify(made->work.event, take_notification, &taken),
                     "event_notify");
    gpuhal_step("a function given to event_notify that is never called");
    while (atomic_load(&taken.calls) == 0) {
        nanosleep(&(const struct timespec){.tv_nsec = 50000}, NULL);
    }
    gpuhal_expect_ok(atomic_load(&taken.status), "the work before event_notify");
    gpuhal_load_expect_ended(made, "event_notify");
    gpuhal_expect_ok(made->work.slots->queues.event_query(made->work.event), "event_query after the notification");
    nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
    if (atomic_load(&taken.calls) != 1) {
        gpuhal_fail("the function given to event_notify was called %u times", atomic_load(&taken.calls));
    }
}

static bool promises_time(const gpuhal_context *context)
{
    return (context->plugin->flags & GPUHAL_PLUGIN_HONORS_TIMEOUTS) != 0;
}

/* The work in the queue lasts longer than the limit for a late call, so a call that waits for the work is detected. One
 * timely try is enough. */
static void try_prompt(gpuhal_load *made, lateness *query, lateness *block)
{
    const bool blocks = made->work.slots->queues.event_block != NULL;
    const unsigned copies = made->copies;
    if (made->lasts_ns >= GPUHAL_LOAD_NS) {
        made->copies = 1 + (unsigned)(copies * 2 * LATE_NS / made->lasts_ns);
    }
    for (uint64_t round = 0;
         round < TRIES && (query->tries == 0 || query->ns > LATE_NS || (blocks && block->ns > LATE_NS)); round++) {
        gpuhal_load_mark(made, 300 + round);
        if (query_unfinished(made, query) && blocks) {
            block_unfinished(made, block);
        }
        gpuhal_work_await(&made->work, made->work.event);
    }
    made->copies = copies;
}

/* Checks the plugin's promise. An application's waits end in time only if both slots return in time. */
static void expect_prompt(const gpuhal_context *context, const lateness *late, const char *call)
{
    if (promises_time(context) && late->tries >= TRIES && late->ns > LATE_NS) {
        gpuhal_fail_late(28,
                         "%s took %" PRIu64
                         " ms at least in %d tries, and the plugin sets GPUHAL_PLUGIN_HONORS_TIMEOUTS",
                         call, late->ns / MILLISECOND_NS, TRIES);
    }
}

/* An application reads results after waiting for them. If the wait returns too early, the application reads old
 * bytes. */
void gpuhal_check_event_slow(gpuhal_context *context)
{
    gpuhal_load made;
    lateness query = {0}, block = {0};
    const bool promised = promises_time(context);
    if (!gpuhal_work_offered(context, true, "")) {
        return;
    }
    gpuhal_load_init(&made, context, 0, GPUHAL_LOAD_NS);
    if (promised && made.lasts) {
        try_prompt(&made, &query, &block);
        expect_prompt(context, &query, "event_query");
        expect_prompt(context, &block, "event_block with 1 ms");
    }
    for (uint64_t round = 0; round < TRIES || (made.lasts && round < ROUNDS_MAX &&
                                               made.work.slots->queues.event_block != NULL && block.tries < TRIES);
         round++) {
        gpuhal_load_mark(&made, 100 + round);
        if (query_unfinished(&made, &query) && made.work.slots->queues.event_block != NULL) {
            block_unfinished(&made, &block);
        }
        gpuhal_work_await(&made.work, made.work.event);
        gpuhal_load_expect_ended(&made, "event_query");
    }
    expect_prompt(context, &query, "event_query");
    expect_prompt(context, &block, "event_block with 1 ms");
    if (made.work.slots->queues.event_block != NULL) {
        gpuhal_load_mark(&made, 190);
        block_until_done(&made);
    }
    if (made.work.slots->queues.event_notify != NULL) {
        gpuhal_load_mark(&made, 200);
        notify_once(&made);
    }
    gpuhal_load_finish(&made);
}

/* ---- order */

/* An operation after the load writes different bytes to each part of the load's destination. If the operation ran too
 * early, the load would overwrite them. An operation may return NOT_SUPPORTED for a queue. */
enum { PART_COPY, PART_FILL, PART_WRITE, PART_RECT, PARTS };

typedef struct ordering {
    gpuhal_load made;
    uint64_t part;       /* size of a part */
    unsigned char *host; /* source of writes; unchanged until the end */
    unsigned char *back; /* destination of reads */
    bool reads;
} ordering;

static bool enqueued(gpuhal_status status, const char *what)
{
    gpuhal_expect_ok(status == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_OK : status, what);
    return status == GPUHAL_OK;
}

static void expect_part(ordering *order, int part, const unsigned char *bytes)
{
    memcpy(order->made.to.expected + (uint64_t)part * order->part, bytes, (size_t)order->part);
}

static void enqueue_fill(ordering *order)
{
    const gpuhal_work *work = &order->made.work;
    gpuhal_status status;
    gpuhal_step("the slot fill with a queue");
    do {
        status = work->slots->ops.fill(work->opened->device, work->queue, &order->made.to.memory,
                                       PART_FILL * order->part, order->part, 0x5a, 1);
    } while (gpuhal_work_full(work, work->queue, status));
    if (enqueued(status, "fill with a queue")) {
        memset(order->made.to.expected + PART_FILL * order->part, 0x5a, (size_t)order->part);
    }
}

static void enqueue_write(ordering *order)
{
    const gpuhal_work *work = &order->made.work;
    gpuhal_status status;
    gpuhal_pattern(order->host, order->part, 60);
    gpuhal_step("the slot write with a queue");
    do {
        status = work->slots->ops.write(work->opened->device, work->queue, &order->made.to.memory,
                                        PART_WRITE * order->part, order->host, order->part);
    } while (gpuhal_work_full(work, work->queue, status));
    if (enqueued(status, "write with a queue")) {
        expect_part(order, PART_WRITE, order->host);
    }
}

static void enqueue_rect(ordering *order)
{
    const gpuhal_work *work = &order->made.work;
    const gpuhal_plugin_rect to = {.memory = &order->made.to.memory,
                                   .offset = PART_RECT * order->part,
                                   .row_pitch = order->part,
                                   .slice_pitch = order->part};
    const gpuhal_plugin_rect from = {
        .memory = &work->from.memory, .row_pitch = order->part, .slice_pitch = order->part};
    const uint64_t extent[3] = {order->part, 1, 1};
    gpuhal_status status;
    gpuhal_step("the slot copy_rect with a queue");
    do {
        status = work->slots->ops.copy_rect(work->opened->device, work->queue, &to, &from, extent);
    } while (gpuhal_work_full(work, work->queue, status));
    if (enqueued(status, "copy_rect with a queue")) {
        expect_part(order, PART_RECT, work->from.expected);
    }
}

/* Reads bytes that the load writes. Until the load has ended, the memory contains older bytes. */
static void enqueue_read(ordering *order)
{
    const gpuhal_work *work = &order->made.work;
    gpuhal_status status;
    gpuhal_step("the slot read with a queue");
    do {
        status = work->slots->ops.read(work->opened->device, work->queue, order->back, &order->made.to.memory,
                                 PARTS * order->part, order->part);
    } while (gpuhal_work_full(work, work->queue, status));
    order->reads = enqueued(status, "read with a queue");
}

/* A second queue waits for the first, and reads the bytes that the first queue wrote last. */
static void enqueue_behind(ordering *order, gpuhal_plugin_queue *second, gpuhal_plugin_event *end)
{
    gpuhal_work *work = &order->made.work;
    gpuhal_status status;
    gpuhal_step("the slot queue_wait");
    while (gpuhal_work_full(work, second, status = work->slots->queues.queue_wait(second, work->event))) {
    }
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_work_await(work, work->event);
    } else {
        gpuhal_expect_ok(status, "queue_wait");
    }
    gpuhal_work_copy(work, second, &work->to, 0, &order->made.to, 0, order->part);
    memcpy(work->to.expected, order->made.to.expected, (size_t)order->part);
    gpuhal_work_record(work, second, end);
}

static void run_in_order(ordering *order)
{
    gpuhal_load *made = &order->made;
    const gpuhal_work *work = &made->work;
    gpuhal_load_enqueue(made, work->queue);
    memcpy(made->to.expected, made->from.expected, (size_t)made->to.bytes);
    gpuhal_work_copy(work, work->queue, &made->to, 0, &work->from, 0, order->part);
    expect_part(order, PART_COPY, work->from.expected);
    if (work->slots->ops.fill != NULL) {
        enqueue_fill(order);
    }
    if (work->slots->ops.write != NULL) {
        enqueue_write(order);
    }
    if (work->slots->ops.copy_rect != NULL) {
        enqueue_rect(order);
    }
    if (work->slots->ops.read != NULL) {
        enqueue_read(order);
    }
    gpuhal_work_flush(work, work->queue);
    gpuhal_work_record(work, work->queue, work->event);
}

/* ---- calls that wait */

enum { CALL_RECORD, CALL_COPY, CALL_FILL, CALL_WRITE, CALL_RECT, CALL_READ, CALL_FLUSH, CALL_AWAIT, CALLS };

typedef struct looks {
    gpuhal_plugin_event *before; /* recorded after the load, before the calls */
    unsigned full;               /* how often the queue was full before the call */
    bool ended;
    unsigned blamed[CALLS];
} looks;

/* Assumes that a call has waited if the earlier work ended during the call. This may happen once by chance. If the
 * queue was full, the check itself has waited. */
static void look(const gpuhal_work *work, looks *own, int call)
{
    const bool ended = !own->ended && work->slots->queues.event_query(own->before) == GPUHAL_OK;
    own->blamed[call] += ended && own->full == gpuhal_work_times_full();
    own->ended = own->ended || ended;
    own->full = gpuhal_work_times_full();
}

static void look_at_calls(ordering *order, looks *own)
{
    const gpuhal_work *work = &order->made.work;
    gpuhal_load_enqueue(&order->made, work->queue);
    own->ended = false;
    own->full = gpuhal_work_times_full();
    gpuhal_work_record(work, work->queue, own->before);
    look(work, own, CALL_RECORD);
    gpuhal_work_copy(work, work->queue, &order->made.to, 0, &work->from, 0, order->part);
    look(work, own, CALL_COPY);
    if (work->slots->ops.fill != NULL) {
        enqueue_fill(order);
        look(work, own, CALL_FILL);
    }
    if (work->slots->ops.write != NULL) {
        enqueue_write(order);
        look(work, own, CALL_WRITE);
    }
    if (work->slots->ops.copy_rect != NULL) {
        enqueue_rect(order);
        look(work, own, CALL_RECT);
    }
    if (work->slots->ops.read != NULL) {
        enqueue_read(order);
        look(work, own, CALL_READ);
    }
    gpuhal_work_flush(work, work->queue);
    look(work, own, CALL_FLUSH);
    if (work->slots->queues.queue_wait != NULL) {
        (void)work->slots->queues.queue_wait(work->queue, own->before);
        look(work, own, CALL_AWAIT);
    }
    gpuhal_work_record(work, work->queue, work->event);
    gpuhal_work_await(work, work->event);
}

/* Checks that calls which promise to return immediately do not block an application's thread. */
static void expect_prompt_calls(ordering *order)
{
    static const char *const names[] = {"event_record", "copy", "fill", "write", "copy_rect",
                                        "read",         "queue_flush", "queue_wait"};
    looks own = {.before = gpuhal_work_event(order->made.work.opened, 0)};
    for (unsigned round = 0, blamed = 1; round < TRIES && blamed > 0; round++) {
        blamed = 0;
        look_at_calls(order, &own);
        for (int call = 0; call < CALLS; call++) {
            blamed += own.blamed[call] == round + 1;
        }
    }
    for (int call = 0; call < CALLS; call++) {
        if (own.blamed[call] == TRIES) {
            gpuhal_fail_late(37,
                             "%s with a queue returned when the work before it had ended, in %d of %d tries: it waits "
                             "for the device",
                             names[call], TRIES, TRIES);
        }
    }
    order->made.work.slots->queues.event_destroy(own.before);
}

static void expect_parts(ordering *order)
{
    static const char *const names[] = {"copy", "fill", "write", "copy_rect"};
    gpuhal_load *made = &order->made;
    gpuhal_plain_get(&made->to.context->opened, &made->to.memory, 0, made->to.actual, made->to.bytes, ROUTE_ANY);
    for (int part = 0; part < PARTS; part++) {
        const uint64_t at = (uint64_t)part * order->part;
        if (memcmp(made->to.actual + at, made->to.expected + at, (size_t)order->part) != 0) {
            gpuhal_fail("%s behind %u copies to the same bytes in a queue: the bytes are those of the copies, so it "
                        "was done before them",
                        names[part], made->copies);
        }
    }
    if (order->reads && memcmp(order->back, made->from.expected + PARTS * order->part, (size_t)order->part) != 0) {
        gpuhal_fail("read behind %u copies in a queue brought the bytes from before the copies", made->copies);
    }
}

void gpuhal_check_queue_slow(gpuhal_context *context)
{
    ordering order = {.part = gpuhal_round_up(2048, gpuhal_copy_unit(context))};
    const uint64_t fill_unit = gpuhal_device_fact(context, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 1);
    order.part = gpuhal_round_up(order.part, fill_unit != 0 && fill_unit <= 65536 ? fill_unit : 1);
    if (!gpuhal_work_offered(context, true, "")) {
        return;
    }
    gpuhal_load_init(&order.made, context, 0, GPUHAL_LOAD_NS);
    order.host = gpuhal_own(malloc((size_t)(2 * order.part)));
    order.back = order.host + order.part;
    if (order.made.lasts) {
        expect_prompt_calls(&order);
    }
    gpuhal_area_reset(&order.made.to, 50, ROUTE_ANY);
    run_in_order(&order);
    if (order.made.work.slots->queues.queue_wait != NULL) {
        gpuhal_plugin_queue *second = gpuhal_work_queue(&context->opened, 0);
        gpuhal_plugin_event *end = gpuhal_work_event(&context->opened, 0);
        enqueue_behind(&order, second, end);
        gpuhal_work_await(&order.made.work, end);
        gpuhal_area_verify(&order.made.work.to, (gpuhal_claim){.bytes = order.part}, ROUTE_ANY,
                           "a queue that waited for the event of another one, behind %u copies", order.made.copies);
        order.made.work.slots->queues.event_destroy(end);
        order.made.work.slots->queues.queue_destroy(second);
    }
    gpuhal_work_await(&order.made.work, order.made.work.event);
    expect_parts(&order);
    free(order.host);
    gpuhal_load_finish(&order.made);
}

/* ---- a full queue */

enum { SMALL_COPIES = 2500 };

/* Hardware rings have a few hundred entries. The core cannot know their number, so the plugin must report when a ring
 * is full. */
void gpuhal_check_queue_full(gpuhal_context *context)
{
    gpuhal_work work;
    if (!gpuhal_work_offered(context, true, "")) {
        return;
    }
    gpuhal_work_init(&work, context, 0);
    const uint64_t piece = gpuhal_round_up(64, gpuhal_copy_unit(context)), places = work.to.bytes / piece;
    for (unsigned c = 0; c < SMALL_COPIES; c++) {
        gpuhal_status status;
        const uint64_t to = c % places * piece,
                       from = (c + c / places) % places * piece; /* a skipped copy is detected */
        gpuhal_step("the slot copy with a queue");
        do {
            status = work.slots->ops.copy(context->opened.device, work.queue, &work.to.memory, to, &work.from.memory,
                                          from, piece);
        } while (gpuhal_work_full(&work, work.queue, status));
        if (status != GPUHAL_OK) {
            gpuhal_fail("copy number %u in one queue returned %s: a full queue is not an error", c + 1,
                        gpuhal_status_text(status));
        }
        memcpy(work.to.expected + to, work.from.expected + from, (size_t)piece);
    }
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, work.event);
    gpuhal_area_verify(&work.to, (gpuhal_claim){.bytes = places * piece}, ROUTE_ANY, "%d copies in one queue",
                       SMALL_COPIES);
    gpuhal_work_finish(&work);
}
