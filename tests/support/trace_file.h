/* tests/support/trace_file.h: the file of a trace, of queues or of pools: where a test has it, and what is refused. */
#ifndef GPUHAL_TEST_TRACE_FILE_H
#define GPUHAL_TEST_TRACE_FILE_H

#include "support/folder.h"
#include "support/mock.h"

#include <gpuhal/gpuhal.h>

#include <sys/stat.h>

static char trace_path[80];

static inline void begin_traces(void)
{
    make_test_folder("trace");
    snprintf(trace_path, sizeof trace_path, "%s/trace", test_folder);
}

/* Nothing but the trace may be there. */
static inline void end_traces(void)
{
    unlink(trace_path);
    assert_int_equal(rmdir(test_folder), 0);
    forget_test_folder();
}

/* By gpuhal_trace_write() or its like. */
static inline void expect_bad_files_refused(gpuhal *gpu, gpuhal_status (*write)(gpuhal *gpu, const char *path))
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
    assert_int_equal(write(NULL, trace_path), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(write(gpu, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(access(trace_path, F_OK), -1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_status status = write(gpu, cases[i].path);
        if (status != cases[i].status || (status && !strstr(gpuhal_last_error()->sentence, cases[i].path))) {
            fail_msg("%s: %d, %s", cases[i].path, status, gpuhal_last_error()->sentence);
        }
    }
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

/* With two devices of the mock and this log, while the variable names the file. */
static inline gpuhal_status open_with_variable(const char *variable, const char *file, gpuhal_log_fn *log, void *user,
                                               gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .registry = "none",
                                  .backends = "mock",
                                  .builtins = builtins,
                                  .log = log,
                                  .log_user = user};
    setenv(variable, file, 1);
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal_status status = gpuhal_open(&config, out_gpu);
    unsetenv(variable);
    return status;
}

static inline void expect_bad_variables_refused(const char *variable)
{
    char missing[80];
    gpuhal *gpu = NULL;
    snprintf(missing, sizeof missing, "%s/no/trace", test_folder);
    const char *const bad[] = {"trace.json", missing, test_folder};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(open_with_variable(variable, bad[i], NULL, NULL, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_null(gpu);
        assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, variable));
        assert_non_null(strstr(gpuhal_last_error()->sentence, bad[i]));
    }
    assert_ok(open_with_variable(variable, "", NULL, NULL, &gpu)); /* counts as not set */
    gpuhal_close(gpu);
}

#endif
