/* Tests the forms of launches on the CPU through the public API: group sizes, threads, offsets, groups in memory and
 * optional buffers. */
#include "launches.h"

enum { KERNEL_SIZE = 64, NUMBERS = 16384, BYTES = 4 * NUMBERS };

/* The members of a gpuhal_host_group, and the number of times that the group ran. */
typedef struct seen {
    uint32_t group[3], groups[3], group_size[3], offset[3], full_size[3], count;
} seen;

/* Writes each group's members to its own place. */
static void describe(void *const *arguments, const gpuhal_host_group *group)
{
    const uint64_t row =
        (uint64_t)(group->group[2] - group->offset[2]) * group->groups[1] + (group->group[1] - group->offset[1]);
    seen *out = (seen *)arguments[0] + row * group->groups[0] + (group->group[0] - group->offset[0]);
    memcpy(out->group, group->group, sizeof out->group);
    memcpy(out->groups, group->groups, sizeof out->groups);
    memcpy(out->group_size, group->group_size, sizeof out->group_size);
    memcpy(out->offset, group->offset, sizeof out->offset);
    memcpy(out->full_size, group->full_size, sizeof out->full_size);
    out->count++;
}

/* Adds 1 to the number of each thread, out[(z * 16 + y) * 16 + x]. */
static void count_threads(void *const *arguments, const gpuhal_host_group *group)
{
    uint32_t *out = arguments[0];
    for (uint32_t z = 0; z < group->group_size[2]; z++) {
        for (uint32_t y = 0; y < group->group_size[1]; y++) {
            for (uint32_t x = 0; x < group->group_size[0]; x++) {
                const uint32_t row =
                    (group->group[2] * group->full_size[2] + z) * 16 + group->group[1] * group->full_size[1] + y;
                out[row * 16 + group->group[0] * group->full_size[0] + x]++;
            }
        }
    }
}

/* Writes 7 groups, and 9 numbers that no launch uses. */
static void choose_groups(void *const *arguments, const gpuhal_host_group *group)
{
    static const uint32_t numbers[] = {9, 9, 9, 7, 1, 1, 9, 9, 9, 9, 9, 9};
    (void)group;
    memcpy(arguments[0], numbers, sizeof numbers);
}

/* out[0] is the sum of the other buffer's first two numbers, or 77 without this buffer. */
static void add_optional(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t *optional = arguments[1];
    (void)group;
    *(uint32_t *)arguments[0] = optional ? optional[0] + optional[1] : 77;
}

static const gpuhal_host_function functions[] = {{"describe", describe},
                                                 {"count_threads", count_threads},
                                                 {"choose_groups", choose_groups},
                                                 {"add_optional", add_optional},
                                                 {NULL, NULL}};

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_queue *queue;
    gpuhal_program *program;
    gpuhal_kernel *describe, *count_threads, *choose_groups, *add_optional;
    gpuhal_buffer *out, *numbers;
} fixture;

static gpuhal_kernel *kernel_of(const fixture *f, const char *name, uint32_t parameters, uint32_t group_size)
{
    static const gpuhal_parameter both[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                            {.kind = GPUHAL_PARAMETER_BUFFER, .flags = GPUHAL_PARAMETER_OPTIONAL}};
    const gpuhal_kernel_desc desc = {.size = sizeof desc,
                                     .name = name,
                                     .parameters = both,
                                     .parameter_count = parameters,
                                     .group_size = {group_size, 1, 1}};
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_kernel_create(f->program, &desc, &kernel));
    return kernel;
}

static fixture begin(void)
{
    const gpuhal_code code = {
        .size = sizeof code, .format = "host-function", .code = functions, .bytes = sizeof functions};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &code, .code_count = 1};
    fixture f = {.gpu = open_or_fail(&(gpuhal_config){
                     .size = sizeof(gpuhal_config), .backends = "cpu", .isolation = GPUHAL_ISOLATION_NEVER})};
    f.device = select_or_fail(f.gpu, "cpu:0");
    f.queue = queue_or_fail(f.device, 0);
    assert_ok(gpuhal_program_create(f.device, &desc, &f.program));
    f.describe = kernel_of(&f, "describe", 1, KERNEL_SIZE);
    f.count_threads = kernel_of(&f, "count_threads", 1, KERNEL_SIZE);
    f.choose_groups = kernel_of(&f, "choose_groups", 1, 1);
    f.add_optional = kernel_of(&f, "add_optional", 2, 1);
    f.out = buffer_or_fail(f.device, GPUHAL_MEMORY_DEVICE, BYTES);
    f.numbers = buffer_or_fail(f.device, GPUHAL_MEMORY_DEVICE, 64);
    return f;
}

static void end(fixture *f)
{
    gpuhal_kernel_release(f->describe);
    gpuhal_kernel_release(f->count_threads);
    gpuhal_kernel_release(f->choose_groups);
    gpuhal_kernel_release(f->add_optional);
    gpuhal_program_release(f->program);
    gpuhal_buffer_release(f->out);
    gpuhal_buffer_release(f->numbers);
    gpuhal_queue_destroy(f->queue);
    gpuhal_close(f->gpu);
}

static uint32_t *numbers_of(const fixture *f)
{
    static uint32_t numbers[NUMBERS];
    assert_ok(gpuhal_read(NULL, numbers, f->out, 0, BYTES));
    return numbers;
}

/* @p size is the group size that the launch has, and @p threads its number of threads. */
static void expect_groups(const fixture *f, const uint32_t size[3], const uint64_t threads[3], const uint32_t offset[3])
{
    const seen *at = (const seen *)(const void *)numbers_of(f), *const end = at + BYTES / sizeof *at;
    seen wanted = {.count = 1};
    uint32_t index[3];
    for (uint32_t i = 0; i < 3; i++) {
        wanted.groups[i] = (uint32_t)((threads[i] + size[i] - 1) / size[i]);
        wanted.offset[i] = offset[i];
        wanted.full_size[i] = size[i];
    }
    for (index[2] = 0; index[2] < wanted.groups[2]; index[2]++) {
        for (index[1] = 0; index[1] < wanted.groups[1]; index[1]++) {
            for (index[0] = 0; index[0] < wanted.groups[0]; index[0]++, at++) {
                for (uint32_t i = 0; i < 3; i++) {
                    const uint64_t rest = threads[i] - (uint64_t)index[i] * size[i];
                    wanted.group[i] = offset[i] + index[i];
                    wanted.group_size[i] = rest < size[i] ? (uint32_t)rest : size[i];
                }
                assert_true(at < end);
                assert_memory_equal(at, &wanted, sizeof wanted);
            }
        }
    }
    for (; at < end; at++) {
        assert_int_equal(at->count, 0);
    }
}

static void describe_on(const fixture *f, uint32_t path, gpuhal_launch launch)
{
    const gpuhal_argument argument = {.buffer = f->out};
    launch.size = sizeof launch;
    launch.argument_count = 1;
    launch.arguments = &argument;
    assert_ok(gpuhal_fill(NULL, f->out, 0, BYTES, 0, 4));
    assert_ok(launch_on(path, f->device, f->queue, f->describe, &launch));
}

TEST(the_forms_of_a_launch_are_those_of_the_device_and_of_each_kernel)
{
    fixture f = begin();
    const uint32_t all = GPUHAL_KERNEL_ADDS_LOCAL | GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_THREADS |
                         GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_INDIRECT | GPUHAL_KERNEL_NULL_BUFFERS;
    gpuhal_kernel_info info = {.size = sizeof info};
    uint64_t forms = 0;
    assert_ok(gpuhal_kernel_get_info(f.describe, &info));
    assert_int_equal(info.flags, all);
    assert_ok(gpuhal_device_u64(f.device, GPUHAL_FACT_LAUNCH_FORMS, &forms));
    assert_int_equal(forms, all);
    end(&f);
}

TEST(a_launch_can_have_another_group_size_than_its_kernel)
{
    static const struct {
        uint32_t asked[3], size[3];
    } all[] = {{{0, 0, 0}, {KERNEL_SIZE, 1, 1}}, {{KERNEL_SIZE, 1, 1}, {KERNEL_SIZE, 1, 1}},
               {{1, 1, 1}, {1, 1, 1}},           {{63, 1, 1}, {63, 1, 1}},
               {{65, 0, 0}, {65, 1, 1}},         {{0, 5, 0}, {1, 5, 1}},
               {{4, 3, 2}, {4, 3, 2}},           {{UINT32_MAX / 5, 1, 1}, {UINT32_MAX / 5, 1, 1}}};
    fixture f = begin();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (uint32_t path = 0; path < PATHS; path++) {
            const uint32_t *size = all[i].size;
            describe_on(&f, path,
                        (gpuhal_launch){.groups = {5, 3, 2},
                                        .group_size = {all[i].asked[0], all[i].asked[1], all[i].asked[2]}});
            expect_groups(&f, size, (uint64_t[]){5 * (uint64_t)size[0], 3 * (uint64_t)size[1], 2 * (uint64_t)size[2]},
                          (uint32_t[]){0, 0, 0});
        }
    }
    end(&f);
}

TEST(a_group_that_is_too_large_is_refused)
{
    static const uint32_t sizes[][3] = {{65536, 65536, 1}, {UINT32_MAX, 2, 1}, {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    fixture f = begin();
    const gpuhal_argument argument = {.buffer = f.out};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const gpuhal_launch launch = {.size = sizeof launch,
                                      .argument_count = 1,
                                      .arguments = &argument,
                                      .groups = {1, 1, 1},
                                      .group_size = {sizes[i][0], sizes[i][1], sizes[i][2]}};
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_int_equal(launch_on(path, f.device, f.queue, f.describe, &launch), GPUHAL_ERROR_TOO_LARGE);
        }
    }
    end(&f);
}

TEST(threads_that_are_no_whole_groups_make_the_last_group_smaller)
{
    static const struct {
        uint32_t threads[3], size[3];
    } all[] = {{{1, 1, 1}, {64, 1, 1}},   {{63, 1, 1}, {64, 1, 1}},   {{64, 1, 1}, {64, 1, 1}},
               {{65, 1, 1}, {64, 1, 1}},  {{127, 1, 1}, {64, 1, 1}},  {{128, 1, 1}, {64, 1, 1}},
               {{129, 1, 1}, {64, 1, 1}}, {{5, 7, 3}, {2, 3, 2}},     {{4, 7, 3}, {2, 7, 1}},
               {{1, 1, 5}, {8, 8, 4}},    {{100, 2, 1}, {1, 1, 1}},   {{UINT32_MAX, 1, 1}, {1u << 31, 1, 1}},
               {{1, 9, 1}, {1, 8, 1}},    {{17, 17, 1}, {16, 16, 1}}, {{UINT32_MAX, 2, 1}, {UINT32_MAX - 1, 1, 1}}};
    fixture f = begin();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint32_t *threads = all[i].threads, *size = all[i].size;
        for (uint32_t path = 0; path < PATHS; path++) {
            describe_on(&f, path,
                        (gpuhal_launch){.threads = {threads[0], threads[1], threads[2]},
                                        .group_size = {size[0], size[1], size[2]}});
            expect_groups(&f, size, (uint64_t[]){threads[0], threads[1], threads[2]}, (uint32_t[]){0, 0, 0});
        }
    }
    describe_on(&f, IN_QUEUE, (gpuhal_launch){.threads = {65, 1, 1}});
    expect_groups(&f, (uint32_t[]){KERNEL_SIZE, 1, 1}, (uint64_t[]){65, 1, 1}, (uint32_t[]){0, 0, 0});
    describe_on(&f, IN_QUEUE, (gpuhal_launch){.threads = {65, 0, 1}});
    assert_int_equal(((const seen *)(const void *)numbers_of(&f))->count, 0);
    end(&f);
}

TEST(groups_are_counted_from_the_offset_of_the_launch)
{
    static const struct {
        uint32_t groups[3], offset[3];
    } all[] = {{{4, 3, 2}, {3, 2, 1}},
               {{1, 1, 1}, {UINT32_MAX - 1, 65534, 65534}},
               {{3, 2, 1}, {UINT32_MAX - 3, 65533, 0}},
               {{2, 1, 5}, {1, 0, 65530}}};
    fixture f = begin();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint32_t *groups = all[i].groups, *offset = all[i].offset;
        for (uint32_t path = 0; path < PATHS; path++) {
            describe_on(&f, path,
                        (gpuhal_launch){.groups = {groups[0], groups[1], groups[2]},
                                        .offset = {offset[0], offset[1], offset[2]}});
            expect_groups(&f, (uint32_t[]){KERNEL_SIZE, 1, 1},
                          (uint64_t[]){groups[0] * KERNEL_SIZE, groups[1], groups[2]}, offset);
        }
    }
    static const uint32_t beyond[][3] = {{UINT32_MAX, 0, 0}, {0, 65535, 0}, {0, 0, 65535}, {0, 0, UINT32_MAX}};
    const gpuhal_argument argument = {.buffer = f.out};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        const gpuhal_launch launch = {.size = sizeof launch,
                                      .argument_count = 1,
                                      .arguments = &argument,
                                      .groups = {1, 1, 1},
                                      .offset = {beyond[i][0], beyond[i][1], beyond[i][2]}};
        assert_int_equal(launch_on(IN_QUEUE, f.device, f.queue, f.describe, &launch), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    end(&f);
}

/* A kernel that computes the index of its first thread works on the part of a grid that the launch names. */
TEST(size_threads_and_offset_together_choose_a_box_of_threads)
{
    fixture f = begin();
    const gpuhal_argument argument = {.buffer = f.out};
    const gpuhal_launch launch = {.size = sizeof launch,
                                  .argument_count = 1,
                                  .arguments = &argument,
                                  .group_size = {4, 3, 2},
                                  .threads = {6, 7, 5},
                                  .offset = {2, 1, 3}};
    for (uint32_t path = 0; path < PATHS; path++) {
        assert_ok(gpuhal_fill(NULL, f.out, 0, BYTES, 0, 4));
        assert_ok(launch_on(path, f.device, f.queue, f.count_threads, &launch));
        const uint32_t *numbers = numbers_of(&f);
        for (uint32_t i = 0; i < NUMBERS; i++) {
            const uint32_t x = i % 16, y = i / 16 % 16, z = i / 256;
            assert_int_equal(numbers[i], x >= 8 && x < 14 && y >= 3 && y < 10 && z >= 6 && z < 11);
        }
    }
    end(&f);
}

/* ---- groups in memory */

static gpuhal_launch from_memory(const fixture *f, const gpuhal_argument *argument, uint64_t offset)
{
    return (gpuhal_launch){.size = sizeof(gpuhal_launch),
                           .argument_count = 1,
                           .arguments = argument,
                           .group_size = {2, 1, 1},
                           .groups_buffer = f->numbers,
                           .groups_offset = offset};
}

static void expect_seven_groups(const fixture *f)
{
    expect_groups(f, (uint32_t[]){2, 1, 1}, (uint64_t[]){14, 1, 1}, (uint32_t[]){0, 0, 0});
}

TEST(a_kernel_of_the_queue_chooses_the_groups_of_the_next_launch)
{
    fixture f = begin();
    const gpuhal_argument out = {.buffer = f.out}, numbers = {.buffer = f.numbers};
    const gpuhal_launch first = {.size = sizeof first, .argument_count = 1, .arguments = &numbers, .groups = {1, 1, 1}},
                        next = from_memory(&f, &out, 12);
    for (int i = 0; i < 20; i++) {
        assert_ok(gpuhal_fill(f.queue, f.out, 0, BYTES, 0, 4));
        assert_ok(gpuhal_fill(f.queue, f.numbers, 0, 64, 0, 4));
        assert_ok(gpuhal_kernel_launch(f.queue, f.choose_groups, &first));
        assert_ok(gpuhal_kernel_launch(f.queue, f.describe, &next));
        assert_ok(gpuhal_fill(f.queue, f.numbers, 0, 64, UINT32_MAX, 4));
        assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
        expect_seven_groups(&f);
    }
    end(&f);
}

TEST(a_copy_of_the_queue_chooses_the_groups_of_the_next_launch)
{
    static const uint32_t numbers[] = {9, 7, 1, 1};
    fixture f = begin();
    const gpuhal_argument out = {.buffer = f.out};
    const gpuhal_launch next = from_memory(&f, &out, 4);
    assert_ok(gpuhal_fill(f.queue, f.out, 0, BYTES, 0, 4));
    assert_ok(gpuhal_write(f.queue, f.numbers, 0, numbers, sizeof numbers));
    assert_ok(gpuhal_kernel_launch(f.queue, f.describe, &next));
    assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
    expect_seven_groups(&f);
    assert_ok(gpuhal_fill(NULL, f.out, 0, BYTES, 0, 4));
    assert_ok(gpuhal_kernel_launch(NULL, f.describe, &next));
    expect_seven_groups(&f);
    end(&f);
}

TEST(each_run_of_a_recording_reads_the_groups_again)
{
    fixture f = begin();
    gpuhal_buffer *wanted = buffer_or_fail(f.device, GPUHAL_MEMORY_UPLOAD, 64);
    const gpuhal_argument out = {.buffer = f.out};
    const gpuhal_launch next = from_memory(&f, &out, 0);
    gpuhal_recording *recording = NULL;
    assert_ok(gpuhal_recording_create(f.device, NULL, &recording));
    assert_ok(gpuhal_recording_fill(recording, f.out, 0, BYTES, 0, 4));
    assert_ok(gpuhal_recording_copy(recording, f.numbers, 0, wanted, 0, 12));
    assert_ok(gpuhal_recording_launch(recording, f.describe, &next, NULL));
    assert_ok(gpuhal_recording_fill(recording, f.numbers, 0, 12, UINT32_MAX, 4));
    assert_ok(gpuhal_recording_finish(recording));
    for (uint32_t groups = 0; groups < 10; groups++) {
        const uint32_t numbers[] = {groups, 2, 3};
        assert_ok(gpuhal_write(f.queue, wanted, 0, numbers, sizeof numbers));
        assert_ok(gpuhal_recording_run(f.queue, recording, NULL, 0));
        assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
        expect_groups(&f, (uint32_t[]){2, 1, 1}, (uint64_t[]){2 * groups, 2, 3}, (uint32_t[]){0, 0, 0});
    }
    gpuhal_recording_release(recording);
    gpuhal_buffer_release(wanted);
    end(&f);
}

TEST(no_group_runs_if_one_of_the_numbers_in_memory_is_0)
{
    static const uint32_t all[][3] = {
        {0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {0, 0, 0}, {0, UINT32_MAX, UINT32_MAX}, {UINT32_MAX, 65536, 0}};
    fixture f = begin();
    const gpuhal_argument out = {.buffer = f.out};
    const gpuhal_launch launch = from_memory(&f, &out, 8);
    assert_ok(gpuhal_fill(NULL, f.out, 0, BYTES, 0, 4));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_ok(gpuhal_write(NULL, f.numbers, 8, all[i], sizeof all[i]));
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_ok(launch_on(path, f.device, f.queue, f.describe, &launch));
        }
    }
    assert_int_equal(((const seen *)(const void *)numbers_of(&f))->count, 0);
    end(&f);
}

/* The product of {2^31, 2^31, 4} has 64 zero bits at its end. */
TEST(numbers_in_memory_above_the_limits_fail_the_launch)
{
    static const uint32_t all[][3] = {
        {1, 65536, 1}, {1, 1, 65536}, {UINT32_MAX, UINT32_MAX, UINT32_MAX}, {1u << 31, 1u << 31, 4}, {65538, 65535, 1}};
    fixture f = begin();
    const gpuhal_argument out = {.buffer = f.out};
    const gpuhal_launch launch = from_memory(&f, &out, 0);
    assert_ok(gpuhal_fill(NULL, f.out, 0, BYTES, 0, 4));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char words[128];
        snprintf(words, sizeof words,
                 "the numbers of groups in memory are %u x %u x %u; a launch can have 4294967295 x 65535 x 65535, "
                 "and 4294967295 in all",
                 all[i][0], all[i][1], all[i][2]);
        assert_ok(gpuhal_write(NULL, f.numbers, 0, all[i], sizeof all[i]));
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_int_equal(launch_on(path, f.device, f.queue, f.describe, &launch), GPUHAL_ERROR_INVALID_ARGUMENT);
            expect_sentence(words);
            expect_sentence("kernel describe");
            if (path != WITHOUT_QUEUE) {
                assert_ok(gpuhal_queue_reset(f.queue, PATIENCE_NS));
            }
        }
    }
    assert_int_equal(((const seen *)(const void *)numbers_of(&f))->count, 0);
    assert_ok(gpuhal_write(NULL, f.numbers, 0, (uint32_t[]){7, 1, 1}, 12));
    assert_ok(launch_on(IN_QUEUE, f.device, f.queue, f.describe, &launch));
    expect_seven_groups(&f);
    end(&f);
}

/* ---- optional buffers */

TEST(a_kernel_gets_a_null_pointer_if_the_launch_has_no_optional_buffer)
{
    static const uint32_t numbers[] = {20, 3};
    fixture f = begin();
    const gpuhal_argument with[] = {{.buffer = f.out}, {.buffer = f.numbers}}, without[] = {{.buffer = f.out}, {0}};
    gpuhal_launch launch = {.size = sizeof launch, .argument_count = 2, .groups = {1, 1, 1}};
    assert_ok(gpuhal_write(NULL, f.numbers, 0, numbers, sizeof numbers));
    for (uint32_t i = 0; i < 2 * PATHS; i++) {
        launch.arguments = i % 2 ? with : without;
        assert_ok(launch_on(i / 2, f.device, f.queue, f.add_optional, &launch));
        assert_int_equal(numbers_of(&f)[0], i % 2 ? 23 : 77);
    }
    end(&f);
}

#include "test_main.h"
