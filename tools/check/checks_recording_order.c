/* checks_recording_order.c: recordings among other work: their order, several of them, threads, and leaks. */
#include "recorder.h"
#include "resources.h"

#include <pthread.h>

enum { FIRST, SECOND }; /* numbers of plans, of queues, and of memory objects */
enum { TRIES = 3, TIMES = 100, THREADS = 4, THREAD_ROUNDS = 8 };

typedef gpuhal_planned_launch planned;

static const gpuhal_planned_launch plain = {.memory = FIRST};
static const uint32_t first_step = 0;

/* ---- order */

static void one_run(gpuhal_recorder *recorder)
{
    gpuhal_plan_chain(recorder, FIRST, GPUHAL_PLUGIN_STEPS_MAX);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
}

static void between_copies(gpuhal_recorder *recorder)
{
    const uint64_t place = recorder->place;
    gpuhal_plan_chain(recorder, FIRST, 20);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_load(recorder);
    for (unsigned round = 0; round < 3; round++) {
        gpuhal_recorder_copy(recorder, FIRST, FIRST, 0, SECOND, (round + 1) % 3 * place, place);
        gpuhal_recorder_run(recorder, FIRST, FIRST);
        gpuhal_recorder_copy(recorder, FIRST, SECOND, round * place, FIRST, 2 * place, place);
    }
}

static void without_a_wait(gpuhal_recorder *recorder)
{
    gpuhal_plan_chain(recorder, FIRST, 20);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_load(recorder);
    for (unsigned r = 0; r < 8; r++) {
        gpuhal_recorder_run(recorder, FIRST, FIRST);
    }
}

static void in_two_queues(gpuhal_recorder *recorder)
{
    gpuhal_plan_chain(recorder, FIRST, 20);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_load(recorder);
    for (unsigned r = 0; r < 3; r++) {
        gpuhal_recorder_run(recorder, FIRST, FIRST);
        gpuhal_recorder_follow(recorder, SECOND, FIRST);
        gpuhal_recorder_run(recorder, SECOND, FIRST);
        gpuhal_recorder_copy(recorder, SECOND, FIRST, 0, SECOND, 0, recorder->place);
        gpuhal_recorder_follow(recorder, FIRST, SECOND);
    }
}

/* The first queue is busy with slow work. The second queue does not wait for it. */
static void beside_slow_work(gpuhal_recorder *recorder)
{
    gpuhal_plan_chain(recorder, FIRST, 20);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
    gpuhal_recorder_await(recorder);
    gpuhal_recorder_load(recorder);
    gpuhal_recorder_run(recorder, SECOND, FIRST);
    gpuhal_recorder_copy(recorder, SECOND, FIRST, 0, SECOND, 0, recorder->place);
}

/* The call of recording_set or recording_run that a try observes. */
typedef enum observed { CALL_SET, CALL_RUN } observed;

/* Returns whether the work before the call has ended during the call. A try proves nothing if the queue was full. */
static bool waited(gpuhal_recorder *recorder, observed call, gpuhal_plugin_event *before)
{
    const gpuhal_work *work = &recorder->slow.work;
    gpuhal_recorder_load(recorder);
    if (call == CALL_SET) {
        gpuhal_recorder_run(recorder, FIRST, FIRST);
    }
    gpuhal_work_record(work, work->queue, before);
    const unsigned full = gpuhal_work_times_full();
    const bool lasts = work->slots->queues.event_query(before) != GPUHAL_OK;
    if (call == CALL_SET) {
        gpuhal_recorder_set(recorder, FIRST, &first_step, &plain, 1);
    } else {
        gpuhal_recorder_run(recorder, FIRST, FIRST);
    }
    const bool ended = work->slots->queues.event_query(before) == GPUHAL_OK && full == gpuhal_work_times_full();
    gpuhal_recorder_await(recorder);
    return lasts && ended;
}

static void expect_prompt(gpuhal_recorder *recorder, observed call)
{
    gpuhal_plugin_event *before = gpuhal_work_event(&recorder->context->opened, 0);
    unsigned late = 0, tries = 0;
    for (bool again = true; again && tries < TRIES && !recorder->refused; tries++) {
        again = waited(recorder, call, before);
        late += again;
    }
    if (late == TRIES) {
        gpuhal_fail_late(call == CALL_SET ? 52 : 37,
                         "%s returned when the work before it had ended, in %d of %d tries: it waits for the device",
                         call == CALL_SET ? "recording_set" : "recording_run", TRIES, TRIES);
    }
    recorder->context->opened.slots.queues.event_destroy(before);
}

/* The bytes are not compared, because the number of runs varies. */
static void expect_prompt_calls(gpuhal_recorder *recorder)
{
    gpuhal_plan_launch(recorder, FIRST, GPUHAL_STEP_CHANGES, plain);
    gpuhal_plan_copy(recorder, FIRST, FIRST, 0, SECOND, 0, recorder->unit);
    gpuhal_recorder_create(recorder, FIRST);
    expect_prompt(recorder, CALL_RUN);
    if (recorder->has_kernel) {
        expect_prompt(recorder, CALL_SET);
    }
    if (recorder->refused) {
        gpuhal_note("not tested, because %s returned not supported: whether calls wait for the device",
                    recorder->refused_by);
    }
    gpuhal_recorder_destroy(recorder, FIRST);
}

void gpuhal_check_recording_order(gpuhal_context *context)
{
    gpuhal_recorder recorder;
    if (!gpuhal_recorder_begin(&recorder, context, true)) {
        return;
    }
    if (recorder.slow.lasts) {
        expect_prompt_calls(&recorder);
    }
    gpuhal_rule(36);
    gpuhal_recorder_play(&recorder, one_run, "the event after a run was done, and the bytes of the run");
    gpuhal_rule(35);
    gpuhal_recorder_play(&recorder, without_a_wait, "8 runs of a recording, without a wait between them");
    gpuhal_recorder_play(&recorder, between_copies, "runs of a recording between copies in a queue");
    gpuhal_recorder_play(&recorder, beside_slow_work, "a run in a queue, while another queue has slow work");
    gpuhal_recorder_play(&recorder, in_two_queues, "runs of a recording in two queues that wait for each other");
    gpuhal_recorder_end(&recorder);
}

/* ---- several recordings */

static void plan_two(gpuhal_recorder *recorder)
{
    const uint64_t place = recorder->place, body = place - RECORDER_TAIL * recorder->unit;
    for (unsigned plan = FIRST; plan <= SECOND; plan++) {
        gpuhal_plan_launch(recorder, plan, GPUHAL_STEP_CHANGES,
                           (planned){.memory = plan, .place = plan, .minus = 1 + plan, .fewer = plan});
        gpuhal_plan_copy(recorder, plan, plan, 2 * place, plan, plan * place, body);
        gpuhal_plan_launch(recorder, plan, 0, (planned){.memory = plan, .place = 2, .minus = 3 + plan});
        gpuhal_plan_copy(recorder, plan, plan, (1 - plan) * place, plan, 2 * place, 32 * recorder->unit);
        gpuhal_plan_rotation(recorder, plan, plan);
    }
}

static void two_recordings(gpuhal_recorder *recorder)
{
    plan_two(recorder);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_create(recorder, SECOND);
    for (unsigned r = 0; r < 4; r++) {
        gpuhal_recorder_run(recorder, FIRST, FIRST);
        gpuhal_recorder_run(recorder, SECOND, SECOND);
        if (recorder->has_kernel) {
            gpuhal_recorder_set(recorder, r % 2, &first_step, &(planned){.memory = r % 2, .place = 1, .minus = 5 + r},
                                1);
        }
    }
}

static void the_other_one_destroyed(gpuhal_recorder *recorder)
{
    plan_two(recorder);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_create(recorder, SECOND);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
    gpuhal_recorder_await(recorder);
    gpuhal_recorder_destroy(recorder, FIRST);
    gpuhal_recorder_run(recorder, SECOND, SECOND);
    gpuhal_recorder_await(recorder);
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_destroy(recorder, SECOND);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
}

/* Records and runs on another opening of the device, and closes it, while this device has a recording. */
static void the_other_device_closed(gpuhal_recorder *recorder)
{
    gpuhal_context other = *recorder->context;
    gpuhal_recorder second;
    plan_two(recorder);
    gpuhal_recorder_create(recorder, FIRST);
    if (!recorder->is_model) {
        gpuhal_session_open(&other, &other.opened);
        gpuhal_recorder_init(&second, &other, false);
        gpuhal_recorder_play(&second, two_recordings, "recordings of another opened device");
        gpuhal_recorder_finish(&second);
        gpuhal_session_close(&other, &other.opened);
    }
    gpuhal_recorder_run(recorder, FIRST, FIRST);
}

void gpuhal_check_recordings(gpuhal_context *context)
{
    gpuhal_recorder recorder;
    if (!gpuhal_recorder_begin(&recorder, context, false)) {
        return;
    }
    gpuhal_recorder_play(&recorder, two_recordings, "two recordings of one kernel, run by turns");
    gpuhal_recorder_play(&recorder, the_other_one_destroyed, "a recording, after another one was destroyed");
    gpuhal_recorder_play(&recorder, the_other_device_closed,
                         "a recording, after another opened device with recordings was closed");
    gpuhal_recorder_end(&recorder);
}

/* ---- threads */

typedef struct worker {
    const gpuhal_context *context;
    pthread_barrier_t *together;
    pthread_t thread;
    const char *refused_by; /* NULL if the recordings were compared */
} worker;

static void *record_at_once(void *user)
{
    worker *self = user;
    gpuhal_recorder recorder;
    gpuhal_recorder_init(&recorder, self->context, false);
    pthread_barrier_wait(self->together);
    for (unsigned round = 0; round < THREAD_ROUNDS; round++) {
        gpuhal_recorder_play(&recorder, two_recordings, "recordings that one of 4 threads created, changed and ran");
    }
    self->refused_by = recorder.judged ? NULL : recorder.refused_by;
    gpuhal_recorder_finish(&recorder);
    return NULL;
}

void gpuhal_check_recording_threads(gpuhal_context *context)
{
    worker workers[THREADS];
    pthread_barrier_t together;
    if (!gpuhal_recorder_offered(context)) {
        return;
    }
    pthread_barrier_init(&together, NULL, THREADS);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] = (worker){.context = context, .together = &together};
        if (pthread_create(&workers[t].thread, NULL, record_at_once, &workers[t]) != 0) {
            gpuhal_fail_with("Allow more threads.", "gpuhal-check cannot make a thread");
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
    }
    pthread_barrier_destroy(&together);
    if (workers[0].refused_by != NULL) {
        gpuhal_skip(GPUHAL_REFUSED_ALL, workers[0].refused_by);
    }
}

/* ---- leaks */

static void record_once(void *user)
{
    gpuhal_recorder *recorder = user;
    gpuhal_recorder_create(recorder, FIRST);
    gpuhal_recorder_run(recorder, FIRST, FIRST);
    if (recorder->has_kernel) {
        gpuhal_recorder_set(recorder, FIRST, &first_step, &(planned){.memory = FIRST, .minus = 2}, 1);
    }
    gpuhal_recorder_run(recorder, FIRST, FIRST);
    gpuhal_recorder_await(recorder);
    gpuhal_recorder_destroy(recorder, FIRST);
}

void gpuhal_check_recording_100(gpuhal_context *context)
{
    gpuhal_recorder recorder;
    gpuhal_session_list(context);
    gpuhal_session_open(context, &context->opened);
    if (!gpuhal_recorder_begin(&recorder, context, false)) {
        return;
    }
    gpuhal_plan_launch(&recorder, FIRST, GPUHAL_STEP_CHANGES, plain);
    gpuhal_plan_chain(&recorder, FIRST, 20);
    gpuhal_expect_no_leak("creating, changing, running and destroying a recording", 10, TIMES, record_once, &recorder);
    recorder.judged = !recorder.refused;
    gpuhal_recorder_end(&recorder);
    gpuhal_session_close(context, &context->opened);
}
