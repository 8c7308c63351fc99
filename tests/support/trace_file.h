/* tests/support/trace_file.h: trace files of queues and of pools in tests, and checks that other files are not
 * replaced. */
#ifndef GPUHAL_TEST_TRACE_FILE_H
#define GPUHAL_TEST_TRACE_FILE_H

#include "support/folder.h"
#include "support/open_variable.h"

#include <gpuhal/gpuhal.h>

#include <fcntl.h>
#include <sys/stat.h>

static char trace_path[80];

static inline void begin_traces(void)
{
    make_test_folder("trace");
    snprintf(trace_path, sizeof trace_path, "%s/trace", test_folder);
}

static inline void end_traces(void)
{
    unlink(trace_path);
    assert_int_equal(rmdir(test_folder), 0);
    forget_test_folder();
}

static inline gpuhal_status start_pool_trace(gpuhal *gpu)
{
    const gpuhal_trace_desc desc = {.size = sizeof desc, .kinds = GPUHAL_TRACE_POOLS};
    return gpuhal_trace_start(gpu, &desc);
}

static inline bool has_text(const char *path, const char *text)
{
    char found[200];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    const size_t length = fread(found, 1, sizeof found, file);
    fclose(file);
    return length == strlen(text) && memcmp(found, text, length) == 0;
}

static inline void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static inline void expect_bad_files_refused(gpuhal *gpu, gpuhal_trace_kind kind)
{
    char missing[80];
    snprintf(missing, sizeof missing, "%s/no/trace", test_folder);
    const struct {
        const char *path;
        gpuhal_status status;
    } cases[] = {{missing, GPUHAL_ERROR_NOT_FOUND},
                 {test_folder, GPUHAL_ERROR_INVALID_ARGUMENT},
                 {"/dev/full", GPUHAL_ERROR_FILE},
                 {"/dev/null", GPUHAL_OK}};
    assert_int_equal(gpuhal_trace_write(NULL, kind, trace_path), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trace_write(gpu, kind, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(access(trace_path, F_OK), -1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_status status = gpuhal_trace_write(gpu, kind, cases[i].path);
        if (status != cases[i].status || (status && !strstr(gpuhal_last_error()->sentence, cases[i].path))) {
            fail_msg("%s: %d, %s", cases[i].path, status, gpuhal_last_error()->sentence);
        }
    }
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

/* A trace is written to a symbolic link's target; a dangling link is refused. */
static inline void expect_links_followed(gpuhal *gpu, gpuhal_trace_kind kind)
{
    char link[80];
    struct stat info;
    snprintf(link, sizeof link, "%s/link", test_folder);
    assert_int_equal(symlink("trace", link), 0);
    assert_int_equal(gpuhal_trace_write(gpu, kind, link), GPUHAL_ERROR_NOT_FOUND);
    put_text(trace_path, "");
    assert_ok(gpuhal_trace_write(gpu, kind, link));
    assert_int_equal(stat(trace_path, &info), 0);
    assert_true(info.st_size > 0);
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    unlink(link);
    unlink(trace_path);
}

/* The program must never replace its own output through any path. */
static inline void expect_own_output_refused(gpuhal *gpu, gpuhal_trace_kind kind)
{
    char pipe_end[40];
    int ends[2];
    struct stat info;
    const int before = dup(STDERR_FILENO), output = open(trace_path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(dup2(output, STDERR_FILENO), STDERR_FILENO);
    const gpuhal_status by_descriptor = gpuhal_trace_write(gpu, kind, "/dev/stderr");
    const gpuhal_status by_name = gpuhal_trace_write(gpu, kind, trace_path);
    assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
    close(before);
    assert_int_equal(by_descriptor, GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(by_name, GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fstat(output, &info), 0);
    assert_int_equal(info.st_nlink, 1); /* the path still refers to the open file */
    close(output);
    assert_int_equal(pipe(ends), 0);
    snprintf(pipe_end, sizeof pipe_end, "/dev/fd/%d", ends[1]);
    assert_int_equal(gpuhal_trace_write(gpu, kind, pipe_end), GPUHAL_ERROR_INVALID_ARGUMENT);
    close(ends[0]);
    close(ends[1]);
    unlink(trace_path);
}

/* A file must not be changed if its content is not a trace of this kind. */
static inline void expect_other_files_kept(gpuhal *gpu, gpuhal_trace_kind kind)
{
    static const char *const theirs[] = {"GGUF, or whatever it is", "{\"traceEvents\":[]}", "{",
                                         "{\"schema\":\"gpuhal.probe/2\"}", "{\"schema\":\"gpuhal.trac"};
    char link[80];
    snprintf(link, sizeof link, "%s/link", test_folder);
    assert_int_equal(symlink("trace", link), 0);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        put_text(trace_path, theirs[i]);
        assert_int_equal(gpuhal_trace_write(gpu, kind, trace_path), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "name another file"));
        assert_int_equal(gpuhal_trace_write(gpu, kind, link), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_true(has_text(trace_path, theirs[i]));
        unlink(trace_path);
    }
    assert_ok(gpuhal_trace_write(gpu, kind, trace_path));
    assert_ok(gpuhal_trace_write(gpu, kind, trace_path)); /* a trace of the same kind is replaced */
    unlink(link);
    unlink(trace_path);
}

static inline void expect_bad_variables_refused(const char *variable)
{
    char missing[80];
    gpuhal *gpu = NULL;
    snprintf(missing, sizeof missing, "%s/no/trace", test_folder);
    const char *const bad[] = {"trace.json", missing, test_folder, trace_path};
    put_text(trace_path, "GGUF");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(open_with_variable(variable, bad[i], NULL, NULL, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_null(gpu);
        assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, variable));
        assert_non_null(strstr(gpuhal_last_error()->sentence, bad[i]));
    }
    assert_true(has_text(trace_path, "GGUF"));
    assert_ok(open_with_variable(variable, "", NULL, NULL, &gpu)); /* an empty variable counts as unset */
    gpuhal_close(gpu);
}

#endif
