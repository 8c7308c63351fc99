/* What drivers compiled is kept in files between runs: used again, never for other code, and never a reason to fail. */
#include "program_support.h"
#include "support/tree.h"

#include <dirent.h>

static const char *folder = tree_root;
static char registry[128];

static void make_folder(void)
{
    begin_tree();
    unsetenv("GPUHAL_SYSTEM_ROOT");
    snprintf(registry, sizeof registry, "%s/state", folder);
}

/* Warnings since the object was opened, and whether each says what has to be mended. */
static int warnings;

static void count_warnings(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level <= 2 && strstr(text, "is not kept in") && strstr(text, "no other may write to it")) {
        warnings++;
    }
}

static gpuhal *open_cached(const char *setting)
{
    if (setting) {
        setenv("GPUHAL_PROGRAM_CACHE", setting, 1);
    }
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .registry = registry,
                                  .builtins = builtins,
                                  .log = count_warnings,
                                  .log_level = 3};
    warnings = 0;
    setenv("GPUHAL_BACKENDS", "mock", 1);
    unsetenv("GPUHAL_REGISTRY"); /* the tests run without */
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.formats = "mock", .keeps_compiled = 1}}};
    gpuhal *gpu = NULL;
    assert_ok(gpuhal_open(&config, &gpu));
    return gpu;
}

static gpuhal_device *mock_device(gpuhal *gpu)
{
    gpuhal_device *device = NULL;
    assert_ok(gpuhal_select(gpu, "mock:0", 0, &device, NULL));
    return device;
}

/* Loads the code; whether it came out of the cache. */
static int load_code(gpuhal *gpu, const gpuhal_code *code, uint32_t flags)
{
    const gpuhal_program_desc desc = {.size = sizeof desc, .flags = flags, .codes = code, .code_count = 1};
    gpuhal_program *program = NULL;
    assert_ok(gpuhal_program_create(mock_device(gpu), &desc, &program));
    gpuhal_kernel *kernel = make_kernel(program, "add");
    const int cached = gpuhal_program_is_cached(program);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    return cached;
}

static int run_with(const char *setting, const gpuhal_code *code, uint32_t flags)
{
    gpuhal *gpu = open_cached(setting);
    const int cached = load_code(gpu, code, flags);
    assert_int_equal(gpuhal_mock.devices[0].compilations, !cached);
    gpuhal_close(gpu);
    return cached;
}

/* The files of the cache, by name; how many. */
static int list_files(const char *path, char names[][512], int space)
{
    DIR *directory = opendir(path);
    int count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (entry->d_name[0] != '.' && count < space) {
            snprintf(names[count++], 512, "%.200s/%.255s", path, entry->d_name);
        }
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

static int count_files(void)
{
    char path[256], names[64][512];
    snprintf(path, sizeof path, "%s/programs", registry);
    return list_files(path, names, 64);
}

TEST(what_was_compiled_is_used_in_the_next_run_and_lies_beside_the_registry)
{
    make_folder();
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    assert_int_equal(count_files(), 1);
    assert_int_equal(run_with(NULL, &plain_code, 0), 1);
    assert_int_equal(count_files(), 1);
    remove_tree();
}

TEST(other_code_options_or_targets_are_compiled)
{
    make_folder();
    gpuhal_code code = plain_code;
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    code.options = "-O2";
    assert_int_equal(run_with(NULL, &code, 0), 0);
    code = plain_code;
    code.target = "mock9";
    assert_int_equal(run_with(NULL, &code, 0), 0);
    code = plain_code;
    code.code = "program add    \n";
    code.bytes = 16;
    assert_int_equal(run_with(NULL, &code, 0), 0);
    assert_int_equal(count_files(), 4);
    assert_int_equal(run_with(NULL, &code, 0), 1);
    remove_tree();
}

TEST(without_a_cache_nothing_is_kept_and_nothing_used)
{
    make_folder();
    assert_int_equal(run_with("none", &plain_code, 0), 0);
    assert_int_equal(count_files(), 0);
    assert_int_equal(run_with("64M", &plain_code, GPUHAL_PROGRAM_NO_CACHE), 0);
    assert_int_equal(count_files(), 0);
    assert_int_equal(run_with("64M", &plain_code, 0), 0);
    assert_int_equal(run_with("64M", &plain_code, GPUHAL_PROGRAM_NO_CACHE), 0);
    assert_int_equal(run_with("none", &plain_code, 0), 0);
    assert_int_equal(run_with("64M", &plain_code, 0), 1);
    remove_tree();
}

TEST(the_setting_has_a_place_a_size_or_both)
{
    make_folder();
    char setting[256], path[128], names[8][512];
    snprintf(path, sizeof path, "%s/elsewhere", folder);
    snprintf(setting, sizeof setting, "1M,%s", path);
    assert_int_equal(run_with(setting, &plain_code, 0), 0);
    assert_int_equal(list_files(path, names, 8), 1);
    assert_int_equal(count_files(), 0);
    static const char *const bad[] = {"relative", "none,64M", "64M,64Q", "/a,/b", "0", "/a,1M,2M"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("GPUHAL_PROGRAM_CACHE", bad[i], 1);
        gpuhal *gpu = NULL;
        assert_int_equal(gpuhal_open(NULL, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_PROGRAM_CACHE"));
    }
    remove_tree();
}

/* Every byte of a file flipped, and every length: a compilation, never a wrong program, and the file is whole again. */
TEST(a_damaged_file_costs_a_compilation)
{
    make_folder();
    char path[256], names[8][512];
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    snprintf(path, sizeof path, "%s/programs", registry);
    assert_int_equal(list_files(path, names, 8), 1);
    unsigned char bytes[4096];
    int file = open(names[0], O_RDONLY);
    const ssize_t size = read(file, bytes, sizeof bytes);
    close(file);
    assert_true(size > 40 && size < (ssize_t)sizeof bytes);
    gpuhal *gpu = open_cached(NULL);
    for (ssize_t i = 0; i < size * 2; i += 7) {
        unsigned char damaged[sizeof bytes];
        memcpy(damaged, bytes, sizeof bytes);
        damaged[i % size] ^= 0x10;
        file = open(names[0], O_WRONLY | O_TRUNC);
        const ssize_t length = i < size ? size : i - size;
        assert_int_equal(write(file, i < size ? damaged : bytes, (size_t)length), length);
        close(file);
        assert_int_equal(load_code(gpu, &plain_code, 0), 0);
        assert_int_equal(load_code(gpu, &plain_code, 0), 1);
    }
    gpuhal_close(gpu);
    remove_tree();
}

TEST(what_was_used_longest_ago_goes_first_and_what_is_too_large_is_not_kept)
{
    make_folder();
    char code[4096], path[128], setting[256], names[64][512];
    snprintf(path, sizeof path, "%s/small", folder);
    snprintf(setting, sizeof setting, "%s,20K", path);
    gpuhal *gpu = open_cached(setting);
    gpuhal_code long_code = {.size = sizeof long_code, .format = "mock", .code = code, .bytes = sizeof code};
    memset(code, ' ', sizeof code);
    memcpy(code, "program add", 11);
    for (int i = 0; i < 6; i++) { /* each takes two copies of the code: two have room */
        code[100] = (char)('a' + i);
        assert_int_equal(load_code(gpu, &long_code, 0), 0);
        assert_true(list_files(path, names, 64) <= 2);
        usleep(20000);
        code[100] = 'a';
        (void)load_code(gpu, &long_code, 0); /* used each time, so it stays */
        usleep(20000);
    }
    code[100] = 'a';
    assert_int_equal(load_code(gpu, &long_code, 0), 1);
    code[100] = 'c';
    assert_int_equal(load_code(gpu, &long_code, 0), 0);
    static char large[30000];
    memset(large, ' ', sizeof large);
    memcpy(large, "program add", 11);
    const gpuhal_code large_code = {.size = sizeof large_code, .format = "mock", .code = large, .bytes = sizeof large};
    assert_int_equal(load_code(gpu, &large_code, 0), 0);
    assert_int_equal(load_code(gpu, &large_code, 0), 0);
    gpuhal_close(gpu);
    remove_tree();
}

TEST(a_folder_that_others_may_write_to_is_not_used)
{
    make_folder();
    char path[128], names[8][512];
    snprintf(path, sizeof path, "%s/shared", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(run_with(path, &plain_code, 0), 0);
    assert_int_equal(run_with(path, &plain_code, 0), 1);
    assert_int_equal(chmod(path, 0777), 0);
    gpuhal *gpu = open_cached(path);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(warnings, 1); /* not one for each program */
    gpuhal_close(gpu);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(list_files(path, names, 8), 1);
    assert_int_equal(chmod(names[0], 0666), 0);
    assert_int_equal(run_with(path, &plain_code, 0), 0);
    remove_tree();
}

#include "test_main.h"
