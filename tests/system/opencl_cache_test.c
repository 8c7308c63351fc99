/* Tests that a cached OpenCL program is not used after a change of a compiler input other than the source: an included
 * header, an environment variable, or the driver's file. Each run is a separate process, and the driver's own cache is
 * empty. */
#include "support/child.h"
#include "support/folder.h"
#include "system.h"

#include <gpuhal/program.h>

#include <sys/stat.h>

#define KERNEL "kernel void f(global uint *to) { to[get_global_id(0)] = VALUE; }\n"

static void begin(void)
{
    char path[128];
    make_test_folder("opencl-cache");
    setenv("GPUHAL_PROGRAM_CACHE", test_folder, 1);
    snprintf(path, sizeof path, "%s/compiled", test_folder);
    setenv("POCL_CACHE_DIR", path, 1);
}

static uint32_t launch(gpuhal_device *device, gpuhal_kernel *kernel)
{
    uint32_t value = 0;
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 64);
    const gpuhal_argument argument = {.buffer = buffer};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 1, .arguments = &argument, .groups = {1, 1, 1}};
    assert_ok(gpuhal_kernel_launch(NULL, kernel, &launch));
    assert_ok(gpuhal_read(NULL, &value, buffer, 0, sizeof value));
    gpuhal_buffer_release(buffer);
    return value;
}

/* Compiles and launches. Returns 16 times the value that the kernel wrote, plus 1 if the compiled program came from
 * the cache. */
static int use(const char *text, const char *options)
{
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "opencl"});
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    const gpuhal_code code = {
        .size = sizeof code, .format = "opencl-c", .code = text, .bytes = strlen(text), .options = options};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &code, .code_count = 1};
    const gpuhal_parameter buffer = {.kind = GPUHAL_PARAMETER_BUFFER};
    const gpuhal_kernel_desc kernel_desc = {
        .size = sizeof kernel_desc, .name = "f", .parameters = &buffer, .parameter_count = 1, .group_size = {16, 1, 1}};
    gpuhal_program *program = NULL;
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_program_create(device, &desc, &program));
    assert_ok(gpuhal_kernel_create(program, &kernel_desc, &kernel));
    const int cached = gpuhal_program_is_cached(program);
    return (int)(16 * launch(device, kernel)) + cached;
}

/* Runs use() in a child. The child exits without running the driver's destructors. */
static void expect(const char *text, const char *options, uint32_t value, bool cached)
{
    const pid_t child = begin_child();
    if (child == 0) {
        _exit(use(text, options));
    }
    int state = -1;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state));
    assert_int_equal(WEXITSTATUS(state), 16 * value + cached);
}

static void write_header(const char *folder, int value)
{
    char path[256];
    snprintf(path, sizeof path, "%s/value.h", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#define VALUE %d\n", value);
    assert_int_equal(fclose(file), 0);
}

TEST(a_kernel_has_the_values_of_the_header_that_it_includes_now)
{
    begin();
    char options[128];
    snprintf(options, sizeof options, "-I%s", test_folder);
    write_header(test_folder, 1);
    expect("#include \"value.h\"\n" KERNEL, options, 1, false);
    write_header(test_folder, 2);
    expect("#include \"value.h\"\n" KERNEL, options, 2, false);
    expect("#define FILE \"value.h\"\n%:inc\\\nlude FILE\n" KERNEL, options, 2, false);
}

/* The source and the options are the same in two folders, but their headers differ. */
TEST(programs_that_differ_in_a_header_of_their_folder_do_not_share_a_kernel)
{
    char path[128];
    begin();
    for (int i = 1; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%d", test_folder, i);
        assert_int_equal(mkdir(path, 0755), 0);
        write_header(path, i);
        assert_int_equal(chdir(path), 0);
        expect("#include \"value.h\"\n" KERNEL, "-I .", (uint32_t)i, false);
    }
    assert_int_equal(chdir("/"), 0);
}

TEST(a_variable_that_the_compiler_reads_gives_another_kernel)
{
    static const char text[] = "#ifndef VALUE\n#define VALUE 3\n#endif\n" KERNEL;
    begin();
    expect(text, "", 3, false);
    expect(text, "", 3, true);
    setenv("POCL_EXTRA_BUILD_FLAGS", "-DVALUE=7", 1);
    expect(text, "", 7, false);
    unsetenv("POCL_EXTRA_BUILD_FLAGS");
    expect(text, "", 3, true);
    setenv("HOME", test_folder, 1); /* the plugin's manifest lists HOME */
    expect(text, "", 3, false);
}

/* Installs a copy of the driver. The driver finds its devices and headers relative to its own path. */
static void install_driver(void)
{
    char command[512];
    snprintf(command, sizeof command,
             "cd '%s' && f=$(ls /usr/lib/*/libpocl.so.2 /usr/lib64/libpocl.so.2 2>/dev/null | head -n 1) && "
             "mkdir -p lib/here share && cp -p -L \"$f\" new && cp -r \"${f%%/*}/pocl\" lib/here && "
             "ln -sfn /usr/share/pocl share/pocl && mv new lib/here/libpocl.so && "
             "echo \"$PWD/lib/here/libpocl.so\" >pocl.icd",
             test_folder);
    if (system(command)) {
        SKIP_TEST("PoCL is not where distributions install it");
    }
    setenv("OCL_ICD_VENDORS", test_folder, 1);
}

TEST(another_file_of_the_driver_behind_the_loader_compiles_again)
{
    static const char text[] = "#define VALUE 5\n" KERNEL;
    begin();
    install_driver();
    expect(text, "", 5, false);
    expect(text, "", 5, true);
    install_driver();
    expect(text, "", 5, false);
    expect(text, "", 5, true);
}

#include "test_main.h"
