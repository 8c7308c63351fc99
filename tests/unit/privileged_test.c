/* The whole library in a process with more rights than its user: a set-user-id or set-group-id copy of this program.
 * The user sets every variable and every configuration member. The test watches the files that these settings name. The
 * library must not open these files. */
#include "loader_support.h"

#include <gpuhal/gpuhal.h>

#include <sys/inotify.h>
#include <sys/wait.h>

enum { FILE_OWNER = 65534, OTHER_USER = 12345 };

static const char *const traps[] = {"trap", "registry", "state", "state/gpuhal", "home", "home/.local/state/gpuhal"};

static char lines[8192];
static unsigned not_read_lines;

static void keep_line(void *user, int32_t level, const char *line)
{
    (void)user;
    not_read_lines += level == 2 && strstr(line, "not read, because the process is privileged") != NULL;
    size_t length = strlen(lines);
    snprintf(lines + length, sizeof lines - length, "%s\n", line);
}

/* Runs in the privileged process. */
static void check_as_privileged(void)
{
    const char *trap = getenv("GPUHAL_PLUGIN_PATH");
    char helper[512];
    assert_non_null(trap);
    snprintf(helper, sizeof helper, "%s/gpuhal-helper", trap);
    const gpuhal_config config = {.size = sizeof config,
                                  .plugin_path = trap,
                                  .helper_path = helper,
                                  .registry = getenv("GPUHAL_REGISTRY"),
                                  .log = keep_line,
                                  .log_level = 4};
    gpuhal *gpu = NULL;
    gpuhal_status status = gpuhal_open(&config, &gpu);
    if (status) {
        fail_msg("gpuhal_open: %s", gpuhal_last_error()->sentence);
    }
    assert_string_equal(report_of(gpu, "good").name, "");
    gpuhal_close(gpu);
    assert_int_equal(not_read_lines, 1);
    for (uint32_t i = 0; gpuhal_variable_name(i); i++) {
        const char *named = strstr(strstr(lines, "not read"), gpuhal_variable_name(i));
        assert_true(named && named < strchr(strstr(lines, "not read"), '\n'));
    }
    assert_non_null(strstr(lines, "config.plugin_path is not searched"));
}

static void set_variables(void)
{
    for (uint32_t i = 0; gpuhal_variable_name(i); i++) {
        setenv(gpuhal_variable_name(i),
               strstr(gpuhal_variable_name(i), "_LIBRARY") ? in_folder("trap/library.so") : "no, such word!", 1);
    }
    setenv("GPUHAL_PLUGIN_PATH", in_folder("trap"), 1);
    setenv("GPUHAL_REGISTRY", in_folder("registry"), 1);
    setenv("GPUHAL_SYSTEM_ROOT", in_folder("trap"), 1);
    setenv("XDG_STATE_HOME", in_folder("state"), 1);
    setenv("HOME", in_folder("home"), 1);
}

static int set_traps(void)
{
    static const char *const parents[] = {"home/.local", "home/.local/state"};
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(watch >= 0);
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
        for (size_t p = 0; p < 2 && strncmp(traps[i], "home/.", 6) == 0; p++) {
            assert_int_equal(mkdir(in_folder(parents[p]), 0755), 0);
        }
        assert_int_equal(mkdir(in_folder(traps[i]), 0755), 0);
        assert_int_equal(chmod(in_folder(traps[i]), 0777), 0);
    }
    write_manifest("trap/good.gpuhal", "good", test_plugin("good"), "");
    copy_file(GPUHAL_HELPER, in_folder("trap/gpuhal-helper"));
    copy_file(test_plugin("good"), in_folder("trap/library.so"));
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
        assert_true(inotify_add_watch(watch, in_folder(traps[i]),
                                      IN_OPEN | IN_CREATE | IN_ACCESS | IN_MODIFY | IN_DELETE) >= 0);
    }
    return watch;
}

/* Makes a copy of the program with the owner, group and mode, and runs `test` in the copy as another user. */
static void run_as_privileged(const char *test, uid_t owner, gid_t group, mode_t mode)
{
    if (gpuhal_os_privileged()) {
        check_as_privileged();
        _exit(0); /* a leak sanitizer cannot inspect such a process */
    }
    if (geteuid() != 0) {
        SKIP_TEST("making a program that runs with other rights needs root");
    }
    new_folder();
    assert_int_equal(chmod(own_folder(), 0755), 0);
    copy_file("/proc/self/exe", in_folder("program"));
    assert_int_equal(chown(in_folder("program"), owner, group), 0);
    assert_int_equal(chmod(in_folder("program"), mode), 0);
    int watch = set_traps();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        set_variables();
        if (setgid(OTHER_USER) == 0 && setuid(OTHER_USER) == 0) {
            execl(in_folder("program"), "program", test, NULL);
        }
        _exit(77);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        SKIP_TEST("programs that run with other rights do not work here: the file system is mounted nosuid");
    }
    assert_int_equal(status, 0);
    char events[4096] __attribute__((aligned(8)));
    ssize_t got = read(watch, events, sizeof events);
    if (got > 0) {
        const struct inotify_event *event = (const struct inotify_event *)(const void *)events;
        fail_msg("it touched %s (%#x)", event->len ? event->name : "a directory", event->mask);
    }
    assert_int_equal(errno, EAGAIN);
    close(watch);
}

TEST(a_set_user_id_program_of_root_reads_no_file_that_its_user_names)
{
    run_as_privileged("a_set_user_id_program_of_root_reads_no_file_that_its_user_names", 0, 0, 04755);
}

TEST(a_set_user_id_program_of_another_user_does_so_too)
{
    run_as_privileged("a_set_user_id_program_of_another_user_does_so_too", FILE_OWNER, 0, 04755);
}

TEST(a_set_group_id_program_does_so_too)
{
    run_as_privileged("a_set_group_id_program_does_so_too", 0, FILE_OWNER, 02755);
}

#include "test_main.h"
