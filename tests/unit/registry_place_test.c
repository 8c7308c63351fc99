/* tests/unit/registry_place_test.c: the path of the registry, which depends on the environment, the configuration and
 * the system's variables. */
#include "registry_support.h"

#include "base/config.h"
#include "base/error.h"
#include "os/os.h"

#include <sys/wait.h>

static char *place_of(const char *configured, uint32_t ignore_environment)
{
    gpuhal_config config = {.size = sizeof config, .registry = configured, .ignore_environment = ignore_environment};
    gpuhal_settings settings;
    assert_int_equal(gpuhal_settings_make(&config, &settings), GPUHAL_OK);
    char *place = settings.registry ? strdup(settings.registry) : NULL;
    gpuhal_settings_finish(&settings);
    return place;
}

static void expect_place(const char *configured, uint32_t ignore_environment, const char *expected)
{
    char *place = place_of(configured, ignore_environment);
    if (expected) {
        assert_non_null(place);
        assert_string_equal(place, expected);
    } else {
        assert_null(place);
    }
    free(place);
}

TEST(the_variable_comes_before_the_configuration_and_that_before_the_state_directory)
{
    unsetenv("GPUHAL_REGISTRY");
    setenv("HOME", "/home/a", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    expect_place(NULL, 0, "/state/gpuhal");
    expect_place("/configured", 0, "/configured");
    setenv("GPUHAL_REGISTRY", "/variable", 1);
    expect_place("/configured", 0, "/variable");
    expect_place("/configured", 1, "/configured");
    setenv("GPUHAL_REGISTRY", "none", 1);
    expect_place("/configured", 0, NULL);
    unsetenv("GPUHAL_REGISTRY");
    expect_place("none", 0, NULL);
}

TEST(without_a_state_directory_it_is_the_home_and_without_that_none)
{
    unsetenv("GPUHAL_REGISTRY");
    setenv("HOME", "/home/a", 1);
    unsetenv("XDG_STATE_HOME");
    expect_place(NULL, 0, "/home/a/.local/state/gpuhal");
    setenv("XDG_STATE_HOME", "relative", 1);
    expect_place(NULL, 0, "/home/a/.local/state/gpuhal");
    unsetenv("HOME");
    expect_place(NULL, 0, NULL);
}

TEST(a_relative_place_is_an_error_that_names_who_said_it)
{
    gpuhal_config config = {.size = sizeof config, .registry = "here"};
    gpuhal_settings settings;
    unsetenv("GPUHAL_REGISTRY");
    assert_int_equal(gpuhal_settings_make(&config, &settings), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "config.registry is \"here\""));
    setenv("GPUHAL_REGISTRY", "./there", 1);
    assert_int_equal(gpuhal_settings_make(&config, &settings), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_REGISTRY is \"./there\""));
}

/* Checks a process with more rights than its user. The user names a directory that the process can write to. */
static void check_as_privileged(const char *named)
{
    expect_place(named, 0, NULL);
    gpuhal_registry *registry = gpuhal_registry_create(named, GPUHAL_REGISTRY_LOCK_NS, NULL);
    assert_null(gpuhal_registry_directory(registry));
    assert_int_equal(record_plugin(registry, 1), GPUHAL_ERROR_FILE);
    gpuhal_registry_destroy(registry);
}

TEST(a_privileged_process_keeps_no_registry_that_its_user_names)
{
    if (gpuhal_os_privileged()) {
        check_as_privileged(getenv("GPUHAL_REGISTRY"));
        return;
    }
    if (geteuid() != 0) {
        SKIP_TEST("making a set-user-id program needs root");
    }
    const char *directory = fresh_directory();
    size_t bytes;
    char *program = contents_of("/proc/self/exe", &bytes), path[512];
    snprintf(path, sizeof path, "%s/program", directory);
    put_contents(path, program, bytes);
    free(program);
    assert_int_equal(chmod(directory, 0755), 0);
    assert_int_equal(chmod(path, 04755), 0);
    setenv("GPUHAL_REGISTRY", directory, 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) == 0 && setuid(65534) == 0) {
            execl(path, "program", "a_privileged_process_keeps_no_registry_that_its_user_names", NULL);
        }
        _exit(77);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    unsetenv("GPUHAL_REGISTRY");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        SKIP_TEST("set-user-id programs do not work here");
    }
    assert_int_equal(status, 0);
    assert_int_equal(files_that_begin_with(directory, "registry"), 0);
}

/* Records an entry in a registry at the path. Returns FILE if nothing may be created there. */
static gpuhal_status record_at(const char *place)
{
    gpuhal_registry *registry = open_registry(place);
    const gpuhal_status status = record_plugin(registry, 1);
    gpuhal_registry_destroy(registry);
    return status;
}

/* If root created .local with a sudo that keeps HOME, or in a container with the user's home, the user could not write
 * to .local. */
TEST(root_with_the_home_of_a_user_makes_no_directory_in_it)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a directory away needs root");
    }
    char home[300], place[400];
    snprintf(home, sizeof home, "%s", fresh_directory());
    snprintf(place, sizeof place, "%s/.local/state/gpuhal", home);
    assert_int_equal(chown(home, 12345, 12345), 0);
    assert_int_equal(record_at(place), GPUHAL_ERROR_FILE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "another user"));
    assert_int_equal(files_that_begin_with(home, ".local"), 0);
    /* A directory must not be created below an existing directory of the user either. */
    assert_int_equal(mkdir(below(home, ".local"), 0755), 0);
    assert_int_equal(chown(below(home, ".local"), 12345, 12345), 0);
    assert_int_equal(record_at(place), GPUHAL_ERROR_FILE);
    assert_int_equal(files_that_begin_with(below(home, ".local"), "state"), 0);
    /* Root may use its own directory. */
    assert_int_equal(chown(below(home, ".local"), 0, 0), 0);
    assert_int_equal(record_at(place), GPUHAL_OK);
    assert_int_equal(files_that_begin_with(place, "registry"), 2);
}

#include "test_main.h"
