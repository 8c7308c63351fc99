/* tests/unit/program_cache_support.h: successive runs of one application, which share a program cache. */
#ifndef GPUHAL_TEST_PROGRAM_CACHE_SUPPORT_H
#define GPUHAL_TEST_PROGRAM_CACHE_SUPPORT_H

#include "program_support.h"
#include "support/tree.h"

#include <dirent.h>

static const char *const folder = tree_root;
static char registry[128], programs[192]; /* default paths of the files */

static inline void make_folder(void)
{
    begin_tree();
    unsetenv("GPUHAL_SYSTEM_ROOT");
    snprintf(registry, sizeof registry, "%s/state", folder);
    snprintf(programs, sizeof programs, "%s/gpuhal-programs", registry);
}

/* Number of warnings that require an action by the user, since the object was opened. */
static int warnings;

static inline void count_warnings(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level <= 2 && strstr(text, "is not kept in") &&
        (strstr(text, "no other may write to it") || strstr(text, "is not one"))) {
        warnings++;
    }
}

static inline gpuhal_mock_state plain_mock(void)
{
    return (gpuhal_mock_state){.count = 1, .devices = {{.formats = "mock-exact mock", .keeps_compiled = 1}}};
}

static inline gpuhal *open_with(const char *setting, const gpuhal_mock_state *mock)
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
    unsetenv("GPUHAL_REGISTRY"); /* the test environment disables it */
    gpuhal_mock = *mock;
    gpuhal *gpu = NULL;
    assert_ok(gpuhal_open(&config, &gpu));
    return gpu;
}

static inline gpuhal *open_cached(const char *setting)
{
    const gpuhal_mock_state mock = plain_mock();
    return open_with(setting, &mock);
}

static inline gpuhal_device *mock_device(gpuhal *gpu)
{
    gpuhal_device *device = NULL;
    assert_ok(gpuhal_select(gpu, "mock:0", 0, &device, NULL));
    return device;
}

static inline gpuhal_program *create_cached(gpuhal *gpu, const gpuhal_code *code, uint32_t flags)
{
    const gpuhal_program_desc desc = {.size = sizeof desc, .flags = flags, .codes = code, .code_count = 1};
    gpuhal_program *program = NULL;
    assert_ok(gpuhal_program_create(mock_device(gpu), &desc, &program));
    return program;
}

static inline int load_code(gpuhal *gpu, const gpuhal_code *code, uint32_t flags)
{
    gpuhal_program *program = create_cached(gpu, code, flags);
    gpuhal_kernel *kernel = make_kernel(program, "add");
    const int cached = gpuhal_program_is_cached(program);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    return cached;
}

/* Simulates a run; returns true if nothing was compiled. */
static inline int run_as(const gpuhal_mock_state *mock, const char *setting, const gpuhal_code *code, uint32_t flags)
{
    gpuhal *gpu = open_with(setting, mock);
    const int cached = load_code(gpu, code, flags);
    assert_int_equal(gpuhal_mock.devices[0].compilations, !cached);
    gpuhal_close(gpu);
    return cached;
}

static inline int run_with(const char *setting, const gpuhal_code *code, uint32_t flags)
{
    const gpuhal_mock_state mock = plain_mock();
    return run_as(&mock, setting, code, flags);
}

static inline int list_files(const char *path, char names[][512], int space)
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

static inline int count_files(void)
{
    char names[64][512];
    return list_files(programs, names, 64);
}

static inline size_t read_kept(unsigned char *bytes, size_t space, char out_path[512])
{
    char names[2][512];
    assert_int_equal(list_files(programs, names, 2), 1);
    snprintf(out_path, 512, "%s", names[0]);
    const int file = open(out_path, O_RDONLY);
    const ssize_t size = read(file, bytes, space);
    close(file);
    assert_true(size > 56 && size < (ssize_t)space);
    return (size_t)size;
}

static inline void write_kept(const char *path, const void *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

#endif
