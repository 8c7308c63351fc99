/* Tests programs of the OpenCL plugin with PoCL: builds that succeed, builds that fail, and compiled programs that are
 * stored for a later run. */
#include "opencl_programs.h"

#include <ftw.h>

static void expect_refused(const fixture *d, gpuhal_status status, gpuhal_status expected, const char *part)
{
    assert_int_equal(status, expected);
    (void)gpuhal_direct_failed(d->plugin, status, "loading");
    if (!strstr(gpuhal_last_error()->sentence, part)) {
        fail_msg("\"%s\" is not in: %s", part, gpuhal_last_error()->sentence);
    }
}

static void count_formats(void *user, gpuhal_key key, const char *value)
{
    if (key == GPUHAL_FACT_PROGRAM_FORMATS) {
        assert_non_null(strstr(value, "opencl-c")); /* newer drivers also accept SPIR-V */
        ++*(uint32_t *)user;
    }
}

TEST(the_formats_are_a_fact_of_each_device)
{
    fixture d;
    uint32_t found = 0;
    const gpuhal_direct_listener listener = {.user = &found, .text = count_formats};
    open_fixture(&d, BASIC, 0);
    expect_fine(&d, gpuhal_direct_enumerate(d.plugin, d.instance, &listener), "enumerate");
    assert_true(found > 0);
    close_fixture(&d);
}

TEST(options_reach_the_compiler_and_its_words_are_handed_out_also_on_success)
{
    fixture d;
    gpuhal_plugin_program *program = NULL;
    open_fixture(&d, BASIC, 0);
    const char *text = "#warning beware of this\n__kernel void k(__global int *x) { x[0] = TILE; }";
    expect_fine(&d, load_text(&d, text, "-DTILE=16", &program), "program_load");
    assert_non_null(strstr(build_log, "beware of this"));
    d.ops->programs->program_unload(program);
    expect_refused(&d, load_text(&d, text, NULL, &program), GPUHAL_ERROR_INVALID_ARGUMENT, "TILE");
    assert_null(program);
    assert_non_null(strstr(build_log, "TILE"));
    assert_string_equal(gpuhal_last_error()->vendor_call, "clBuildProgram");
    close_fixture(&d);
}

TEST(code_that_is_not_opencl_c_is_refused_and_the_device_stays_usable)
{
    fixture d;
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_build build = {0};
    open_fixture(&d, BASIC, 0);
    const struct {
        const char *format, *code;
        uint64_t bytes;
        const char *options;
        gpuhal_status status;
        const char *part;
    } cases[] = {
        {"opencl-c", "\177ELF\2\1\1\0\0\3", 10, NULL, GPUHAL_ERROR_INVALID_ARGUMENT, "not OpenCL C"},
        {"opencl-c", "\0\0\0\0", 4, NULL, GPUHAL_ERROR_INVALID_ARGUMENT, "not OpenCL C"},
        {"opencl-c", "__kernel void k(", 16, NULL, GPUHAL_ERROR_INVALID_ARGUMENT, ""},
        {"opencl-c", "Lorem ipsum dolor", 17, NULL, GPUHAL_ERROR_INVALID_ARGUMENT, ""},
        {"opencl-c", "__kernel void k(void) { f(); }", 30, "--no-such-option", GPUHAL_ERROR_INVALID_ARGUMENT, ""},
        {"ptx", ".version 8.0", 12, NULL, GPUHAL_ERROR_NOT_SUPPORTED, "not ptx"},
        {"opencl", "__kernel void k(void) { }", 25, NULL, GPUHAL_ERROR_NOT_SUPPORTED, "not opencl"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gpuhal_code code = {.size = sizeof code,
                                  .format = cases[i].format,
                                  .code = cases[i].code,
                                  .bytes = cases[i].bytes,
                                  .options = cases[i].options};
        expect_refused(&d, load_code(&d, &code, &build, &program), cases[i].status, cases[i].part);
        assert_null(program);
    }
    program = program_or_fail(&d, NULL);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* The bytes after the source are not zero, so a reader must respect the size. */
TEST(code_is_read_up_to_its_end_and_may_end_with_a_zero)
{
    fixture d;
    static const char text[] = "__kernel void k(__global int *x) { x[0] = 1; }#error behind the end";
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_build build = {0};
    open_fixture(&d, BASIC, 0);
    gpuhal_code code = {.size = sizeof code, .format = "opencl-c", .code = text, .bytes = strcspn(text, "#")};
    expect_fine(&d, load_code(&d, &code, &build, &program), "program_load");
    d.ops->programs->program_unload(program);
    code.code = "__kernel void k(__global int *x) { x[0] = 1; }";
    code.bytes = strlen(code.code) + 1;
    expect_fine(&d, load_code(&d, &code, &build, &program), "program_load");
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* ---- compiled programs */

static void *kept_or_fail(const fixture *d, gpuhal_plugin_program *program, uint64_t *out_bytes)
{
    uint64_t bytes = 0;
    expect_fine(d, d->ops->programs->program_compiled(program, NULL, &bytes), "program_compiled");
    assert_true(bytes > 0);
    unsigned char *kept = malloc(bytes);
    uint64_t small = bytes - 1;
    assert_non_null(kept);
    memset(kept, 0xee, bytes);
    expect_fine(d, d->ops->programs->program_compiled(program, kept, &small), "program_compiled");
    assert_int_equal(small, bytes);
    assert_int_equal(kept[0], 0xee);
    expect_fine(d, d->ops->programs->program_compiled(program, kept, &bytes), "program_compiled");
    assert_int_equal(small, bytes);
    *out_bytes = bytes;
    return kept;
}

static gpuhal_code code_of_source(void)
{
    return (gpuhal_code){.size = sizeof(gpuhal_code), .format = "opencl-c", .code = source, .bytes = strlen(source)};
}

/* Loads the code and runs a kernel. Returns whether the plugin used the stored binary. */
static bool load_kept(const fixture *d, const gpuhal_code *code, const void *kept, uint64_t bytes)
{
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_build build = {.compiled = kept, .compiled_bytes = bytes};
    uint32_t numbers[FEW];
    expect_fine(d, load_code(d, code, &build, &program), "program_load");
    gpuhal_plugin_kernel *kernel = add_or_fail(d, program);
    expect_fine(d, d->ops->fill(d->device, NULL, &d->far, 0, BYTES, 5, 4), "fill");
    expect_fine(d, launch_add(d, NULL, kernel, &d->far, 0, &d->far, 4096, 3), "launch");
    read_numbers(d, &d->far, 0, numbers);
    assert_int_equal(numbers[FEW - 1], 8);
    d->ops->programs->kernel_destroy(kernel);
    d->ops->programs->program_unload(program);
    return build.used_compiled;
}

TEST(a_kept_binary_serves_only_the_same_code_options_device_and_driver)
{
    fixture d;
    uint64_t bytes = 0;
    compile_alone();
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    unsigned char *kept = kept_or_fail(&d, program, &bytes);
    d.ops->programs->program_unload(program);
    gpuhal_code code = code_of_source();
    assert_true(load_kept(&d, &code, kept, bytes));
    code.options = "-DOTHER";
    assert_false(load_kept(&d, &code, kept, bytes));
    code.options = NULL;
    code.bytes--; /* cuts off the last line feed */
    assert_false(load_kept(&d, &code, kept, bytes));
    free(kept);
    program = program_or_fail(&d, "-DOTHER");
    kept = kept_or_fail(&d, program, &bytes);
    d.ops->programs->program_unload(program);
    code = code_of_source();
    assert_false(load_kept(&d, &code, kept, bytes));
    code.options = "-DOTHER";
    assert_true(load_kept(&d, &code, kept, bytes));
    fixture other;
    open_fixture(&other, PTHREAD, 0);
    if (other.id != d.id) {
        assert_false(load_kept(&other, &code, kept, bytes));
    }
    close_fixture(&other);
    free(kept);
    close_fixture(&d);
}

/* PoCL 3.1 aborts on most of these binaries. */
TEST(a_damaged_or_truncated_kept_binary_never_reaches_the_driver)
{
    fixture d;
    uint64_t bytes = 0;
    compile_alone();
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    unsigned char *kept = kept_or_fail(&d, program, &bytes);
    d.ops->programs->program_unload(program);
    const gpuhal_code code = code_of_source();
    const uint64_t cuts[] = {0, 1, 8, 23, 24, 25, bytes / 2, bytes - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        assert_false(load_kept(&d, &code, kept, cuts[i]));
    }
    for (uint64_t at = 0; at < bytes; at = at * 3 + 1) {
        kept[at] ^= 0x10;
        assert_false(load_kept(&d, &code, kept, bytes));
        kept[at] ^= 0x10;
    }
    assert_true(load_kept(&d, &code, kept, bytes));
    free(kept);
    close_fixture(&d);
}

/* Replaces the driver's program file with a directory. PoCL then produces the same binary as if another process had
 * removed the file at this moment. PoCL 3.1 aborts when it loads such a binary. */
static int make_empty(const char *path, const struct stat *unused, int type, struct FTW *also_unused)
{
    (void)unused, (void)also_unused;
    const char *name = strrchr(path, '/');
    return type == FTW_F && name && strcmp(name, "/program.bc") == 0 && (unlink(path) != 0 || mkdir(path, 0700) != 0);
}

TEST(a_binary_without_its_program_is_not_kept)
{
    fixture d;
    uint64_t bytes = 0;
    compile_alone();
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, NULL);
    assert_int_equal(nftw(test_folder, make_empty, 8, FTW_PHYS), 0);
    gpuhal_status status = d.ops->programs->program_compiled(program, NULL, &bytes);
    unsigned char *kept = malloc(bytes + 1);
    assert_non_null(kept);
    status = status ? status : d.ops->programs->program_compiled(program, kept, &bytes);
    assert_int_equal(status, GPUHAL_ERROR_NOT_SUPPORTED);
    free(kept);
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

/* The specification allows a binary that does not describe its kernels' arguments. */
TEST(a_kept_binary_is_used_for_reflection_only_if_it_describes_arguments)
{
    fixture d;
    uint64_t bytes = 0;
    use_answers("");
    compile_alone();
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = program_or_fail(&d, "-cl-kernel-arg-info");
    unsigned char *kept = kept_or_fail(&d, program, &bytes);
    d.ops->programs->program_unload(program);
    gpuhal_code code = code_of_source();
    code.options = "-cl-kernel-arg-info";
    assert_true(load_kept(&d, &code, kept, bytes));
    setenv("GPUHAL_FAKE_OPENCL", "undescribed", 1);
    assert_false(load_kept(&d, &code, kept, bytes));
    free(kept);
    program = program_or_fail(&d, NULL);
    kept = kept_or_fail(&d, program, &bytes);
    d.ops->programs->program_unload(program);
    code.options = NULL; /* the caller describes the arguments */
    assert_true(load_kept(&d, &code, kept, bytes));
    free(kept);
    close_fixture(&d);
}

/* ---- SPIR-V */

/* Makes a module with one entry point of the given execution model, and space after the entry point. */
enum { MODULE_WORDS = 5 + 2 + 3 + 5 };
static void make_module(uint32_t model, uint32_t *out_words)
{
    const uint32_t words[MODULE_WORDS] = {
        0x07230203u,    0x00010000u, 0, 8,           0,            /* header */
        2u << 16 | 17u, 6,                                         /* OpCapability Kernel */
        3u << 16 | 14u, 2,           2,                            /* OpMemoryModel Physical64 OpenCL */
        5u << 16 | 15u, model,       1, 0x6d6f7266u, 0x006c695fu}; /* OpEntryPoint "from_il" */
    memcpy(out_words, words, sizeof words);
}

static gpuhal_status load_module(const fixture *d, const void *words, uint64_t bytes,
                                 gpuhal_plugin_program **out_program)
{
    const gpuhal_code code = {.size = sizeof code, .format = "spirv", .code = words, .bytes = bytes};
    gpuhal_plugin_build build = {0};
    return load_code(d, &code, &build, out_program);
}

/* Before OpenCL 2.1 the function belongs to an extension. The fake library does not report this extension. */
static void open_with_il(fixture *d)
{
    char version[64] = "";
    use_answers("il");
    open_fixture(d, BASIC, 0);
    assert_int_equal(CL(clGetDeviceInfo)(d->id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL), CL_SUCCESS);
    if (strncmp(version, "OpenCL 1.", 9) == 0 || strncmp(version, "OpenCL 2.0", 10) == 0) {
        SKIP_TEST("the driver is older than OpenCL 2.1");
    }
}

TEST(spirv_with_kernels_is_loaded_if_the_device_takes_it)
{
    fixture d;
    uint32_t words[MODULE_WORDS], numbers[FEW];
    gpuhal_plugin_program *program = NULL;
    open_with_il(&d);
    make_module(6, words);
    expect_fine(&d, load_module(&d, words, sizeof words, &program), "program_load");
    const gpuhal_parameter parameter = {.kind = GPUHAL_PARAMETER_BUFFER};
    const gpuhal_kernel_desc desc = described("from_il", &parameter, 1);
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&d, program, &desc, NULL);
    expect_fine(&d, d.ops->fill(d.device, NULL, &d.far, 0, BYTES, 1, 4), "fill");
    const gpuhal_plugin_argument argument = part_of(&d.far, 0);
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 1,
                                         .arguments = &argument,
                                         .groups = {1, 1, 1},
                                         .group_size = {FEW, 1, 1},
                                         .threads = {FEW, 1, 1}};
    expect_fine(&d, d.ops->programs->launch(NULL, kernel, &launch), "launch");
    read_numbers(&d, &d.far, 0, numbers);
    assert_int_equal(numbers[FEW - 1], 8);
    d.ops->programs->kernel_destroy(kernel);
    const gpuhal_constant constant = {.id = 1, .value = 2};
    gpuhal_kernel_desc with = desc;
    with.constants = &constant;
    with.constant_count = 1;
    gpuhal_kernel_info info = {.size = sizeof info};
    expect_refused(&d, d.ops->programs->kernel_create(program, &with, &info, &kernel), GPUHAL_ERROR_NOT_SUPPORTED,
                   "specialization");
    d.ops->programs->program_unload(program);
    close_fixture(&d);
}

TEST(spirv_of_shaders_or_cut_off_is_refused_before_the_driver_sees_it)
{
    fixture d;
    uint32_t words[MODULE_WORDS];
    gpuhal_plugin_program *program = NULL;
    open_with_il(&d);
    make_module(5, words); /* GLCompute */
    expect_refused(&d, load_module(&d, words, sizeof words, &program), GPUHAL_ERROR_NOT_SUPPORTED, "Vulkan");
    make_module(6, words);
    for (uint64_t bytes = 1; bytes < sizeof words; bytes++) {
        const uint64_t word = bytes / 4; /* truncation between two instructions cannot be detected */
        if (bytes % 4 != 0 || (word != 7 && word != 10)) {
            expect_refused(&d, load_module(&d, words, bytes, &program), GPUHAL_ERROR_INVALID_ARGUMENT, "SPIR-V");
        }
    }
    words[5] = 17u; /* an instruction of length 0 */
    expect_refused(&d, load_module(&d, words, sizeof words, &program), GPUHAL_ERROR_INVALID_ARGUMENT, "damaged");
    words[0] = 0x03022307u;
    expect_refused(&d, load_module(&d, words, sizeof words, &program), GPUHAL_ERROR_INVALID_ARGUMENT, "not a SPIR-V");
    close_fixture(&d);
}

/* Only devices that report an architecture accept source for this architecture. PoCL reports no architecture. */
TEST(source_for_a_target_is_incompatible_with_a_device_that_does_not_report_it)
{
    fixture d;
    open_fixture(&d, BASIC, 0);
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_build build = {0};
    const gpuhal_code code = {.size = sizeof code,
                              .format = "opencl-c",
                              .target = "sm_90",
                              .code = source,
                              .bytes = strlen(source)};
    expect_refused(&d, load_code(&d, &code, &build, &program), GPUHAL_ERROR_INCOMPATIBLE, "is for sm_90");
    close_fixture(&d);
}

/* ---- through the public API */

static void take_public_log(void *user, const char *text)
{
    snprintf(user, sizeof build_log, "%s", text);
}

static gpuhal_program *create_or_fail(gpuhal_device *device, const char *options)
{
    gpuhal_code code = code_of_source();
    code.options = options;
    const gpuhal_program_desc desc = {
        .size = sizeof desc, .codes = &code, .code_count = 1, .log = take_public_log, .user = build_log};
    gpuhal_program *program = NULL;
    assert_ok(gpuhal_program_create(device, &desc, &program));
    return program;
}

static void launch_in(gpuhal_queue *queue, gpuhal_kernel *kernel, gpuhal_buffer *buffer, gpuhal_status expected)
{
    const uint32_t plus = 2;
    const gpuhal_argument arguments[] = {
        {.buffer = buffer, .offset = 1024}, {.buffer = buffer}, {.value = &plus, .bytes = sizeof plus}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 3, .arguments = arguments, .groups = {1, 1, 1}};
    gpuhal_status status = gpuhal_kernel_launch(queue, kernel, &launch);
    status = status || !queue ? status : gpuhal_queue_synchronize(queue, 60 * second_ns);
    assert_int_equal(status, expected);
}

static void launch_reflected(gpuhal_device *device, int run)
{
    gpuhal_program *program = create_or_fail(device, "-cl-kernel-arg-info");
    const gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "add", .group_size = {FEW}};
    gpuhal_kernel *kernel = NULL;
    gpuhal_queue *queue = NULL;
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 4096);
    gpuhal_buffer *mapped = buffer_or_fail(device, GPUHAL_MEMORY_UPLOAD, 4096);
    const gpuhal_queue_desc queue_desc = {.size = sizeof queue_desc};
    uint32_t numbers[FEW];
    assert_int_equal(gpuhal_program_is_cached(program), run);
    assert_ok(gpuhal_kernel_create(program, &desc, &kernel));
    assert_ok(gpuhal_queue_create(device, &queue_desc, &queue));
    assert_ok(gpuhal_fill(queue, buffer, 0, 4096, 40, 4));
    launch_in(queue, kernel, buffer, GPUHAL_OK);
    assert_ok(gpuhal_read(NULL, numbers, buffer, 1024, sizeof numbers));
    assert_int_equal(numbers[FEW - 1], 42);
    uint64_t kinds = 0;
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_KERNEL_KINDS, &kinds));
    assert_int_equal(kinds, 1u << GPUHAL_MEMORY_DEVICE);
    launch_in(NULL, kernel, mapped, GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "kernel_kinds"));
    launch_in(queue, kernel, mapped, GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "kernel_kinds"));
    launch_in(queue, kernel, buffer, GPUHAL_OK); /* the refused launch did not fail the queue */
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(mapped);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
}

TEST(an_application_leaves_parameters_out_and_compiles_once)
{
    char folder[] = "/tmp/gpuhal-cache-XXXXXX", command[64];
    assert_non_null(mkdtemp(folder));
    setenv("GPUHAL_PROGRAM_CACHE", folder, 1);
    setenv("GPUHAL_ISOLATION", "never", 1);
    for (int run = 0; run < 2; run++) {
        gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "opencl"});
        gpuhal_device *device = select_or_fail(gpu, "opencl:0");
        assert_non_null(strstr(gpuhal_device_formats(device), "opencl-c"));
        launch_reflected(device, run);
        gpuhal_program *program = create_or_fail(device, "");
        assert_int_equal(gpuhal_program_is_cached(program), run);
        assert_non_null(strstr(build_log, "opencl-c"));
        gpuhal_program_release(program);
        gpuhal_close(gpu);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

#include "test_main.h"
