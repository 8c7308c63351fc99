/* Tests recordings through the Vulkan plugin's slots, with lavapipe or with the fake driver (vulkan_program.h). */
#include "support/random.h"
#include "vulkan_program.h"

enum { NUMBERS = 64, BYTES = NUMBERS * 4, BUFFERS = 4, STEPS_MOST = GPUHAL_PLUGIN_STEPS_MAX };

/* A step with everything that it points to. `to` and `from` are buffers. */
typedef struct described {
    uint32_t kind, flags, to, from, to_offset, from_offset, bytes, pattern;
    float factor;
    uint32_t groups;
    gpuhal_plugin_argument arguments[4];
    gpuhal_plugin_launch launch;
} described;

typedef struct fixture {
    programs p;
    const gpuhal_ops *ops;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *saxpy;
    gpuhal_memory buffers[2][BUFFERS]; /* of plain calls and of the recording */
    gpuhal_plugin_recording *recording;
    uint64_t seed;
    uint32_t count;
    described steps[STEPS_MOST];
} fixture;

static fixture *begin(const char *script)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->p = script ? open_programs(script) : begin_programs();
    f->ops = &f->p.o.ops;
    assert_non_null(f->ops->recordings);
    const gpuhal_kernel_desc desc = saxpy_desc();
    assert_ok(load_code(&f->p.o, saxpy_spirv, sizeof saxpy_spirv, NULL, &f->program));
    assert_ok(create_kernel(&f->p.o, f->program, &desc, NULL, &f->saxpy));
    for (uint32_t b = 0; b < 2 * BUFFERS; b++) {
        gpuhal_memory *memory = &f->buffers[b / BUFFERS][b % BUFFERS];
        *memory = allocate_words(&f->p.o, NUMBERS);
        for (uint32_t i = 0; i < NUMBERS; i++) {
            ((float *)memory->host)[i] = (float)(b % BUFFERS + i);
        }
    }
    return f;
}

static void end(fixture *f)
{
    if (f->recording) {
        f->ops->recordings->recording_destroy(f->recording);
    }
    f->ops->programs->kernel_destroy(f->saxpy);
    f->ops->programs->program_unload(f->program);
    for (uint32_t b = 0; b < 2 * BUFFERS; b++) {
        release_direct(&f->p.o, &f->buffers[b / BUFFERS][b % BUFFERS]);
    }
    end_programs(&f->p);
    free(f);
}

static const uint32_t numbers = NUMBERS;

/* Returns a step that uses the buffers of plain calls (0) or of the recording (1). */
static gpuhal_plugin_step step_of(fixture *f, uint32_t index, int set)
{
    described *d = &f->steps[index];
    const gpuhal_memory *to = &f->buffers[set][d->to], *from = &f->buffers[set][d->from];
    gpuhal_plugin_step step = {.kind = d->kind, .index = index, .flags = d->flags};
    if (d->kind == GPUHAL_STEP_LAUNCH) {
        d->arguments[0] = buffer_argument(from, 0, BYTES, GPUHAL_ACCESS_READ);
        d->arguments[1] = buffer_argument(to, 0, BYTES, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE);
        d->arguments[2] = value_argument(&numbers, 4);
        d->arguments[3] = value_argument(&d->factor, 4);
        d->launch = (gpuhal_plugin_launch){
            .size = sizeof d->launch, .argument_count = 4, .arguments = d->arguments, .groups = {d->groups, 1, 1}};
        step.kernel = f->saxpy;
        step.launch = &d->launch;
        return step;
    }
    step.to = to;
    step.to_offset = d->to_offset;
    step.bytes = d->bytes;
    if (d->kind == GPUHAL_STEP_COPY) {
        step.from = from;
        step.from_offset = d->from_offset;
    } else {
        step.pattern = d->pattern;
        step.pattern_bytes = 4;
    }
    return step;
}

static void do_plainly(fixture *f, gpuhal_plugin_queue *queue)
{
    for (uint32_t i = 0; i < f->count; i++) {
        const gpuhal_plugin_step s = step_of(f, i, 0);
        gpuhal_status status = GPUHAL_OK;
        if (s.kind == GPUHAL_STEP_COPY) {
            status = f->ops->copy(f->p.o.device, queue, s.to, s.to_offset, s.from, s.from_offset, s.bytes);
        } else if (s.kind == GPUHAL_STEP_FILL) {
            status = f->ops->fill(f->p.o.device, queue, s.to, s.to_offset, s.bytes, s.pattern, s.pattern_bytes);
        } else {
            status = f->ops->programs->launch(queue, s.kernel, s.launch);
        }
        assert_int_equal(status, GPUHAL_OK);
    }
}

static void create(fixture *f)
{
    static gpuhal_plugin_step steps[STEPS_MOST];
    for (uint32_t i = 0; i < f->count; i++) {
        steps[i] = step_of(f, i, 1);
    }
    assert_int_equal(f->ops->recordings->recording_create(f->p.o.device, steps, f->count, &f->recording), GPUHAL_OK);
    memset(steps, 0xaa, sizeof steps); /* the plugin must not read the structures after the call */
    for (uint32_t i = 0; i < f->count; i++) {
        memset(&f->steps[i].arguments, 0xaa, sizeof f->steps[i].arguments);
    }
}

static void run_in(fixture *f, gpuhal_plugin_queue *queue)
{
    assert_int_equal(f->ops->recordings->recording_run(queue, f->recording), GPUHAL_OK);
}

static gpuhal_status set_factor(fixture *f, uint32_t index, float factor)
{
    f->steps[index].factor = factor;
    const gpuhal_plugin_step step = step_of(f, index, 1);
    return f->ops->recordings->recording_set(f->recording, &step, 1);
}

/* Makes the second queue wait for the work of the first. */
static void follow(fixture *f, gpuhal_plugin_queue *second, gpuhal_plugin_queue *first, gpuhal_plugin_event *event)
{
    assert_int_equal(f->ops->queues->event_record(first, event), GPUHAL_OK);
    assert_int_equal(f->ops->queues->queue_wait(second, event), GPUHAL_OK);
}

static void expect_equal_bytes(const fixture *f)
{
    for (uint32_t b = 0; b < BUFFERS; b++) {
        assert_memory_equal(f->buffers[1][b].host, f->buffers[0][b].host, BYTES);
    }
}

/* A step that adds factor times the first buffer to the second one. */
static described addition(float factor)
{
    return (described){
        .kind = GPUHAL_STEP_LAUNCH, .flags = GPUHAL_STEP_CHANGES, .to = 1, .factor = factor, .groups = 1};
}

/* ---- the results of runs */

static uint32_t chance(fixture *f, uint32_t below)
{
    return (uint32_t)(next_word(&f->seed) % below);
}

static described random_step(fixture *f)
{
    described d = {.kind = chance(f, 10) < 7 ? GPUHAL_STEP_LAUNCH : chance(f, 2) ? GPUHAL_STEP_COPY : GPUHAL_STEP_FILL};
    d.to = chance(f, BUFFERS);
    d.from = d.kind == GPUHAL_STEP_LAUNCH ? (d.to + 1 + chance(f, BUFFERS - 1)) % BUFFERS : chance(f, BUFFERS);
    d.flags = d.kind == GPUHAL_STEP_LAUNCH && chance(f, 3) == 0 ? GPUHAL_STEP_CHANGES : 0;
    d.bytes = 4 * (1 + chance(f, NUMBERS / 4));
    d.to_offset = 4 * chance(f, NUMBERS / 4);
    d.from_offset = 4 * (NUMBERS / 2 + chance(f, NUMBERS / 4));
    d.pattern = chance(f, 2) ? 0x3f800000u : 0x40000000u; /* 1.0f, 2.0f */
    d.factor = (float)chance(f, 3) - 1.0f;
    d.groups = 1;
    return d;
}

static void set_randomly(fixture *f)
{
    gpuhal_plugin_step steps[STEPS_MOST];
    uint32_t changed = 0;
    for (uint32_t i = 0; i < f->count; i++) {
        described *d = &f->steps[i];
        if (d->flags && chance(f, 3) == 0) {
            d->factor = (float)chance(f, 3) - 1.0f;
            d->to = chance(f, BUFFERS);
            d->from = (d->to + 1 + chance(f, BUFFERS - 1)) % BUFFERS;
            steps[changed++] = step_of(f, i, 1);
        }
    }
    if (changed > 0) {
        assert_int_equal(f->ops->recordings->recording_set(f->recording, steps, changed), GPUHAL_OK);
    }
}

static void compare_random_work(fixture *f, uint64_t seed, uint32_t count)
{
    gpuhal_plugin_queue *queues[2] = {NULL}, *plain = f->p.queue;
    gpuhal_plugin_event *event = NULL;
    f->seed = seed;
    f->count = count;
    for (uint32_t i = 0; i < count; i++) {
        f->steps[i] = random_step(f);
    }
    create(f);
    assert_int_equal(f->ops->queues->event_create(f->p.o.device, EVENT_DESC(.flags = 0), &event), GPUHAL_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->ops->queues->queue_create(f->p.o.device, QUEUE_DESC(.flags = 0), &queues[i]), GPUHAL_OK);
    }
    for (int run = 0; run < 12; run++) {
        if (run % 3 == 2) {
            follow(f, queues[1], queues[0], event);
            gpuhal_plugin_queue *last = queues[0];
            queues[0] = queues[1];
            queues[1] = last;
        }
        set_randomly(f);
        run_in(f, queues[0]);
        do_plainly(f, plain);
    }
    follow(f, plain, queues[0], event);
    finish_queue(&f->p);
    expect_equal_bytes(f);
    for (int i = 0; i < 2; i++) {
        f->ops->queues->queue_destroy(queues[i]);
    }
    f->ops->queues->event_destroy(event);
    f->ops->recordings->recording_destroy(f->recording);
    f->recording = NULL;
}

TEST(random_work_gives_the_same_bytes_as_plain_calls)
{
    fixture *f = begin(NULL);
    static const uint32_t counts[] = {1, 2, 7, 60, 256};
    for (uint32_t i = 0; i < 5; i++) {
        compare_random_work(f, 1 + i, counts[i]);
    }
    end(f);
}

TEST(plain_calls_before_between_and_after_runs_are_in_order_with_them)
{
    fixture *f = begin(NULL);
    gpuhal_plugin_queue *queue = f->p.queue;
    const gpuhal_memory *x = &f->buffers[1][0], *y = &f->buffers[1][1];
    f->count = 1;
    f->steps[0] = addition(1);
    create(f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(f->ops->fill(f->p.o.device, queue, x, 0, BYTES, 0x3f800000u, 4), GPUHAL_OK); /* 1 */
        assert_int_equal(f->ops->fill(f->p.o.device, queue, y, 0, BYTES, 0x40000000u, 4), GPUHAL_OK); /* 2 */
        run_in(f, queue);
        run_in(f, queue);
        assert_ok(launch_saxpy(&f->p.o, queue, f->saxpy, y, x, 0, NUMBERS, 1)); /* x = 1 + 4 */
        run_in(f, queue);                                                       /* y = 4 + 5 */
    }
    finish_queue(&f->p);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        assert_true(((const float *)x->host)[i] == 5 && ((const float *)y->host)[i] == 9);
    }
    end(f);
}

TEST(a_run_keeps_the_launches_that_it_began_with)
{
    fixture *f = begin(NULL);
    float sum = 0;
    f->count = 3;
    for (uint32_t i = 0; i < f->count; i++) {
        f->steps[i] = addition(0);
    }
    create(f);
    for (uint32_t run = 0; run < 40; run++) {
        const float factor = (float)run;
        assert_int_equal(set_factor(f, run % 3, factor), GPUHAL_OK);
        for (uint32_t i = 0; i < f->count; i++) {
            sum += f->steps[i].factor;
        }
        run_in(f, f->p.queue);
        if (run % 4 == 3) {
            assert_int_equal(f->ops->queues->queue_flush(f->p.queue), GPUHAL_OK);
        }
    }
    finish_queue(&f->p);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        assert_true(((const float *)f->buffers[1][1].host)[i] == (float)(1 + i) + sum * (float)i);
    }
    end(f);
}

TEST(timed_events_and_runs_are_in_order)
{
    fixture *f = begin(NULL);
    gpuhal_plugin_event *events[2] = {NULL};
    uint64_t elapsed_ns = 0;
    assert_non_null(f->ops->queues->elapsed);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->ops->queues->event_create(f->p.o.device, EVENT_DESC(.flags = GPUHAL_TIMED), &events[i]),
                         GPUHAL_OK);
    }
    f->count = 1;
    f->steps[0] = addition(1);
    create(f);
    for (int again = 0; again < 2; again++) {
        run_in(f, f->p.queue);
        assert_int_equal(f->ops->queues->event_record(f->p.queue, events[0]), GPUHAL_OK);
        run_in(f, f->p.queue);
        assert_int_equal(f->ops->queues->event_record(f->p.queue, events[1]), GPUHAL_OK);
        assert_int_equal(f->ops->queues->event_block(events[1], UINT64_C(60000000000)), GPUHAL_OK);
        assert_int_equal(f->ops->queues->elapsed(events[0], events[1], &elapsed_ns), GPUHAL_OK);
        assert_true(elapsed_ns > 0);
    }
    for (int i = 0; i < 2; i++) {
        f->ops->queues->event_destroy(events[i]);
    }
    end(f);
}

#include "test_main.h"
