/* Tests queues and events of the OpenCL plugin with PoCL, through the plugin's slots: order, asynchrony, waits,
 * failures and adoption. */
#include "direct_opencl.h"
#include "support/random.h"
#include "exercise.h"
#include "support/pattern.h"

#include <pthread.h>
#include <unistd.h>

enum { STEPS = 3000, PIECE = 64, TURNS = 2000, THREADS = 4 };

/* ---- order */

/* Chooses a range within one half of the memory, so that ranges of different halves do not overlap. */
static void choose(uint64_t *seed, uint64_t half, uint64_t *out_offset, uint64_t *out_bytes)
{
    *out_bytes = 4 * (1 + exercise_random(seed, 100));
    *out_offset = half * BYTES / 2 + exercise_random(seed, BYTES / 2 - *out_bytes);
}

static void fill_some(const fixture *d, uint64_t *seed, unsigned char *expected)
{
    const uint32_t unit = 1u << exercise_random(seed, 3), pattern = (uint32_t)exercise_random(seed, UINT32_MAX);
    uint64_t offset, bytes;
    choose(seed, exercise_random(seed, 2), &offset, &bytes);
    expect_fine(d, d->ops->fill(d->device, d->queue, &d->far, offset, bytes, pattern, unit), "fill");
    for (uint64_t i = 0; i < bytes; i++) {
        expected[offset + i] = pattern_byte(pattern, unit, i);
    }
}

static void copy_some(const fixture *d, uint64_t *seed, unsigned char *expected)
{
    const uint64_t half = exercise_random(seed, 2);
    uint64_t from, to, bytes;
    choose(seed, half, &from, &bytes);
    to = (1 - half) * BYTES / 2 + exercise_random(seed, BYTES / 2 - bytes);
    expect_fine(d, d->ops->copy(d->device, d->queue, &d->far, to, &d->far, from, bytes), "copy");
    memcpy(expected + to, expected + from, bytes);
}

/* Copies rows and slices from one half of the memory to the other half. Some slice pitches are not a multiple of the
 * row pitch. */
static void copy_box(const fixture *d, uint64_t *seed, unsigned char *expected)
{
    const uint64_t extent[3] = {1 + exercise_random(seed, 20), 1 + exercise_random(seed, 5),
                                1 + exercise_random(seed, 3)};
    const uint64_t row = 20 + exercise_random(seed, 10), slice = row * 5 + exercise_random(seed, 7);
    const gpuhal_plugin_rect to = {
        .memory = &d->far, .offset = exercise_random(seed, 1000), .row_pitch = row, .slice_pitch = slice};
    const gpuhal_plugin_rect from = {.memory = &d->far, .offset = BYTES / 2, .row_pitch = row, .slice_pitch = slice};
    expect_fine(d, d->ops->copy_rect(d->device, d->queue, &to, &from, extent), "copy_rect");
    for (uint64_t line = 0; line < extent[1] * extent[2]; line++) {
        const uint64_t at = line / extent[1] * slice + line % extent[1] * row;
        memcpy(expected + to.offset + at, expected + from.offset + at, extent[0]);
    }
}

static void run_in_order(uint32_t index)
{
    static unsigned char expected[BYTES], sources[STEPS][PIECE], got[STEPS][PIECE], wanted[STEPS][PIECE];
    fixture d;
    uint64_t seed = 7 + index;
    open_fixture(&d, index, 0);
    fill_randomly(d.near.host, BYTES, 5);
    memcpy(expected, d.near.host, BYTES);
    copy_all(&d, d.queue, &d.far, &d.near);
    for (int step = 0; step < STEPS; step++) {
        const uint64_t kind = exercise_random(&seed, 5), at = exercise_random(&seed, BYTES - PIECE);
        if (kind == 0) {
            fill_some(&d, &seed, expected);
        } else if (kind == 1) {
            copy_some(&d, &seed, expected);
        } else if (kind == 2) {
            copy_box(&d, &seed, expected);
        } else if (kind == 3) {
            fill_randomly(sources[step], PIECE, seed);
            expect_fine(&d, d.ops->write(d.device, d.queue, &d.far, at, sources[step], PIECE), "write");
            memcpy(expected + at, sources[step], PIECE);
        } else {
            expect_fine(&d, d.ops->read(d.device, d.queue, got[step], &d.far, at, PIECE), "read");
            memcpy(wanted[step], expected + at, PIECE);
        }
    }
    copy_all(&d, d.queue, &d.result, &d.far);
    synchronize(&d, d.queue);
    assert_memory_equal(d.result.host, expected, BYTES);
    assert_memory_equal(got, wanted, sizeof got);
    close_fixture(&d);
}

TEST(thousands_of_small_steps_are_done_in_order)
{
    run_in_order(PTHREAD);
}

TEST(thousands_of_small_steps_are_done_in_order_on_a_device_that_works_inside_the_call)
{
    run_in_order(BASIC);
}

/* Uses only device memory, so that every step depends on the previous one. */
static void take_turns(uint32_t index)
{
    fixture d;
    open_fixture(&d, index, 0);
    gpuhal_plugin_queue *queues[2] = {d.queue, queue_or_fail(&d, 0)};
    gpuhal_plugin_event *events[2] = {d.event, event_or_fail(&d, 0)};
    gpuhal_memory other = memory_or_fail(&d, GPUHAL_MEMORY_DEVICE, BYTES);
    fill_randomly(d.near.host, BYTES, 3);
    copy_all(&d, d.queue, &d.far, &d.near);
    for (int turn = 0; turn < TURNS; turn++) {
        gpuhal_memory *to = turn % 2 ? &d.far : &other, *from = turn % 2 ? &other : &d.far;
        expect_fine(&d, turn ? d.ops->queues->queue_wait(queues[turn % 2], events[(turn + 1) % 2]) : GPUHAL_OK,
                    "queue_wait");
        expect_fine(&d, d.ops->copy(d.device, queues[turn % 2], to, 0, from, PIECE, BYTES - PIECE), "copy");
        expect_fine(&d, d.ops->copy(d.device, queues[turn % 2], to, BYTES - PIECE, from, 0, PIECE), "copy");
        record(&d, queues[turn % 2], events[turn % 2]);
    }
    copy_all(&d, queues[1], &d.result, &d.far);
    synchronize(&d, queues[1]);
    const uint64_t turned = (uint64_t)TURNS * PIECE % BYTES;
    assert_memory_equal(d.result.host, (char *)d.near.host + turned, BYTES - turned);
    assert_memory_equal((char *)d.result.host + BYTES - turned, d.near.host, turned);
    d.ops->release(d.device, &other);
    d.ops->queues->event_destroy(events[1]);
    d.ops->queues->queue_destroy(queues[1]);
    close_fixture(&d);
}

TEST(two_queues_that_wait_for_each_other_in_turn_neither_deadlock_nor_reorder)
{
    take_turns(PTHREAD);
}

TEST(two_queues_that_wait_for_each_other_in_turn_neither_deadlock_nor_reorder_inside_the_call)
{
    take_turns(BASIC);
}

/* ---- asynchrony */

TEST(enqueueing_never_waits_for_the_device)
{
    fixture d;
    unsigned char sent[PIECE], got[PIECE] = {0};
    open_fixture(&d, PTHREAD, 0);
    const gate shut = close_gate(&d, d.queue);
    copy_all(&d, d.queue, &d.far, &d.near);
    memset(sent, 0x44, PIECE);
    expect_fine(&d, d.ops->write(d.device, d.queue, &d.far, 1, sent, PIECE), "write");
    expect_fine(&d, d.ops->fill(d.device, d.queue, &d.far, 101, 10, 0x55667788, 2), "fill");
    expect_fine(&d, d.ops->read(d.device, d.queue, got, &d.far, 50, PIECE), "read");
    record(&d, d.queue, d.event);
    expect_fine(&d, d.ops->queues->queue_flush(d.queue), "flush");
    assert_int_equal(d.ops->queues->event_query(d.event), GPUHAL_NOT_READY);
    assert_int_equal(d.ops->queues->event_block(d.event, 0), GPUHAL_NOT_READY);
    assert_int_equal(d.ops->queues->event_block(d.event, second_ns / 100), GPUHAL_NOT_READY);
    assert_int_equal(got[0], 0);
    open_gate(shut);
    await(&d, d.event);
    assert_int_equal(d.ops->queues->event_query(d.event), GPUHAL_OK);
    assert_int_equal(got[14], 0x44);
    assert_int_equal(got[15], 0x11);
    assert_memory_equal(got + 51, "\x88\x77\x88\x77\x88\x77\x88\x77\x88\x77\x11", 11);
    close_fixture(&d);
}

TEST(copies_that_only_the_host_could_do_are_left_to_the_core)
{
    fixture d;
    unsigned char bytes[PIECE] = {0};
    open_fixture(&d, PTHREAD, 0);
    const gpuhal_plugin_rect to = {.memory = &d.result, .row_pitch = 8, .slice_pitch = 64};
    const gpuhal_plugin_rect from = {.memory = &d.near, .row_pitch = 8, .slice_pitch = 64};
    assert_int_equal(d.ops->copy(d.device, d.queue, &d.result, 0, &d.near, 0, PIECE), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(d.ops->write(d.device, d.queue, &d.result, 0, bytes, PIECE), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(d.ops->read(d.device, d.queue, bytes, &d.near, 0, PIECE), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(d.ops->fill(d.device, d.queue, &d.result, 0, PIECE, 1, 1), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(d.ops->copy_rect(d.device, d.queue, &to, &from, (const uint64_t[3]){8, 2, 1}),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    synchronize(&d, d.queue);
    assert_int_equal(((unsigned char *)d.result.host)[0], 0x22);
    assert_int_equal(bytes[0], 0);
    close_fixture(&d);
}

/* ---- waiting */

TEST(a_queue_goes_on_when_the_event_of_another_one_is_done)
{
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    gpuhal_plugin_queue *second = queue_or_fail(&d, 0);
    gpuhal_plugin_event *end = event_or_fail(&d, 0);
    const gate shut = close_gate(&d, d.queue);
    copy_all(&d, d.queue, &d.far, &d.near);
    record(&d, d.queue, d.event);
    expect_fine(&d, d.ops->queues->queue_wait(second, d.event), "queue_wait");
    copy_all(&d, second, &d.result, &d.far);
    record(&d, second, end);
    assert_int_equal(d.ops->queues->event_query(end), GPUHAL_NOT_READY);
    open_gate(shut);
    await(&d, end);
    assert_memory_equal(d.result.host, d.near.host, BYTES);
    d.ops->queues->event_destroy(end);
    d.ops->queues->queue_destroy(second);
    close_fixture(&d);
}

/* Each opened device has its own context. */
TEST(an_event_of_another_context_is_left_to_the_core)
{
    fixture d, other;
    open_fixture(&d, PTHREAD, 0);
    open_fixture(&other, BASIC, 0);
    const gate shut = close_gate(&d, d.queue);
    record(&d, d.queue, d.event);
    assert_int_equal(d.ops->queues->queue_wait(other.queue, d.event), GPUHAL_ERROR_NOT_SUPPORTED);
    open_gate(shut);
    await(&d, d.event);
    expect_fine(&other, d.ops->queues->queue_wait(other.queue, d.event), "queue_wait for what is done");
    close_fixture(&other);
    close_fixture(&d);
}

/* A queue waits for the first recording. A wait by the host for the same recording has timed out. */
TEST(an_event_that_is_recorded_again_leaves_waits_for_the_former_work_alone)
{
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    gpuhal_plugin_queue *second = queue_or_fail(&d, 0), *third = queue_or_fail(&d, 0);
    gpuhal_plugin_event *end = event_or_fail(&d, 0);
    const gate shut = close_gate(&d, d.queue);
    copy_all(&d, d.queue, &d.far, &d.near);
    record(&d, d.queue, d.event);
    expect_fine(&d, d.ops->queues->queue_wait(second, d.event), "queue_wait");
    copy_all(&d, second, &d.result, &d.far);
    record(&d, second, end);
    assert_int_equal(d.ops->queues->event_block(d.event, second_ns / 100), GPUHAL_NOT_READY);
    record(&d, third, d.event);
    await(&d, d.event);
    assert_int_equal(d.ops->queues->event_query(end), GPUHAL_NOT_READY);
    const gate late = close_gate(&d, third);
    record(&d, third, d.event);
    open_gate(shut);
    await(&d, end);
    assert_memory_equal(d.result.host, d.near.host, BYTES);
    assert_int_equal(d.ops->queues->event_block(d.event, second_ns / 100), GPUHAL_NOT_READY);
    open_gate(late);
    await(&d, d.event);
    d.ops->queues->event_destroy(end);
    d.ops->queues->queue_destroy(second);
    d.ops->queues->queue_destroy(third);
    close_fixture(&d);
}

TEST(an_event_may_be_destroyed_before_its_work_is_done)
{
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    gpuhal_plugin_event *early = event_or_fail(&d, 0);
    const gate shut = close_gate(&d, d.queue);
    record(&d, d.queue, early);
    assert_int_equal(d.ops->queues->event_block(early, second_ns / 100), GPUHAL_NOT_READY);
    d.ops->queues->event_destroy(early);
    open_gate(shut);
    synchronize(&d, d.queue);
    close_fixture(&d);
}

TEST(timed_events_report_how_long_the_work_took)
{
    fixture d;
    open_fixture(&d, PTHREAD, GPUHAL_TIMED);
    gpuhal_plugin_event *before = event_or_fail(&d, GPUHAL_TIMED);
    uint64_t elapsed_ns = 0;
    record(&d, d.queue, before);
    await(&d, before);
    const gate shut = close_gate(&d, d.queue);
    copy_all(&d, d.queue, &d.far, &d.near);
    record(&d, d.queue, d.event);
    assert_int_equal(d.ops->queues->elapsed(before, d.event, &elapsed_ns), GPUHAL_NOT_READY);
    usleep(20000);
    open_gate(shut);
    await(&d, d.event);
    expect_fine(&d, d.ops->queues->elapsed(before, d.event, &elapsed_ns), "elapsed");
    assert_true(elapsed_ns >= 20000000);
    assert_int_equal(d.ops->queues->elapsed(d.event, before, &elapsed_ns), GPUHAL_ERROR_INVALID_ARGUMENT);
    d.ops->queues->event_destroy(before);
    close_fixture(&d);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

/* The queue still holds the copy's event, because the copy had not ended when the test recorded `d.event`. The copy
 * waited for a gate in another queue. A gate in the same queue would not work, because the plugin enqueues markers in a
 * queue whose native object was handed out. */
TEST(a_timed_event_does_not_count_the_idle_time_of_the_queue)
{
    fixture d;
    open_fixture(&d, PTHREAD, GPUHAL_TIMED);
    gpuhal_plugin_queue *other = queue_or_fail(&d, 0);
    gpuhal_plugin_event *before = event_or_fail(&d, GPUHAL_TIMED), *opened = event_or_fail(&d, 0);
    uint64_t elapsed_ns = 0;
    const gate shut = close_gate(&d, other);
    record(&d, other, opened);
    expect_fine(&d, d.ops->queues->queue_wait(d.queue, opened), "queue_wait");
    copy_all(&d, d.queue, &d.far, &d.near);
    record(&d, d.queue, d.event);
    open_gate(shut);
    await(&d, d.event);
    usleep(50000);
    const uint64_t began = now_ns();
    record(&d, d.queue, before);
    copy_all(&d, d.queue, &d.far, &d.near);
    record(&d, d.queue, d.event);
    await(&d, d.event);
    const uint64_t took = now_ns() - began;
    expect_fine(&d, d.ops->queues->elapsed(before, d.event, &elapsed_ns), "elapsed");
    assert_true(elapsed_ns <= took + 1000000);
    d.ops->queues->event_destroy(before);
    d.ops->queues->event_destroy(opened);
    d.ops->queues->queue_destroy(other);
    close_fixture(&d);
}

TEST(events_of_a_queue_that_is_not_timed_have_no_time)
{
    fixture d;
    uint64_t elapsed_ns = 0;
    open_fixture(&d, PTHREAD, 0);
    record(&d, d.queue, d.event);
    await(&d, d.event);
    const gpuhal_status status = d.ops->queues->elapsed(d.event, d.event, &elapsed_ns);
    close_fixture(&d);
    if (status == GPUHAL_OK) {
        SKIP_TEST("this driver takes the time of every queue");
    }
    assert_int_equal(status, GPUHAL_ERROR_NOT_SUPPORTED);
}

/* ---- threads */

typedef struct helper {
    pthread_t thread;
    const fixture *d;
    gpuhal_memory memory;
    gpuhal_plugin_event *event;
    gpuhal_status status;
} helper;

static void *copy_in_a_queue_of_its_own(void *user)
{
    helper *h = user;
    const gpuhal_ops *ops = h->d->ops;
    for (int round = 0; round < 20 && !h->status; round++) {
        gpuhal_plugin_queue *queue = NULL;
        h->status = ops->queues->queue_create(h->d->device, QUEUE_DESC(.priority = round % 3 - 1), &queue);
        for (uint64_t at = 0; at < BYTES && !h->status; at += 4000) {
            h->status = ops->copy(h->d->device, queue, &h->memory, at, &h->d->far, at, 4000);
            h->status = h->status ? h->status : ops->queues->event_record(queue, h->event);
            h->status = !h->status && at % 16000 == 0 ? ops->queues->event_block(h->event, 20 * second_ns) : h->status;
        }
        if (queue) {
            ops->queues->queue_destroy(queue);
        }
    }
    return NULL;
}

TEST(queues_of_many_threads_work_at_once)
{
    static helper helpers[THREADS];
    fixture d;
    open_fixture(&d, PTHREAD, 0);
    fill_randomly(d.near.host, BYTES, 12);
    copy_all(&d, NULL, &d.far, &d.near);
    for (int t = 0; t < THREADS; t++) {
        helpers[t] = (helper){
            .d = &d, .memory = memory_or_fail(&d, GPUHAL_MEMORY_READBACK, BYTES), .event = event_or_fail(&d, 0)};
        assert_int_equal(pthread_create(&helpers[t].thread, NULL, copy_in_a_queue_of_its_own, &helpers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(helpers[t].thread, NULL);
        assert_int_equal(helpers[t].status, GPUHAL_OK);
        assert_memory_equal(helpers[t].memory.host, d.near.host, BYTES);
        d.ops->queues->event_destroy(helpers[t].event);
        d.ops->release(d.device, &helpers[t].memory);
    }
    close_fixture(&d);
}

#include "test_main.h"
