/* A process with more rights than its user. The process runs a set-user-id root copy of this program for another
 * user. */
#include "loader_support.h"
#include "support/mock.h"

#include <gpuhal/direct.h>

#include <sys/wait.h>

/* The user's environment must not select the libraries that a helper's driver loads. */
static void check_environment_of_helper(void)
{
    const char *const arguments[] = {"/bin/sh", "-c", "env >&3", NULL};
    gpuhal_child process, *list[] = {&process};
    bool ready[1];
    char text[4096];
    size_t length = 0;
    int value;
    assert_int_equal(gpuhal_os_process_start(arguments, &process), 0);
    for (int64_t got = -1; got != 0;) {
        assert_int_equal(gpuhal_os_process_wait(list, 1, PATIENT_NS, ready), 0);
        got = gpuhal_os_process_read(&process, text + length, sizeof text - 1 - length);
        assert_true(got >= -1);
        length += got > 0 ? (size_t)got : 0;
    }
    gpuhal_os_process_finish(&process, PATIENT_NS, 0, &value);
    text[length] = 0;
    assert_non_null(strstr(text, "PATH=/usr/bin:/bin\n"));
    assert_null(strstr(text, "GPUHAL_"));
}

/* "mock" is a built-in driver. The library must not call a driver unless the program declares its environment clean.
 * The CPU always works. */
static void check_drivers(bool environment_is_clean)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, gpuhal_mock_cpu_query, NULL};
    gpuhal_config config = {.size = sizeof config, .builtins = builtins, .environment_is_clean = environment_is_clean};
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_mock.count = 1;
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    assert_int_equal(gpuhal_select(gpu, "cpu", 0, &device, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_device_open(device), GPUHAL_OK);
    gpuhal_status status = gpuhal_select(gpu, "mock:0", 0, &device, NULL);
    assert_int_equal(status, environment_is_clean ? GPUHAL_OK : GPUHAL_ERROR_NOT_FOUND);
    assert_true(!environment_is_clean || gpuhal_device_open(device) == GPUHAL_OK);
    const gpuhal_plugin_report report = report_of(gpu, "mock");
    assert_int_equal(report.state, environment_is_clean ? GPUHAL_PLUGIN_OK : GPUHAL_PLUGIN_EXCLUDED);
    assert_true(environment_is_clean || strstr(report.reason, "environment_is_clean"));
    gpuhal_close(gpu);
}

static void check_direct(void)
{
    const gpuhal_plugin *plugin = NULL;
    assert_int_equal(gpuhal_direct_load(test_plugin("good"), &plugin, NULL), GPUHAL_ERROR_NO_PERMISSION);
    assert_null(plugin);
}

/* Runs in the privileged process, with the settings of an attacker. */
static void check_as_privileged(void)
{
    const char *path = getenv("GPUHAL_PLUGIN_PATH");
    assert_null(gpuhal_os_environment("GPUHAL_PLUGIN_PATH"));
    assert_non_null(path);
    gpuhal_config config = {.size = sizeof config, .plugin_path = path, .helper_path = GPUHAL_HELPER};
    gpuhal_settings settings;
    assert_int_equal(gpuhal_settings_make(&config, &settings), GPUHAL_OK);
    assert_true(settings.ignore_environment);
    assert_null(settings.environment_plugin_path);
    char *ignored = gpuhal_settings_ignored(&settings);
    assert_non_null(ignored);
    assert_non_null(strstr(ignored, "GPUHAL_PLUGIN_PATH"));
    free(ignored);
    gpuhal_candidates candidates = run_loader(&settings);
    for (size_t i = 0; i < candidates.count; i++) {
        assert_true(!candidates.list[i].file || strncmp(candidates.list[i].file, path, strlen(path)) != 0);
    }
    assert_true(candidates.note_count > 0);
    assert_non_null(strstr(candidates.notes[0], "config.plugin_path is not searched"));
    gpuhal_candidates_finish(&candidates);
    gpuhal_settings_finish(&settings);
    check_environment_of_helper();
    check_drivers(false);
    check_drivers(true);
    check_direct();
}

TEST(a_privileged_process_loads_no_file_that_its_user_could_influence)
{
    if (gpuhal_os_privileged()) {
        check_as_privileged();
        return;
    }
    if (geteuid() != 0) {
        SKIP_TEST("making a set-user-id program needs root");
    }
    new_folder();
    assert_int_equal(chmod(own_folder(), 0755), 0);
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    copy_file("/proc/self/exe", in_folder("program"));
    assert_int_equal(chmod(in_folder("program"), 04755), 0);
    setenv("GPUHAL_PLUGIN_PATH", own_folder(), 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) == 0 && setuid(65534) == 0) {
            execl(in_folder("program"), "program", "a_privileged_process_loads_no_file_that_its_user_could_influence",
                  NULL);
        }
        _exit(77);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    unsetenv("GPUHAL_PLUGIN_PATH");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        SKIP_TEST("set-user-id programs do not work here");
    }
    assert_int_equal(status, 0);
}

#include "test_main.h"
