/* Tests the forms of launches on Vulkan through the public functions: other group sizes, offsets, and groups that are
 * read from a buffer. The driver is lavapipe, or the fake driver with push descriptors or with descriptor pools, as
 * GPUHAL_TEST_FAKE says (vulkan_program.h). */
#include "fake.h"
#include "queues.h"
#include "shaders/forms_spirv.h"
#include "shaders/saxpy_spirv.h"
#include "shaders/scale_spirv.h"

#include <gpuhal/recording.h>

#include <pthread.h>

enum { COUNT = 1024, OWN = 64, NUMBERS_AT = 20, NUMBERS_BYTES = NUMBERS_AT + 12 };

static const uint32_t fixed_forms = GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_INDIRECT,
                      forms = GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_INDIRECT | GPUHAL_KERNEL_GROUP_SIZE |
                              GPUHAL_KERNEL_PREPARED_SIZES;

/* Launches of saxpy add `factor` to the words of y, one word for each thread. The test adds the same to `wanted`. */
typedef struct fixture {
    bool faked;
    session s;
    gpuhal_queue *queue;
    gpuhal_kernel *saxpy, *scale;
    gpuhal_buffer *x, *y, *numbers; /* the numbers of groups are at NUMBERS_AT */
    float factor, wanted[COUNT];
    uint32_t count, more[80], multiplier; /* values of saxpy, and of scale */
    gpuhal_argument arguments[4];
} fixture;

static gpuhal_status make_kernel(const fixture *f, const uint32_t *words, size_t bytes, const gpuhal_kernel_desc *desc,
                                 gpuhal_kernel **out_kernel)
{
    const gpuhal_code code = {.size = sizeof code, .format = "spirv", .code = words, .bytes = bytes};
    const gpuhal_program_desc program_desc = {.size = sizeof program_desc, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc plain = {.size = sizeof plain, .name = "main"};
    gpuhal_program *program = NULL;
    assert_ok(gpuhal_program_create(f->s.device, &program_desc, &program));
    const gpuhal_status status = gpuhal_kernel_create(program, desc ? desc : &plain, out_kernel);
    gpuhal_program_release(program);
    return status;
}

static fixture *begin(void)
{
    static fixture f;
    const char *fake = getenv("GPUHAL_TEST_FAKE");
    float ones[COUNT];
    f = (fixture){.faked = fake != NULL, .factor = 1, .count = COUNT, .multiplier = 1};
    if (fake) {
        f.s = begin_session(strcmp(fake, "pools") == 0 ? "discrete;reorder;without=VK_KHR_push_descriptor"
                                                       : "discrete;reorder;slow_us=200");
    } else {
        f.s.gpu = open_fake(); /* with the driver of the environment */
        f.s.device = select_or_fail(f.s.gpu, "vulkan:0");
    }
    f.queue = queue_or_fail(f.s.device, 0);
    assert_ok(make_kernel(&f, saxpy_spirv, sizeof saxpy_spirv, NULL, &f.saxpy));
    assert_ok(make_kernel(&f, scale_spirv, sizeof scale_spirv, NULL, &f.scale));
    f.x = buffer_or_fail(f.s.device, GPUHAL_MEMORY_DEVICE, sizeof ones);
    f.y = buffer_or_fail(f.s.device, GPUHAL_MEMORY_DEVICE, sizeof ones);
    f.numbers = buffer_or_fail(f.s.device, GPUHAL_MEMORY_DEVICE, NUMBERS_BYTES);
    for (uint32_t i = 0; i < COUNT; i++) {
        ones[i] = 1;
    }
    assert_ok(gpuhal_write(NULL, f.x, 0, ones, sizeof ones));
    assert_ok(gpuhal_fill(NULL, f.y, 0, sizeof ones, 0, 4));
    assert_ok(gpuhal_fill(NULL, f.numbers, 0, NUMBERS_BYTES, 0, 4));
    f.arguments[0].buffer = f.x;
    f.arguments[1].buffer = f.y;
    f.arguments[2] = (gpuhal_argument){.value = &f.count, .bytes = 4};
    f.arguments[3] = (gpuhal_argument){.value = &f.factor, .bytes = 4};
    return &f;
}

static void end(fixture *f)
{
    gpuhal_queue_destroy(f->queue);
    gpuhal_kernel_release(f->saxpy);
    gpuhal_kernel_release(f->scale);
    gpuhal_buffer_release(f->x);
    gpuhal_buffer_release(f->y);
    gpuhal_buffer_release(f->numbers);
    gpuhal_close(f->s.gpu);
    if (f->faked) {
        fake_vulkan_expect_clean(&f->s.fake);
    }
}

static gpuhal_launch launch_of(fixture *f, gpuhal_launch form)
{
    form.size = sizeof form;
    form.argument_count = 4;
    form.arguments = f->arguments;
    return form;
}

static gpuhal_status launch(fixture *f, gpuhal_queue *queue, gpuhal_launch form)
{
    const gpuhal_launch complete = launch_of(f, form);
    return gpuhal_kernel_launch(queue, f->saxpy, &complete);
}

static void want(fixture *f, uint32_t first, uint32_t end_of)
{
    for (uint32_t i = first; i < end_of && i < COUNT; i++) {
        f->wanted[i] += f->factor;
    }
}

static void expect_wanted(const fixture *f)
{
    float found[COUNT];
    assert_ok(gpuhal_queue_synchronize(f->queue, PATIENCE_NS));
    assert_ok(gpuhal_read(NULL, found, f->y, 0, sizeof found));
    for (uint32_t i = 0; i < COUNT; i++) {
        if (found[i] < f->wanted[i] || found[i] > f->wanted[i]) {
            fail_msg("word %u is %f, should be %f", i, (double)found[i], (double)f->wanted[i]);
        }
    }
}

static uint32_t flags_of(const gpuhal_kernel *kernel)
{
    gpuhal_kernel_info info = {.size = sizeof info};
    assert_ok(gpuhal_kernel_get_info(kernel, &info));
    return info.flags;
}

TEST(only_code_that_leaves_its_group_size_open_has_other_sizes)
{
    fixture *f = begin();
    const gpuhal_constant constant = {.id = 0, .value = 32};
    const gpuhal_kernel_desc chosen = {.size = sizeof chosen, .name = "main", .group_size = {32}},
                             fixed = {
                                 .size = sizeof fixed, .name = "main", .constants = &constant, .constant_count = 1};
    gpuhal_kernel *kernel = NULL;
    uint64_t fact = 0;
    assert_ok(gpuhal_device_u64(f->s.device, GPUHAL_FACT_LAUNCH_FORMS, &fact));
    assert_int_equal(fact, forms);
    assert_int_equal(flags_of(f->saxpy), forms);
    assert_int_equal(flags_of(f->scale), fixed_forms);
    assert_ok(make_kernel(f, saxpy_spirv, sizeof saxpy_spirv, &chosen, &kernel));
    assert_int_equal(flags_of(kernel), forms);
    gpuhal_kernel_release(kernel);
    assert_ok(make_kernel(f, saxpy_spirv, sizeof saxpy_spirv, &fixed, &kernel));
    assert_int_equal(flags_of(kernel), fixed_forms);
    gpuhal_kernel_release(kernel);
    end(f);
}

TEST(prepared_sizes_are_used_beside_the_kernels_own)
{
    fixture *f = begin();
    for (uint32_t size = 8; size <= 128; size *= 2) {
        assert_ok(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){size, 0, 0}));
        assert_ok(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){size, 1, 1}));
    }
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t size = 8; size <= 128; size *= 2) {
            gpuhal_queue *queue = round == 1 ? NULL : f->queue;
            assert_ok(launch(f, queue, (gpuhal_launch){.groups = {3, 1, 1}, .group_size = {size}}));
            want(f, 0, 3 * size);
            assert_ok(launch(f, queue, (gpuhal_launch){.groups = {2, 1, 1}}));
            want(f, 0, 2 * OWN);
        }
        expect_wanted(f); /* launches without a queue are not in order with those of the queue */
    }
    end(f);
}

TEST(sizes_that_were_not_prepared_or_that_the_code_fixes_are_refused)
{
    fixture *f = begin();
    const gpuhal_launch small = {.groups = {1, 1, 1}, .group_size = {32}};
    expect_error(launch(f, f->queue, small), GPUHAL_ERROR_INVALID_ARGUMENT, "prepare");
    expect_error(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){32, 2, 1}), GPUHAL_ERROR_NOT_SUPPORTED,
                 "group_size[1] is 2");
    expect_error(gpuhal_kernel_prepare(f->scale, (uint32_t[3]){64, 1, 1}), GPUHAL_ERROR_NOT_SUPPORTED, "32 x 2 x 1");
    assert_ok(gpuhal_kernel_prepare(f->scale, (uint32_t[3]){32, 2, 1}));
    expect_error(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){1u << 20, 1, 1}), GPUHAL_ERROR_TOO_LARGE, "1048576");
    expect_error(launch(f, f->queue, small), GPUHAL_ERROR_INVALID_ARGUMENT, "prepare");
    assert_ok(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){32, 1, 1}));
    assert_ok(launch(f, f->queue, small));
    want(f, 0, 32);
    expect_wanted(f);
    end(f);
}

/* The words have 32 threads in a row and 64 rows in a slice. */
static void expect_block(gpuhal_buffer *words, const uint32_t first[3], const uint32_t end_of[3])
{
    static uint32_t found[32 * 64 * 4];
    assert_ok(gpuhal_read(NULL, found, words, 0, sizeof found));
    for (uint32_t i = 0; i < 32 * 64 * 4; i++) {
        const uint32_t at[3] = {i % 32, i / 32 % 64, i / (32 * 64)};
        bool inside = true;
        for (uint32_t d = 0; d < 3; d++) {
            inside = inside && at[d] >= first[d] && at[d] < end_of[d];
        }
        assert_int_equal(found[i], inside);
    }
}

TEST(offsets_count_in_groups_of_the_launched_size_in_each_dimension)
{
    fixture *f = begin();
    gpuhal_kernel *kernel = NULL;
    gpuhal_buffer *words = buffer_or_fail(f->s.device, GPUHAL_MEMORY_DEVICE, 32 * 64 * 4 * 4);
    const uint32_t width = 32;
    const gpuhal_argument arguments[] = {{.buffer = words}, {.value = &width, .bytes = 4}};
    gpuhal_launch one = {
        .size = sizeof one, .arguments = arguments, .argument_count = 2, .groups = {2, 1, 2}, .offset = {1, 2, 1}};
    assert_ok(make_kernel(f, forms_spirv, sizeof forms_spirv, NULL, &kernel)); /* groups of 8 x 1 x 1 */
    assert_ok(gpuhal_fill(f->queue, words, 0, 32 * 64 * 4 * 4, 0, 4));
    assert_ok(gpuhal_kernel_launch(f->queue, kernel, &one));
    assert_ok(gpuhal_queue_synchronize(f->queue, PATIENCE_NS));
    if (!f->faked) {
        expect_block(words, (uint32_t[3]){8, 2, 1}, (uint32_t[3]){24, 3, 3});
    }
    assert_ok(gpuhal_kernel_prepare(kernel, (uint32_t[3]){4, 16, 1}));
    memcpy(one.group_size, (uint32_t[3]){4, 16, 0}, sizeof one.group_size);
    assert_ok(gpuhal_fill(NULL, words, 0, 32 * 64 * 4 * 4, 0, 4));
    assert_ok(gpuhal_kernel_launch(NULL, kernel, &one));
    if (!f->faked) {
        expect_block(words, (uint32_t[3]){4, 32, 1}, (uint32_t[3]){12, 48, 3});
    }
    one.offset[0] = 0;
    assert_ok(gpuhal_fill(NULL, words, 0, 32 * 64 * 4 * 4, 0, 4));
    assert_ok(gpuhal_kernel_launch(NULL, kernel, &one));
    if (!f->faked) {
        expect_block(words, (uint32_t[3]){0, 32, 1}, (uint32_t[3]){8, 48, 3});
    }
    gpuhal_kernel_release(kernel);
    gpuhal_buffer_release(words);
    end(f);
}

TEST(offsets_are_in_order_with_other_launches_and_end_at_the_devices_limit)
{
    fixture *f = begin();
    gpuhal_kernel_info info = {.size = sizeof info};
    assert_ok(gpuhal_kernel_get_info(f->saxpy, &info));
    assert_ok(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){32, 1, 1}));
    for (uint32_t i = 0; i < 6; i++) {
        assert_ok(launch(f, f->queue, (gpuhal_launch){.groups = {2, 1, 1}, .offset = {i, 0, 0}}));
        want(f, i * OWN, (i + 2) * OWN);
        assert_ok(launch(f, f->queue, (gpuhal_launch){.groups = {3, 1, 1}, .offset = {i}, .group_size = {32}}));
        want(f, i * 32, (i + 3) * 32);
    }
    assert_ok(launch(f, f->queue, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {info.groups_max[0] - 1}}));
    expect_error(launch(f, f->queue, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {info.groups_max[0]}}),
                 GPUHAL_ERROR_INVALID_ARGUMENT, "offset[0]");
    expect_wanted(f);
    end(f);
}

TEST(group_memory_whose_length_is_the_group_size_limits_the_sizes)
{
    fixture *f = begin();
    gpuhal_kernel *kernel = NULL;
    gpuhal_kernel_info info = {.size = sizeof info};
    assert_ok(make_kernel(f, forms_spirv, sizeof forms_spirv, NULL, &kernel));
    assert_ok(gpuhal_kernel_get_info(kernel, &info));
    assert_int_equal(info.local_bytes, 8 * 64);
    if (info.local_max_bytes < 1024 * 64 && info.group_size_max >= 1024) {
        expect_error(gpuhal_kernel_prepare(kernel, (uint32_t[3]){1024, 1, 1}), GPUHAL_ERROR_TOO_LARGE, "65536 bytes");
    }
    assert_ok(gpuhal_kernel_prepare(kernel, (uint32_t[3]){32, 4, 1}));
    gpuhal_kernel_release(kernel);
    end(f);
}

/* ---- groups in a buffer */

static const gpuhal_launch from_numbers = {.groups_offset = NUMBERS_AT};

static gpuhal_status launch_from(fixture *f, gpuhal_queue *queue)
{
    gpuhal_launch form = from_numbers;
    form.groups_buffer = f->numbers;
    return launch(f, queue, form);
}

static void set_numbers(fixture *f, uint32_t x, uint32_t others)
{
    assert_ok(gpuhal_fill(f->queue, f->numbers, NUMBERS_AT, 12, others, 4));
    assert_ok(gpuhal_fill(f->queue, f->numbers, NUMBERS_AT, 4, x, 4));
}

/* Adds `added` to each word of the numbers. */
static void add_to_numbers(fixture *f, uint32_t added)
{
    f->more[76] = added;
    const gpuhal_argument arguments[] = {
        {.buffer = f->numbers}, {.value = f->more, .bytes = sizeof f->more}, {.value = &f->multiplier, .bytes = 4}};
    const gpuhal_launch one = {.size = sizeof one, .arguments = arguments, .argument_count = 3, .groups = {1, 1, 1}};
    assert_ok(gpuhal_kernel_launch(f->queue, f->scale, &one));
}

/* lavapipe keeps the offset of an earlier launch for groups that it reads. */
TEST(groups_in_a_buffer_begin_at_0_after_a_launch_with_an_offset)
{
    fixture *f = begin();
    set_numbers(f, 2, 1);
    assert_ok(launch(f, f->queue, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {5}}));
    want(f, 5 * OWN, 6 * OWN);
    assert_ok(launch_from(f, f->queue));
    want(f, 0, 2 * OWN);
    expect_wanted(f);
    end(f);
}

TEST(groups_are_read_after_the_queues_earlier_writes)
{
    fixture *f = begin();
    gpuhal_buffer *source = buffer_or_fail(f->s.device, GPUHAL_MEMORY_UPLOAD, 12);
    static const uint32_t five[3] = {5, 1, 1}, four[3] = {4, 1, 1};
    assert_ok(gpuhal_write(NULL, source, 0, five, sizeof five));
    for (uint32_t round = 0; round < 4; round++) {
        set_numbers(f, 2, 0);
        add_to_numbers(f, 1);
        assert_ok(launch_from(f, f->queue)); /* after a kernel: 3, 1, 1 */
        want(f, 0, 3 * OWN);
        assert_ok(gpuhal_fill(f->queue, f->numbers, NUMBERS_AT, 12, 1, 4));
        assert_ok(launch_from(f, f->queue));
        want(f, 0, OWN);
        assert_ok(gpuhal_copy(f->queue, f->numbers, NUMBERS_AT, source, 0, sizeof five));
        assert_ok(launch_from(f, f->queue));
        want(f, 0, 5 * OWN);
        assert_ok(gpuhal_write(f->queue, f->numbers, NUMBERS_AT, four, sizeof four));
        assert_ok(launch_from(f, f->queue));
        want(f, 0, 4 * OWN);
    }
    expect_wanted(f);
    gpuhal_buffer_release(source);
    end(f);
}

/* A kernel that follows a copy is ordered by a barrier that names no stage of indirect launches. The numbers are older
 * than this barrier. */
TEST(groups_that_were_written_before_an_earlier_barrier_are_read_too)
{
    fixture *f = begin();
    for (uint32_t round = 0; round < 4; round++) {
        set_numbers(f, 3 + round, 1);
        assert_ok(launch(f, f->queue, (gpuhal_launch){.groups = {1, 1, 1}}));
        want(f, 0, OWN);
        assert_ok(launch(f, f->queue, (gpuhal_launch){.groups = {1, 1, 1}}));
        want(f, 0, OWN);
        assert_ok(launch_from(f, f->queue));
        want(f, 0, (3 + round) * OWN);
        expect_wanted(f);
    }
    end(f);
}

TEST(numbers_may_be_overwritten_as_soon_as_the_launch_is_enqueued)
{
    fixture *f = begin();
    for (uint32_t groups = 1; groups <= 8; groups++) {
        set_numbers(f, groups, 1);
        assert_ok(launch_from(f, f->queue));
        want(f, 0, groups * OWN);
        if (groups % 2) {
            add_to_numbers(f, 100);
        }
    }
    set_numbers(f, 0, 1);
    assert_ok(launch_from(f, f->queue)); /* runs no group */
    expect_wanted(f);
    end(f);
}

TEST(groups_are_read_for_a_prepared_size_and_without_a_queue)
{
    fixture *f = begin();
    gpuhal_launch form = from_numbers;
    form.groups_buffer = f->numbers;
    form.group_size[0] = 16;
    assert_ok(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){16, 1, 1}));
    set_numbers(f, 7, 1);
    assert_ok(launch(f, f->queue, form));
    want(f, 0, 7 * 16);
    expect_wanted(f);
    assert_ok(launch(f, NULL, form));
    want(f, 0, 7 * 16);
    assert_ok(launch_from(f, NULL));
    want(f, 0, 7 * OWN);
    expect_wanted(f);
    end(f);
}

/* ---- recordings */

/* In each run the numbers are written, read, and overwritten. */
static gpuhal_recording *record(fixture *f, bool changes)
{
    const gpuhal_recording_desc desc = {.size = sizeof desc, .slot_count = changes ? 2 : 0};
    gpuhal_recording *recording = NULL;
    gpuhal_launch form = from_numbers;
    uint32_t step = 0;
    form.groups_buffer = f->numbers;
    const gpuhal_launch indirect = launch_of(f, form),
                        apart = launch_of(
                            f, (gpuhal_launch){.groups = {1, 1, 1}, .offset = {10, 0, 0}, .group_size = {32}});
    assert_ok(gpuhal_recording_create(f->s.device, &desc, &recording));
    assert_ok(gpuhal_recording_fill(recording, f->numbers, NUMBERS_AT, 12, 1, 4));
    assert_ok(gpuhal_recording_copy(recording, f->numbers, NUMBERS_AT, f->numbers, 0, 4));
    assert_ok(gpuhal_recording_launch(recording, f->saxpy, &indirect, &step));
    if (changes) {
        assert_ok(gpuhal_recording_slot(recording, 0, step, 3)); /* the factor */
    }
    assert_ok(gpuhal_recording_fill(recording, f->numbers, NUMBERS_AT, 12, 9, 4));
    assert_ok(gpuhal_recording_launch(recording, f->saxpy, &apart, &step));
    if (changes) {
        assert_ok(gpuhal_recording_slot(recording, 1, step, GPUHAL_SLOT_GROUPS));
    }
    assert_ok(gpuhal_recording_finish(recording));
    assert_string_equal(gpuhal_recording_form(recording), "driver");
    return recording;
}

static void run_recording(bool changes)
{
    fixture *f = begin();
    assert_ok(gpuhal_kernel_prepare(f->saxpy, (uint32_t[3]){32, 1, 1}));
    gpuhal_recording *recording = record(f, changes);
    for (uint32_t run = 0; run < 12; run++) {
        const uint32_t groups = 1 + run % 5;
        gpuhal_slot_value values[] = {{.slot = 0, .argument = {.value = &f->factor, .bytes = 4}},
                                      {.slot = 1, .groups = {groups, 1, 1}}};
        assert_ok(gpuhal_fill(f->queue, f->numbers, 0, 4, 1 + run, 4));
        f->factor = changes ? (float)(1 + run) : 1;
        assert_ok(gpuhal_recording_run(f->queue, recording, values, changes ? 2 : 0));
        want(f, 0, (1 + run) * OWN);
        f->factor = 1;
        want(f, 10 * 32, (10 + (changes ? groups : 1)) * 32);
        if (run % 4 == 3) {
            expect_wanted(f);
        }
    }
    expect_wanted(f);
    gpuhal_recording_release(recording);
    end(f);
}

TEST(runs_of_a_recording_read_the_numbers_of_their_time)
{
    run_recording(false);
}

TEST(runs_with_replaced_launches_read_the_numbers_of_their_time)
{
    run_recording(true);
}

/* ---- threads */

enum { THREADS = 4, SIZES = 24 };

static void *prepare_all(void *user)
{
    gpuhal_kernel *kernel = user;
    for (uint32_t i = 1; i <= SIZES; i++) {
        const uint32_t size[3] = {2 * i, 1, 1};
        if (gpuhal_kernel_prepare(kernel, size)) {
            return kernel;
        }
    }
    return NULL;
}

TEST(threads_prepare_the_same_sizes_while_the_kernel_is_launched)
{
    fixture *f = begin();
    pthread_t threads[THREADS];
    for (uint32_t t = 0; t < THREADS; t++) {
        assert_int_equal(pthread_create(&threads[t], NULL, prepare_all, f->saxpy), 0);
    }
    for (uint32_t i = 0; i < 200; i++) {
        const uint32_t size = 2 * (1 + i % SIZES);
        const gpuhal_status status =
            launch(f, f->queue, (gpuhal_launch){.groups = {1, 1, 1}, .group_size = {i % 2 ? size : 0}});
        if (status != GPUHAL_ERROR_INVALID_ARGUMENT) { /* not prepared yet */
            assert_ok(status);
            want(f, 0, i % 2 ? size : OWN);
        }
    }
    for (uint32_t t = 0; t < THREADS; t++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[t], &failed), 0);
        assert_null(failed);
    }
    for (uint32_t i = 1; i <= SIZES; i++) {
        assert_ok(launch(f, f->queue, (gpuhal_launch){.groups = {2, 1, 1}, .group_size = {2 * i}}));
        want(f, 0, 4 * i);
    }
    expect_wanted(f);
    end(f);
}

#include "test_main.h"
