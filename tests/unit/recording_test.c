/* Recordings: the order of their steps, slots, the objects that they keep, and runs that the driver takes in parts or
 * refuses. Each of these tests runs with a driver that takes queued launches and with one that does not. */
#include "pool_support.h"
#include "program_support.h"
#include "support/halting.h"

#include "program/program.h"

#include <gpuhal/recording.h>

#include <pthread.h>

enum { EVERY = 256, NUMBERS = 16, BYTES = NUMBERS * 4 };

typedef struct objects {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_program *program;
    gpuhal_kernel *add;
    gpuhal_buffer *one, *other;
    gpuhal_queue *queue;
} objects;

static gpuhal_buffer *make_buffer(gpuhal_device *device)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_ok(gpuhal_fill(NULL, buffer, 0, BYTES, 0, 4));
    return buffer;
}

static objects begin(void)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins};
    const gpuhal_code code = {.size = sizeof code, .format = "halting", .code = "code", .bytes = 4};
    const gpuhal_program_desc program = {.size = sizeof program, .codes = &code, .code_count = 1};
    objects o = {0};
    assert_ok(gpuhal_open(&config, &o.gpu));
    assert_ok(gpuhal_select(o.gpu, "halting:0", 0, &o.device, NULL));
    assert_ok(gpuhal_program_create(o.device, &program, &o.program));
    o.add = make_kernel(o.program, "add");
    o.one = make_buffer(o.device);
    o.other = make_buffer(o.device);
    assert_ok(gpuhal_queue_create(o.device, NULL, &o.queue));
    gpuhal_halting.launches = gpuhal_halting.unrecorded_most = 0;
    return o;
}

static void end(objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_buffer_release(o->one);
    gpuhal_buffer_release(o->other);
    gpuhal_kernel_release(o->add);
    gpuhal_program_release(o->program);
    gpuhal_close(o->gpu);
    assert_int_equal(gpuhal_halting.openings, 0);
    gpuhal_halting = (gpuhal_halting_state){.slot = NULL};
}

static gpuhal_recording *new_recording(gpuhal_device *device, uint32_t slots)
{
    const gpuhal_recording_desc desc = {.size = sizeof desc, .name = "token", .slot_count = slots};
    gpuhal_recording *recording = NULL;
    assert_ok(gpuhal_recording_create(device, &desc, &recording));
    return recording;
}

/* Records a launch that adds a value to a buffer. Returns its step. */
static uint32_t record_add(gpuhal_recording *recording, gpuhal_kernel *add, gpuhal_buffer *to, uint32_t value)
{
    const gpuhal_argument arguments[] = {{.buffer = to}, {.value = &value, .bytes = sizeof value}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 2, .arguments = arguments, .groups = {1, 1, 1}};
    uint32_t step = UINT32_MAX;
    assert_ok(gpuhal_recording_launch(recording, add, &launch, &step));
    return step;
}

static gpuhal_slot_value value_of(uint32_t slot, const uint32_t *value)
{
    return (gpuhal_slot_value){.slot = slot, .argument = {.value = value, .bytes = sizeof *value}};
}

static void expect(gpuhal_queue *queue, gpuhal_buffer *buffer, uint32_t value)
{
    uint32_t got[NUMBERS] = {0};
    assert_ok(gpuhal_read(queue, got, buffer, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    for (int i = 0; i < NUMBERS; i++) {
        assert_int_equal(got[i], value);
    }
}

/* ---- steps */

TEST(a_run_has_the_effect_of_its_steps_in_their_order)
{
    for (uint32_t worker = 0; worker < 2; worker++) {
        objects o = begin();
        gpuhal_halting.no_queued_launch = worker;
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

TEST(a_recording_without_steps_runs)
{
    objects o = begin();
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

/* ---- slots */

TEST(a_slot_changes_all_its_places_and_keeps_its_value_for_later_runs)
{
    for (uint32_t worker = 0; worker < 2; worker++) {
        objects o = begin();
        gpuhal_halting.no_queued_launch = worker;
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
    objects o = begin();
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

TEST(a_run_that_waits_for_its_turn_has_the_values_of_its_call)
{
    enum { RUNS = 50 };
    objects o = begin();
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

/* ---- refusals */

static void refused(gpuhal_status got, gpuhal_status status, const char *why)
{
    assert_int_equal(got, status);
    if (!strstr(gpuhal_last_error()->sentence, why)) {
        fail_msg("%s lacks: %s", gpuhal_last_error()->sentence, why);
    }
}
#define REFUSED(call, why) refused(call, GPUHAL_ERROR_INVALID_ARGUMENT, why)

TEST(a_wrong_description_is_refused_and_the_recording_stays_usable)
{
    objects o = begin();
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

TEST(a_wrong_run_changes_no_slot)
{
    objects o = begin();
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
    objects o = begin();
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
            objects o = begin();
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
    objects o = begin();
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

/* ---- objects and queues */

TEST(a_recording_keeps_its_objects_until_its_runs_have_ended)
{
    objects o = begin();
    gpuhal_recording *recording = new_recording(o.device, 1);
    assert_int_equal(record_add(recording, o.add, o.one, 4), 0);
    assert_ok(gpuhal_recording_slot(recording, 0, 0, 0));
    assert_ok(gpuhal_recording_copy(recording, o.other, 0, o.one, 0, BYTES));
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_buffer *result = gpuhal_buffer_retain(o.other), *slot = make_buffer(o.device);
    gpuhal_kernel_release(o.add);
    gpuhal_program_release(o.program);
    gpuhal_buffer_release(o.one);
    gpuhal_buffer_release(o.other);
    o.add = NULL;
    o.program = NULL;
    o.one = o.other = NULL;
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    const gpuhal_slot_value other = {.argument = {.buffer = slot}};
    assert_ok(gpuhal_recording_run(o.queue, gpuhal_recording_retain(recording), &other, 1));
    gpuhal_recording_release(recording);
    gpuhal_recording_release(recording);
    gpuhal_buffer_release(slot);
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    expect(o.queue, result, 4);
    gpuhal_buffer_release(result);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(NULL);
    assert_null(gpuhal_recording_retain(NULL));
    end(&o);
}

TEST(memory_of_a_pool_belongs_to_the_recording_until_it_is_freed)
{
    objects o = begin();
    gpuhal_pool_desc desc = {.size = sizeof desc, .segment_bytes = SEGMENT, .limit_bytes = SEGMENT};
    gpuhal_pool *pool = NULL;
    assert_ok(gpuhal_pool_create(o.device, &desc, &pool));
    gpuhal_buffer *part = take(pool, o.queue, SEGMENT);
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, part, 1);
    assert_ok(gpuhal_recording_fill(recording, part, 0, 64, 0, 4));
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_buffer_release(part);
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_recording_release(recording);
    assert_ok(attempt(pool, NULL, SEGMENT, 0, 0));
    gpuhal_pool_destroy(pool);
    end(&o);
}

TEST(runs_in_two_queues_do_not_overlap)
{
    objects o = begin();
    gpuhal_queue *second = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_recording_run(second, recording, NULL, 0));
    assert_int_equal(gpuhal_queue_synchronize(second, 50000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_halting.launches, 0);
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    expect(second, o.one, 2);
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    gpuhal_queue_destroy(o.queue);
    o.queue = second;
    assert_ok(gpuhal_recording_run(second, recording, NULL, 0));
    expect(second, o.one, 4);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_recording_can_be_run_in_another_queue_after_its_queue_has_failed)
{
    objects o = begin();
    gpuhal_queue *second = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_event_signal(go, GPUHAL_ERROR_FILE));
    assert_int_equal(gpuhal_queue_synchronize(o.queue, PATIENCE_NS), GPUHAL_ERROR_FILE);
    assert_int_equal(gpuhal_recording_run(o.queue, recording, NULL, 0), GPUHAL_ERROR_FILE);
    gpuhal_status status = gpuhal_recording_run(second, recording, NULL, 0);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_BUSY);
    assert_ok(gpuhal_queue_reset(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_recording_run(second, recording, NULL, 0));
    expect(second, o.one, status ? 1 : 2);
    gpuhal_queue_destroy(second);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(recording);
    end(&o);
}

/* Each later submission retires earlier work while it has the right to call the driver. */
TEST(a_run_that_ends_may_free_memory_of_a_pool_that_another_queue_uses)
{
    for (int destroyed = 0; destroyed < 2; destroyed++) {
        objects o = begin();
        gpuhal_queue *home = NULL;
        assert_ok(gpuhal_queue_create(o.device, NULL, &home));
        gpuhal_pool_desc desc = {.size = sizeof desc, .segment_bytes = SEGMENT, .limit_bytes = 16 * SEGMENT};
        gpuhal_pool *pool = NULL;
        assert_ok(gpuhal_pool_create(o.device, &desc, &pool));
        gpuhal_buffer *part = take(pool, destroyed ? o.queue : home, 4096);
        gpuhal_recording *recording = new_recording(o.device, 0);
        assert_ok(gpuhal_recording_fill(recording, part, 0, 64, 1, 4));
        assert_ok(gpuhal_recording_finish(recording));
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        gpuhal_buffer_release(part);
        gpuhal_recording_release(recording);
        if (destroyed) {
            gpuhal_pool_destroy(pool);
        }
        for (int i = 0; i < 4 * EVERY; i++) {
            assert_ok(gpuhal_fill(o.queue, i % 2 ? o.one : o.other, 0, BYTES, 1, 4));
        }
        assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
        if (!destroyed) {
            gpuhal_pool_destroy(pool);
        }
        gpuhal_queue_destroy(home);
        end(&o);
    }
}

TEST(the_order_of_runs_holds_after_a_queue_between_them_has_failed)
{
    objects o = begin();
    gpuhal_queue *queues[2] = {NULL, NULL};
    gpuhal_event *gates[2] = {NULL, NULL};
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    for (int i = 0; i < 2; i++) {
        assert_ok(gpuhal_queue_create(o.device, NULL, &queues[i]));
        assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gates[i]));
    }
    assert_ok(gpuhal_queue_wait(o.queue, gates[0]));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0)); /* waits for its gate until the end */
    assert_ok(gpuhal_queue_wait(queues[0], gates[1]));
    assert_ok(gpuhal_recording_run(queues[0], recording, NULL, 0));
    assert_ok(gpuhal_event_signal(gates[1], GPUHAL_ERROR_FILE));
    assert_int_equal(gpuhal_queue_synchronize(queues[0], PATIENCE_NS), GPUHAL_ERROR_FILE);
    refused(gpuhal_recording_run(queues[1], recording, NULL, 0), GPUHAL_ERROR_BUSY, "another queue that has failed");
    assert_int_equal(gpuhal_queue_reset(queues[0], 50000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_halting.launches, 0);
    assert_ok(gpuhal_event_signal(gates[0], GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_queue_reset(queues[0], PATIENCE_NS));
    assert_ok(gpuhal_recording_run(queues[1], recording, NULL, 0));
    expect(queues[1], o.one, 2);
    for (int i = 0; i < 2; i++) {
        gpuhal_queue_destroy(queues[i]);
        gpuhal_event_destroy(gates[i]);
    }
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_run_that_is_refused_leaves_no_wait_in_its_queue)
{
    objects o = begin();
    gpuhal_queue *second = NULL;
    gpuhal_event *gate = NULL;
    void *mapped = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gate));
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    assert_ok(gpuhal_queue_wait(o.queue, gate));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_buffer_map(o.one, 0, BYTES, GPUHAL_ACCESS_READ, &mapped));
    refused(gpuhal_recording_run(second, recording, NULL, 0), GPUHAL_ERROR_BUSY, "is mapped");
    assert_ok(gpuhal_buffer_unmap(o.one, mapped));
    assert_ok(gpuhal_queue_synchronize(second, PATIENCE_NS));
    assert_ok(gpuhal_event_signal(gate, GPUHAL_OK));
    expect(o.queue, o.one, 1);
    gpuhal_queue_destroy(second);
    gpuhal_event_destroy(gate);
    gpuhal_recording_release(recording);
    end(&o);
}

/* The driver compiles at a kernel's first launch, not at a step without groups. */
TEST(a_step_without_groups_is_not_the_first_launch_of_its_kernel)
{
    objects o = begin();
    const uint32_t value = 1;
    o.add->info.group_size[1] = 8;
    gpuhal_recording *recording = new_recording(o.device, 1);
    const uint32_t step = record_add(recording, o.add, o.one, value);
    assert_ok(gpuhal_recording_slot(recording, 0, step, GPUHAL_SLOT_GROUPS));
    assert_ok(gpuhal_recording_finish(recording));
    const gpuhal_slot_value none = {.groups = {0, 1, 1}}, one = {.groups = {1, 1, 1}};
    assert_ok(gpuhal_recording_run(o.queue, recording, &none, 1));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_recording_run(o.queue, recording, &one, 1));
    refused(gpuhal_queue_synchronize(o.queue, 10000000), GPUHAL_ERROR_TIMEOUT,
            "recording token ran for the first time, and the driver may still be compiling its kernels");
    gpuhal_halting.work_goes_on = 0;
    expect(o.queue, o.one, 1);
    gpuhal_recording_release(recording);
    end(&o);
}

enum { THREADS = 4, RUNS = 500 };

typedef struct runner {
    const objects *o;
    gpuhal_recording *recording;
    gpuhal_queue *queue;
    uint32_t value;
    pthread_t thread;
} runner;

static void *run_many(void *user)
{
    const runner *own = user;
    for (int i = 0; i < RUNS; i++) {
        const gpuhal_slot_value value = value_of(0, &own->value);
        assert_ok(gpuhal_recording_run(own->queue, own->recording, &value, 1));
    }
    assert_ok(gpuhal_queue_synchronize(own->queue, PATIENCE_NS));
    return NULL;
}

TEST(threads_may_run_one_recording_at_once_in_one_queue_and_in_several)
{
    objects o = begin();
    runner runners[THREADS];
    gpuhal_queue *second = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    gpuhal_recording *recording = new_recording(o.device, 1);
    assert_ok(gpuhal_recording_slot(recording, 0, record_add(recording, o.add, o.one, 1), 1));
    assert_ok(gpuhal_recording_finish(recording));
    for (uint32_t i = 0; i < THREADS; i++) {
        runners[i] = (runner){&o, recording, i == 0 ? second : o.queue, i + 1, 0};
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run_many, &runners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(runners[i].thread, NULL);
    }
    expect(o.queue, o.one, RUNS * THREADS * (THREADS + 1) / 2);
    gpuhal_queue_destroy(second);
    gpuhal_recording_release(recording);
    end(&o);
}

/* The mock has no queues, so the worker makes all calls. */
TEST(a_device_without_queues_of_its_own_runs_recordings)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 32);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue));
    gpuhal_recording *recording = new_recording(gpuhal_device_at(gpu, 0), 1);
    assert_ok(gpuhal_recording_fill(recording, buffer, 0, 32, 5, 4));
    assert_ok(gpuhal_recording_slot(recording, 0, record_add(recording, add, buffer, 1), 1));
    assert_ok(gpuhal_recording_finish(recording));
    for (uint32_t i = 0; i < 20; i++) {
        const gpuhal_slot_value value = value_of(0, &i);
        assert_ok(gpuhal_recording_run(queue, recording, &value, 1));
    }
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    expect_numbers(buffer, 24);
    gpuhal_mock.devices[0].fail_launch = GPUHAL_ERROR_DRIVER;
    assert_ok(gpuhal_recording_run(queue, recording, NULL, 0));
    refused(gpuhal_queue_synchronize(queue, PATIENCE_NS), GPUHAL_ERROR_DRIVER,
            "recording token, step 1: launching kernel add");
    gpuhal_mock.devices[0].fail_launch = GPUHAL_OK;
    gpuhal_recording_release(recording);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

#include "test_main.h"
