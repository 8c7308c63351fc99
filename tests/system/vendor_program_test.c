/* Tests programs and kernels through the slots of a vendor's plugin, with its fake. Tests of the public functions are
 * in vendor_kernel_test.c. */
#include "bench.h"
#ifndef GPUHAL_CUDA_PLUGIN
#include "rocm_tree.h"
#endif

static const gpuhal_parameter saxpy_parameters[] = {
    {GPUHAL_PARAMETER_BUFFER, 0, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, 0},
    {GPUHAL_PARAMETER_BUFFER, 0, GPUHAL_ACCESS_READ, 0},
    {GPUHAL_PARAMETER_VALUE, 4, 0, 0},
    {GPUHAL_PARAMETER_VALUE, 4, 0, 0}};

static void expect_refused(const bench *with, gpuhal_status got, gpuhal_status wanted, const char *word)
{
    (void)gpuhal_direct_failed(with->plugin, got, "the call");
    if (got != wanted) {
        fail_msg("%s: %s", gpuhal_status_name(got), got ? gpuhal_last_error()->sentence : "");
    }
    expect_word(gpuhal_last_error()->sentence, word);
}

static void expect_kernel_refused(const bench *with, gpuhal_plugin_program *program, gpuhal_kernel_desc desc,
                                  gpuhal_status wanted, const char *word)
{
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    expect_refused(with, kernel_with(with, program, &desc, &info, &kernel), wanted, word);
    assert_null(kernel);
}

/* ---- programs */

/* The target of an AMD device is in the kernel's files. For CUDA the plugin queries the driver. */
static bench begin_with_target(const char *machine)
{
    bench out;
    use_machine(machine);
#ifndef GPUHAL_CUDA_PLUGIN
    make_tree();
    put("sys/class/kfd/kfd/topology/nodes/1/properties",
        "simd_count 304\ngfx_target_version 90402\nlocation_id 4352\ndomain 0\n");
#endif
    begin(&out, 1);
    return out;
}

static void end_with_target(bench *with)
{
    end_clean(with);
#ifndef GPUHAL_CUDA_PLUGIN
    remove_tree();
#endif
}

TEST(code_for_a_target_that_the_device_does_not_run_is_refused_with_both_names)
{
    static const struct {
        const char *format, *target;
        bool runs; /* on sm_86, or gfx942 */
    } all[] = {
#ifdef GPUHAL_CUDA_PLUGIN
        {"ptx", NULL, true},          {"ptx", "sm_50", true},      {"ptx", "compute_86", true},
        {"ptx", "sm_87", false},      {"ptx", "sm_90", false},     {"ptx", "sm_80a", false},
        {"ptx", "sm_86a", true},      {"ptx", "sm_80f", true},     {"ptx", "sm_75f", false},
        {"ptx", "gfx942", false},     {"ptx", "sm_", false},       {"ptx", "sm_86ab", false},
        {"ptx", "compute_90", false}, {"ptx", "sm_86b", false},    {"cubin", "sm_90", false},
        {"cubin", "sm_75", false},    {"cubin", "sm_87", false},   {"cubin", "sm_80a", false},
        {"fatbin", "sm_90", false},   {"fatbin", "sm_86 ", false},
#else
        {"hsaco", NULL, true},
        {"hsaco", "gfx942", true},
        {"hsaco", "gfx942:sramecc+:xnack-", true},
        {"hsaco", "gfx90a", false},
        {"hsaco", "gfx94", false},
        {"hsaco", "gfx90a:xnack-", false},
        {"hsaco", "gfx9420", false},
        {"hsaco", "sm_86", false},
        {"hsaco", "gfx9-4-generic", true},
        {"hip-fatbin", "gfx1100", false},
#endif
    };
    bench with = begin_with_target(OF("devices 1; attribute 0 75 8; attribute 0 76 6", "devices 1"));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        gpuhal_code code = kernels_code();
        gpuhal_plugin_program *program = NULL;
        char words[96];
        code.format = all[i].format;
        code.target = all[i].target;
        const gpuhal_status status = load_with(&with, &code, &program);
        if (all[i].runs) {
            expect_fine(status, &with, all[i].target ? all[i].target : "no target");
            with.ops.programs->program_unload(program);
            continue;
        }
        snprintf(words, sizeof words, "the code is for %s, and the device is " OF("sm_86", "gfx942"), all[i].target);
        expect_refused(&with, status, GPUHAL_ERROR_INCOMPATIBLE, words);
        assert_null(program);
    }
    end_with_target(&with);
}

TEST(code_that_the_driver_has_no_use_for_is_refused_with_the_target_and_its_code)
{
    bench with = begin_with_target("devices 1; fail " OF("cuModuleLoadDataEx", "hipModuleLoadData") " 1 209");
    gpuhal_code code = kernels_code();
    gpuhal_plugin_program *program = NULL;
    code.target = OF("sm_50", "gfx942:xnack+");
    expect_refused(&with, load_with(&with, &code, &program), GPUHAL_ERROR_INCOMPATIBLE,
                   OF("the code for sm_50 has nothing for the device, which is sm_90",
                      "the code for gfx942:xnack+ has nothing for the device, which is gfx942"));
    assert_int_equal(gpuhal_last_error()->vendor_code, 209);
    end_with_target(&with);
}

TEST(formats_are_listed_best_first_and_others_are_refused)
{
    gpuhal *gpu;
    use_machine("devices 1");
    gpu = open_backend(0);
    assert_string_equal(gpuhal_device_formats(select_or_fail(gpu, BACKEND ":0")),
                        OF("cubin fatbin ptx", "hsaco hip-fatbin"));
    gpuhal_close(gpu);
    static const char *const others[] = {"spirv", "opencl-c", "hip_fatbin", "", "pt", "ptx ", "cubin fatbin"};
    bench with;
    begin(&with, 1);
    gpuhal_code code = kernels_code();
    gpuhal_plugin_program *program = NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        code.format = others[i];
        expect_refused(&with, load_with(&with, &code, &program), GPUHAL_ERROR_NOT_SUPPORTED,
                       OF("CUDA loads cubin fatbin ptx, not", "HIP loads hsaco hip-fatbin, not"));
    }
    end_clean(&with);
}

TEST(an_unknown_option_of_the_compiler_is_named)
{
    bench with = begin_on("devices 1", 1);
    gpuhal_code code = kernels_code();
    gpuhal_plugin_program *program = NULL;
    code.options = " -DTILE=16 -g";
    expect_refused(&with, load_with(&with, &code, &program), GPUHAL_ERROR_INVALID_ARGUMENT,
                   "the option \"-DTILE=16\" is unknown");
    code.options = "  ";
    expect_fine(load_with(&with, &code, &program), &with, "only blanks");
    with.ops.programs->program_unload(program);
    end_clean(&with);
}

TEST(only_the_driver_keeps_the_code_that_it_compiles)
{
    bench with = begin_on("devices 1", 1);
    assert_null(with.ops.programs->program_compiled);
    end_clean(&with);
}

/* ---- kernels */

TEST(a_kernel_states_the_values_that_the_driver_reports)
{
    bench with = begin_on("devices 1", 1);
    gpuhal_plugin_program *program = load_kernels(&with);
    gpuhal_kernel_desc desc = kernel_desc("add");
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    desc.group_size[0] = 16;
    desc.group_size[1] = 8;
    expect_fine(kernel_with(&with, program, &desc, &info, &kernel), &with, "kernel_create");
    assert_int_equal(info.parameter_count, 4);
    assert_ptr_not_equal(info.parameters, add_parameters);
    assert_memory_equal(info.parameters, add_parameters, sizeof add_parameters);
    assert_int_equal(info.group_size[0], 16);
    assert_int_equal(info.group_size[1], 8);
    assert_int_equal(info.group_size[2], 1);
    assert_int_equal(info.group_size_max, 1024);
    assert_int_equal(info.group_multiple, OF(32, 64));
    assert_int_equal(info.subgroup_size, OF(32, 64));
    assert_int_equal(info.registers, 24);
    assert_int_equal(info.private_bytes, 16);
    assert_int_equal(info.local_bytes, OF(1024, 0));
    assert_int_equal(info.local_max_bytes, OF(232448, 65536));
    assert_int_equal(info.groups_max[0], OF(2147483647u, 4294967295u / 16));
    assert_int_equal(info.groups_max[1], OF(65535, 65536));
    with.ops.programs->kernel_destroy(kernel);
    with.ops.programs->program_unload(program);
    end_clean(&with);
}

TEST(a_description_that_the_device_cannot_follow_is_refused)
{
    bench with = begin_on("devices 1", 1);
    gpuhal_plugin_program *program = load_kernels(&with);
    gpuhal_kernel_desc desc = kernel_desc("fill");
    memset(desc.group_size, 0, sizeof desc.group_size);
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_INVALID_ARGUMENT, "does not report a size of groups");
    desc = kernel_desc("fill");
    desc.group_size[0] = 1025;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_TOO_LARGE, "1025 x 1 x 1 threads");
    desc.group_size[0] = desc.group_size[1] = desc.group_size[2] = UINT32_MAX;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_TOO_LARGE, "is larger than the 1024");
    desc = kernel_desc("fill");
    desc.subgroup_size = OF(64, 32);
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_NOT_SUPPORTED, "subgroups have " OF("32", "64"));
    desc = kernel_desc("fill");
    desc.parameters = NULL;
    desc.parameter_count = 0;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_NOT_SUPPORTED, "the description must list them");
    expect_kernel_refused(&with, program, kernel_desc("absent"), GPUHAL_ERROR_NOT_FOUND, "no kernel absent");
    desc = kernel_desc("fill");
    desc.subgroup_size = OF(32, 64);
    desc.constants = &(gpuhal_constant){.id = 1, .value = 2};
    desc.constant_count = 1;
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    expect_fine(kernel_with(&with, program, &desc, &info, &kernel), &with, "with a constant, which is ignored");
    with.ops.programs->kernel_destroy(kernel);
    with.ops.programs->program_unload(program);
    end_clean(&with);
}

TEST(a_limit_of_the_code_itself_is_the_kernels)
{
    bench with = begin_on("devices 1", 1);
    gpuhal_code code = kernels_code();
    gpuhal_plugin_program *program = NULL;
#ifdef GPUHAL_CUDA_PLUGIN
    static const char small[] = ".version 7.0\n.target sm_70\n.visible .entry fill(.param .u64 a, .param .u32 b, "
                                ".param .u32 c)\n.maxntid 128, 1, 1\n{\n ret;\n}\n";
    code.code = small;
    code.bytes = sizeof small;
#else
    char *text = (char *)(uintptr_t)code.code + 64;
    strcat(text, ".threads 128\n.shared 1024\n");
#endif
    expect_fine(load_with(&with, &code, &program), &with, "program_load");
    gpuhal_kernel_desc desc = kernel_desc("fill");
    desc.group_size[0] = 129;
    expect_kernel_refused(&with, program, desc, GPUHAL_ERROR_TOO_LARGE, "larger than the 128 that its code can have");
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    desc.group_size[0] = 128;
    expect_fine(kernel_with(&with, program, &desc, &info, &kernel), &with, "kernel_create");
    assert_int_equal(info.group_size_max, 128);
    assert_int_equal(info.local_bytes, OF(0, 1024));
    with.ops.programs->kernel_destroy(kernel);
    with.ops.programs->program_unload(program);
    end_clean(&with);
}

/* The driver does not report the parameters of functions, and may not report their attributes. Kernels can be created,
 * but their parameters are not checked. */
static void expect_made(bench *with)
{
    gpuhal_plugin_program *program = load_kernels(with);
    gpuhal_kernel_desc desc = kernel_desc("fill");
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    expect_fine(kernel_with(with, program, &desc, &info, &kernel), with, "kernel_create");
    assert_int_equal(info.group_size_max, 1024);
    desc.parameters = NULL;
    desc.parameter_count = 0;
    expect_kernel_refused(with, program, desc, GPUHAL_ERROR_NOT_SUPPORTED, "the description must list them");
    with->ops.programs->kernel_destroy(kernel);
    with->ops.programs->program_unload(program);
    end_clean(with);
}

TEST(a_driver_that_reports_little_of_functions_runs_them_all_the_same)
{
    use_machine("devices 1");
    OF(use_libraries("old/"), use_runtime("old/", 5));
    bench with;
    begin(&with, 1);
    expect_made(&with);
}

/* Simulates ZLUDA and chipStar. */
TEST(a_descriptive_value_is_missing_if_the_driver_answers_not_supported)
{
    bench with =
        begin_on("devices 1; fail " OF("cuFuncGetAttribute", "hipFuncGetAttribute") " 1+ 801"
                 OF("; fail cuFuncSetAttribute 1+ 801; fail cuFuncLoad 1+ 801; fail cuFuncGetParamInfo 1+ 801", ""), 1);
    expect_made(&with);
}

/* Simulates chipStar. */
TEST(a_kernel_that_the_driver_does_not_find_costs_no_device_for_any_code)
{
    bench with = begin_on("devices 1; fail " CALLED(ModuleGetFunction) " 1 719", 1);
    gpuhal_plugin_program *program = load_kernels(&with);
    expect_kernel_refused(&with, program, kernel_desc("fill"), GPUHAL_ERROR_NOT_FOUND,
                          "the program has no kernel fill");
    assert_int_equal(gpuhal_last_error()->vendor_code, 719);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    with.ops.programs->kernel_destroy(kernel_of(&with, program, "fill"));
    with.ops.programs->program_unload(program);
    end_clean(&with);
}

TEST(a_lookup_on_a_device_that_is_lost_says_that_the_device_is_lost)
{
    bench with =
        begin_on("devices 1; fail " CALLED(ModuleGetFunction) " 1 719; lose 0 " CALLED(MemGetInfo) " 1 719", 1);
    gpuhal_plugin_program *program = load_kernels(&with);
    expect_kernel_refused(&with, program, kernel_desc("fill"), GPUHAL_ERROR_DEVICE_LOST, "719");
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_ERROR_DEVICE_LOST);
    with.ops.programs->program_unload(program);
    end(&with);
    remove_reports();
}

/* ---- launches */

static const fake_launch *last_launch(void)
{
    const fake_report *report = fake_report_get();
    assert_true(report->launches > 0);
    return &report->launched[(report->launches - 1) % FAKE_REPORT_LAUNCHES];
}

TEST(a_launch_reaches_the_driver_as_it_was_described)
{
    bench with = begin_on("devices 1", 1);
    gpuhal_memory y = allocate(&with, 0, (gpuhal_alloc){.bytes = 4096}),
                  x = allocate(&with, 0, (gpuhal_alloc){.bytes = 4096});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_program *program = load_kernels(&with);
    gpuhal_parameter parameters[5] = {[0] = saxpy_parameters[0], [1] = {.kind = GPUHAL_PARAMETER_LOCAL}};
    memcpy(&parameters[2], &saxpy_parameters[1], 3 * sizeof *parameters);
    gpuhal_kernel_desc desc = {
        .size = sizeof desc, .name = "saxpy", .parameters = parameters, .parameter_count = 5, .group_size = {16, 4, 2}};
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    expect_fine(kernel_with(&with, program, &desc, &info, &kernel), &with, "kernel_create");
    const float a = 2.0f;
    const uint32_t n = 32;
    const gpuhal_plugin_argument arguments[] = {memory_argument(&y, 16),
                                                {.kind = GPUHAL_PARAMETER_LOCAL, .bytes = 100},
                                                memory_argument(&x, 32),
                                                value_argument(&a, sizeof a),
                                                value_argument(&n, sizeof n)};
    const gpuhal_memory *used[] = {&x};
    const gpuhal_plugin_launch how = {.size = sizeof how,
                                      .arguments = arguments,
                                      .argument_count = 5,
                                      .groups = {3, 2, 1},
                                      .group_size = {16, 4, 2},
                                      .threads = {48, 8, 2},
                                      .local_bytes = 28,
                                      .uses = used,
                                      .uses_count = 1};
    expect_fine(with.ops.programs->launch(queue, kernel, &how), &with, "launch");
    finish(&with, queue);
    const fake_launch *got = last_launch();
    static const uint32_t groups[] = {3, 2, 1}, size[] = {16, 4, 2};
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    assert_string_equal(got->name, "saxpy");
    assert_memory_equal(got->groups, groups, sizeof groups);
    assert_memory_equal(got->group_size, size, sizeof size);
    assert_int_equal(got->shared_bytes, 128);
    assert_int_equal(got->argument_count, 4);
    assert_int_equal(got->arguments[0], y.address + 16);
    assert_int_equal(got->arguments[1], x.address + 32);
    assert_int_equal(got->arguments[2], bits);
    assert_int_equal(got->arguments[3], n);
    with.ops.programs->kernel_destroy(kernel);
    with.ops.programs->program_unload(program);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &x);
    with.ops.release(with.devices[0], &y);
    end_clean(&with);
}

/* The objects of a launch of `fill`, which most tests use. */
typedef struct filled {
    gpuhal_memory memory;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *kernel;
    uint32_t value, count;
    gpuhal_plugin_argument arguments[3];
    gpuhal_plugin_launch how;
} filled;

static void make_fill(const bench *with, filled *out)
{
    out->memory = allocate(with, 0, (gpuhal_alloc){.bytes = 256});
    out->program = load_kernels(with);
    out->kernel = kernel_of(with, out->program, "fill");
    out->value = 7;
    out->count = 64;
    out->arguments[0] = memory_argument(&out->memory, 0);
    out->arguments[1] = value_argument(&out->value, 4);
    out->arguments[2] = value_argument(&out->count, 4);
    out->how = (gpuhal_plugin_launch){.size = sizeof out->how,
                                      .arguments = out->arguments,
                                      .argument_count = 3,
                                      .groups = {1, 1, 1},
                                      .group_size = {64, 1, 1},
                                      .threads = {64, 1, 1}};
}

static void end_fill(const bench *with, filled *own)
{
    with->ops.programs->kernel_destroy(own->kernel);
    with->ops.programs->program_unload(own->program);
    with->ops.release(with->devices[0], &own->memory);
}

TEST(a_launch_without_a_queue_returns_when_the_kernel_has_ended)
{
    bench with = begin_on("devices 1; slow_us 100000", 1);
    filled own;
    uint32_t got[64] = {0};
    make_fill(&with, &own);
    expect_fine(with.ops.programs->launch(NULL, own.kernel, &own.how), &with, "launch");
    own.value = 9;
    expect_fine(with.ops.read(with.devices[0], NULL, got, &own.memory, 0, sizeof got), &with, "read");
    assert_int_equal(got[0] + got[63], 14);
    end_fill(&with, &own);
    end_clean(&with);
}

static uint64_t all_calls(void)
{
    const fake_report *report = fake_report_get();
    uint64_t sum = 0;
    for (unsigned i = 0; i < FAKE_REPORT_FUNCTIONS; i++) {
        sum += report->functions[i].calls;
    }
    return sum;
}

TEST(a_launch_makes_no_more_calls_of_the_driver_than_a_fill)
{
    bench with = begin_on("devices 1", 1);
    filled own;
    make_fill(&with, &own);
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    own.how.local_bytes = 60000; /* more than CUDA allows by default */
    const uint64_t before = all_calls();
    expect_fine(with.ops.programs->launch(queue, own.kernel, &own.how), &with, "launch");
    const uint64_t launched = all_calls();
    expect_fine(with.ops.fill(with.devices[0], queue, &own.memory, 0, 256, 1, 4), &with, "fill");
    assert_true(launched - before <= all_calls() - launched);
    finish(&with, queue);
    with.ops.queues->queue_destroy(queue);
    end_fill(&with, &own);
    end_clean(&with);
}

TEST(a_launch_that_the_driver_refuses_leaves_queue_and_device_usable)
{
    bench with = begin_on("devices 1; fail " OF("cuLaunchKernel", "hipModuleLaunchKernel") " 1 701", 1);
    filled own;
    make_fill(&with, &own);
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    expect_refused(&with, with.ops.programs->launch(queue, own.kernel, &own.how), GPUHAL_ERROR_TOO_LARGE, "701");
    own.how.local_bytes = 1u << 30;
    expect_refused(&with, with.ops.programs->launch(queue, own.kernel, &own.how), GPUHAL_ERROR_INVALID_ARGUMENT,
                   "does not take these groups, sizes or local memory");
    expect_refused(&with, with.ops.programs->launch(NULL, own.kernel, &own.how), GPUHAL_ERROR_INVALID_ARGUMENT,
                   "does not take these groups, sizes or local memory");
    own.how.local_bytes = 0;
    expect_fine(with.ops.programs->launch(queue, own.kernel, &own.how), &with, "launch");
    finish(&with, queue);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    with.ops.queues->queue_destroy(queue);
    end_fill(&with, &own);
    end_clean(&with);
}

/* The core refuses such groups itself. */
TEST(the_driver_refuses_groups_that_are_larger_than_the_device_can_have)
{
    static const uint32_t sizes[][3] = {{1025, 1, 1}, {64, 32, 1}, {1, 1, OF(65, 1025)}, {0, 1, 1}};
    bench with = begin_on("devices 1", 1);
    filled own;
    make_fill(&with, &own);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memcpy(own.how.group_size, sizes[i], sizeof own.how.group_size);
        expect_refused(&with, with.ops.programs->launch(NULL, own.kernel, &own.how), GPUHAL_ERROR_INVALID_ARGUMENT,
                       "does not take these groups, sizes or local memory");
    }
    memcpy(own.how.group_size, (uint32_t[]){4, 4, 4}, sizeof own.how.group_size);
    expect_fine(with.ops.programs->launch(NULL, own.kernel, &own.how), &with, "launch");
    end_fill(&with, &own);
    end_clean(&with);
}

/* Another part of this process resets the device. The reset also destroys the plugin's modules and functions. */
TEST(after_a_reset_of_the_device_kernels_are_lost_and_nothing_is_unloaded_twice)
{
    bench with = begin_on("devices 1", 1);
    filled own;
    make_fill(&with, &own);
    reset_by_engine();
    assert_int_equal(with.ops.programs->launch(NULL, own.kernel, &own.how), GPUHAL_ERROR_DEVICE_LOST);
    const gpuhal_kernel_desc desc = kernel_desc("add");
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_plugin_program *program = NULL;
    const gpuhal_code code = kernels_code();
    assert_int_equal(kernel_with(&with, own.program, &desc, &info, &kernel), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(load_with(&with, &code, &program), GPUHAL_ERROR_DEVICE_LOST);
    const uint64_t unloads = calls_of(CALLED(ModuleUnload));
    end_fill(&with, &own);
    assert_int_equal(calls_of(CALLED(ModuleUnload)), unloads);
    end_clean(&with);
}

#include "test_main.h"
