/* Compiled programs that are cached in files between runs. Cached programs must be reused only for the same code, and
 * must never cause a failure. */
#include "program_cache_support.h"

#include "program/program.h"

TEST(compiled_code_is_used_in_the_next_run_and_lies_beside_the_registry)
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
    char setting[256], path[160], names[8][512];
    snprintf(setting, sizeof setting, "1M,%s/elsewhere", folder);
    snprintf(path, sizeof path, "%s/elsewhere/gpuhal-programs", folder);
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

/* Changes single bytes all over a file, and truncates it to many lengths. Each damage must cause a compilation and a
 * new valid file, never a wrong program. A file that does not begin like a cache file may belong to the user. Such a
 * file must stay, and causes a compilation each time. */
TEST(a_damaged_file_costs_a_compilation)
{
    make_folder();
    char path[512];
    unsigned char bytes[8192];
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    const size_t size = read_kept(bytes, sizeof bytes, path);
    gpuhal *gpu = open_cached(NULL);
    for (size_t i = 0; i < size * 2; i += i < 56 ? 1 : 7) {
        unsigned char damaged[sizeof bytes];
        memcpy(damaged, bytes, sizeof bytes);
        damaged[i % size] ^= 0x11;
        const bool ours = i < size ? i >= 6 : i - size >= 8;
        write_kept(path, i < size ? damaged : bytes, i < size ? size : i - size);
        assert_int_equal(load_code(gpu, &plain_code, 0), 0);
        assert_int_equal(load_code(gpu, &plain_code, 0), ours);
        write_kept(path, bytes, size);
    }
    assert_int_equal(load_code(gpu, &plain_code, 0), 1);
    assert_int_equal(warnings, 1); /* for the file that stayed */
    gpuhal_close(gpu);
    remove_tree();
}

/* The header's numbers are the type, the sizes of key, code and file list, and the checksum with the reserved bytes. */
static void add_to_number(unsigned char *bytes, int number, int more)
{
    uint64_t value = 0;
    memcpy(&value, bytes + 8 * number, sizeof value);
    value += (uint64_t)(int64_t)more;
    memcpy(bytes + 8 * number, &value, sizeof value);
}

/* Most of these changes keep the sum of the sizes, and none affects the bytes that the checksum covers. */
TEST(a_file_whose_head_has_one_wrong_number_is_not_used)
{
    make_folder();
    char path[512];
    unsigned char bytes[8192], other[sizeof bytes];
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    const size_t size = read_kept(bytes, sizeof bytes, path);
    gpuhal *gpu = open_cached(NULL);
    for (int number = 1; number < 5; number++) {
        for (int second = 1; second < 5; second++) {
            static const int steps[] = {1, -1, 4096, 1 << 30, -(1 << 30)};
            for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
                memcpy(other, bytes, size);
                add_to_number(other, number, steps[s]);
                add_to_number(other, second, second == number ? 0 : -steps[s]);
                write_kept(path, other, size);
                assert_int_equal(load_code(gpu, &plain_code, 0), 0);
                assert_int_equal(load_code(gpu, &plain_code, 0), 1);
            }
        }
    }
    memcpy(other, bytes, size);
    other[8 * 4 + 4] ^= 1; /* the reserved bytes */
    write_kept(path, other, size);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    memcpy(other, bytes, size);
    other[7]++; /* the format version */
    write_kept(path, other, size);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(load_code(gpu, &plain_code, 0), 1);
    gpuhal_close(gpu);
    remove_tree();
}

/* The size changes as if another thread created a kernel between the two calls. */
TEST(compiled_code_whose_size_changes_while_it_is_read_is_not_kept)
{
    static const int64_t more[] = {1, 1 << 20, -1};
    gpuhal_mock_state mock = plain_mock();
    make_folder();
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        mock.devices[0].compiled_more = more[i];
        assert_int_equal(run_as(&mock, NULL, &plain_code, 0), 0);
        assert_int_equal(count_files(), 0);
    }
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    assert_int_equal(run_with(NULL, &plain_code, 0), 1);
    remove_tree();
}

/* The incomplete file of the other thread has the first number. */
TEST(a_program_is_kept_while_another_thread_writes_one)
{
    gpuhal_code code = plain_code;
    char path[512];
    code.options = "-O2";
    make_folder();
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    snprintf(path, sizeof path, "%s/new-%d-0", programs, (int)getpid());
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(file >= 0);
    close(file);
    assert_int_equal(run_with(NULL, &code, 0), 0);
    assert_int_equal(run_with(NULL, &code, 0), 1);
    remove_tree();
}

TEST(the_least_recently_used_code_goes_first_and_too_large_code_is_not_kept)
{
    make_folder();
    char code[4096], path[160], setting[256], names[64][512];
    snprintf(path, sizeof path, "%s/small/gpuhal-programs", folder);
    snprintf(setting, sizeof setting, "%s/small,24K", folder);
    gpuhal *gpu = open_cached(setting);
    gpuhal_code long_code = {.size = sizeof long_code, .format = "mock", .code = code, .bytes = sizeof code};
    memset(code, ' ', sizeof code);
    memcpy(code, "program add", 11);
    for (int i = 0; i < 6; i++) { /* each file has twice the size of the code, so two files fit */
        code[100] = (char)('a' + i);
        assert_int_equal(load_code(gpu, &long_code, 0), 0);
        assert_true(list_files(path, names, 64) <= 2);
        usleep(20000);
        code[100] = 'a';
        (void)load_code(gpu, &long_code, 0); /* used each time, so the file stays */
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

/* The cache has room for exactly two files. */
TEST(a_folder_with_the_name_of_a_file_of_the_cache_takes_no_room_of_it)
{
    make_folder();
    char setting[32], path[512];
    unsigned char bytes[8192];
    gpuhal_code other = plain_code;
    other.target = "mock9";
    assert_int_equal(run_with(NULL, &other, 0), 0);
    const size_t size = read_kept(bytes, sizeof bytes, path);
    snprintf(setting, sizeof setting, "%zu", 2 * size);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(run_with(setting, &plain_code, 0), 0);
    snprintf(path, sizeof path, "%s/0123456789abcdef", programs);
    assert_int_equal(mkdir(path, 0700), 0);
    put("state/gpuhal-programs/0123456789abcdef/notes", "the folder is not empty");
    assert_int_equal(run_with(setting, &other, 0), 0);
    assert_int_equal(run_with(setting, &plain_code, 0), 1);
    assert_int_equal(run_with(setting, &other, 0), 1);
    remove_tree();
}

TEST(a_folder_that_others_may_write_to_is_not_used)
{
    make_folder();
    char above[128], path[160], names[8][512];
    snprintf(above, sizeof above, "%s/shared", folder);
    snprintf(path, sizeof path, "%s/gpuhal-programs", above);
    assert_int_equal(mkdir(above, 0777), 0); /* like /tmp; the folder below belongs to the user */
    assert_int_equal(run_with(above, &plain_code, 0), 0);
    assert_int_equal(run_with(above, &plain_code, 0), 1);
    assert_int_equal(chmod(path, 0777), 0);
    gpuhal *gpu = open_cached(above);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(warnings, 1); /* one warning, not one per program */
    gpuhal_close(gpu);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(list_files(path, names, 8), 1);
    assert_int_equal(chmod(names[0], 0666), 0);
    assert_int_equal(run_with(above, &plain_code, 0), 0);
    remove_tree();
}

static void put_old(const char *path, const char *text)
{
    char whole[512];
    const struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    put(path, text);
    place_in_tree(path, whole);
    assert_int_equal(utimensat(AT_FDCWD, whole, times, 0), 0);
}

static bool is_there(const char *path)
{
    char whole[512];
    place_in_tree(path, whole);
    return access(whole, F_OK) == 0;
}

/* The user's files have names like the cache's files, and are older than all cache files when space runs out. */
TEST(files_of_the_user_stay_under_any_name)
{
    make_folder();
    static const char *const mine[] = {"state/new-thesis.tex",
                                       "state/0123456789abcdef",
                                       "state/gpuhal-programs/new-thesis.tex",
                                       "state/gpuhal-programs/new-1-0",
                                       "state/gpuhal-programs/0123456789abcdef",
                                       "state/gpuhal-programs/notes"};
    char code[4096];
    gpuhal_code long_code = {.size = sizeof long_code, .format = "mock", .code = code, .bytes = sizeof code};
    memset(code, ' ', sizeof code);
    memcpy(code, "program add", 11);
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        put_old(mine[i], "a thesis that is longer than the head of a file of the cache, and took four years");
    }
    put_old("state/gpuhal-programs/new-1-1", "ghadup02, and what a process that was killed has left");
    put_old("state/gpuhal-programs/fedcba9876543210", "ghadup01, and what an older version has kept");
    gpuhal *gpu = open_cached("24K");
    for (char i = 'a'; i < 'e'; i++) {
        code[100] = i;
        assert_int_equal(load_code(gpu, &long_code, 0), 0);
        assert_int_equal(load_code(gpu, &long_code, 0), 1);
    }
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        assert_true(is_there(mine[i]));
    }
    assert_false(is_there("state/gpuhal-programs/new-1-1"));
    assert_false(is_there("state/gpuhal-programs/fedcba9876543210"));
    assert_int_equal(count_files(), 4 + 2);
    gpuhal_close(gpu);
    remove_tree();
}

TEST(a_file_or_link_that_has_a_programs_name_is_not_replaced)
{
    make_folder();
    char path[512];
    unsigned char bytes[8192], now[sizeof bytes];
    assert_int_equal(run_with(NULL, &plain_code, 0), 0);
    const size_t size = read_kept(bytes, sizeof bytes, path);
    write_kept(path, "my own", 6);
    gpuhal *gpu = open_cached(NULL);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(warnings, 1);
    struct stat state;
    assert_int_equal(stat(path, &state), 0);
    assert_int_equal(state.st_size, 6);
    char elsewhere[512];
    place_in_tree("elsewhere", elsewhere);
    put_bytes("elsewhere", bytes, size - 1); /* the content begins like a cache file, but the link is the user's */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(lstat(path, &state), 0);
    assert_true(S_ISLNK(state.st_mode));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(load_code(gpu, &plain_code, 0), 0);
    assert_int_equal(read_kept(now, sizeof now, path), size);
    gpuhal_close(gpu);
    remove_tree();
}

TEST(a_program_is_cached_until_a_kernel_of_it_is_compiled)
{
    make_folder();
    gpuhal_mock_state mock = plain_mock();
    mock.devices[0].compiles_kernels = 1;
    for (int run = 0; run < 3; run++) {
        gpuhal *gpu = open_with(NULL, &mock);
        gpuhal_program *program = create_cached(gpu, &plain_code, 0);
        assert_int_equal(gpuhal_program_is_cached(program), run > 0);
        gpuhal_kernel *add = make_kernel(program, "add"), *sum = NULL;
        assert_int_equal(gpuhal_program_is_cached(program), run > 0);
        if (run > 0) {
            sum = make_kernel(program, "sum");
            assert_int_equal(gpuhal_program_is_cached(program), run > 1);
        }
        assert_int_equal(gpuhal_mock.devices[0].compilations, run == 0 ? 2 : run == 1 ? 1 : 0);
        gpuhal_kernel_release(sum);
        gpuhal_kernel_release(add);
        gpuhal_program_release(program);
        gpuhal_close(gpu);
    }
    remove_tree();
}

TEST(code_that_is_compiled_while_its_surroundings_change_is_not_kept)
{
    make_folder();
    gpuhal_mock_state mock = plain_mock();
    mock.devices[0].compiles_kernels = 1;
    gpuhal *gpu = open_with(NULL, &mock);
    gpuhal_program *program = create_cached(gpu, &plain_code, 0);
    setenv("POCL_EXTRA_BUILD_FLAGS", "-DVALUE=7", 1);
    gpuhal_kernel *add = make_kernel(program, "add");
    unsetenv("POCL_EXTRA_BUILD_FLAGS");
    gpuhal_kernel *sum = make_kernel(program, "sum");
    gpuhal_kernel_release(add);
    gpuhal_kernel_release(sum);
    gpuhal_program_release(program);
    program = create_cached(gpu, &plain_code, 0);
    assert_int_equal(gpuhal_program_is_cached(program), 1); /* the earlier program, without the kernels */
    sum = make_kernel(program, "sum");
    assert_int_equal(gpuhal_program_is_cached(program), 0);
    gpuhal_kernel_release(sum);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    remove_tree();
}

#include "test_main.h"
