/* Recordings: the order of their steps, slots, refusals, and runs that the driver takes in parts or refuses. */
#include "recording_support.h"

/* ---- steps */

TEST(a_run_has_the_effect_of_its_steps_in_their_order)
{
    for (driver_form form = QUEUED; form <= PREPARED; form++) {
        objects o = begin(form);
        gpuhal_recording *recording = new_recording(o.device, 0);
        assert_ok(gpuhal_recording_fill(recording, o.one, 0, BYTES, 5, 4));
        assert_int_equal(record_add(recording, o.add, o.one, 2), 1);
        assert_ok(gpuhal_recording_copy(recording, o.other, 0, o.one, 0, BYTES));
        assert_ok(gpuhal_recording_copy(recording, o.other, 0, o.one, 0, 0));
        assert_int_equal(record_add(recording, o.add, o.other, 10), 4);
        assert_ok(gpuhal_recording_finish(recording));
        for (int i = 0; i < 3; i++) {
            assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
            expect(o.queue, o.one, 7);
            expect(o.queue, o.other, 17);
            assert_ok(gpuhal_fill(o.queue, o.other, 0, BYTES, 0, 4));
        }
        gpuhal_usage usage = {.size = sizeof usage};
        assert_ok(gpuhal_device_usage(o.device, &usage));
        assert_int_equal(usage.copied.bytes, 3 * BYTES);
        gpuhal_recording_release(recording);
        end(&o);
    }
}

static void a_recording_without_steps_runs_in(driver_form form)
{
    objects o = begin(form);
    const uint32_t value = 1;
    const gpuhal_slot_value unused = value_of(0, &value);
    gpuhal_recording *recording = NULL;
    assert_ok(gpuhal_recording_create(o.device, NULL, &recording));
    assert_ok(gpuhal_recording_finish(recording));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    gpuhal_recording_release(recording);
    recording = new_recording(o.device, 1);
    assert_ok(gpuhal_recording_finish(recording));
    assert_ok(gpuhal_recording_run(o.queue, recording, &unused, 1));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_recording_without_steps_runs)
{
    in_both_forms(a_recording_without_steps_runs_in);
}

/* ---- slots */

TEST(a_slot_changes_all_its_places_and_keeps_its_value_for_later_runs)
{
    for (driver_form form = QUEUED; form <= PREPARED; form++) {
        objects o = begin(form);
        gpuhal_recording *recording = new_recording(o.device, 3);
        uint32_t value = 1;
        for (int i = 0; i < 3; i++) {
            const uint32_t step = record_add(recording, o.add, o.one, value);
            assert_ok(gpuhal_recording_slot(recording, 0, step, 1));
            assert_ok(gpuhal_recording_slot(recording, 1, step, 0));
            assert_ok(gpuhal_recording_slot(recording, 2, step, GPUHAL_SLOT_GROUPS));
        }
        assert_ok(gpuhal_recording_finish(recording));
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        expect(o.queue, o.one, 3);
        value = 10;
        const gpuhal_slot_value ten = value_of(0, &value);
        assert_ok(gpuhal_recording_run(o.queue, recording, &ten, 1));
        value = 1000; /* the value was copied */
        expect(o.queue, o.one, 33);
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        expect(o.queue, o.one, 63);
        const gpuhal_slot_value there[] = {{.slot = 1, .argument = {.buffer = o.other, .bytes = BYTES}},
                                           {.slot = 2, .groups = {0, 1, 1}}};
        assert_ok(gpuhal_recording_run(o.queue, recording, there, 1));
        expect(o.queue, o.other, 30);
        expect(o.queue, o.one, 63);
        const gpuhal_slot_value wrong = {.slot = 2, .argument = ten.argument};
        const uint32_t launches = gpuhal_halting.launches;
        assert_int_equal(gpuhal_recording_run(o.queue, recording, &wrong, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_ok(gpuhal_recording_run(o.queue, recording, &there[1], 1));
        expect(o.queue, o.other, 30);
        assert_int_equal(gpuhal_halting.launches, launches);
        gpuhal_recording_release(recording);
        end(&o);
    }
}

TEST(a_long_name_is_cut_and_a_missing_one_is_named)
{
    objects o = begin(QUEUED);
    char name[200];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    memcpy(name + GPUHAL_RECORDING_NAME_MAX - 1, "\u00fc", 2);
    const char *const names[] = {name, "", NULL};
    for (int i = 0; i < 3; i++) {
        const gpuhal_recording_desc desc = {.size = sizeof desc, .name = names[i]};
        gpuhal_recording *recording = NULL;
        assert_ok(gpuhal_recording_create(o.device, &desc, &recording));
        assert_int_equal(gpuhal_recording_slot(recording, 1, 2, 3), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, i ? "recording unnamed: slot 1" : "nnn: slot 1"));
        gpuhal_recording_release(recording);
    }
    end(&o);
}

static void a_run_that_waits_for_its_turn_has_the_values_of_its_call_in(driver_form form)
{
    enum { RUNS = 50 };
    objects o = begin(form);
    gpuhal_recording *recording = new_recording(o.device, 2);
    const uint32_t step = record_add(recording, o.add, o.one, 1);
    (void)record_add(recording, o.add, o.one, 0);
    assert_ok(gpuhal_recording_slot(recording, 0, step, 1));
    assert_ok(gpuhal_recording_slot(recording, 1, step, 0));
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    uint32_t sums[2] = {0};
    for (uint32_t i = 0; i < RUNS; i++) {
        const gpuhal_slot_value values[] = {value_of(0, &i),
                                            {.slot = 1, .argument = {.buffer = i % 3 ? o.one : o.other}}};
        assert_ok(gpuhal_recording_run(o.queue, recording, values, 2));
        sums[i % 3 ? 0 : 1] += i;
    }
    assert_int_equal(gpuhal_halting.launches, 0);
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    expect(o.queue, o.one, sums[0]);
    expect(o.queue, o.other, sums[1]);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_run_that_waits_for_its_turn_has_the_values_of_its_call)
{
    in_both_forms(a_run_that_waits_for_its_turn_has_the_values_of_its_call_in);
}

/* ---- refusals */

#define REFUSED(call, why) refused(call, GPUHAL_ERROR_INVALID_ARGUMENT, why)

TEST(a_wrong_description_is_refused_and_the_recording_stays_usable)
{
    objects o = begin(QUEUED);
    gpuhal_recording *recording = NULL;
    REFUSED(gpuhal_recording_create(NULL, NULL, &recording), "device is NULL");
    REFUSED(gpuhal_recording_create(o.device, NULL, NULL), "out_recording is NULL");
    REFUSED(gpuhal_recording_create(o.device, &(gpuhal_recording_desc){.size = 4}, &recording), "size is 4");
    gpuhal_recording_desc desc = {.size = sizeof desc, .flags = 1};
    REFUSED(gpuhal_recording_create(o.device, &desc, &recording), "flags is 0x1");
    desc = (gpuhal_recording_desc){.size = sizeof desc, .slot_count = 1u << 20};
    REFUSED(gpuhal_recording_create(o.device, &desc, &recording), "at most 65536");
    recording = new_recording(o.device, 2);
    gpuhal_device *other = NULL;
    assert_ok(gpuhal_select(o.gpu, "halting:1", 0, &other, NULL));
    gpuhal_buffer *foreign = make_buffer(other);
    REFUSED(gpuhal_recording_copy(recording, o.one, 0, foreign, 0, 4), "from is of halting:1");
    REFUSED(gpuhal_recording_copy(recording, o.one, 0, NULL, 0, 4), "from is NULL");
    REFUSED(gpuhal_recording_copy(recording, o.one, 0, o.one, 2, 8),
            "recording token, step 0: source and destination overlap");
    REFUSED(gpuhal_recording_fill(recording, o.one, 0, 8, 0, 3), "recording token, step 0: pattern_bytes is 3");
    refused(gpuhal_recording_fill(recording, o.one, 60, 8, 0, 4), GPUHAL_ERROR_OUT_OF_RANGE,
            "recording token, step 0: ");
    REFUSED(gpuhal_recording_launch(recording, NULL, NULL, NULL), "kernel is NULL");
    REFUSED(gpuhal_recording_launch(recording, o.add, &(gpuhal_launch){.size = sizeof(gpuhal_launch)}, NULL),
            "recording token, step 0: kernel add: 0 arguments");
    assert_ok(gpuhal_recording_fill(recording, o.one, 0, BYTES, 0, 4));
    uint32_t failed = 77;
    REFUSED(gpuhal_recording_launch(recording, o.add, NULL, &failed), "launch is NULL");
    assert_int_equal(failed, 0);
    const uint32_t one = record_add(recording, o.add, o.one, 1), two = record_add(recording, o.add, o.other, 2);
    REFUSED(gpuhal_recording_slot(recording, 2, one, 1), "slot 2 does not exist: there are 2 slots");
    REFUSED(gpuhal_recording_slot(recording, 0, 9, 1), "step 9 does not exist: there are 3 steps");
    REFUSED(gpuhal_recording_slot(recording, 0, 0, 1), "step 0 is no launch");
    REFUSED(gpuhal_recording_slot(recording, 0, one, 2),
            "step 1: argument 2 does not exist: kernel add has 2 parameters");
    assert_ok(gpuhal_recording_slot(recording, 0, one, 1));
    REFUSED(gpuhal_recording_slot(recording, 1, one, 1), "argument 1 of step 1 has slot 0 already");
    REFUSED(gpuhal_recording_slot(recording, 0, two, 1),
            "slot 0: the value of argument 1 of step 2 is not that of argument 1 of step 1");
    REFUSED(gpuhal_recording_slot(recording, 0, two, 0), "the kind of argument 0 of step 2 is not");
    REFUSED(gpuhal_recording_slot(recording, 0, two, GPUHAL_SLOT_GROUPS), "the kind of the groups of step 2 is not");
    REFUSED(gpuhal_recording_run(o.queue, recording, NULL, 0), "before gpuhal_recording_finish()");
    assert_ok(gpuhal_recording_slot(recording, 1, two, 0));
    assert_ok(gpuhal_recording_finish(recording));
    REFUSED(gpuhal_recording_finish(recording), "it is finished already");
    REFUSED(gpuhal_recording_fill(recording, o.one, 0, 8, 0, 4), "it is finished already");
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 1);
    expect(o.queue, o.other, 2);
    gpuhal_buffer_release(foreign);
    gpuhal_recording_release(recording);
    end(&o);
}

static void a_wrong_run_changes_no_slot_in(driver_form form)
{
    objects o = begin(form);
    gpuhal_recording *recording = new_recording(o.device, 2);
    const uint32_t step = record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_slot(recording, 0, step, 1));
    assert_ok(gpuhal_recording_slot(recording, 1, step, 0));
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_device *other = NULL;
    gpuhal_queue *elsewhere = NULL;
    assert_ok(gpuhal_select(o.gpu, "halting:1", 0, &other, NULL));
    assert_ok(gpuhal_queue_create(other, NULL, &elsewhere));
    const uint32_t seven = 7;
    const uint64_t wide = 7;
    gpuhal_slot_value values[] = {value_of(0, &seven), value_of(0, &seven)};
    REFUSED(gpuhal_recording_run(NULL, recording, values, 1), "queue is NULL");
    REFUSED(gpuhal_recording_run(o.queue, NULL, values, 1), "recording is NULL");
    REFUSED(gpuhal_recording_run(elsewhere, recording, values, 1), "the queue is of halting:1");
    REFUSED(gpuhal_recording_run(o.queue, recording, NULL, 1), "values is NULL");
    REFUSED(gpuhal_recording_run(o.queue, recording, values, 2), "slot 0 is listed twice");
    values[1].slot = 2;
    REFUSED(gpuhal_recording_run(o.queue, recording, values, 2), "slot 2 does not exist");
    values[1] = (gpuhal_slot_value){.slot = 1, .argument = {.value = &wide, .bytes = 8}};
    REFUSED(gpuhal_recording_run(o.queue, recording, values, 2), "slot 1, step 0: kernel add, argument 0");
    values[1] = (gpuhal_slot_value){.slot = 1, .argument = {.buffer = o.other, .offset = BYTES}};
    refused(gpuhal_recording_run(o.queue, recording, values, 2), GPUHAL_ERROR_OUT_OF_RANGE, "slot 1, step 0");
    values[1] = (gpuhal_slot_value){.slot = 1, .reserved = 1, .argument = {.buffer = o.other}};
    REFUSED(gpuhal_recording_run(o.queue, recording, values, 2), "slot 1: reserved is 0x1, and must be 0");
    void *mapped = NULL;
    assert_ok(gpuhal_buffer_map(o.other, 0, BYTES, GPUHAL_ACCESS_READ, &mapped));
    values[1] = (gpuhal_slot_value){.slot = 1, .argument = {.buffer = o.other}};
    refused(gpuhal_recording_run(o.queue, recording, values, 2), GPUHAL_ERROR_BUSY, "is mapped");
    assert_ok(gpuhal_buffer_unmap(o.other, mapped));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, 1);
    expect(o.queue, o.other, 0);
    gpuhal_queue_destroy(elsewhere);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_wrong_run_changes_no_slot)
{
    in_both_forms(a_wrong_run_changes_no_slot_in);
}

/* ---- runs in parts */

static gpuhal_recording *record_many(const objects *o, uint32_t count)
{
    gpuhal_recording *recording = new_recording(o->device, 0);
    for (uint32_t i = 0; i < count; i++) {
        (void)record_add(recording, o->add, i % 2 ? o->one : o->other, 1);
    }
    assert_ok(gpuhal_recording_finish(recording));
    return recording;
}

TEST(a_long_recording_is_submitted_in_parts_with_an_event_after_each)
{
    objects o = begin(QUEUED);
    gpuhal_recording *recording = record_many(&o, 10 * EVERY + 10);
    for (int i = 0; i < 3; i++) {
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    }
    expect(o.queue, o.one, 3 * (5 * EVERY + 5));
    expect(o.queue, o.other, 3 * (5 * EVERY + 5));
    assert_true(gpuhal_halting.unrecorded_most <= EVERY);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_driver_that_takes_a_part_gets_the_other_steps_later_and_each_step_once)
{
    static const gpuhal_status says[] = {GPUHAL_NOT_READY, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_ERROR_BUSY};
    static const uint32_t rooms[] = {1, 7, EVERY - 1, EVERY, EVERY + 3};
    for (size_t s = 0; s < sizeof says / sizeof *says; s++) {
        for (size_t r = 0; r < sizeof rooms / sizeof *rooms; r++) {
            objects o = begin(QUEUED);
            gpuhal_recording *recording = record_many(&o, EVERY + 20);
            gpuhal_halting.launch_room = rooms[r];
            gpuhal_halting.launch_says = says[s];
            assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
            assert_ok(gpuhal_fill(o.queue, o.other, 0, BYTES, 1000, 4));
            gpuhal_halting.launch_says = GPUHAL_OK;
            expect(o.queue, o.one, EVERY / 2 + 10);
            expect(o.queue, o.other, 1000);
            assert_int_equal(gpuhal_halting.launches, EVERY + 20);
            gpuhal_recording_release(recording);
            end(&o);
        }
    }
}

TEST(a_step_that_the_driver_refuses_fails_the_queue_and_is_named)
{
    objects o = begin(QUEUED);
    gpuhal_recording *recording = record_many(&o, EVERY + 20);
    gpuhal_halting.launch_room = EVERY + 3;
    gpuhal_halting.launch_says = GPUHAL_ERROR_DRIVER;
    refused(gpuhal_recording_run(o.queue, recording, NULL, 0), GPUHAL_ERROR_DRIVER,
            "halting:0: recording token, step 259: launching kernel add");
    refused(gpuhal_fill(o.queue, o.one, 0, BYTES, 0, 4), GPUHAL_ERROR_DRIVER, "recording token, step 259");
    assert_int_equal(gpuhal_halting.launches, EVERY + 3);
    gpuhal_halting.launch_says = GPUHAL_OK;
    assert_ok(gpuhal_queue_reset(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_fill(o.queue, o.one, 0, BYTES, 0, 4));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    expect(o.queue, o.one, EVERY / 2 + 10);
    gpuhal_recording_release(recording);
    end(&o);
}

#include "test_main.h"
