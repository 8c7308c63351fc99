/* Tests recordings through the Vulkan plugin's slots, with lavapipe or with the fake driver (vulkan_program.h). */
#include "vulkan_recordings.h"

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
    d.scales = chance(f, 4) == 0;
    d.more[76] = chance(f, 3);
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
            d->more[76] = chance(f, 3);
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
    fixture *f = begin(begin_programs());
    static const uint32_t counts[] = {1, 2, 7, 60, 256};
    for (uint32_t i = 0; i < 5; i++) {
        compare_random_work(f, 1 + i, counts[i]);
    }
    end(f);
}

TEST(plain_calls_before_between_and_after_runs_are_in_order_with_them)
{
    fixture *f = begin(begin_programs());
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
    fixture *f = begin(begin_programs());
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
    fixture *f = begin(begin_programs());
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
