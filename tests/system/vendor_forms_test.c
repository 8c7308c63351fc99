/* Tests the forms of launches with a vendor's plugin and its fake, through the public API: group sizes and optional
 * buffers. */
#include "launches.h"
#include "vendor.h"

enum { NUMBERS = 1024, BYTES = 4 * NUMBERS, KERNEL_SIZE = 64 };

static const gpuhal_parameter fill_parameters[] = {
    {.kind = GPUHAL_PARAMETER_BUFFER, .flags = GPUHAL_PARAMETER_OPTIONAL},
    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
    {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_queue *queue;
    gpuhal_program *program;
    gpuhal_kernel *fill;
    gpuhal_buffer *to;
    uint32_t value, count;
    gpuhal_argument arguments[3];
} fixture;

/* Makes @p f ready for launches of fill(to, value, count). */
static void begin(fixture *f, const char *machine)
{
    const gpuhal_code code = kernels_code();
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc fill = {.size = sizeof fill,
                                     .name = "fill",
                                     .parameters = fill_parameters,
                                     .parameter_count = 3,
                                     .group_size = {KERNEL_SIZE, 1, 1}};
    use_machine(machine);
    *f = (fixture){.gpu = open_backend(GPUHAL_ISOLATION_NEVER), .value = 7, .count = NUMBERS};
    f->device = select_or_fail(f->gpu, BACKEND ":0");
    f->queue = queue_or_fail(f->device, 0);
    assert_ok(gpuhal_program_create(f->device, &desc, &f->program));
    assert_ok(gpuhal_kernel_create(f->program, &fill, &f->fill));
    f->to = buffer_or_fail(f->device, GPUHAL_MEMORY_DEVICE, BYTES);
    f->arguments[0].buffer = f->to;
    f->arguments[1] = (gpuhal_argument){.value = &f->value, .bytes = 4};
    f->arguments[2] = (gpuhal_argument){.value = &f->count, .bytes = 4};
}

static void end(fixture *f)
{
    gpuhal_kernel_release(f->fill);
    gpuhal_program_release(f->program);
    gpuhal_buffer_release(f->to);
    gpuhal_queue_destroy(f->queue);
    close_clean(f->gpu);
}

static gpuhal_status launch_fill(fixture *f, uint32_t path, gpuhal_launch launch)
{
    launch.size = sizeof launch;
    launch.argument_count = 3;
    launch.arguments = f->arguments;
    return launch_on(path, f->device, f->queue, f->fill, &launch);
}

static uint32_t filled_numbers(const fixture *f)
{
    uint32_t numbers[NUMBERS], count = 0;
    assert_ok(gpuhal_read(NULL, numbers, f->to, 0, BYTES));
    while (count < NUMBERS && numbers[count] == f->value) {
        count++;
    }
    return count;
}

static const fake_launch *last_launch(void)
{
    const fake_report *report = fake_report_get();
    return &report->launched[(report->launches - 1) % FAKE_REPORT_LAUNCHES];
}

TEST(the_forms_of_a_launch_are_those_of_the_device_and_of_each_kernel)
{
    fixture f;
    begin(&f, "devices 1");
    const uint32_t all = GPUHAL_KERNEL_ADDS_LOCAL | GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_NULL_BUFFERS;
    gpuhal_kernel_info info = {.size = sizeof info};
    uint64_t forms = 0;
    assert_ok(gpuhal_kernel_get_info(f.fill, &info));
    assert_int_equal(info.flags, all);
    assert_ok(gpuhal_device_u64(f.device, GPUHAL_FACT_LAUNCH_FORMS, &forms));
    assert_int_equal(forms, all);
    end(&f);
}

/* In a recording the driver gets the size with the node of a graph. */
TEST(the_driver_gets_the_group_size_of_each_launch)
{
    static const uint32_t all[][2][3] = {{{0, 0, 0}, {KERNEL_SIZE, 1, 1}},
                                         {{KERNEL_SIZE, 0, 0}, {KERNEL_SIZE, 1, 1}},
                                         {{1, 0, 0}, {1, 1, 1}},
                                         {{65, 1, 1}, {65, 1, 1}},
                                         {{1024, 1, 1}, {1024, 1, 1}},
                                         {{4, 8, 32}, {4, 8, 32}},
                                         {{0, 0, 3}, {1, 1, 3}}};
    fixture f;
    begin(&f, "devices 1");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint32_t *asked = all[i][0], *size = all[i][1], threads = 2 * size[0] * size[1] * size[2];
        for (uint32_t path = 0; path < PATHS; path++) {
            const uint64_t graphs = calls_of(CALLED(GraphLaunch));
            assert_ok(gpuhal_fill(NULL, f.to, 0, BYTES, 0, 4));
            assert_ok(launch_fill(&f, path,
                                  (gpuhal_launch){.groups = {2, 1, 1}, .group_size = {asked[0], asked[1], asked[2]}}));
            assert_memory_equal(last_launch()->group_size, size, sizeof last_launch()->group_size);
            assert_int_equal(last_launch()->groups[0], 2);
            assert_int_equal(filled_numbers(&f), threads < NUMBERS ? threads : NUMBERS);
            assert_int_equal(calls_of(CALLED(GraphLaunch)) - graphs, path == IN_RECORDING);
        }
    }
    end(&f);
}

TEST(a_number_of_threads_must_be_whole_groups)
{
    fixture f;
    begin(&f, "devices 1");
    assert_ok(launch_fill(&f, IN_QUEUE, (gpuhal_launch){.threads = {96, 4, 1}, .group_size = {32, 2, 1}}));
    assert_int_equal(last_launch()->groups[0], 3);
    assert_int_equal(last_launch()->groups[1], 2);
    assert_int_equal(last_launch()->group_size[0], 32);
    assert_int_equal(launch_fill(&f, IN_QUEUE, (gpuhal_launch){.threads = {65, 1, 1}}), GPUHAL_ERROR_NOT_SUPPORTED);
    end(&f);
}

TEST(forms_that_no_kernel_has_are_refused_and_the_queue_goes_on)
{
    fixture f;
    begin(&f, "devices 1");
    const uint64_t launches = fake_report_get()->launches;
    const struct {
        gpuhal_launch launch;
        gpuhal_status status;
        const char *words;
    } all[] = {
        {{.groups = {1, 1, 1}, .offset = {0, 1, 0}}, GPUHAL_ERROR_NOT_SUPPORTED, "cannot have an offset"},
        {{.groups_buffer = f.to}, GPUHAL_ERROR_NOT_SUPPORTED, "cannot have its groups in a buffer"},
        {{.groups = {1, 1, 1}, .group_size = {1025, 1, 1}}, GPUHAL_ERROR_TOO_LARGE, "1025"},
        {{.groups = {1, 1, 1}, .group_size = {64, 32, 1}}, GPUHAL_ERROR_TOO_LARGE, "64 x 32 x 1"},
        {{.groups = {1, 1, 1}, .group_size = {1, 1, OF(65, 1025)}}, GPUHAL_ERROR_TOO_LARGE, "group_size[2]"},
        {{.groups = {1u << 23, 1, 1}, .group_size = {512, 1, 1}},
         GPUHAL_ERROR_INVALID_ARGUMENT,
         "8388608 groups of 512"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_int_equal(launch_fill(&f, path, all[i].launch), all[i].status);
            expect_sentence(all[i].words);
        }
    }
    assert_int_equal(fake_report_get()->launches, launches);
    assert_ok(launch_fill(&f, IN_QUEUE, (gpuhal_launch){.groups = {1, 1, 1}}));
    assert_int_equal(filled_numbers(&f), KERNEL_SIZE);
    end(&f);
}

/* The kernel does not use the address, because its count is 0. */
TEST(a_kernel_gets_the_address_0_for_a_buffer_that_the_launch_leaves_out)
{
    fixture f;
    begin(&f, "devices 1");
    for (uint32_t path = 0; path < PATHS; path++) {
        f.count = 0;
        f.arguments[0].buffer = NULL;
        assert_ok(launch_fill(&f, path, (gpuhal_launch){.groups = {1, 1, 1}}));
        assert_int_equal(last_launch()->argument_count, 3);
        assert_int_equal(last_launch()->arguments[0], 0);
        f.count = 5;
        f.arguments[0].buffer = f.to;
        assert_ok(gpuhal_fill(NULL, f.to, 0, BYTES, 0, 4));
        assert_ok(launch_fill(&f, path, (gpuhal_launch){.groups = {1, 1, 1}}));
        assert_true(last_launch()->arguments[0] != 0);
        assert_int_equal(filled_numbers(&f), 5);
    }
    end(&f);
}

#include "test_main.h"
