/* Tests recordings through the slots of a vendor's plugin, with its fake. vendor_sweep_test.c makes their driver calls
 * fail in turn. */
#include "bench.h"

enum { NUMBERS = 64, BYTES = NUMBERS * 4, STEPS = 16 };

/* Steps of copies and fills in numbers of 4 bytes, and of launches of `fill` and `add`. */
typedef struct recorded {
    bench with;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *fill, *add;
    gpuhal_plugin_queue *queue;
    gpuhal_memory a, b, c, host;
    gpuhal_plugin_step steps[STEPS];
    gpuhal_plugin_launch launches[STEPS];
    gpuhal_plugin_argument arguments[STEPS][4];
    uint32_t values[STEPS][2];
    uint32_t count;
    gpuhal_plugin_recording *recording;
} recorded;

static recorded *begin_steps(const char *machine)
{
    static recorded r;
    r = (recorded){.with = begin_on(machine, 1)};
    const bench *with = &r.with;
    assert_non_null(with->ops.recordings);
    r.program = load_kernels(with);
    r.fill = kernel_of(with, r.program, "fill");
    r.add = kernel_of(with, r.program, "add");
    r.queue = queue_on(with, 0);
    r.a = allocate(with, 0, (gpuhal_alloc){.bytes = BYTES});
    r.b = allocate(with, 0, (gpuhal_alloc){.bytes = BYTES});
    r.c = allocate(with, 0, (gpuhal_alloc){.bytes = BYTES});
    r.host = allocate(with, 0, (gpuhal_alloc){.bytes = BYTES, .kind = GPUHAL_MEMORY_UPLOAD});
    return &r;
}

static void end_steps(recorded *r)
{
    bench *with = &r->with;
    finish(with, r->queue);
    if (r->recording) {
        with->ops.recordings->recording_destroy(r->recording);
    }
    with->ops.queues->queue_destroy(r->queue);
    with->ops.programs->kernel_destroy(r->fill);
    with->ops.programs->kernel_destroy(r->add);
    with->ops.programs->program_unload(r->program);
    with->ops.release(with->devices[0], &r->a);
    with->ops.release(with->devices[0], &r->b);
    with->ops.release(with->devices[0], &r->c);
    with->ops.release(with->devices[0], &r->host);
    end_clean(with);
}

static gpuhal_plugin_step *step_of(recorded *r, uint32_t kind)
{
    gpuhal_plugin_step *step = &r->steps[r->count];
    *step = (gpuhal_plugin_step){.kind = kind, .index = r->count++};
    return step;
}

static gpuhal_plugin_step *copy_step(recorded *r, const gpuhal_memory *to, uint64_t to_offset,
                                     const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_plugin_step *step = step_of(r, GPUHAL_STEP_COPY);
    step->to = to;
    step->to_offset = to_offset;
    step->from = from;
    step->from_offset = from_offset;
    step->bytes = bytes;
    return step;
}

static gpuhal_plugin_step *fill_step(recorded *r, const gpuhal_memory *to, uint64_t offset, uint64_t bytes,
                                     uint32_t pattern, uint32_t pattern_bytes)
{
    gpuhal_plugin_step *step = step_of(r, GPUHAL_STEP_FILL);
    step->to = to;
    step->to_offset = offset;
    step->bytes = bytes;
    step->pattern = pattern;
    step->pattern_bytes = pattern_bytes;
    return step;
}

/* Describes the launch of step @p i again, with other memory, values or groups. */
static void set_fill(recorded *r, uint32_t i, const gpuhal_memory *to, uint32_t value, uint32_t groups)
{
    r->values[i][0] = value;
    r->values[i][1] = NUMBERS;
    r->arguments[i][0] = memory_argument(to, 0);
    r->arguments[i][1] = value_argument(&r->values[i][0], 4);
    r->arguments[i][2] = value_argument(&r->values[i][1], 4);
    r->launches[i] = (gpuhal_plugin_launch){.size = sizeof r->launches[i],
                                            .argument_count = 3,
                                            .arguments = r->arguments[i],
                                            .groups = {groups, 1, 1},
                                            .group_size = {NUMBERS, 1, 1},
                                            .threads = {groups * NUMBERS, 1, 1}};
}

/* The kernel fills all numbers, with one group of 64 threads. */
static gpuhal_plugin_step *launch_fill(recorded *r, const gpuhal_memory *to, uint32_t value)
{
    gpuhal_plugin_step *step = step_of(r, GPUHAL_STEP_LAUNCH);
    step->flags = GPUHAL_STEP_CHANGES;
    step->kernel = r->fill;
    step->launch = &r->launches[step->index];
    set_fill(r, step->index, to, value, 1);
    return step;
}

static gpuhal_plugin_step *launch_add(recorded *r, const gpuhal_memory *to, const gpuhal_memory *one,
                                      const gpuhal_memory *other)
{
    gpuhal_plugin_step *step = step_of(r, GPUHAL_STEP_LAUNCH);
    const uint32_t i = step->index;
    r->values[i][0] = NUMBERS;
    r->arguments[i][0] = memory_argument(to, 0);
    r->arguments[i][1] = memory_argument(one, 0);
    r->arguments[i][2] = memory_argument(other, 0);
    r->arguments[i][3] = value_argument(&r->values[i][0], 4);
    r->launches[i] = (gpuhal_plugin_launch){.size = sizeof r->launches[i],
                                            .argument_count = 4,
                                            .arguments = r->arguments[i],
                                            .groups = {1, 1, 1},
                                            .group_size = {NUMBERS, 1, 1},
                                            .threads = {NUMBERS, 1, 1}};
    step->kernel = r->add;
    step->launch = &r->launches[i];
    return step;
}

static gpuhal_status create(recorded *r)
{
    return r->with.ops.recordings->recording_create(r->with.devices[0], r->steps, r->count, &r->recording);
}

/* Passes one step again. */
static gpuhal_status set(recorded *r, uint32_t i)
{
    return r->with.ops.recordings->recording_set(r->recording, &r->steps[i], 1);
}

static gpuhal_status run(recorded *r)
{
    return r->with.ops.recordings->recording_run(r->queue, r->recording);
}

static void expect_numbers(recorded *r, const gpuhal_memory *memory, uint32_t value)
{
    uint32_t got[NUMBERS];
    finish(&r->with, r->queue);
    expect_fine(r->with.ops.read(r->with.devices[0], NULL, got, memory, 0, BYTES), &r->with, "read");
    for (uint32_t i = 0; i < NUMBERS; i++) {
        assert_int_equal(got[i], value);
    }
}

/* ---- runs */

/* Every step depends on the one before it, so a step that runs too early changes the bytes. */
TEST(a_run_has_the_effect_of_its_steps_in_their_order)
{
    recorded *r = begin_steps("devices 1; slow_us 200");
    uint32_t got[NUMBERS];
    memset(r->host.host, 0x11, BYTES);
    fill_step(r, &r->a, 0, BYTES, 0xabcdef05u, 1);
    fill_step(r, &r->a, 0, BYTES / 2, 0xabcd0201u, 2);
    launch_add(r, &r->b, &r->a, &r->a);
    copy_step(r, &r->a, 4, &r->b, 0, 8);
    fill_step(r, &r->b, 4, 4, 0x12345678u, 4);
    copy_step(r, &r->b, 128, &r->host, 0, 128);
    launch_add(r, &r->c, &r->a, &r->b);
    copy_step(r, &r->host, 8, &r->c, 0, 240);
    expect_fine(create(r), &r->with, "recording_create");
    expect_fine(run(r), &r->with, "recording_run");
    finish(&r->with, r->queue);
    expect_fine(r->with.ops.read(r->with.devices[0], NULL, got, &r->c, 0, BYTES), &r->with, "read");
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint32_t first = i < NUMBERS / 2 ? 0x02010201u : 0x05050505u;
        const uint32_t a = i == 1 || i == 2 ? 2 * first : first;
        const uint32_t b = i >= NUMBERS / 2 ? 0x11111111u : i == 1 ? 0x12345678u : 2 * first;
        assert_int_equal(got[i], a + b);
    }
    assert_memory_equal((char *)r->host.host + 8, got, 240);
    assert_memory_equal(r->host.host, "\x11\x11\x11\x11\x11\x11\x11\x11", 8);
    assert_int_equal(calls_of(CALLED(GraphLaunch)), 1);
    assert_int_equal(calls_of(CALLED(LaunchKernel)), 0);
    end_steps(r);
}

TEST(runs_that_are_enqueued_keep_the_launches_that_they_began_with)
{
    recorded *r = begin_steps("devices 1; slow_us 20000");
    fill_step(r, &r->a, 0, BYTES, 0, 4);
    fill_step(r, &r->b, 0, BYTES, 0, 4);
    launch_fill(r, &r->a, 7);
    launch_add(r, &r->c, &r->a, &r->b);
    expect_fine(create(r), &r->with, "recording_create");
    expect_fine(run(r), &r->with, "recording_run");
    expect_fine(r->with.ops.copy(r->with.devices[0], r->queue, &r->host, 0, &r->c, 0, BYTES), &r->with, "copy");
    set_fill(r, 2, &r->b, 8, 2);
    const double before = seconds_now();
    expect_fine(set(r, 2), &r->with, "recording_set");
    assert_true(seconds_now() - before < 0.02); /* did not wait for the run */
    memset(r->arguments[2], 0, sizeof r->arguments[2]);
    expect_fine(run(r), &r->with, "recording_run");
    expect_numbers(r, &r->c, 8);
    expect_numbers(r, &r->a, 0);
    expect_numbers(r, &r->host, 7);
    const fake_report *report = fake_report_get();
    assert_int_equal(report->launches, 4);
    assert_int_equal(report->launched[0].groups[0], 1);
    assert_int_equal(report->launched[2].groups[0], 2);
    assert_int_equal(report->launched[2].arguments[0], r->b.address);
    end_steps(r);
}

TEST(a_launch_in_a_recording_has_its_local_memory_and_sizes)
{
    recorded *r = begin_steps("devices 1");
    gpuhal_plugin_step *step = launch_fill(r, &r->a, 7);
    r->launches[0].local_bytes = 3000;
    r->launches[0].groups[1] = 2;
    r->launches[0].groups[2] = 3;
    assert_int_equal(step->index, 0);
    expect_fine(create(r), &r->with, "recording_create");
    expect_fine(run(r), &r->with, "recording_run");
    expect_numbers(r, &r->a, 7);
    const fake_launch *launched = &fake_report_get()->launched[0];
    assert_int_equal(launched->shared_bytes, 3000);
    assert_int_equal(launched->groups[1], 2);
    assert_int_equal(launched->groups[2], 3);
    assert_int_equal(launched->group_size[0], 64);
    assert_int_equal(launched->group_size[1], 1);
    r->launches[0].groups[2] = 4;
    expect_fine(set(r, 0), &r->with, "recording_set");
    expect_fine(run(r), &r->with, "recording_run");
    finish(&r->with, r->queue);
    assert_int_equal(fake_report_get()->launched[1].shared_bytes, 3000);
    assert_int_equal(fake_report_get()->launched[1].groups[2], 4);
    end_steps(r);
}

TEST(no_run_gets_into_a_graph_that_the_engine_captures)
{
    recorded *r = begin_steps("devices 1");
    engine own = engine_begin(0);
    gpuhal_native native = {.size = sizeof native};
    vendor_graph graph = NULL;
    launch_fill(r, &r->a, 7);
    expect_fine(create(r), &r->with, "recording_create");
    expect_fine(r->with.ops.native->native_queue(r->queue, &native), &r->with, "native_queue");
    vendor_stream stream = (vendor_stream)(uintptr_t)native.values[0];
    assert_int_equal(own.api.VENDOR(StreamBeginCapture)(stream, 0), FAKE_OK);
    assert_int_equal(run(r), GPUHAL_ERROR_BUSY);
    assert_int_equal(own.api.VENDOR(StreamEndCapture)(stream, &graph), FAKE_OK);
    expect_fine(run(r), &r->with, "recording_run");
    expect_numbers(r, &r->a, 7);
    engine_end(&own);
    end_steps(r);
}

/* ---- changes */

/* The executable graph that is made anew has the changes that the driver took before. */
TEST(a_change_that_the_driver_refuses_is_made_by_another_executable_graph)
{
    recorded *r = begin_steps("devices 1; slow_us 20000; fail " CALLED(GraphExecKernelNodeSetParams) " 2 1");
    launch_fill(r, &r->a, 1);
    launch_fill(r, &r->b, 2);
    launch_add(r, &r->c, &r->a, &r->b);
    expect_fine(create(r), &r->with, "recording_create");
    set_fill(r, 0, &r->a, 10, 1);
    expect_fine(set(r, 0), &r->with, "recording_set");
    expect_fine(run(r), &r->with, "recording_run");
    expect_fine(r->with.ops.copy(r->with.devices[0], r->queue, &r->host, 0, &r->c, 0, BYTES), &r->with, "copy");
    set_fill(r, 1, &r->b, 20, 1);
    expect_fine(set(r, 1), &r->with, "recording_set, while the first run is enqueued");
    assert_int_equal(calls_of(CALLED(GraphInstantiateWithFlags)), OF(2, 3));
    assert_int_equal(calls_of(CALLED(GraphExecDestroy)), OF(1, 2));
    expect_fine(run(r), &r->with, "recording_run");
    expect_numbers(r, &r->host, 12);
    expect_numbers(r, &r->c, 30);
    end_steps(r);
}

TEST(a_change_that_no_graph_takes_is_not_supported_and_may_be_passed_again)
{
    recorded *r = begin_steps("devices 1; fail " CALLED(GraphExecKernelNodeSetParams) " 1 1; fail " CALLED(
        GraphInstantiateWithFlags) " 2 801");
    launch_fill(r, &r->a, 1);
    expect_fine(create(r), &r->with, "recording_create");
    set_fill(r, 0, &r->a, 10, 1);
    assert_int_equal(set(r, 0), GPUHAL_ERROR_NOT_SUPPORTED);
    expect_fine(set(r, 0), &r->with, "recording_set");
    expect_fine(run(r), &r->with, "recording_run");
    expect_numbers(r, &r->a, 10);
    end_steps(r);
}

/* In HIP each change takes memory until the executable graph is destroyed. */
TEST(many_changes_do_not_gather_in_one_executable_graph)
{
    enum { CHANGES = 1000 };
    recorded *r = begin_steps("devices 1");
    launch_fill(r, &r->a, 1);
    expect_fine(create(r), &r->with, "recording_create");
    for (uint32_t i = 0; i < CHANGES; i++) {
        set_fill(r, 0, &r->a, i, 1);
        expect_fine(set(r, 0), &r->with, "recording_set");
    }
    assert_int_equal(calls_of(CALLED(GraphInstantiateWithFlags)), OF(1, 1 + CHANGES));
    expect_fine(run(r), &r->with, "recording_run");
    expect_numbers(r, &r->a, CHANGES - 1);
    end_steps(r);
}

/* ---- what is not recorded */

static void expect_not_recorded(recorded *r)
{
    gpuhal_plugin_recording *none = NULL;
    assert_int_equal(r->with.ops.recordings->recording_create(r->with.devices[0], r->steps, r->count, &none),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(none);
    assert_int_equal(fake_report_get()->graphs, 0);
    (void)gpuhal_direct_failed(r->with.plugin, GPUHAL_ERROR_NOT_SUPPORTED, "recording_create");
    assert_string_equal(gpuhal_last_error()->vendor_call, ""); /* no report */
    r->count = 0;
}

TEST(steps_that_are_more_than_one_node_are_not_recorded)
{
    recorded *r = begin_steps("devices 1");
    gpuhal_memory other = allocate(&r->with, 0, (gpuhal_alloc){.bytes = BYTES, .kind = GPUHAL_MEMORY_READBACK});
    copy_step(r, &other, 0, &r->host, 0, BYTES);
    expect_not_recorded(r);
    fill_step(r, &r->a, 2, 8, 1, 4);
    expect_not_recorded(r);
    launch_fill(r, &r->a, 7);
    step_of(r, GPUHAL_STEP_LAUNCH + 1);
    expect_not_recorded(r);
    assert_int_equal(calls_of(CALLED(GraphCreate)), 0); /* the driver is not asked */
    r->with.ops.release(r->with.devices[0], &other);
    end_steps(r);
}

TEST(steps_that_the_driver_does_not_take_are_not_recorded)
{
    static const char *const functions[] = {CALLED(GraphCreate), CALLED(GraphAddKernelNode),
                                            OF("cuGraphAddMemcpyNode", "hipGraphAddMemcpyNode1D"),
                                            CALLED(GraphAddMemsetNode), CALLED(GraphInstantiateWithFlags)};
    char machine[512] = "devices 1";
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const size_t used = strlen(machine);
        snprintf(machine + used, sizeof machine - used, "; fail %s 1 801; fail %s 2 1", functions[i], functions[i]);
    }
    recorded *r = begin_steps(machine);
    for (size_t i = 0; i < 2 * sizeof functions / sizeof *functions; i++) {
        launch_fill(r, &r->a, 1);
        copy_step(r, &r->b, 0, &r->a, 0, BYTES);
        fill_step(r, &r->a, 0, BYTES, 5, 4);
        expect_not_recorded(r);
    }
    launch_fill(r, &r->a, 9);
    expect_fine(create(r), &r->with, "recording_create");
    expect_fine(run(r), &r->with, "recording_run");
    expect_numbers(r, &r->a, 9);
    end_steps(r);
}

TEST(a_driver_without_the_functions_for_graphs_offers_no_recordings)
{
    use_machine("devices 1");
    OF(use_libraries("old/"), use_runtime("old/", 5));
    bench with;
    begin(&with, 1);
    assert_null(with.ops.recordings);
    end_clean(&with);
}

/* ---- failures */

TEST(a_run_that_fails_loses_the_device_and_the_recording_can_be_destroyed)
{
    recorded *r = begin_steps("devices 1; slow_us 50000; lose 0 " CALLED(GraphLaunch) " 1 719");
    gpuhal_plugin_event *event = event_on(&r->with, 0);
    gpuhal_plugin_recording *none = NULL;
    launch_fill(r, &r->a, 1);
    expect_fine(create(r), &r->with, "recording_create");
    expect_fine(run(r), &r->with, "recording_run");
    expect_fine(r->with.ops.queues->event_record(r->queue, event), &r->with, "event_record");
    assert_int_equal(r->with.ops.queues->event_block(event, 10000 * MS_NS), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(run(r), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(set(r, 0), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(r->with.ops.recordings->recording_create(r->with.devices[0], r->steps, 1, &none),
                     GPUHAL_ERROR_DEVICE_LOST);
    r->with.ops.recordings->recording_destroy(r->recording);
    r->with.ops.queues->event_destroy(event);
    r->with.ops.queues->queue_destroy(r->queue);
    end(&r->with);
    expect_no_violation();
    remove_reports();
}

#include "test_main.h"
