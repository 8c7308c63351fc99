/* checks_launch.c: launches of the kernel given on the command line: their results, their order, concurrent launches,
 * and many launches in a row. */
#include "kernel.h"
#include "load.h"
#include "resources.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4, THREADS = 8, THREAD_ROUNDS = 48, TIMES = 1000 };

/* ---- without a queue */

/* Runs with each buffer in separate memory, at offset 0. */
static void run_apart(const gpuhal_given_kernel *own, const gpuhal_area *model, unsigned char *out_result)
{
    const gpuhal_opened *opened = &own->context->opened;
    gpuhal_memory memory[GIVEN_MAX];
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    const uint64_t unit = gpuhal_copy_unit(own->context);
    gpuhal_given_arguments(own, NULL, arguments);
    memcpy(out_result, model->expected, (size_t)own->bytes);
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        if (arguments[p].kind == GPUHAL_PARAMETER_BUFFER) {
            const uint64_t bytes = gpuhal_round_up(arguments[p].bytes, unit);
            gpuhal_expect_ok(gpuhal_plain_allocate(opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory[p]), "allocate");
            gpuhal_plain_put(opened, &memory[p], 0, model->expected + own->offsets[p], bytes, ROUTE_ANY);
            arguments[p].memory = &memory[p];
            arguments[p].offset = 0;
        }
    }
    gpuhal_expect_ok(gpuhal_given_launch(own, NULL, arguments), "launch");
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        if (arguments[p].kind == GPUHAL_PARAMETER_BUFFER) {
            gpuhal_plain_get(opened, &memory[p], 0, out_result + own->offsets[p],
                             gpuhal_round_up(arguments[p].bytes, unit), ROUTE_ANY);
            gpuhal_plain_release(opened, &memory[p]);
        }
    }
}

/* Later checks compare with the result of a launch without a queue, so they prove nothing if the kernel
 * changes no buffer, or if this result is not stable. */
void gpuhal_check_launch(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    gpuhal_area area;
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&own, context);
    gpuhal_given_area(&own, &area, 1);
    unsigned char *result = gpuhal_own(malloc((size_t)own.bytes));
    run_apart(&own, &area, result);
    if (memcmp(result, area.expected, (size_t)own.bytes) == 0) {
        gpuhal_fail("launch returned OK, but no buffer has changed; if the kernel changes none, give one that does, "
                    "with arguments for that");
    }
    gpuhal_given_run(&own, &area.memory);
    gpuhal_given_expect(&area, result, "a launch on parts of one memory");
    gpuhal_area_reset(&area, 1, ROUTE_ANY);
    gpuhal_given_run(&own, &area.memory);
    gpuhal_given_expect(&area, result, "a second launch on the same bytes");
    free(result);
    gpuhal_area_finish(&area);
    gpuhal_given_finish(&own);
}

/* Launches that only read a buffer may overlap with other launches that read the buffer. */
void gpuhal_check_launch_reads(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    gpuhal_area area;
    bool any = false;
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&own, context);
    gpuhal_given_area(&own, &area, 1);
    unsigned char *result = gpuhal_given_result(&own, 1);
    for (uint32_t p = 0; p < own.parameter_count; p++) {
        const gpuhal_given_parameter *parameter = &own.parameters[p];
        const bool reads =
            parameter->parameter.kind == GPUHAL_PARAMETER_BUFFER && parameter->parameter.access == GPUHAL_ACCESS_READ;
        any = any || reads;
        if (reads && memcmp(result + own.offsets[p], area.expected + own.offsets[p], (size_t)parameter->bytes) != 0) {
            gpuhal_fail("a launch changed the buffer of parameter %" PRIu32 ", which it only reads", p);
        }
    }
    if (!any) {
        gpuhal_skip("the kernel has no buffer that is only read (r in --parameters)");
    }
    free(result);
    gpuhal_area_finish(&area);
    gpuhal_given_finish(&own);
}

/* ---- with a queue */

/* Returns whether queues accept launches; otherwise skips the check. */
static bool enqueue(const gpuhal_work *work, const gpuhal_given_kernel *own, gpuhal_plugin_queue *queue,
                    const gpuhal_memory *memory)
{
    gpuhal_status status;
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    gpuhal_given_arguments(own, memory, arguments);
    while (gpuhal_work_full(work, queue, status = gpuhal_given_launch(own, queue, arguments))) {
    }
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_skip("the device launches without a queue only");
        return false;
    }
    gpuhal_expect_ok(status, "launch with a queue");
    return true;
}

typedef struct round {
    gpuhal_area in, out;
    unsigned char *result;
} round;

/* A copy writes the bytes before each launch, and another copy reads them after the launch. All use the same memory. */
static bool run_in_order(const gpuhal_given_kernel *own, const gpuhal_work *work, const gpuhal_area *through,
                         round rounds[ROUNDS])
{
    for (unsigned r = 0; r < ROUNDS; r++) {
        gpuhal_work_copy(work, work->queue, through, 0, &rounds[r].in, 0, own->bytes);
        if (!enqueue(work, own, work->queue, &through->memory)) {
            return false;
        }
        gpuhal_work_copy(work, work->queue, &rounds[r].out, 0, through, 0, own->bytes);
    }
    return true;
}

/* Launches after slow work. A launch that waits for the slow work returns only when that work has ended. A try proves
 * nothing if the work ended before the launch. */
static void expect_prompt_launch(const gpuhal_given_kernel *own, const gpuhal_load *slow, const gpuhal_area *through)
{
    enum { TRIES = 3 };
    const gpuhal_work *work = &slow->work;
    gpuhal_plugin_event *before = gpuhal_work_event(work->opened, 0);
    unsigned late = 0, tries = 0;
    for (bool again = true; again && tries < TRIES; tries++) {
        const unsigned full = gpuhal_work_times_full();
        gpuhal_load_enqueue(slow, work->queue);
        gpuhal_work_record(work, work->queue, before);
        const bool lasts = work->slots->queues.event_query(before) != GPUHAL_OK;
        const bool taken = enqueue(work, own, work->queue, &through->memory);
        again =
            lasts && taken && work->slots->queues.event_query(before) == GPUHAL_OK && full == gpuhal_work_times_full();
        late += again;
        gpuhal_work_record(work, work->queue, work->event);
        gpuhal_work_await(work, work->event);
    }
    if (late == TRIES) {
        gpuhal_fail_late(37,
                         "launch with a queue returned when the work before it had ended, in %d of %d tries: it waits "
                         "for the device",
                         TRIES, TRIES);
    }
    work->slots->queues.event_destroy(before);
}

void gpuhal_check_launch_order(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    gpuhal_load slow;
    gpuhal_area through;
    round rounds[ROUNDS];
    if (!gpuhal_given_offered(context) || !gpuhal_work_offered(context, true, "")) {
        return;
    }
    gpuhal_given_init(&own, context);
    gpuhal_load_init(&slow, context, 0, GPUHAL_LOAD_NS);
    gpuhal_given_area(&own, &through, 99);
    for (unsigned r = 0; r < ROUNDS; r++) {
        rounds[r].result = gpuhal_given_result(&own, 10 + r);
        gpuhal_given_area(&own, &rounds[r].in, 10 + r);
        gpuhal_given_area(&own, &rounds[r].out, 50 + r);
    }
    if (slow.lasts) {
        expect_prompt_launch(&own, &slow, &through);
    }
    gpuhal_load_enqueue(&slow, slow.work.queue);
    const bool judged = run_in_order(&own, &slow.work, &through, rounds);
    gpuhal_work_record(&slow.work, slow.work.queue, slow.work.event);
    gpuhal_work_await(&slow.work, slow.work.event);
    for (unsigned r = 0; r < ROUNDS; r++) {
        if (judged) {
            gpuhal_given_expect(&rounds[r].out, rounds[r].result, "a launch between two copies in a queue");
        }
        free(rounds[r].result);
        gpuhal_area_finish(&rounds[r].in);
        gpuhal_area_finish(&rounds[r].out);
    }
    gpuhal_area_finish(&through);
    gpuhal_load_finish(&slow);
    gpuhal_given_finish(&own);
}

static void expect_time(const gpuhal_work *work, gpuhal_plugin_event *begin, uint64_t host_ns)
{
    uint64_t device_ns = UINT64_MAX;
    gpuhal_step("the slot elapsed");
    gpuhal_expect_ok(work->slots->queues.elapsed(begin, work->event, &device_ns), "elapsed");
    if (device_ns > host_ns + host_ns / 10 + 1000000) {
        gpuhal_fail("elapsed says %" PRIu64 " ns for a launch; by the host's clock it was %" PRIu64 " ns at most",
                    device_ns, host_ns);
    }
}

void gpuhal_check_launch_timed(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    gpuhal_work work;
    gpuhal_area area;
    if (!gpuhal_given_offered(context) ||
        !gpuhal_work_offered(context, context->opened.slots.queues.elapsed != NULL, "elapsed")) {
        return;
    }
    gpuhal_given_init(&own, context);
    gpuhal_work_init(&work, context, GPUHAL_TIMED);
    gpuhal_plugin_event *begin = gpuhal_work_event(work.opened, GPUHAL_TIMED);
    unsigned char *result = gpuhal_given_result(&own, 1);
    gpuhal_given_area(&own, &area, 1);
    const uint64_t started = gpuhal_tool_now_ns();
    gpuhal_work_record(&work, work.queue, begin);
    const bool judged = enqueue(&work, &own, work.queue, &area.memory);
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, begin);
    gpuhal_work_await(&work, work.event);
    if (judged) {
        expect_time(&work, begin, gpuhal_tool_now_ns() - started);
        gpuhal_given_expect(&area, result, "a launch between two timed events, once the second one is done");
    }
    free(result);
    gpuhal_area_finish(&area);
    work.slots->queues.event_destroy(begin);
    gpuhal_work_finish(&work);
    gpuhal_given_finish(&own);
}

/* ---- concurrent launches */

typedef struct worker {
    const gpuhal_given_kernel *shared;
    unsigned number;
    unsigned char *result;
    pthread_barrier_t *together;
    pthread_t thread;
} worker;

/* Threads with an odd index load their own program while the other threads launch. */
static void *launch_at_once(void *user)
{
    const worker *self = user;
    const gpuhal_context *context = self->shared->context;
    gpuhal_given_kernel own = *self->shared;
    gpuhal_area area;
    char what[64];
    const bool loads = self->number % 2 == 1;
    snprintf(what, sizeof what, "thread %u of %d launching at once", self->number, THREADS);
    pthread_barrier_wait(self->together);
    if (loads) {
        gpuhal_given_init(&own, context);
    }
    gpuhal_given_area(&own, &area, 100 + self->number);
    for (unsigned r = 0; r < THREAD_ROUNDS; r++) {
        gpuhal_area_reset(&area, 100 + self->number, ROUTE_ANY);
        gpuhal_given_run(&own, &area.memory);
        gpuhal_given_expect(&area, self->result, what);
    }
    gpuhal_area_finish(&area);
    if (loads) {
        gpuhal_given_finish(&own);
    }
    return NULL;
}

void gpuhal_check_launch_threads(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    worker workers[THREADS];
    pthread_barrier_t together;
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&own, context);
    pthread_barrier_init(&together, NULL, THREADS);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] =
            (worker){.shared = &own, .number = t, .together = &together, .result = gpuhal_given_result(&own, 100 + t)};
    }
    for (unsigned t = 0; t < THREADS; t++) {
        if (pthread_create(&workers[t].thread, NULL, launch_at_once, &workers[t]) != 0) {
            gpuhal_fail_with("Allow more threads.", "gpuhal-check cannot make a thread");
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        free(workers[t].result);
    }
    pthread_barrier_destroy(&together);
    gpuhal_given_finish(&own);
}

/* ---- many launches */

typedef struct repetition {
    gpuhal_given_kernel own;
    gpuhal_work work;
    gpuhal_area area;
    unsigned enqueued;
} repetition;

static void launch_once(void *user)
{
    const repetition *one = user;
    gpuhal_given_run(&one->own, &one->area.memory);
}

static void launch_in_queue(void *user)
{
    repetition *one = user;
    if (enqueue(&one->work, &one->own, one->work.queue, &one->area.memory) && ++one->enqueued % 100 == 0) {
        gpuhal_work_record(&one->work, one->work.queue, one->work.event);
        gpuhal_work_await(&one->work, one->work.event);
    }
}

static void load_once(void *user)
{
    gpuhal_given_kernel own;
    uint32_t size[3];
    gpuhal_given_init(&own, user);
    if (gpuhal_given_smaller(&own, size)) {
        gpuhal_given_prepare(&own, size);
    }
    gpuhal_given_finish(&own);
}

/* Inference launches kernels for days, and a server loads each of its models again and again. */
void gpuhal_check_launch_1000(gpuhal_context *context)
{
    repetition one = {.enqueued = 0};
    gpuhal_session_list(context);
    gpuhal_session_open(context, &context->opened);
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&one.own, context);
    gpuhal_given_area(&one.own, &one.area, 1);
    gpuhal_expect_no_leak("launching", TIMES / 10, TIMES, launch_once, &one);
    if (context->opened.slots.queues.queue_create != NULL) {
        gpuhal_work_init(&one.work, context, 0);
        gpuhal_expect_no_leak("launching in a queue", TIMES, TIMES, launch_in_queue, &one);
        gpuhal_work_record(&one.work, one.work.queue, one.work.event);
        gpuhal_work_await(&one.work, one.work.event);
        gpuhal_work_finish(&one.work);
    }
    gpuhal_area_finish(&one.area);
    gpuhal_given_finish(&one.own);
    gpuhal_expect_no_leak("loading and unloading a program", 10, 40, load_once, context);
    gpuhal_session_close(context, &context->opened);
}
