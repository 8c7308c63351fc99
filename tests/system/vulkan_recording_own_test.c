/* Tests recordings of the Vulkan plugin with the fake driver (tests/fakes/vulkan), which checks that no command buffer
 * is recorded again while it is in use, in situations that real drivers cannot produce on demand. */
#include "adopt.h"
#include "vulkan_recordings.h"

static const char one_family[] = "discrete;reorder";

static gpuhal_plugin_queue *make_queue(const fixture *f)
{
    gpuhal_plugin_queue *queue = NULL;
    assert_int_equal(f->ops->queues->queue_create(f->p.o.device, QUEUE_DESC(.flags = 0), &queue), GPUHAL_OK);
    return queue;
}

static gpuhal_plugin_event *make_event(const fixture *f)
{
    gpuhal_plugin_event *event = NULL;
    assert_int_equal(f->ops->queues->event_create(f->p.o.device, EVENT_DESC(.flags = 0), &event), GPUHAL_OK);
    return event;
}

/* Begins with a queue, an event, and a recording of additions, of which every second can change. */
static fixture *begin_additions(programs opened, uint32_t count)
{
    fixture *f = begin(opened);
    f->p.queue = make_queue(f);
    f->p.event = make_event(f);
    f->count = count;
    for (uint32_t i = 0; i < count; i++) {
        f->steps[i] = addition(1);
        f->steps[i].flags = i % 2 ? 0 : GPUHAL_STEP_CHANGES;
    }
    create(f);
    return f;
}

/* Expects the second buffer after additions of the given factors in total. */
static void expect_sum(const fixture *f, float factors)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        assert_true(((const float *)f->buffers[1][1].host)[i] == (float)(1 + i) + factors * (float)i);
    }
}

/* ---- the calls of a run */

TEST(eight_runs_record_nothing_and_are_one_submission)
{
    fixture *f = begin_additions(open_programs(one_family), 9);
    f->p.fake.fail_call("vkQueueSubmit", 0, 0); /* counts from now on */
    for (int i = 0; i < 8; i++) {
        run_in(f, f->p.queue);
    }
    finish_queue(&f->p);
    assert_int_equal(f->p.fake.calls("vkQueueSubmit"), 1);
    assert_int_equal(f->p.fake.calls("vkBeginCommandBuffer"), 0);
    assert_int_equal(f->p.fake.calls("vkCmdDispatch"), 0);
    expect_sum(f, 8 * 9);
    end(f);
}

TEST(a_replaced_launch_is_recorded_again_and_no_other)
{
    fixture *f = begin_additions(open_programs(one_family), 9);
    f->p.fake.fail_call("vkCmdDispatch", 0, 0);
    assert_int_equal(set_factor(f, 2, 5), GPUHAL_OK);
    assert_int_equal(set_factor(f, 8, 7), GPUHAL_OK);
    assert_int_equal(f->p.fake.calls("vkCmdDispatch"), 2);
    assert_int_equal(f->p.fake.calls("vkBeginCommandBuffer"), 2);
    run_in(f, f->p.queue);
    finish_queue(&f->p);
    expect_sum(f, 7 + 5 + 7);
    end(f);
}

/* ---- versions */

TEST(each_run_in_flight_keeps_its_version_and_versions_are_used_again)
{
    fixture *f = begin_additions(open_programs(one_family), 1);
    f->p.fake.hang(1);
    f->p.fake.fail_call("vkAllocateCommandBuffers", 0, 0);
    float sum = 0;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(set_factor(f, 0, (float)i), GPUHAL_OK);
        run_in(f, f->p.queue);
        assert_int_equal(f->ops->queues->queue_flush(f->p.queue), GPUHAL_OK);
        sum += (float)i;
    }
    assert_true(f->p.fake.calls("vkAllocateCommandBuffers") >= 19);
    f->p.fake.go_on();
    finish_queue(&f->p);
    f->p.fake.fail_call("vkAllocateCommandBuffers", 0, 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(set_factor(f, 0, 3), GPUHAL_OK);
        run_in(f, f->p.queue);
        sum += 3;
    }
    finish_queue(&f->p);
    assert_int_equal(f->p.fake.calls("vkAllocateCommandBuffers"), 0);
    expect_sum(f, sum);
    end(f);
}

TEST(a_version_that_cannot_be_made_leaves_its_command_buffer_to_the_next)
{
    fixture *f = begin_additions(open_programs("discrete;reorder;without=VK_KHR_push_descriptor"), 1);
    uint64_t allocations = 0;
    f->p.fake.hang(1);
    run_in(f, f->p.queue);
    assert_int_equal(f->ops->queues->queue_flush(f->p.queue), GPUHAL_OK);
    for (int i = 0; i < 6; i++) {
        f->p.fake.fail_call("vkAllocateDescriptorSets", 1, -1);
        assert_int_equal(set_factor(f, 0, 5), GPUHAL_ERROR_HOST_MEMORY);
        allocations += f->p.fake.calls("vkAllocateCommandBuffers");
    }
    assert_int_equal(set_factor(f, 0, 5), GPUHAL_OK);
    assert_int_equal(allocations, 1);
    run_in(f, f->p.queue);
    f->p.fake.go_on();
    finish_queue(&f->p);
    expect_sum(f, 1 + 5);
    end(f);
}

TEST(replacing_a_launch_again_before_any_run_needs_no_other_version)
{
    fixture *f = begin_additions(open_programs(one_family), 1);
    f->p.fake.fail_call("vkAllocateCommandBuffers", 0, 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(set_factor(f, 0, (float)i), GPUHAL_OK);
    }
    assert_int_equal(f->p.fake.calls("vkAllocateCommandBuffers"), 0);
    run_in(f, f->p.queue);
    finish_queue(&f->p);
    expect_sum(f, 4);
    end(f);
}

/* The run that was dropped had begun with a version that an earlier run in another queue still uses. The last queue
 * continues with the timeline of the failed queue. */
TEST(after_a_dropped_submission_later_runs_are_right_and_versions_are_used_again)
{
    fixture *f = begin_additions(open_programs(one_family), 2);
    gpuhal_plugin_queue *failing = make_queue(f), *last = NULL;
    gpuhal_plugin_event *event = make_event(f);
    f->p.fake.hang(1);
    run_in(f, f->p.queue);
    follow(f, failing, f->p.queue, event);
    run_in(f, failing);
    f->p.fake.fail_call("vkQueueSubmit", 1, -1);
    assert_int_equal(f->ops->queues->queue_flush(failing), GPUHAL_ERROR_HOST_MEMORY);
    assert_int_equal(f->ops->recordings->recording_run(failing, f->recording), GPUHAL_ERROR_CANCELLED);
    assert_int_equal(set_factor(f, 0, 5), GPUHAL_OK);
    f->ops->queues->queue_destroy(failing);
    run_in(f, f->p.queue);
    f->p.fake.go_on();
    assert_int_equal(set_factor(f, 0, 0), GPUHAL_OK);
    run_in(f, f->p.queue);
    finish_queue(&f->p);
    last = make_queue(f);
    f->p.fake.fail_call("vkAllocateCommandBuffers", 0, 0);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(set_factor(f, 0, 1), GPUHAL_OK);
        run_in(f, last);
        if (i % 2) {
            assert_int_equal(f->ops->queues->event_record(last, event), GPUHAL_OK);
            assert_int_equal(f->ops->queues->event_block(event, UINT64_C(60000000000)), GPUHAL_OK);
        }
    }
    assert_true(f->p.fake.calls("vkAllocateCommandBuffers") <= 2); /* also for the queue's batch */
    expect_sum(f, 2 + 6 + 1 + 40 * 2);
    f->ops->queues->event_destroy(event);
    f->ops->queues->queue_destroy(last);
    end(f);
}

/* ---- queues */

/* Opens an adopted device, because the plugin uses only one family that computes of its own devices. */
static programs open_adopted(owner *o)
{
    const char *why = NULL;
    programs p = {.faked = true, .fake = fake_vulkan_script("discrete;families=gct1,ct1,t1;reorder")};
    assert_true(make_owner(o, VK_API_VERSION_1_2, true, &why));
    const gpuhal_native native = native_of(o);
    assert_ok(open_direct_on(&p.o, &native));
    return p;
}

static gpuhal_plugin_queue *queue_of_family(const fixture *f, const owner *o, uint32_t family)
{
    gpuhal_plugin_queue *queue = NULL;
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_VULKAN_QUEUE, .values = {(uintptr_t)o->v.queues[family], family}};
    assert_int_equal(f->ops->queues->queue_create(f->p.o.device, QUEUE_DESC(.adopt = &native), &queue), GPUHAL_OK);
    return queue;
}

TEST(runs_in_queues_of_two_families_take_turns_with_replaced_launches)
{
    static owner o;
    fixture *f = begin_additions(open_adopted(&o), 3);
    gpuhal_plugin_queue *queues[3];
    gpuhal_plugin_event *event = make_event(f);
    float sum = 0;
    for (uint32_t i = 0; i < 3; i++) {
        queues[i] = queue_of_family(f, &o, i);
    }
    for (int i = 0; i < 30; i++) {
        assert_int_equal(set_factor(f, i % 3 ? 0 : 2, (float)i), GPUHAL_OK);
        follow(f, queues[i % 2], queues[(i + 1) % 2], event);
        run_in(f, queues[i % 2]);
        sum += f->steps[0].factor + f->steps[1].factor + f->steps[2].factor;
    }
    assert_int_equal(f->ops->recordings->recording_run(queues[2], f->recording), GPUHAL_ERROR_NOT_SUPPORTED);
    follow(f, f->p.queue, queues[1], event);
    finish_queue(&f->p);
    expect_sum(f, sum);
    for (int i = 0; i < 3; i++) {
        f->ops->queues->queue_destroy(queues[i]);
    }
    f->ops->queues->event_destroy(event);
    f->p.faked = false; /* the owner's device is destroyed after the plugin's */
    const fake_vulkan fake = f->p.fake;
    end(f);
    unmake_owner(&o);
    fake_vulkan_expect_clean(&fake);
}

TEST(during_native_access_runs_are_kept_and_then_submitted)
{
    fixture *f = begin_additions(open_programs(one_family), 256);
    assert_int_equal(f->ops->native->native_lock(f->p.queue, 0), GPUHAL_OK);
    f->p.fake.fail_call("vkQueueSubmit", 0, 0);
    run_in(f, f->p.queue);
    assert_int_equal(f->ops->recordings->recording_run(f->p.queue, f->recording), GPUHAL_NOT_READY);
    assert_int_equal(f->ops->queues->queue_flush(f->p.queue), GPUHAL_NOT_READY);
    assert_int_equal(f->p.fake.calls("vkQueueSubmit"), 0);
    f->ops->native->native_unlock(f->p.queue);
    run_in(f, f->p.queue);
    finish_queue(&f->p);
    expect_sum(f, 512);
    end(f);
}

TEST(a_queue_far_ahead_of_its_device_refuses_runs_and_keeps_a_bounded_number_of_versions)
{
    fixture *f = begin_additions(open_programs("discrete;without=VK_KHR_push_descriptor"), 64);
    const unsigned before = f->p.fake.alive();
    gpuhal_status status = GPUHAL_OK;
    float sum = 0;
    unsigned taken = 0;
    f->p.fake.hang(1);
    while (taken < 1000 && status == GPUHAL_OK) {
        assert_int_equal(set_factor(f, 0, (float)taken), GPUHAL_OK);
        status = f->ops->recordings->recording_run(f->p.queue, f->recording);
        sum += status == GPUHAL_OK ? (float)(63 + taken++) : 0.0f;
    }
    assert_int_equal(status, GPUHAL_NOT_READY);
    assert_in_range(taken, 64, 68); /* 4096 operations, and the open batch */
    assert_true(f->p.fake.alive() - before < 3 * taken);
    f->p.fake.go_on();
    finish_queue(&f->p);
    expect_sum(f, sum);
    end(f);
}

TEST(the_time_between_two_events_includes_the_run_between_them)
{
    fixture *f = begin(open_programs("discrete;slow_us=100000"));
    gpuhal_plugin_event *before = NULL;
    uint64_t elapsed_ns = 0;
    f->p.queue = make_queue(f);
    assert_int_equal(f->ops->queues->event_create(f->p.o.device, EVENT_DESC(.flags = GPUHAL_TIMED), &before),
                     GPUHAL_OK);
    assert_int_equal(f->ops->queues->event_create(f->p.o.device, EVENT_DESC(.flags = GPUHAL_TIMED), &f->p.event),
                     GPUHAL_OK);
    f->count = 1;
    f->steps[0] = (described){.kind = GPUHAL_STEP_COPY, .to = 1, .bytes = BYTES};
    create(f);
    run_in(f, f->p.queue);
    assert_int_equal(f->ops->queues->event_record(f->p.queue, before), GPUHAL_OK);
    run_in(f, f->p.queue);
    finish_queue(&f->p);
    assert_int_equal(f->ops->queues->elapsed(before, f->p.event, &elapsed_ns), GPUHAL_OK);
    assert_in_range(elapsed_ns, 100000000, 199000000);
    f->ops->queues->event_destroy(before);
    end(f);
}

/* ---- lost and hanging devices */

TEST(a_device_lost_in_a_run_refuses_every_slot_of_a_recording)
{
    fixture *f = begin_additions(open_programs(one_family), 3);
    gpuhal_plugin_recording *more = NULL;
    const gpuhal_plugin_step step = step_of(f, 0, 1);
    f->p.fake.lose(1);
    run_in(f, f->p.queue);
    assert_int_equal(f->ops->queues->event_record(f->p.queue, f->p.event), GPUHAL_OK);
    assert_int_equal(f->ops->queues->event_block(f->p.event, UINT64_C(60000000000)), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(f->ops->recordings->recording_run(f->p.queue, f->recording), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(set_factor(f, 0, 2), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(f->ops->recordings->recording_create(f->p.o.device, &step, 1, &more), GPUHAL_ERROR_DEVICE_LOST);
    end(f);
}

TEST(a_run_that_never_ends_keeps_its_objects)
{
    static fixture *f; /* leak checkers find the remaining objects through it */
    static gpuhal_plugin_recording *recording;
    f = begin_additions(open_programs(one_family), 3);
    recording = f->recording;
    f->p.fake.hang(1);
    run_in(f, f->p.queue);
    assert_int_equal(f->ops->queues->queue_flush(f->p.queue), GPUHAL_OK);
    f->ops->queues->queue_destroy(f->p.queue);
    f->ops->recordings->recording_destroy(recording);
    f->ops->queues->event_destroy(f->p.event);
    f->p.o.plugin->close(f->p.o.device);
    assert_int_equal(f->p.fake.violations(), 0); /* destroying an object in use would be a violation */
    assert_true(f->p.fake.alive() > 0);
}

/* ---- each call fails once */

/* The recording has a fixed part between two launches that change, one of them with a uniform block. */
static gpuhal_status live(fixture *f, gpuhal_plugin_queue **queue, gpuhal_plugin_event **event)
{
    const gpuhal_ops *ops = f->ops;
    gpuhal_plugin_step steps[4];
    f->count = 4;
    for (uint32_t i = 0; i < f->count; i++) {
        f->steps[i] = addition(1);
        f->steps[i].scales = i % 2;
        f->steps[i].flags = i == 1 || i == 3 ? GPUHAL_STEP_CHANGES : 0;
        steps[i] = step_of(f, i, 1);
    }
    gpuhal_status status = ops->queues->queue_create(f->p.o.device, QUEUE_DESC(.flags = 0), queue);
    status = status ? status : ops->queues->event_create(f->p.o.device, EVENT_DESC(.flags = 0), event);
    status = status ? status : ops->recordings->recording_create(f->p.o.device, steps, 4, &f->recording);
    for (uint32_t round = 0; round < 3 && !status; round++) {
        status = ops->recordings->recording_run(*queue, f->recording);
        status = status ? status : ops->recordings->recording_set(f->recording, &steps[1], 1);
        status = status ? status : ops->recordings->recording_set(f->recording, &steps[3], 1);
        status = status ? status : ops->recordings->recording_run(*queue, f->recording);
        status = status ? status : ops->queues->event_record(*queue, *event);
        status = status ? status : ops->queues->event_block(*event, UINT64_C(60000000000));
    }
    return status;
}

/* After a failure a run may still be in progress, so the queue is destroyed before the recording. */
static void leave(fixture *f, gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    if (event) {
        f->ops->queues->event_destroy(event);
    }
    if (queue) {
        f->ops->queues->queue_destroy(queue);
    }
    if (f->recording) {
        f->ops->recordings->recording_destroy(f->recording);
        f->recording = NULL;
    }
}

static bool fail_once(fixture *f, const char *function, unsigned nth, int code)
{
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_event *event = NULL;
    const unsigned before = f->p.fake.alive();
    f->p.fake.fail_call(function, nth, code);
    const gpuhal_status status = live(f, &queue, &event);
    const bool reached = f->p.fake.calls(function) >= nth;
    f->p.fake.fail_call(function, 0, 0);
    if (status > 0 || (status && !reached) || f->p.fake.violations()) {
        fail_msg("%s, call %u: status %d, %s", function, nth, status, f->p.fake.violation(0));
    }
    /* After a failure of recording_set() the core passes the same steps again. */
    if (status && f->recording) {
        const gpuhal_plugin_step steps[] = {step_of(f, 1, 1), step_of(f, 3, 1)};
        assert_int_equal(f->ops->recordings->recording_set(f->recording, steps, 2), GPUHAL_OK);
    }
    leave(f, queue, event);
    queue = NULL;
    event = NULL;
    if (live(f, &queue, &event)) {
        fail_msg("%s, call %u: the device is of no use any more", function, nth);
    }
    leave(f, queue, event);
    /* Idle timelines stay until the device is closed. */
    if (f->p.fake.violations() || f->p.fake.alive() > before + 2) {
        fail_msg("%s, call %u, code %d: %u objects more, %s", function, nth, code, f->p.fake.alive() - before,
                 f->p.fake.violation(0));
    }
    return reached;
}

static void fail_each_call(const char *script, unsigned expected)
{
    static const struct {
        const char *function;
        int code;
    } sweeps[] = {{"vkCreateCommandPool", -1},
                  {"vkAllocateCommandBuffers", -2},
                  {"vkBeginCommandBuffer", -1},
                  {"vkEndCommandBuffer", -2},
                  {"vkQueueSubmit", -1},
                  {"vkCreateDescriptorPool", -2},
                  {"vkAllocateDescriptorSets", -2},
                  {"vkAllocateMemory", -2}};
    fixture *f = begin(open_programs(script));
    unsigned reached = 0;
    for (size_t i = 0; i < sizeof sweeps / sizeof sweeps[0]; i++) {
        unsigned nth = 1;
        while (fail_once(f, sweeps[i].function, nth, sweeps[i].code)) {
            nth++;
        }
        reached += nth > 1;
    }
    assert_int_equal(reached, expected);
    end(f);
}

TEST(whichever_call_fails_in_a_recording_with_pushed_descriptors_nothing_is_leaked)
{
    fail_each_call("discrete;inline", 6);
}

TEST(whichever_call_fails_in_a_recording_with_pools_of_descriptors_nothing_is_leaked)
{
    fail_each_call("discrete;inline;without=VK_KHR_push_descriptor", 8);
}

#include "test_main.h"
