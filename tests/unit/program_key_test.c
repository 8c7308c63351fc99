/* Differences between two compilations of the same source. The cached program's key must contain all these differences,
 * so that a second run compiles if anything differs, and otherwise uses the cached program. Every run is a separate
 * process, because drivers are loaded once per process. */
#include "program_cache_support.h"
#include "support/child.h"

#include "program/program.h"
#include "registry/checksum.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>

typedef struct situation {
    gpuhal_mock_state mock;
    gpuhal_code code;
    const char *first; /* a library that the application loads first, or NULL */
    enum { STAYS, IS_REMOVED, IS_REPLACED, IS_MOVED } then; /* the later change of the library's file */
} situation;

static char vendor[512], driver[512], compiler[512];

static situation begin(void)
{
    make_folder();
    place_in_tree("lib/vendor.so", vendor);
    place_in_tree("lib/driver.so", driver);
    place_in_tree("lib/compiler.so", compiler);
    return (situation){.mock = plain_mock(), .code = plain_code};
}

/* Creates a copy with the same size and modification time, as if the same version was built again. */
static void install(const char *path, const char *from)
{
    char command[2600];
    snprintf(command, sizeof command, "cp -p '%s' '%s.new' && mv '%s.new' '%s'", from, path, path, path);
    assert_int_equal(system(command), 0);
}

static void change_file(const situation *s)
{
    if (s->then == IS_REMOVED) {
        assert_int_equal(unlink(s->first), 0);
    }
    if (s->then == IS_MOVED) {
        assert_int_equal(rename(s->first, vendor), 0);
        install(s->first, vendor);
    }
    if (s->then == IS_REPLACED) {
        install(s->first, s->first);
    }
}

static int run(const situation *s)
{
    const pid_t child = begin_child();
    if (child == 0) {
        if (s->first) {
            assert_non_null(dlopen(s->first, RTLD_NOW));
            change_file(s);
        }
        _exit(10 + run_as(&s->mock, NULL, &s->code, 0));
    }
    int state = -1;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state) && WEXITSTATUS(state) >= 10);
    return WEXITSTATUS(state) - 10;
}

static void compile_and_use(const situation *s)
{
    assert_int_equal(run(s), 0);
    assert_int_equal(run(s), 1);
}

/* Returns a library that has a soname and that no loaded library needs. */
static const char *named_library(void)
{
    struct link_map *map = NULL;
    void *library = dlopen("libutil.so.1", RTLD_NOW);
    assert_non_null(library);
    assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
    return map->l_name;
}

static const char *plain_library(void)
{
    return GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so";
}

/* ---- each difference */

/* Changes the version in the cached program's file, as if another version of gpuhal had cached the program. */
static void change_library(situation *s)
{
    (void)s;
    char path[512];
    static unsigned char bytes[65536];
    static const char version[] = "\n" GPUHAL_VERSION "\n";
    const size_t size = read_kept(bytes, sizeof bytes, path), head = 5 * 8;
    unsigned char *at = memmem(bytes, size, version, sizeof version - 1);
    assert_non_null(at);
    at[1]++;
    const uint32_t checksum = gpuhal_checksum(0, bytes + head, size - head);
    memcpy(bytes + head - 8, &checksum, sizeof checksum);
    write_kept(path, bytes, size);
}

static void change_plugin(situation *s)
{
    (void)s;
    setenv("GPUHAL_OPTIONS", "mock.mode=other", 1);
}

static void change_driver(situation *s)
{
    install(s->mock.driver, plain_library());
}

static void change_device(situation *s)
{
    s->mock.devices[0].name = "the next model";
}

static void change_processor(situation *s)
{
    (void)s;
    put("proc/cpuinfo", "processor\t: 0\nflags\t\t: sse avx\ncpu MHz\t\t: 2000\n\nprocessor\t: 1\n");
}

static void change_variables(situation *s)
{
    (void)s;
    setenv("POCL_EXTRA_BUILD_FLAGS", "-DVALUE=7", 1);
}

static void change_format(situation *s)
{
    s->code.format = "mock-exact";
}

static void change_target(situation *s)
{
    s->code.target = "mock9";
}

static void change_options(situation *s)
{
    s->code.options = "-O2";
}

static void change_code(situation *s)
{
    s->code.code = "program add max\n";
}

TEST(the_key_has_each_way_that_compilations_can_differ)
{
    static void (*const changes[GPUHAL_WAYS])(situation * s) = {
        [GPUHAL_WAY_LIBRARY] = change_library,     [GPUHAL_WAY_PLUGIN] = change_plugin,
        [GPUHAL_WAY_DRIVER] = change_driver,       [GPUHAL_WAY_DEVICE] = change_device,
        [GPUHAL_WAY_PROCESSOR] = change_processor, [GPUHAL_WAY_VARIABLES] = change_variables,
        [GPUHAL_WAY_FORMAT] = change_format,       [GPUHAL_WAY_TARGET] = change_target,
        [GPUHAL_WAY_OPTIONS] = change_options,     [GPUHAL_WAY_CODE] = change_code};
    for (int way = 0; way < GPUHAL_WAYS; way++) {
        situation s = begin();
        put("proc/cpuinfo", "processor\t: 0\nflags\t\t: sse\ncpu MHz\t\t: 1000\n\nprocessor\t: 1\n");
        setenv("GPUHAL_SYSTEM_ROOT", folder, 1);
        install(driver, plain_library());
        s.mock.driver = driver;
        compile_and_use(&s);
        put("proc/cpuinfo", "processor\t: 0\nflags\t\t: sse\ncpu MHz\t\t: 3000\n\nprocessor\t: 2\n");
        assert_int_equal(run(&s), 1);
        assert_non_null(changes[way]);
        changes[way](&s);
        compile_and_use(&s);
        unsetenv("GPUHAL_OPTIONS");
        unsetenv("POCL_EXTRA_BUILD_FLAGS");
        remove_tree();
    }
}

/* ---- the driver's files */

TEST(a_driver_behind_the_vendors_library_is_known_by_its_file)
{
    situation s = begin();
    install(vendor, plain_library());
    install(driver, plain_library());
    s.mock.library = vendor;
    s.mock.driver = driver;
    compile_and_use(&s);
    install(driver, plain_library());
    compile_and_use(&s);
    install(vendor, plain_library());
    compile_and_use(&s);
    remove_tree();
}

TEST(a_compiler_that_is_loaded_when_it_is_first_used_is_known_by_its_file)
{
    situation s = begin();
    install(compiler, named_library());
    s.mock.devices[0].compiler = compiler;
    compile_and_use(&s); /* the second run does not load the library */
    install(compiler, named_library());
    compile_and_use(&s);
    assert_int_equal(unlink(compiler), 0);
    s.mock.devices[0].compiler = NULL;
    assert_int_equal(run(&s), 0);
    remove_tree();
}

TEST(a_compiler_that_is_loaded_when_its_output_is_asked_for_is_known_by_its_file)
{
    situation s = begin();
    install(compiler, named_library());
    s.mock.devices[0].compiler = compiler;
    s.mock.devices[0].compiler_is_late = 1; /* like PoCL's devices that compile when asked for a binary */
    assert_int_equal(run(&s), 0);
    install(compiler, named_library());
    assert_int_equal(run(&s), 0);
    remove_tree();
}

TEST(a_library_that_a_driver_compiled_and_loaded_is_no_compiler)
{
    situation s = begin();
    install(compiler, plain_library()); /* like a library that PoCL compiled, without a soname */
    s.mock.devices[0].compiler = compiler;
    compile_and_use(&s);
    install(compiler, plain_library());
    assert_int_equal(run(&s), 1);
    remove_tree();
}

TEST(a_driver_that_the_application_has_loaded_before_is_known_by_its_file)
{
    situation s = begin();
    install(vendor, named_library());
    install(driver, named_library());
    s.first = driver;
    s.mock.driver = driver;
    s.mock.library = named_library(); /* loaded before the plugin starts, so its driver may be, too */
    compile_and_use(&s);
    install(driver, named_library());
    compile_and_use(&s);
    remove_tree();
}

TEST(with_a_driver_that_is_not_at_its_path_any_more_nothing_is_kept)
{
    situation s = begin();
    compile_and_use(&s); /* compiled without a driver; must not be used with an unknown driver either */
    for (s.then = IS_REMOVED; s.then <= IS_MOVED; s.then++) {
        install(driver, named_library());
        s.first = driver;
        s.mock.library = named_library(); /* as above */
        assert_int_equal(run(&s), 0);
        assert_int_equal(count_files(), 1);
    }
    s.then = STAYS;
    compile_and_use(&s);
    remove_tree();
}

TEST(other_libraries_of_the_application_are_no_matter)
{
    situation s = begin();
    install(vendor, plain_library());
    install(driver, named_library());
    s.mock.library = vendor;
    s.first = driver;
    compile_and_use(&s);
    install(driver, named_library());
    assert_int_equal(run(&s), 1);
    s.first = NULL;
    assert_int_equal(run(&s), 1);
    remove_tree();
}

/* ---- variables */

TEST(variables_that_no_compiler_reads_are_no_matter)
{
    static const char *const names[] = {"EDITOR", "PWD", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HOSTNAME"};
    situation s = begin();
    compile_and_use(&s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char before[512] = "";
        snprintf(before, sizeof before, "%s", getenv(names[i]) ? getenv(names[i]) : "");
        setenv(names[i], "0", 1);
        assert_int_equal(run(&s), 1);
        setenv(names[i], before, 1);
    }
    remove_tree();
}

TEST(variables_of_each_vendors_compiler_are_in_the_key)
{
    static const char *const names[] = {"POCL_WORK_GROUP_METHOD",
                                        "LP_NATIVE_VECTOR_WIDTH",
                                        "GALLIVM_DEBUG",
                                        "MESA_GLSL",
                                        "RADV_DEBUG",
                                        "INTEL_DEBUG",
                                        "IGC_ShaderDumpEnable",
                                        "NEOReadDebugKeys",
                                        "CUDA_FORCE_PTX_JIT",
                                        "__GL_ThreadedOptimizations",
                                        "AMD_COMGR_SAVE_TEMPS",
                                        "GPU_ENABLE_WAVE32_MODE",
                                        "VK_INSTANCE_LAYERS",
                                        "OPENCL_LAYERS",
                                        "CPATH"};
    situation s = begin();
    compile_and_use(&s);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv(names[i], "0", 1);
        assert_int_equal(run(&s), 0);
        setenv(names[i], "1", 1);
        assert_int_equal(run(&s), 0);
        unsetenv(names[i]);
        assert_int_equal(run(&s), 1);
    }
    remove_tree();
}

/* ---- code that reads more than itself */

static bool is_kept(const char *format, const char *text, uint64_t bytes, const char *options)
{
    char why[GPUHAL_WHY_OPEN_BYTES];
    const gpuhal_code code = {.size = sizeof code, .format = format, .code = text, .bytes = bytes, .options = options};
    const bool kept = gpuhal_code_is_self_contained(&code, why);
    assert_int_equal(kept, *why == 0);
    return kept;
}

static bool is_text_kept(const char *text, const char *options)
{
    return is_kept("opencl-c", text, strlen(text), options);
}

TEST(code_that_may_read_a_file_or_the_clock_is_not_kept)
{
    static const char *const texts[] = {"#include \"scale.h\"\n",
                                        " # /* */ include <scale.h>",
                                        "#inc\\\nlude \"scale.h\"",
                                        "#inc\\  \r\nlude \"scale.h\"",
                                        "#inc\?\?/\nlude \"scale.h\"",
                                        "%:include FILE",
                                        "\?\?=include FILE",
                                        "#define FILE \"scale.h\"\n#include FILE",
                                        "#include_next <scale.h>",
                                        "#import \"scale.h\"",
                                        "#embed \"scale.bin\"",
                                        "#if __has_include(<scale.h>)\n#endif",
                                        "#if __has_em\\\nbed(<scale.h>)\n#endif",
                                        "#define CAT(a, b) a##b\n#if CAT(__has_inc, lude)(<scale.h>)\n#endif",
                                        "_Pragma(\"clang module import scale\")",
                                        "asm(\".incbin \\\"scale.bin\\\"\");",
                                        "constant char when[] = __DATE__;",
                                        "constant char when[] = __TIME__;",
                                        "constant char when[] = __TIMESTAMP__;"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(is_text_kept(texts[i], NULL));
        assert_false(is_kept("vendor-text", texts[i], strlen(texts[i]), NULL));
    }
    assert_false(is_kept("opencl-c", "#include\0", 9, NULL));
    assert_false(is_kept("opencl-c", "x#include", 9, NULL));
    assert_true(is_kept("opencl-c", "x#include", 8, NULL));
    assert_false(is_kept("host-library", "/usr/lib/kernels.so", 0, NULL));
}

TEST(code_that_is_all_its_compiler_reads_is_kept)
{
    static const char includes[] = "#include";
    assert_true(is_text_kept("kernel void f(global float *y) { y[0] = 2.0f * y[1]; }", NULL));
    assert_true(is_text_kept("kernel void f(global float *y) { y[0] = 1.0f; }", ""));
    for (int i = 0; i < 7; i++) {
        static const char *const closed[] = {"cubin", "fatbin", "ptx", "hsaco", "hip-fatbin", "spirv", "host-function"};
        assert_true(is_kept(closed[i], includes, sizeof includes, NULL));
        assert_false(is_kept(closed[i], includes, sizeof includes, "-include scale.h"));
    }
}

TEST(options_that_may_read_a_file_are_not_kept)
{
    static const char *const open[] = {"-include scale.h",   "-D X -include scale.h",
                                       "-imacros scale.h",   "-fmodule-file=scale",
                                       "-fplugin=/tmp/x.so", "@options",
                                       "-D @options",        "-I @options",
                                       "-D -fplugin=x",      "-mlink-bitcode-file x",
                                       "-x spir kernels.bc", "scale.h",
                                       "-I dir file",        "-Wp,@file",
                                       "-Xclang -load",      "-cl-std=CL1.2 -B dir",
                                       "-D 'X=a b'",         "-unknown",
                                       "\t--config file"};
    static const char *const closed[] = {"",
                                         "  ",
                                         "-cl-std=CL1.2 -cl-fast-relaxed-math -w -Werror",
                                         "-DX=1",
                                         "-D X=1 -UY",
                                         " -D\tX -I . -I/usr -I dir -O3 -g",
                                         "-x spir -spir-std=1.2",
                                         "-march=znver1 -mcpu=native -mtune=native"};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        assert_false(is_text_kept("kernel", open[i]));
    }
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        assert_true(is_text_kept("kernel", closed[i]));
    }
}

TEST(a_program_whose_code_may_read_a_file_is_compiled_in_each_run)
{
    situation s = begin();
    s.code.code = "program add /* #include */";
    s.code.bytes = strlen(s.code.code);
    assert_int_equal(run(&s), 0);
    assert_int_equal(run(&s), 0);
    assert_int_equal(count_files(), 0);
    s.code = plain_code;
    s.code.options = "-include scale.h";
    assert_int_equal(run(&s), 0);
    assert_int_equal(run(&s), 0);
    assert_int_equal(count_files(), 0);
    remove_tree();
}

#include "test_main.h"
