/* Recordings that the driver prepares: its parts, new values, and the cases in which a run enqueues the steps. */
#include "recording_support.h"
#include "support/faults.h"

static gpuhal_recording *record_many(const objects *o, uint32_t count)
{
    gpuhal_recording *recording = new_recording(o->device, 1);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t step = record_add(recording, o->add, o->one, 1);
        assert_ok(i % 3 ? GPUHAL_OK : gpuhal_recording_slot(recording, 0, step, 1));
    }
    return recording;
}

TEST(a_run_passes_prepared_parts_and_no_steps)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = record_many(&o, EVERY + 20);
    assert_string_equal(gpuhal_recording_form(recording), "");
    assert_string_equal(gpuhal_recording_form(NULL), "");
    assert_ok(gpuhal_recording_finish(recording));
    assert_string_equal(gpuhal_recording_form(recording), "driver");
    assert_int_equal(gpuhal_halting.recordings, 2);
    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    }
    expect(o.queue, o.one, 4 * (EVERY + 20));
    assert_int_equal(gpuhal_halting.recording_runs, 8);
    assert_int_equal(gpuhal_halting.steps_set, 0);
    assert_true(gpuhal_halting.unrecorded_most <= EVERY); /* an event is before each part that would exceed this */
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(new_values_reach_the_changed_steps_of_all_parts_once)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = record_many(&o, 2 * EVERY); /* 171 of the steps change */
    assert_ok(gpuhal_recording_finish(recording));
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 5; i++) {
        const gpuhal_slot_value value = value_of(0, &i);
        assert_ok(gpuhal_recording_run(o.queue, recording, &value, 1));
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        sum += 2 * (171 * i + 2 * EVERY - 171);
        expect(o.queue, o.one, sum);
    }
    assert_int_equal(gpuhal_halting.steps_set, 5 * 171);
    assert_int_equal(gpuhal_halting.recording_runs, 2 * 5 * 2);
    gpuhal_recording_release(recording);
    end(&o);
}

/* Both arguments and the groups of one launch have slots; the slot of the second launch belongs to it alone. */
TEST(a_launch_with_several_new_values_is_passed_once_with_all_of_them)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = new_recording(o.device, 4);
    const uint32_t one = record_add(recording, o.add, o.one, 1), two = record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_slot(recording, 3, two, 1));
    assert_ok(gpuhal_recording_slot(recording, 0, one, 0));
    assert_ok(gpuhal_recording_slot(recording, 1, one, 1));
    assert_ok(gpuhal_recording_slot(recording, 2, one, GPUHAL_SLOT_GROUPS));
    assert_ok(gpuhal_recording_finish(recording));
    const uint32_t five = 5, seven = 7;
    const gpuhal_slot_value values[] = {value_of(3, &seven),
                                        {.slot = 0, .argument = {.buffer = o.other, .bytes = BYTES}},
                                        value_of(1, &five),
                                        {.slot = 2, .groups = {2, 1, 1}}};
    assert_ok(gpuhal_recording_run(o.queue, recording, values, 4));
    expect(o.queue, o.one, 7);
    expect(o.queue, o.other, 5);
    assert_int_equal(gpuhal_halting.steps_set, 2);
    assert_int_equal(gpuhal_halting.recording_runs, 1);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_run_with_a_launch_without_groups_enqueues_its_steps)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = new_recording(o.device, 1);
    const uint32_t value = 1;
    const gpuhal_argument arguments[] = {{.buffer = o.one}, {.value = &value, .bytes = 4}};
    const gpuhal_launch launch = {.size = sizeof launch, .arguments = arguments, .argument_count = 2};
    uint32_t step = 0;
    assert_ok(gpuhal_recording_launch(recording, o.add, &launch, NULL)); /* never does anything */
    assert_ok(gpuhal_recording_launch(recording, o.add, &launch, &step));
    assert_int_equal(record_add(recording, o.add, o.other, 1), 2);
    assert_ok(gpuhal_recording_slot(recording, 0, step, GPUHAL_SLOT_GROUPS));
    assert_ok(gpuhal_recording_finish(recording));
    assert_string_equal(gpuhal_recording_form(recording), "driver");
    const gpuhal_slot_value some = {.groups = {1, 1, 1}}, none = {.groups = {1, 0, 1}};
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 0);
    expect(o.queue, o.other, 1);
    assert_int_equal(gpuhal_halting.recording_runs, 0);
    assert_ok(gpuhal_recording_run(o.queue, recording, &some, 1));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 2);
    assert_int_equal(gpuhal_halting.recording_runs, 2);
    assert_ok(gpuhal_recording_run(o.queue, recording, &none, 1));
    expect(o.queue, o.one, 2);
    expect(o.queue, o.other, 4);
    assert_int_equal(gpuhal_halting.recording_runs, 2);
    gpuhal_recording_release(recording);
    end(&o);
}

/* The first launch shares the slot, but has no groups and gets none. */
TEST(a_launch_that_never_does_anything_may_have_a_slot)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = new_recording(o.device, 1);
    uint32_t value = 1;
    const gpuhal_argument arguments[] = {{.buffer = o.other}, {.value = &value, .bytes = 4}};
    const gpuhal_launch launch = {.size = sizeof launch, .arguments = arguments, .argument_count = 2};
    assert_ok(gpuhal_recording_launch(recording, o.add, &launch, NULL));
    assert_ok(gpuhal_recording_slot(recording, 0, 0, 1));
    assert_ok(gpuhal_recording_slot(recording, 0, record_add(recording, o.add, o.one, 1), 1));
    assert_ok(gpuhal_recording_finish(recording));
    for (value = 2; value < 5; value++) {
        const gpuhal_slot_value changed = value_of(0, &value);
        assert_ok(gpuhal_recording_run(o.queue, recording, &changed, 1));
    }
    expect(o.queue, o.one, 2 + 3 + 4);
    expect(o.queue, o.other, 0);
    assert_int_equal(gpuhal_halting.recording_runs, 3);
    assert_int_equal(gpuhal_halting.steps_set, 3);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(while_a_launch_has_no_groups_the_driver_gets_no_values)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = record_many(&o, EVERY);
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_recording_release(recording);
    recording = new_recording(o.device, 2);
    assert_ok(gpuhal_recording_slot(recording, 0, record_add(recording, o.add, o.one, 1), 1));
    assert_ok(gpuhal_recording_slot(recording, 1, record_add(recording, o.add, o.one, 1), GPUHAL_SLOT_GROUPS));
    assert_ok(gpuhal_recording_finish(recording));
    uint32_t two = 2;
    const gpuhal_slot_value none[] = {value_of(0, &two), {.slot = 1, .groups = {1, 1, 0}}};
    const gpuhal_slot_value some = {.slot = 1, .groups = {1, 1, 1}};
    assert_ok(gpuhal_recording_run(o.queue, recording, none, 2));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_int_equal(gpuhal_halting.steps_set, 0);
    assert_ok(gpuhal_recording_run(o.queue, recording, &some, 1));
    expect(o.queue, o.one, 2 + 2 + 3);
    assert_int_equal(gpuhal_halting.steps_set, 2);
    assert_int_equal(gpuhal_halting.recording_runs, 1);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(if_the_driver_refuses_new_values_the_steps_are_enqueued_and_the_values_come_later)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = record_many(&o, 9); /* 3 of the steps change */
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_halting.set_says = GPUHAL_ERROR_OUT_OF_MEMORY;
    uint32_t ten = 10;
    const gpuhal_slot_value value = value_of(0, &ten);
    assert_ok(gpuhal_recording_run(o.queue, recording, &value, 1));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 2 * 36);
    assert_int_equal(gpuhal_halting.recording_runs, 0);
    gpuhal_halting.set_says = GPUHAL_OK;
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 3 * 36);
    assert_int_equal(gpuhal_halting.recording_runs, 1);
    gpuhal_recording_release(recording);
    end(&o);
}

/* The first run waits, so the driver keeps its values until it has the run. */
TEST(while_a_run_waits_others_with_new_values_enqueue_their_steps)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = record_many(&o, 9);
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    uint32_t ten = 10;
    const gpuhal_slot_value value = value_of(0, &ten);
    assert_ok(gpuhal_recording_run(o.queue, recording, &value, 1));
    assert_int_equal(gpuhal_halting.steps_set, 0);
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    expect(o.queue, o.one, 9 + 9 + 36);
    assert_int_equal(gpuhal_halting.recording_runs, 2);
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 9 + 9 + 36 + 36);
    assert_int_equal(gpuhal_halting.recording_runs, 3);
    assert_int_equal(gpuhal_halting.steps_set, 3);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_run_that_is_refused_leaves_the_values_of_the_previous_run)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = record_many(&o, 9);
    assert_ok(gpuhal_recording_finish(recording));
    uint32_t ten = 10;
    void *mapped = NULL;
    const gpuhal_slot_value value = value_of(0, &ten);
    assert_ok(gpuhal_buffer_map(o.one, 0, BYTES, GPUHAL_ACCESS_READ, &mapped));
    refused(gpuhal_recording_run(o.queue, recording, &value, 1), GPUHAL_ERROR_BUSY, "is mapped");
    assert_ok(gpuhal_buffer_unmap(o.one, mapped));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 9);
    assert_int_equal(gpuhal_halting.recording_runs, 1);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_part_that_the_driver_does_not_take_now_or_never_is_enqueued_once)
{
    static const gpuhal_status says[] = {GPUHAL_NOT_READY, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_ERROR_BUSY};
    for (size_t s = 0; s < sizeof says / sizeof *says; s++) {
        for (uint32_t room = 0; room < 3; room++) {
            objects o = begin(PREPARED);
            gpuhal_recording *recording = record_many(&o, 2 * EVERY + 20);
            assert_ok(gpuhal_recording_finish(recording));
            gpuhal_halting.run_room = room;
            gpuhal_halting.run_says = says[s];
            const gpuhal_status status = gpuhal_recording_run(o.queue, recording, NULL, 0);
            gpuhal_halting.run_says = GPUHAL_OK;
            if (says[s] == GPUHAL_ERROR_BUSY && room == 0) {
                assert_int_equal(status, GPUHAL_ERROR_BUSY); /* nothing was enqueued */
            } else {
                assert_ok(status);
                expect(o.queue, o.one, 2 * EVERY + 20);
                assert_int_equal(gpuhal_halting.launches, 2 * EVERY + 20);
            }
            gpuhal_recording_release(recording);
            end(&o);
        }
    }
}

TEST(a_part_that_fails_fails_the_queue_and_its_steps_are_named)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = record_many(&o, EVERY + 20);
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_halting.run_room = 1;
    gpuhal_halting.run_says = GPUHAL_ERROR_DRIVER;
    refused(gpuhal_recording_run(o.queue, recording, NULL, 0), GPUHAL_ERROR_DRIVER,
            "halting:0: recording token, steps 256 to 275: running 20 steps");
    gpuhal_halting.run_says = GPUHAL_OK;
    assert_int_equal(gpuhal_recording_run(o.queue, recording, NULL, 0), GPUHAL_ERROR_DRIVER);
    assert_ok(gpuhal_queue_reset(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 0, 4));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, EVERY + 20);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(if_the_driver_cannot_prepare_the_steps_each_run_enqueues_them)
{
    static const gpuhal_status says[] = {GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_ERROR_OUT_OF_MEMORY};
    for (uint32_t round = 0; round < 4; round++) {
        objects o = begin(PREPARED);
        gpuhal_recording *recording = record_many(&o, EVERY + 20);
        gpuhal_halting.prepare_room = round % 2;
        gpuhal_halting.prepare_says = says[round / 2];
        assert_ok(gpuhal_recording_finish(recording));
        assert_string_equal(gpuhal_recording_form(recording), "list");
        assert_int_equal(gpuhal_halting.recordings, 0);
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        expect(o.queue, o.one, EVERY + 20);
        gpuhal_recording_release(recording);
        end(&o);
    }
}

TEST(if_preparing_fails_the_recording_can_be_finished_again)
{
    for (uint32_t room = 0; room < 2; room++) {
        objects o = begin(PREPARED);
        gpuhal_recording *recording = record_many(&o, EVERY + 20);
        gpuhal_halting.prepare_room = room;
        gpuhal_halting.prepare_says = GPUHAL_ERROR_DRIVER;
        refused(gpuhal_recording_finish(recording), GPUHAL_ERROR_DRIVER, "preparing recording token");
        refused(gpuhal_recording_run(o.queue, recording, NULL, 0), GPUHAL_ERROR_INVALID_ARGUMENT, "before");
        assert_int_equal(gpuhal_halting.recordings, 0);
        gpuhal_halting.prepare_says = GPUHAL_OK;
        assert_ok(gpuhal_recording_finish(recording));
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        expect(o.queue, o.one, EVERY + 20);
        assert_int_equal(gpuhal_halting.recording_runs, 2);
        gpuhal_recording_release(recording);
        end(&o);
    }
}

TEST(copies_and_fills_of_a_prepared_recording_are_counted)
{
    objects o = begin(PREPARED);
    gpuhal_recording *recording = new_recording(o.device, 0);
    assert_ok(gpuhal_recording_fill(recording, o.one, 0, BYTES, 5, 4));
    assert_ok(gpuhal_recording_copy(recording, o.other, 0, o.one, 0, BYTES / 2));
    assert_ok(gpuhal_recording_copy(recording, o.other, 0, o.one, 0, 0));
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_usage before = {.size = sizeof before}, after = {.size = sizeof after};
    assert_ok(gpuhal_device_usage(o.device, &before));
    for (int i = 0; i < 3; i++) {
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    }
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_device_usage(o.device, &after));
    assert_int_equal(gpuhal_halting.recording_runs, 3);
    assert_int_equal(after.copied.bytes - before.copied.bytes, 3 * BYTES / 2);
    assert_int_equal(after.filled.bytes - before.filled.bytes, 3 * BYTES);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(every_allocation_of_finishing_and_running_may_fail_once)
{
    const uint32_t ten = 10;
    unsigned calls = 1;
    for (unsigned at = 0; at <= calls; at++) { /* in the first round nothing fails */
        objects o = begin(PREPARED);
        gpuhal_recording *recording = record_many(&o, 9);
        const gpuhal_slot_value value = value_of(0, &ten);
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
        const gpuhal_status finished = gpuhal_recording_finish(recording);
        const gpuhal_status ran = finished ? finished : gpuhal_recording_run(o.queue, recording, &value, 1);
        gpuhal_fault_end();
        calls = at == 0 ? gpuhal_fault_calls() : calls;
        assert_true(ran == GPUHAL_OK || ran == GPUHAL_ERROR_HOST_MEMORY);
        if (finished) {
            assert_ok(gpuhal_recording_finish(recording));
        }
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        expect(o.queue, o.one, ran ? 9 : 2 * 36);
        gpuhal_recording_release(recording);
        end(&o);
    }
    assert_true(calls > 4);
}

#include "test_main.h"
