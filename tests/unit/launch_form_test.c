/* Forms of launches: other group sizes, numbers of threads, offsets, groups in a buffer, and optional buffers. The mock
 * keeps what the plugin gets. */
#include "program_support.h"

#include "program/launch.h"

#include <gpuhal/recording.h>

enum {
    EVERY_FORM = GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_THREADS | GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_INDIRECT |
                 GPUHAL_KERNEL_NULL_BUFFERS
};

typedef struct objects {
    gpuhal *gpu;
    gpuhal_program *program;
    gpuhal_kernel *add;
    gpuhal_buffer *buffer; /* 256 bytes, filled with 0 */
    gpuhal_queue *queue;
} objects;

static objects begin(uint32_t forms)
{
    const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .flags = GPUHAL_PARAMETER_OPTIONAL},
                                           {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    const gpuhal_kernel_desc desc = {
        .size = sizeof desc, .name = "add", .parameters = parameters, .parameter_count = 2};
    gpuhal_mock = (gpuhal_mock_state){
        .count = 2, .devices = {{.formats = "mock", .launch_forms = forms, .keeps_compiled = 1}, {.formats = "mock"}}};
    objects o = {.gpu = gpuhal_mock_open(NULL, 0)};
    o.program = load_program(o.gpu);
    assert_ok(gpuhal_kernel_create(o.program, &desc, &o.add));
    o.buffer = gpuhal_mock_buffer(o.gpu, 0, 256);
    assert_ok(gpuhal_fill(NULL, o.buffer, 0, 256, 0, 4));
    assert_ok(gpuhal_queue_create(gpuhal_device_at(o.gpu, 0), NULL, &o.queue));
    return o;
}

static void end(objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_buffer_release(o->buffer);
    gpuhal_kernel_release(o->add);
    gpuhal_program_release(o->program);
    gpuhal_close(o->gpu);
    expect_mock_has_no_programs();
}

/* Enqueues a launch with the mock's two arguments: adds 1 to elements of the buffer. */
static gpuhal_status try_launch(const objects *o, gpuhal_launch launch)
{
    static const uint32_t one = 1;
    const gpuhal_argument arguments[] = {{.buffer = o->buffer}, {.value = &one, .bytes = sizeof one}};
    launch.size = sizeof launch;
    launch.argument_count = 2;
    launch.arguments = launch.arguments ? launch.arguments : arguments;
    const gpuhal_status status = gpuhal_kernel_launch(o->queue, o->add, &launch);
    return status ? status : gpuhal_queue_synchronize(o->queue, UINT64_MAX);
}

static void refused(gpuhal_status got, gpuhal_status status, const char *why)
{
    assert_int_equal(got, status);
    if (!strstr(gpuhal_last_error()->sentence, why)) {
        fail_msg("%s lacks: %s", gpuhal_last_error()->sentence, why);
    }
}

/* Expects that launches so far have added 1 to exactly these elements. */
static void expect_ones(const objects *o, uint32_t first, uint32_t count)
{
    uint32_t got[64];
    assert_ok(gpuhal_read(NULL, got, o->buffer, 0, sizeof got));
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(got[i], i >= first && i < first + count);
    }
    assert_ok(gpuhal_fill(NULL, o->buffer, 0, sizeof got, 0, 4));
}

static const gpuhal_plugin_launch *last(void)
{
    return &gpuhal_mock.devices[0].last_launch;
}

/* ---- group sizes */

TEST(a_plain_launch_has_the_kernels_group_size_and_whole_groups)
{
    objects o = begin(0);
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {3, 1, 1}}));
    assert_int_equal(last()->group_size[0], 8);
    assert_int_equal(last()->threads[0], 24);
    assert_int_equal(last()->threads[1], 1);
    assert_int_equal(last()->offset[0], 0);
    assert_null(last()->indirect);
    expect_ones(&o, 0, 24);
    end(&o);
}

TEST(a_launch_may_have_another_group_size_if_the_kernel_can)
{
    objects o = begin(GPUHAL_KERNEL_GROUP_SIZE);
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {2, 1, 1}, .group_size = {16}}));
    assert_int_equal(last()->group_size[0], 16);
    assert_int_equal(last()->group_size[2], 1);
    expect_ones(&o, 0, 32);
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {2, 1, 1}}));
    expect_ones(&o, 0, 16);
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {65}}), GPUHAL_ERROR_TOO_LARGE,
            "64 in all");
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {8, 9}}), GPUHAL_ERROR_TOO_LARGE,
            "8 x 9 x 1");
    assert_ok(gpuhal_kernel_prepare(o.add, (uint32_t[]){32, 0, 0}));
    refused(gpuhal_kernel_prepare(o.add, (uint32_t[]){65, 1, 1}), GPUHAL_ERROR_TOO_LARGE, "64 in all");
    assert_int_equal(gpuhal_mock.devices[0].compilations, 1);
    end(&o);
}

TEST(without_the_flag_only_the_kernels_own_group_size_is_accepted)
{
    objects o = begin(0);
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {8, 1, 1}}));
    expect_ones(&o, 0, 8);
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {16}}), GPUHAL_ERROR_NOT_SUPPORTED,
            "8 x 1 x 1");
    assert_ok(gpuhal_kernel_prepare(o.add, (uint32_t[]){8, 0, 0}));
    refused(gpuhal_kernel_prepare(o.add, (uint32_t[]){16, 1, 1}), GPUHAL_ERROR_NOT_SUPPORTED, "8 x 1 x 1");
    refused(gpuhal_kernel_prepare(o.add, (uint32_t[]){0, 0, 0}), GPUHAL_ERROR_INVALID_ARGUMENT, "0 in each");
    refused(gpuhal_kernel_prepare(o.add, NULL), GPUHAL_ERROR_INVALID_ARGUMENT, "group_size is NULL");
    refused(gpuhal_kernel_prepare(NULL, (uint32_t[]){8, 1, 1}), GPUHAL_ERROR_INVALID_ARGUMENT, "kernel is NULL");
    end(&o);
}

TEST(a_size_that_is_compiled_is_launched_only_after_it_was_prepared)
{
    objects o = begin(GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_PREPARED_SIZES);
    const gpuhal_launch launch = {.groups = {2, 1, 1}, .group_size = {16, 1, 1}};
    const int64_t before = gpuhal_mock.devices[0].compilations;
    refused(try_launch(&o, launch), GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_prepare()");
    gpuhal_mock.devices[0].fail_prepare = GPUHAL_ERROR_OUT_OF_MEMORY;
    refused(gpuhal_kernel_prepare(o.add, launch.group_size), GPUHAL_ERROR_OUT_OF_MEMORY, "16 x 1 x 1");
    gpuhal_mock.devices[0].fail_prepare = GPUHAL_OK;
    refused(try_launch(&o, launch), GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_kernel_prepare()");
    for (int i = 0; i < 3; i++) {
        assert_ok(gpuhal_kernel_prepare(o.add, launch.group_size));
    }
    assert_int_equal(gpuhal_mock.devices[0].compilations, before + 2);
    assert_ok(try_launch(&o, launch));
    expect_ones(&o, 0, 32);
    refused(gpuhal_kernel_prepare(o.add, (uint32_t[]){65, 1, 1}), GPUHAL_ERROR_TOO_LARGE, "64 in all");
    end(&o);
}

TEST(a_kernel_that_must_prepare_sizes_needs_the_plugins_slot)
{
    objects o = begin(0);
    gpuhal_mock.devices[0].launch_forms = GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_PREPARED_SIZES;
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "add"};
    gpuhal_kernel *kernel = NULL;
    refused(gpuhal_kernel_create(o.program, &desc, &kernel), GPUHAL_ERROR_DRIVER, "kernel_prepare");
    assert_null(kernel);
    assert_int_equal(gpuhal_mock.devices[0].kernels, 1);
    end(&o);
}

/* PoCL compiles for each size, and again for an offset. Sizes above a limit are forgotten, and then count as first
 * launches for ever. */
TEST(the_first_launch_of_each_group_size_counts_as_one_that_may_compile)
{
    objects o = begin(GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_OFFSET);
    gpuhal_plugin_launch launch = {.groups = {1, 1, 1}, .group_size = {16, 1, 1}, .threads = {16, 1, 1}};
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {4, 1, 1}}));
    assert_true(gpuhal_launch_is_first(o.add, &launch));
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {16}}));
    assert_false(gpuhal_launch_is_first(o.add, &launch));
    launch.offset[1] = 1;
    assert_true(gpuhal_launch_is_first(o.add, &launch));
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {16}, .offset = {0, 0, 1}}));
    assert_false(gpuhal_launch_is_first(o.add, &launch));
    launch.threads[0] = 32;
    assert_true(gpuhal_launch_is_first(o.add, &launch));
    launch.offset[1] = 0;
    assert_true(gpuhal_launch_is_first(o.add, &launch));
    for (uint32_t y = 1; y <= 64; y++) {
        assert_ok(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {1, y, 1}}));
        assert_ok(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {1, 1, y}}));
    }
    launch = (gpuhal_plugin_launch){.group_size = {1, 2, 1}, .threads = {1, 2, 1}};
    assert_false(gpuhal_launch_is_first(o.add, &launch));
    launch = (gpuhal_plugin_launch){.group_size = {1, 64, 1}, .threads = {1, 64, 1}};
    assert_true(gpuhal_launch_is_first(o.add, &launch));
    end(&o);
}

/* ---- threads */

TEST(a_number_of_threads_becomes_groups_and_may_leave_a_part_of_the_last)
{
    objects o = begin(EVERY_FORM);
    const uint32_t counts[] = {1, 7, 8, 9, 63, 64};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        assert_ok(try_launch(&o, (gpuhal_launch){.threads = {counts[i], 1, 1}}));
        assert_int_equal(last()->groups[0], (counts[i] + 7) / 8);
        assert_int_equal(last()->threads[0], counts[i]);
        expect_ones(&o, 0, counts[i]);
    }
    const int64_t launches = gpuhal_mock.devices[0].launches;
    assert_ok(try_launch(&o, (gpuhal_launch){.threads = {8, 0, 1}}));
    assert_int_equal(gpuhal_mock.devices[0].launches, launches);
    refused(try_launch(&o, (gpuhal_launch){.threads = {8, 1, 1}, .groups = {1, 1, 1}}), GPUHAL_ERROR_INVALID_ARGUMENT,
            "both groups and threads");
    refused(try_launch(&o, (gpuhal_launch){.threads = {8001, 1, 1}}), GPUHAL_ERROR_INVALID_ARGUMENT,
            "groups[0] is 1001");
    end(&o);
}

TEST(without_the_flag_the_threads_must_fill_their_groups)
{
    objects o = begin(0);
    assert_ok(try_launch(&o, (gpuhal_launch){.threads = {16, 1, 1}}));
    expect_ones(&o, 0, 16);
    assert_ok(try_launch(&o, (gpuhal_launch){.threads = {17, 0, 0}}));
    assert_int_equal(gpuhal_mock.devices[0].launches, 1);
    refused(try_launch(&o, (gpuhal_launch){.threads = {17, 1, 1}}), GPUHAL_ERROR_NOT_SUPPORTED,
            "threads[0] is 17, no multiple of the group size 8");
    end(&o);
}

/* ---- offsets */

TEST(an_offset_moves_the_groups_within_the_devices_limit)
{
    objects o = begin(EVERY_FORM);
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {2, 1, 1}, .offset = {3, 0, 0}}));
    assert_int_equal(last()->offset[0], 3);
    expect_ones(&o, 24, 16);
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {999, 9, 9}}));
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {1000, 0, 0}}), GPUHAL_ERROR_INVALID_ARGUMENT,
            "offset[0] is 1000");
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {UINT32_MAX, 0, 0}}),
            GPUHAL_ERROR_INVALID_ARGUMENT, "offset[0]");
    end(&o);
    o = begin(0);
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {0, 1, 0}}), GPUHAL_ERROR_NOT_SUPPORTED,
            "an offset");
    end(&o);
}

/* ---- groups in a buffer */

TEST(groups_are_read_from_a_buffer_when_the_launch_begins)
{
    objects o = begin(EVERY_FORM);
    gpuhal_buffer *groups = gpuhal_mock_buffer(o.gpu, 0, 32);
    const uint32_t numbers[3] = {2, 1, 1}, others[3] = {5, 1, 1};
    const gpuhal_launch launch = {.groups_buffer = groups, .groups_offset = 20};
    assert_ok(gpuhal_write(o.queue, groups, 20, numbers, sizeof numbers));
    assert_ok(try_launch(&o, launch));
    expect_ones(&o, 0, 16);
    assert_ok(gpuhal_write(o.queue, groups, 20, others, sizeof others));
    assert_ok(try_launch(&o, launch));
    expect_ones(&o, 0, 40);
    refused(try_launch(&o, (gpuhal_launch){.groups_buffer = groups, .groups_offset = 24}), GPUHAL_ERROR_OUT_OF_RANGE,
            "groups_buffer: 12 bytes from offset 24");
    refused(try_launch(&o, (gpuhal_launch){.groups_buffer = groups, .groups_offset = UINT64_MAX}),
            GPUHAL_ERROR_OUT_OF_RANGE, "groups_buffer");
    refused(try_launch(&o, (gpuhal_launch){.groups_buffer = groups, .groups_offset = 2}), GPUHAL_ERROR_INVALID_ARGUMENT,
            "not a multiple of 4");
    refused(try_launch(&o, (gpuhal_launch){.groups_buffer = groups, .groups = {1, 1, 1}}),
            GPUHAL_ERROR_INVALID_ARGUMENT, "must be 0");
    refused(try_launch(&o, (gpuhal_launch){.groups_buffer = groups, .offset = {1, 0, 0}}),
            GPUHAL_ERROR_INVALID_ARGUMENT, "must be 0");
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .groups_offset = 4}), GPUHAL_ERROR_INVALID_ARGUMENT,
            "groups_offset");
    gpuhal_buffer *foreign = gpuhal_mock_buffer(o.gpu, 1, 32);
    refused(try_launch(&o, (gpuhal_launch){.groups_buffer = foreign}), GPUHAL_ERROR_INVALID_ARGUMENT, "groups_buffer");
    gpuhal_buffer_release(foreign);
    gpuhal_buffer_release(groups);
    end(&o);
}

TEST(a_queue_keeps_the_buffer_of_the_groups)
{
    objects o = begin(EVERY_FORM);
    gpuhal_buffer *groups = gpuhal_mock_buffer(o.gpu, 0, 12);
    const uint32_t numbers[3] = {2, 1, 1}, one = 1;
    const gpuhal_argument arguments[] = {{.buffer = o.buffer}, {.value = &one, .bytes = sizeof one}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 2, .arguments = arguments, .groups_buffer = groups};
    assert_ok(gpuhal_write(NULL, groups, 0, numbers, sizeof numbers));
    gpuhal_mock.devices[0].hold_launches = 1;
    assert_ok(gpuhal_kernel_launch(o.queue, o.add, &launch));
    gpuhal_buffer_release(groups);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 2);
    gpuhal_mock.devices[0].hold_launches = 0;
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_ones(&o, 0, 16);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 1);
    end(&o);
}

TEST(without_the_flag_groups_in_a_buffer_are_refused)
{
    objects o = begin(0);
    refused(try_launch(&o, (gpuhal_launch){.groups_buffer = o.buffer}), GPUHAL_ERROR_NOT_SUPPORTED,
            "groups in a buffer");
    end(&o);
}

/* ---- optional buffers */

TEST(an_optional_buffer_may_be_null)
{
    const uint32_t one = 1;
    const gpuhal_argument none[] = {{.buffer = NULL}, {.value = &one, .bytes = sizeof one}};
    const gpuhal_argument wrong[] = {{.buffer = NULL, .offset = 4}, {.value = &one, .bytes = sizeof one}};
    objects o = begin(EVERY_FORM);
    assert_ok(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .arguments = none}));
    expect_ones(&o, 0, 0);
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .arguments = wrong}), GPUHAL_ERROR_INVALID_ARGUMENT,
            "both must be 0");
    gpuhal_kernel *plain = make_kernel(o.program, "add");
    const gpuhal_launch launch = {.size = sizeof launch, .argument_count = 2, .arguments = none, .groups = {1, 1, 1}};
    refused(gpuhal_kernel_launch(o.queue, plain, &launch), GPUHAL_ERROR_INVALID_ARGUMENT, "the parameter is a buffer");
    gpuhal_kernel_release(plain);
    end(&o);
    o = begin(0);
    refused(try_launch(&o, (gpuhal_launch){.groups = {1, 1, 1}, .arguments = none}), GPUHAL_ERROR_NOT_SUPPORTED,
            "each parameter needs a buffer");
    end(&o);
}

/* ---- recordings */

TEST(a_recorded_launch_has_its_form_in_each_run)
{
    objects o = begin(EVERY_FORM);
    const gpuhal_recording_desc desc = {.size = sizeof desc, .slot_count = 2};
    const uint32_t one = 1, numbers[3] = {1, 1, 1};
    const gpuhal_argument arguments[] = {{.buffer = o.buffer}, {.value = &one, .bytes = sizeof one}};
    const gpuhal_argument none[] = {{.buffer = NULL}, {.value = &one, .bytes = sizeof one}};
    gpuhal_buffer *groups = gpuhal_mock_buffer(o.gpu, 0, 12);
    gpuhal_recording *recording = NULL;
    gpuhal_launch launch = {.size = sizeof launch,
                            .argument_count = 2,
                            .arguments = arguments,
                            .group_size = {4},
                            .groups = {2, 1, 1},
                            .offset = {1, 0, 0}};
    assert_ok(gpuhal_write(NULL, groups, 0, numbers, sizeof numbers));
    assert_ok(gpuhal_recording_create(gpuhal_device_at(o.gpu, 0), &desc, &recording));
    gpuhal_launch none_behind = launch;
    none_behind.groups[0] = 0;
    none_behind.offset[0] = 1000;
    refused(gpuhal_recording_launch(recording, o.add, &none_behind, NULL), GPUHAL_ERROR_INVALID_ARGUMENT, "offset[0]");
    assert_ok(gpuhal_recording_launch(recording, o.add, &launch, NULL));
    assert_ok(gpuhal_recording_slot(recording, 0, 0, GPUHAL_SLOT_GROUPS));
    launch = (gpuhal_launch){.size = sizeof launch, .argument_count = 2, .arguments = none, .groups_buffer = groups};
    assert_ok(gpuhal_recording_launch(recording, o.add, &launch, NULL));
    refused(gpuhal_recording_slot(recording, 1, 1, GPUHAL_SLOT_GROUPS), GPUHAL_ERROR_INVALID_ARGUMENT,
            "its groups in a buffer");
    refused(gpuhal_recording_slot(recording, 1, 1, 0), GPUHAL_ERROR_INVALID_ARGUMENT, "is NULL");
    launch = (gpuhal_launch){.size = sizeof launch, .argument_count = 2, .arguments = none, .threads = {3, 1, 1}};
    assert_ok(gpuhal_recording_launch(recording, o.add, &launch, NULL));
    refused(gpuhal_recording_slot(recording, 1, 2, GPUHAL_SLOT_GROUPS), GPUHAL_ERROR_INVALID_ARGUMENT,
            "a number of threads");
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_buffer_release(groups); /* the recording keeps it */
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_ones(&o, 4, 8);
    assert_int_equal(last()->threads[0], 3);
    const gpuhal_slot_value more = {.groups = {999, 1, 1}}, most = {.groups = {1000, 1, 1}};
    assert_ok(gpuhal_recording_run(o.queue, recording, &more, 1));
    refused(gpuhal_recording_run(o.queue, recording, &most, 1), GPUHAL_ERROR_INVALID_ARGUMENT, "offset[0]");
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_ones(&o, 4, 60);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(an_older_program_without_the_new_members_launches_as_before)
{
    objects o = begin(EVERY_FORM);
    const uint32_t one = 1;
    const gpuhal_argument arguments[] = {{.buffer = o.buffer}, {.value = &one, .bytes = sizeof one}};
    gpuhal_launch launch = {.size = offsetof(gpuhal_launch, group_size),
                            .argument_count = 2,
                            .arguments = arguments,
                            .groups = {2, 1, 1},
                            .group_size = {99, 99, 99},
                            .reserved2 = 7};
    assert_ok(gpuhal_kernel_launch(o.queue, o.add, &launch));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_ones(&o, 0, 16);
    launch.size = sizeof launch;
    launch.group_size[0] = launch.group_size[1] = launch.group_size[2] = 0;
    refused(gpuhal_kernel_launch(o.queue, o.add, &launch), GPUHAL_ERROR_INVALID_ARGUMENT, "reserved2 is 7");
    end(&o);
}

#include "test_main.h"
