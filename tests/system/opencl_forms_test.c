/* Tests the forms of launches with OpenCL through the public API: group sizes, offsets, threads and optional buffers.
 * PoCL 3.1 has no groups of different sizes in one launch, so the fake library adds them. */
#include "launches.h"
#include "support/child.h"

#include <sys/wait.h>

enum { KERNEL_SIZE = 16, SIDE = 32, NUMBERS = SIDE * SIDE * SIDE, BYTES = 4 * NUMBERS };

static const char *const source =
    /* writes the size of the thread's group, at the thread's place in a cube */
    "__kernel void sizes(__global uint *to) {\n"
    "  size_t i = (get_global_id(2) * 32 + get_global_id(1)) * 32 + get_global_id(0);\n"
    "  to[i] += get_local_size(0) | get_local_size(1) << 8 | get_local_size(2) << 16; }\n"
    "__kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(__global uint *to) {\n"
    "  to[get_global_id(1) * 32 + get_global_id(0)] += 1; }\n"
    "__kernel void optional(__global uint *to, __global const uint *from) { to[get_global_id(0)] = from ? from[1] : "
    "77; }\n";

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_queue *queue;
    gpuhal_program *program;
    gpuhal_kernel *sizes, *fixed, *optional;
    gpuhal_buffer *to, *from;
} fixture;

static gpuhal_kernel *kernel_of(const fixture *f, const char *name, uint32_t parameters)
{
    static const gpuhal_parameter both[] = {
        {.kind = GPUHAL_PARAMETER_BUFFER},
        {.kind = GPUHAL_PARAMETER_BUFFER, .access = GPUHAL_ACCESS_READ, .flags = GPUHAL_PARAMETER_OPTIONAL}};
    const bool is_fixed = strcmp(name, "fixed") == 0;
    const gpuhal_kernel_desc desc = {.size = sizeof desc,
                                     .name = name,
                                     .parameters = both,
                                     .parameter_count = parameters,
                                     .group_size = {is_fixed ? 0 : KERNEL_SIZE, 0, 0}};
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_kernel_create(f->program, &desc, &kernel));
    return kernel;
}

static gpuhal_program *program_of(const fixture *f, const char *text, const char *options)
{
    const gpuhal_code code = {
        .size = sizeof code, .format = "opencl-c", .code = text, .bytes = strlen(text), .options = options};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &code, .code_count = 1};
    gpuhal_program *program = NULL;
    assert_ok(gpuhal_program_create(f->device, &desc, &program));
    return program;
}

static fixture open_device(const char *selector)
{
    fixture f = {0};
    f.gpu = open_or_fail(
        &(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "opencl", .isolation = GPUHAL_ISOLATION_NEVER});
    f.device = select_or_fail(f.gpu, selector);
    return f;
}

static fixture begin(const char *selector, const char *options)
{
    fixture f = open_device(selector);
    f.queue = queue_or_fail(f.device, 0);
    f.program = program_of(&f, source, options);
    f.sizes = kernel_of(&f, "sizes", 1);
    f.fixed = kernel_of(&f, "fixed", 1);
    f.optional = kernel_of(&f, "optional", 2);
    f.to = buffer_or_fail(f.device, GPUHAL_MEMORY_DEVICE, BYTES);
    f.from = buffer_or_fail(f.device, GPUHAL_MEMORY_DEVICE, 4096);
    return f;
}

static void end(fixture *f)
{
    gpuhal_kernel_release(f->sizes);
    gpuhal_kernel_release(f->fixed);
    gpuhal_kernel_release(f->optional);
    gpuhal_program_release(f->program);
    gpuhal_buffer_release(f->to);
    gpuhal_buffer_release(f->from);
    gpuhal_queue_destroy(f->queue);
    gpuhal_close(f->gpu);
}

static uint32_t *numbers_of(const fixture *f)
{
    static uint32_t numbers[NUMBERS];
    assert_ok(gpuhal_read(NULL, numbers, f->to, 0, BYTES));
    return numbers;
}

static gpuhal_status launch_sizes(const fixture *f, uint32_t path, gpuhal_launch launch)
{
    const gpuhal_argument argument = {.buffer = f->to};
    launch.size = sizeof launch;
    launch.argument_count = 1;
    launch.arguments = &argument;
    assert_ok(gpuhal_fill(NULL, f->to, 0, BYTES, 0, 4));
    return launch_on(path, f->device, f->queue, f->sizes, &launch);
}

/* Each thread of the box ran once, in a group of @p size, or in the smaller last group of a dimension. */
static void expect_box(const fixture *f, const uint32_t size[3], const uint32_t offset[3], const uint32_t threads[3])
{
    const uint32_t *numbers = numbers_of(f);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const uint32_t at[3] = {i % SIDE, i / SIDE % SIDE, i / SIDE / SIDE};
        uint32_t wanted = 0;
        bool is_inside = true;
        for (uint32_t d = 0; d < 3; d++) {
            const uint32_t index = at[d] - offset[d] * size[d], rest = threads[d] - index / size[d] * size[d];
            is_inside = is_inside && at[d] >= offset[d] * size[d] && index < threads[d];
            wanted |= (rest < size[d] ? rest : size[d]) << 8 * d;
        }
        assert_int_equal(numbers[i], is_inside ? wanted : 0);
    }
}

static const uint32_t nowhere[3];

static void launch_with_sizes(const char *selector)
{
    static const uint32_t all[][2][3] = {{{0, 0, 0}, {KERNEL_SIZE, 1, 1}},
                                         {{1, 1, 1}, {1, 1, 1}},
                                         {{15, 1, 1}, {15, 1, 1}},
                                         {{0, 4, 0}, {1, 4, 1}},
                                         {{4, 3, 2}, {4, 3, 2}}};
    fixture f = begin(selector, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint32_t *asked = all[i][0], *size = all[i][1];
        const gpuhal_launch launch = {.groups = {2, 3, 4}, .group_size = {asked[0], asked[1], asked[2]}};
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_ok(launch_sizes(&f, path, launch));
            expect_box(&f, size, nowhere, (uint32_t[]){2 * size[0], 3 * size[1], 4 * size[2]});
        }
    }
    end(&f);
}

TEST(basic_runs_groups_of_another_size_than_the_kernels)
{
    launch_with_sizes("opencl:0");
}

TEST(pthread_runs_groups_of_another_size_than_the_kernels)
{
    launch_with_sizes("opencl:1");
}

static void launch_with_offsets(const char *selector)
{
    static const uint32_t all[][2][3] = {{{1, 0, 0}, {16, 1, 1}}, {{0, 3, 0}, {16, 1, 1}}, {{1, 2, 3}, {4, 3, 2}}};
    fixture f = begin(selector, NULL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint32_t *offset = all[i][0], *size = all[i][1];
        const gpuhal_launch launch = {.groups = {1, 2, 3},
                                      .group_size = {size[0], size[1], size[2]},
                                      .offset = {offset[0], offset[1], offset[2]}};
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_ok(launch_sizes(&f, path, launch));
            expect_box(&f, size, offset, (uint32_t[]){size[0], 2 * size[1], 3 * size[2]});
        }
    }
    end(&f);
}

TEST(basic_counts_groups_from_the_offset_of_the_launch)
{
    launch_with_offsets("opencl:0");
}

TEST(pthread_counts_groups_from_the_offset_of_the_launch)
{
    launch_with_offsets("opencl:1");
}

static void launch_without_buffer(const char *selector)
{
    static const uint32_t numbers[] = {20, 3};
    fixture f = begin(selector, NULL);
    const gpuhal_argument with[] = {{.buffer = f.to}, {.buffer = f.from}}, without[] = {{.buffer = f.to}, {0}};
    gpuhal_launch launch = {.size = sizeof launch, .argument_count = 2, .groups = {1, 1, 1}};
    assert_ok(gpuhal_write(NULL, f.from, 0, numbers, sizeof numbers));
    for (uint32_t i = 0; i < 2 * PATHS; i++) {
        launch.arguments = i % 2 ? with : without;
        assert_ok(launch_on(i / 2, f.device, f.queue, f.optional, &launch));
        assert_int_equal(numbers_of(&f)[KERNEL_SIZE - 1], i % 2 ? 3 : 77);
    }
    end(&f);
}

TEST(basic_gives_a_kernel_a_null_pointer_for_a_buffer_that_the_launch_leaves_out)
{
    launch_without_buffer("opencl:0");
}

TEST(pthread_gives_a_kernel_a_null_pointer_for_a_buffer_that_the_launch_leaves_out)
{
    launch_without_buffer("opencl:1");
}

/* Sets the script that changes the driver's results. Skips the test if OpenCL is not installed. */
static void use_answers(const char *script)
{
    const char *library = getenv("GPUHAL_FAKE_OPENCL_LIBRARY");
    if (!library || access(library, R_OK)) {
        SKIP_TEST("there is no OpenCL library to build this on");
    }
    setenv("GPUHAL_OPENCL_LIBRARY", library, 1);
    setenv("GPUHAL_FAKE_OPENCL", script, 1);
}

TEST(memory_that_only_the_device_sees_may_be_left_out_too)
{
    use_answers("svm=0");
    launch_without_buffer("opencl:0");
    launch_without_buffer("opencl:1");
}

/* ---- threads */

static uint32_t flags_of(const gpuhal_kernel *kernel)
{
    gpuhal_kernel_info info = {.size = sizeof info};
    assert_ok(gpuhal_kernel_get_info(kernel, &info));
    return info.flags;
}

TEST(the_last_group_may_be_smaller_if_device_and_program_allow_it)
{
    static const uint32_t all[][3][3] = {{{15, 1, 1}, {16, 1, 1}},
                                         {{17, 2, 1}, {16, 1, 1}},
                                         {{32, 1, 1}, {16, 1, 1}},
                                         {{5, 7, 3}, {2, 3, 2}, {2, 1, 3}}};
    use_answers("ragged=1");
    fixture f = begin("opencl:0", "-cl-std=CL2.0");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const uint32_t *threads = all[i][0], *size = all[i][1], *offset = all[i][2];
        const gpuhal_launch launch = {.threads = {threads[0], threads[1], threads[2]},
                                      .group_size = {size[0], size[1], size[2]},
                                      .offset = {offset[0], offset[1], offset[2]}};
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_ok(launch_sizes(&f, path, launch));
            expect_box(&f, size, offset, threads);
        }
    }
    end(&f);
}

/* @p of_device and @p of_kernel are the flags that not all devices and kernels have. */
static void expect_forms(const char *options, uint32_t of_device, uint32_t of_kernel)
{
    static const char *const text = "__kernel void plain(void) { }\n"
                                    "__kernel __attribute__((reqd_work_group_size(4, 2, 1))) void fixed(void) { }\n";
    const uint32_t all = GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_NULL_BUFFERS;
    fixture f = open_device("opencl:0");
    uint64_t forms = 0;
    f.program = program_of(&f, text, options);
    gpuhal_kernel *plain = kernel_of(&f, "plain", 0), *fixed = kernel_of(&f, "fixed", 0);
    assert_ok(gpuhal_device_u64(f.device, GPUHAL_FACT_LAUNCH_FORMS, &forms));
    assert_int_equal(forms, all | GPUHAL_KERNEL_GROUP_SIZE | of_device);
    assert_int_equal(flags_of(plain), all | GPUHAL_KERNEL_GROUP_SIZE | of_kernel);
    assert_int_equal(flags_of(fixed), all);
    gpuhal_kernel_release(plain);
    gpuhal_kernel_release(fixed);
    gpuhal_program_release(f.program);
    gpuhal_close(f.gpu);
}

TEST(each_kernel_states_whether_its_last_group_may_be_smaller)
{
    static const struct {
        const char *answers, *options;
        bool of_device, of_kernel;
    } all[] = {{"ragged=0", "-cl-std=CL2.0", false, false},
               {"ragged=1", "-cl-std=CL2.0", true, true},
               {"ragged=1", " -DX=1  -cl-std=CL3.0 ", true, true},
               {"ragged=1", NULL, true, false},
               {"ragged=1", "-cl-std=CL1.2", true, false},
               {"ragged=1", "-cl-std=CL2.0 -cl-uniform-work-group-size", true, false},
               {"platform=OpenCL 2.1 x", "-cl-std=CL2.0", true, true},
               {"platform=OpenCL 1.2 x;ragged=1", "-cl-std=CL2.0", false, false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const pid_t child = begin_child(); /* the plugin lists the devices once in a process */
        if (child == 0) {
            use_answers(all[i].answers);
            expect_forms(all[i].options, all[i].of_device ? GPUHAL_KERNEL_THREADS : 0u,
                         all[i].of_kernel ? GPUHAL_KERNEL_THREADS : 0u);
            _exit(0);
        }
        int state = -1;
        assert_int_equal(waitpid(child, &state, 0), child);
        assert_int_equal(state, 0);
    }
}

/* ---- refusals */

TEST(forms_that_the_kernel_does_not_have_are_refused_and_the_queue_goes_on)
{
    fixture f = begin("opencl:0", NULL);
    const gpuhal_argument argument = {.buffer = f.to}, one = {.buffer = NULL};
    const struct {
        gpuhal_kernel *kernel;
        gpuhal_launch launch;
        gpuhal_status status;
        const char *words;
    } all[] = {
        {f.fixed, {.groups = {1, 1, 1}, .group_size = {8, 1, 1}}, GPUHAL_ERROR_NOT_SUPPORTED, "fixes 4 x 2 x 1"},
        {f.fixed, {.threads = {5, 2, 1}}, GPUHAL_ERROR_NOT_SUPPORTED, "threads[0] is 5"},
        {f.sizes, {.threads = {17, 1, 1}}, GPUHAL_ERROR_NOT_SUPPORTED, "threads[0] is 17"},
        {f.sizes, {.groups_buffer = f.from}, GPUHAL_ERROR_NOT_SUPPORTED, "cannot have its groups in a buffer"},
        {f.sizes, {.groups = {1, 1, 1}, .group_size = {1u << 20, 1, 1}}, GPUHAL_ERROR_TOO_LARGE, "1048576"},
        {f.sizes, {.groups = {2, 1, 1}, .offset = {UINT32_MAX - 1, 0, 0}}, GPUHAL_ERROR_INVALID_ARGUMENT, "offset[0]"},
        {f.sizes,
         {.groups = {1, 1, 1}, .group_size = {32, 1, 1}, .offset = {UINT32_MAX / 32, 0, 0}},
         GPUHAL_ERROR_INVALID_ARGUMENT,
         "with those before the offset"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        gpuhal_launch launch = all[i].launch;
        launch.size = sizeof launch;
        launch.argument_count = 1;
        launch.arguments = &argument;
        for (uint32_t path = 0; path < PATHS; path++) {
            assert_int_equal(launch_on(path, f.device, f.queue, all[i].kernel, &launch), all[i].status);
            expect_sentence(all[i].words);
        }
    }
    const gpuhal_launch hollow = {.size = sizeof hollow, .argument_count = 1, .arguments = &one, .groups = {1, 1, 1}};
    assert_int_equal(gpuhal_kernel_launch(f.queue, f.sizes, &hollow), GPUHAL_ERROR_INVALID_ARGUMENT);
    const gpuhal_launch good = {.size = sizeof good,
                                .argument_count = 1,
                                .arguments = &argument,
                                .groups = {1, 1, 1},
                                .group_size = {4, 2, 0},
                                .offset = {1, 0, 0}};
    assert_ok(gpuhal_fill(NULL, f.to, 0, BYTES, 0, 4));
    assert_ok(launch_on(IN_QUEUE, f.device, f.queue, f.fixed, &good));
    assert_int_equal(numbers_of(&f)[4] + numbers_of(&f)[SIDE + 7], 2);
    end(&f);
}

#include "test_main.h"
