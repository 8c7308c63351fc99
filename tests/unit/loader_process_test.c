/* Helper processes of hosts that handle signals, children and descriptors in unusual ways. The result must always be
 * the same, and nothing may be leaked. */
#include "loader_support.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Adds a good plugin and four bad plugins. The first crashes, the second exits, the third leaves no stack for a crash
 * report, and only the wait status shows the death of the fourth. */
static void add_plugins(void)
{
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    write_manifest("b.gpuhal", "constructor_segfault", test_plugin("constructor_segfault"), "");
    write_manifest("c.gpuhal", "constructor_exit_3", test_plugin("constructor_exit_3"), "");
    write_manifest("x.gpuhal", "constructor_stack_overflow", test_plugin("constructor_stack_overflow"), "");
    write_manifest("d.gpuhal", "constructor_killed", test_plugin("constructor_killed"), "");
}

/* `status_known` is true if the host lets the library read the exit status. */
static void check_plugins(bool status_known)
{
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    const char *lost = "sent no result: the stream ended while loading";
    assert_listed(&candidates, "good");
    assert_result(&candidates, find_candidate(&candidates, "constructor_segfault"), GPUHAL_PLUGIN_FAILED,
                  GPUHAL_STAGE_LOAD, "crashed with signal 11 (Segmentation fault) while loading");
    assert_result(&candidates, find_candidate(&candidates, "constructor_stack_overflow"), GPUHAL_PLUGIN_FAILED,
                   GPUHAL_STAGE_LOAD, "crashed with signal 11 (Segmentation fault) while loading");
    assert_result(&candidates, find_candidate(&candidates, "constructor_exit_3"), GPUHAL_PLUGIN_FAILED,
                  GPUHAL_STAGE_LOAD, status_known ? "exited with code 3 while loading" : lost);
    assert_result(&candidates, find_candidate(&candidates, "constructor_killed"), GPUHAL_PLUGIN_FAILED,
                  GPUHAL_STAGE_LOAD, status_known ? "signal 9 (Killed) while loading" : lost);
    assert_int_equal(candidates.note_count, 0);
    gpuhal_candidates_finish(&candidates);
}

TEST(a_host_that_ignores_sigchld_gets_the_same_listing)
{
    new_folder();
    add_plugins();
    signal(SIGCHLD, SIG_IGN);
    check_plugins(false);
    signal(SIGCHLD, SIG_DFL);
}

static void reap_everything(__attribute__((unused)) int number)
{
    int before = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = before;
}

/* The handler and the library race for each exit status. So the test checks only those parts of the report that do not
 * depend on the status. */
TEST(a_host_whose_handler_reaps_every_child_gets_the_same_listing)
{
    new_folder();
    add_plugins();
    struct sigaction action = {.sa_handler = reap_everything};
    sigaction(SIGCHLD, &action, NULL);
    for (int i = 0; i < 3; i++) {
        gpuhal_settings settings = own_settings();
        gpuhal_candidates candidates = run_loader(&settings);
        assert_listed(&candidates, "good");
        assert_result(&candidates, find_candidate(&candidates, "constructor_segfault"), GPUHAL_PLUGIN_FAILED,
                      GPUHAL_STAGE_LOAD, "crashed with signal 11 (Segmentation fault) while loading");
        assert_result(&candidates, find_candidate(&candidates, "constructor_killed"), GPUHAL_PLUGIN_FAILED,
                      GPUHAL_STAGE_LOAD, "while loading");
        gpuhal_candidates_finish(&candidates);
    }
    signal(SIGCHLD, SIG_DFL);
}

TEST(a_helper_inherits_neither_descriptors_nor_signals_and_leaves_no_core)
{
    new_folder();
    write_manifest("a.gpuhal", "good_looks_around", test_plugin("good_looks_around"), "");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    int leaky[3];
    for (int i = 0; i < 3; i++) {
        leaky[i] = open("/dev/zero", O_RDONLY);
        assert_true(leaky[i] >= 0);
    }
    struct rlimit core = {0};
    getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = core.rlim_max;
    setrlimit(RLIMIT_CORE, &core);
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_listed(&candidates, "good_looks_around");
    const gpuhal_facts *facts = &find_candidate(&candidates, "good_looks_around")->devices.list[0].facts;
    assert_string_equal(gpuhal_facts_text(facts, GPUHAL_FACT_VENDOR),
                        "more 0 null 1 blocked 0 ignored 0 core 0 leader 1 first 1");
    gpuhal_candidates_finish(&candidates);
    for (int i = 0; i < 3; i++) {
        close(leaky[i]);
    }
}

/* The plugin dies by the signal that the variable names. */
TEST(a_helper_has_the_variables_that_the_manifest_sets_and_this_process_keeps_its_environment)
{
    new_folder();
    copy_file(test_plugin("killed_on_request"), in_folder("gpuhal-killed_on_request.so"));
    write_manifest("k.gpuhal", "killed_on_request", "gpuhal-killed_on_request.so",
                   "environment = GPUHAL_TEST_SIGNAL=15\n");
    gpuhal_settings settings = own_settings();
    for (int own = 0; own < 2; own++) {
        gpuhal_candidates candidates = run_loader(&settings);
        assert_result(&candidates, find_candidate(&candidates, "killed_on_request"), GPUHAL_PLUGIN_FAILED,
                      GPUHAL_STAGE_START, own ? "signal 2 (Interrupt)" : "signal 15 (Terminated)");
        gpuhal_candidates_finish(&candidates);
        setenv("GPUHAL_TEST_SIGNAL", "2", 1); /* the user's value counts */
    }
    unsetenv("GPUHAL_TEST_SIGNAL");
    settings.isolation = GPUHAL_ISOLATION_NEVER;
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "killed_on_request"), GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE,
                  "needs GPUHAL_TEST_SIGNAL=15 in the environment of this process");
    gpuhal_candidates_finish(&candidates);
    assert_null(getenv("GPUHAL_TEST_SIGNAL"));
}

TEST(nothing_is_left_behind_neither_descriptor_nor_process)
{
    new_folder();
    add_plugins();
    write_manifest("e.gpuhal", "dies_and_leaves_child", test_plugin("dies_and_leaves_child"), "");
    write_manifest("f.gpuhal", "constructor_sleeps", test_plugin("constructor_sleeps"), "");
    size_t before = count_descriptors();
    gpuhal_settings settings = own_settings();
    settings.helper_deadline_ns = 1200000000u;
    gpuhal_candidates candidates = run_loader(&settings);
    gpuhal_candidates_finish(&candidates);
    assert_int_equal(count_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* A zombie is not alive. */
static bool is_alive(uint64_t pid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    FILE *file = fopen(path, "r");
    if (!file) {
        return false;
    }
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    const char *end = strrchr(text, ')');
    return end && strncmp(end, ") Z", 3) != 0 && strncmp(end, ") X", 3) != 0;
}

static void check_left_child(void)
{
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good_leaves_child");
    const gpuhal_facts *facts = &find_candidate(&candidates, "good_leaves_child")->devices.list[0].facts;
    uint64_t child = gpuhal_facts_u64(facts, GPUHAL_FACT_NATIVE_INDEX, 0);
    assert_true(child > 1);
    for (int i = 0; i < 200 && is_alive(child); i++) {
        usleep(10000);
    }
    assert_false(is_alive(child));
    gpuhal_candidates_finish(&candidates);
}

TEST(a_process_that_a_plugin_leaves_behind_is_ended_too)
{
    new_folder();
    write_manifest("a.gpuhal", "good_leaves_child", test_plugin("good_leaves_child"), "");
    check_left_child();
    signal(SIGCHLD, SIG_IGN);
    check_left_child();
    signal(SIGCHLD, SIG_DFL);
}

/* Runs `prepare` and then the checks in a child of this process. The child's exit code is 0 on success. */
static void check_in_child(void (*prepare)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prepare();
        gpuhal_settings settings = own_settings();
        gpuhal_candidates candidates;
        bool good = gpuhal_loader_run(&settings, NULL, NULL, false, &candidates) == GPUHAL_OK &&
                    has_result(find_candidate(&candidates, "good"), GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE, NULL) &&
                    has_result(find_candidate(&candidates, "constructor_segfault"), GPUHAL_PLUGIN_FAILED,
                               GPUHAL_STAGE_LOAD, "crashed with signal 11") &&
                    find_candidate(&candidates, "good")->isolated;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void close_standard(void)
{
    close(0);
    close(1);
    close(2);
}

static void close_all(void)
{
    for (int file = 0; file < 64; file++) {
        close(file);
    }
}

TEST(a_host_without_standard_descriptors_gets_the_same_listing)
{
    new_folder();
    add_plugins();
    check_in_child(close_standard);
    check_in_child(close_all);
}

static void *run_in_thread(void *user)
{
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates;
    bool *good = user;
    if (gpuhal_loader_run(&settings, NULL, NULL, false, &candidates) == GPUHAL_OK) {
        *good = has_result(find_candidate(&candidates, "good"), GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE, NULL) &&
                has_result(find_candidate(&candidates, "constructor_exit_3"), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_LOAD,
                           "code 3");
        gpuhal_candidates_finish(&candidates);
    }
    return NULL;
}

TEST(several_threads_may_look_for_plugins_at_once)
{
    new_folder();
    add_plugins();
    pthread_t threads[4];
    bool good[4] = {false};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_in_thread, &good[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
}

/* If the helper cannot be used, the plugin must not be loaded into this process. The report and a note must contain the
 * reason. */
static void check_without_helper(const char *helper, const char *words)
{
    gpuhal_settings settings = own_settings();
    settings.helper_path = (char *)helper;
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "good"), GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_STAGE_SPAWN,
                  words);
    assert_result(&candidates, find_candidate(&candidates, "constructor_abort"), GPUHAL_PLUGIN_NOT_PROBED,
                  GPUHAL_STAGE_SPAWN, words);
    assert_int_equal(candidates.note_count, 1);
    assert_non_null(strstr(candidates.notes[0], words));
    assert_false(is_mapped("gpuhal-good"));
    gpuhal_candidates_finish(&candidates);
}

TEST(without_a_helper_plugins_are_not_probed_and_a_note_says_so)
{
    new_folder();
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    write_manifest("b.gpuhal", "constructor_abort", test_plugin("constructor_abort"), "");
    check_without_helper("/nowhere/gpuhal-helper", "/nowhere/gpuhal-helper does not exist");
    copy_file(GPUHAL_HELPER, in_folder("helper"));
    check_without_helper(in_folder("helper"), in_folder("helper")); /* not executable */
    assert_int_equal(chmod(in_folder("helper"), 0777), 0);
    check_without_helper(in_folder("helper"), "may be written to by everybody");
    write_file(in_folder("script"), "#!/bin/sh\n", 10);
    assert_int_equal(chmod(in_folder("script"), 0755), 0);
    check_without_helper(in_folder("script"), "is not a program");
    check_without_helper(
        "/bin/true",
        "sent nothing: it is not a helper of this version, or is in another PID namespace than this process");
    check_without_helper("/usr", "/usr is a directory");
}

/* Leaves `count` free descriptors. Two are enough for the earlier steps, but too few for a helper's pipes. */
static void leave_descriptors(unsigned count)
{
    struct rlimit few;
    getrlimit(RLIMIT_NOFILE, &few);
    int lowest = open("/dev/null", O_RDONLY);
    assert_true(lowest >= 0);
    close(lowest);
    few.rlim_cur = (rlim_t)lowest + count;
    setrlimit(RLIMIT_NOFILE, &few);
}

TEST(a_host_at_its_limit_of_descriptors_loads_no_plugin_itself)
{
    new_folder();
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    write_manifest("b.gpuhal", "constructor_abort", test_plugin("constructor_abort"), "");
    write_manifest("c.gpuhal", "constructor_exit_0", test_plugin("constructor_exit_0"), "");
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    gpuhal_settings settings = own_settings();
    leave_descriptors(2);
    gpuhal_candidates candidates;
    gpuhal_status status = gpuhal_loader_run(&settings, NULL, NULL, false, &candidates);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(status, GPUHAL_OK);
    static const char *const names[] = {"good", "constructor_abort", "constructor_exit_0"};
    for (size_t i = 0; i < 3; i++) {
        assert_result(&candidates, find_candidate(&candidates, names[i]), GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_STAGE_SPAWN,
                       "cannot be started: Too many open files");
    }
    assert_int_equal(candidates.note_count, 1);
    assert_false(is_mapped("gpuhal-good"));
    gpuhal_candidates_finish(&candidates);
}

TEST(helpers_wait_for_their_turn_if_they_do_not_all_fit)
{
    new_folder();
    write_copies("constructor_segfault", 6);
    write_manifest("z.gpuhal", "good", test_plugin("good"), "");
    struct rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    gpuhal_settings settings = own_settings();
    leave_descriptors(9); /* enough for at most two concurrent helpers */
    gpuhal_candidates candidates;
    gpuhal_status status = gpuhal_loader_run(&settings, NULL, NULL, false, &candidates);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(status, GPUHAL_OK);
    assert_listed(&candidates, "good");
    assert_true(find_candidate(&candidates, "good")->isolated);
    assert_result(&candidates, find_candidate(&candidates, "copy_5"), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_LOAD,
                  "signal 11");
    assert_int_equal(candidates.note_count, 0);
    gpuhal_candidates_finish(&candidates);
}

TEST(a_helper_that_never_speaks_costs_the_deadline_and_nothing_is_loaded_here)
{
    new_folder();
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    gpuhal_settings settings = own_settings();
    settings.helper_path = (char *)"/usr/bin/yes";
    settings.helper_deadline_ns = 150000000;
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "good"), GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_STAGE_SPAWN,
                   "its helper process sent nothing within 150 ms");
    gpuhal_candidates_finish(&candidates);
    assert_false(is_mapped("gpuhal-good"));
}

TEST(a_tiny_deadline_is_worded_as_it_is)
{
    new_folder();
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    gpuhal_settings settings = own_settings();
    settings.helper_path = (char *)"/usr/bin/yes";
    settings.helper_deadline_ns = 5000;
    gpuhal_candidates candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "good"), GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_STAGE_SPAWN,
                  "within 5 µs");
    gpuhal_candidates_finish(&candidates);
}

/* If the library waited for one plugin after the other, the test would take 24 seconds. */
TEST(plugins_that_fall_silent_do_not_wait_for_each_other)
{
    new_folder();
    write_copies("constructor_falls_silent", 24);
    gpuhal_settings settings = own_settings();
    uint64_t begun = gpuhal_os_monotonic_ns();
    gpuhal_candidates candidates = run_loader(&settings);
    uint64_t used = gpuhal_os_monotonic_ns() - begun;
    assert_result(&candidates, find_candidate(&candidates, "copy_23"), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_LOAD,
                   "sent no result: the stream ended while loading");
    assert_true(used < 12000000000u);
    gpuhal_candidates_finish(&candidates);
}

TEST(a_host_that_may_open_few_files_can_wait_for_helpers)
{
    enum { COUNT = 4 };
    const char *const arguments[] = {"/bin/true", NULL};
    gpuhal_child processes[COUNT], *list[COUNT];
    bool ready[COUNT];
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(gpuhal_os_process_start(arguments, &processes[i]), 0);
        list[i] = &processes[i];
    }
    struct rlimit before, few;
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = COUNT + 1;
    setrlimit(RLIMIT_NOFILE, &few);
    int error = gpuhal_os_process_wait(list, COUNT, PATIENT_NS, ready);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(error, 0);
    for (int i = 0; i < COUNT; i++) {
        int value;
        gpuhal_os_process_finish(&processes[i], PATIENT_NS, 0, &value);
    }
}

TEST(a_process_that_only_prints_wakes_who_waits_for_it_and_for_no_other)
{
    static const char *const silent[] = {"/bin/sleep", "60", NULL}, *const prints[] = {"/bin/sh", "-c",
                                                                                       "echo words; exec sleep 60",
                                                                                       NULL};
    for (size_t speaker = 0; speaker < 3; speaker++) {
        gpuhal_child processes[3], *all[3] = {&processes[0], &processes[1], &processes[2]};
        bool ready[3] = {false, false, false};
        char text[8] = "";
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(gpuhal_os_process_start(i == speaker ? prints : silent, &processes[i]), 0);
        }
        assert_int_equal(gpuhal_os_process_wait(all, 3, UINT64_C(30000000000), ready), 0);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(ready[i], i == speaker);
        }
        assert_int_equal(gpuhal_os_process_read_output(all[speaker], text, sizeof text), 6);
        assert_memory_equal(text, "words\n", 6);
        for (size_t i = 0; i < 3; i++) {
            int value = 0;
            gpuhal_os_process_finish(&processes[i], 0, 0, &value);
        }
    }
}

TEST(a_process_that_hangs_is_asked_to_end_before_it_is_killed)
{
    char script[700];
    new_folder();
    snprintf(script, sizeof script, "trap 'echo asked >%s; exit 7' TERM; echo ready; while :; do sleep 1; done",
             in_folder("asked"));
    const char *const arguments[] = {"/bin/sh", "-c", script, NULL};
    gpuhal_child process;
    char bytes[16];
    int value = -1;
    assert_int_equal(gpuhal_os_process_start(arguments, &process), 0);
    while (gpuhal_os_process_read_output(&process, bytes, sizeof bytes) == 0) {
        gpuhal_os_sleep(1000000);
    }
    assert_memory_equal(bytes, "ready\n", 6);
    assert_int_equal(gpuhal_os_process_finish(&process, 0, PATIENT_NS, &value), GPUHAL_ENDED_UNKNOWN);
    assert_int_equal(value, 0);
    assert_int_equal(access(in_folder("asked"), F_OK), 0);
}

TEST(a_helper_whose_parent_is_gone_says_nothing)
{
    const char *const arguments[] = {GPUHAL_HELPER, "1", "good", test_plugin("good"), "0", "0", "2147483646", NULL};
    gpuhal_child process;
    assert_int_equal(gpuhal_os_process_start(arguments, &process), 0);
    gpuhal_child *list[] = {&process};
    bool ready[1];
    char bytes[16];
    int64_t got;
    do {
        assert_int_equal(gpuhal_os_process_wait(list, 1, PATIENT_NS, ready), 0);
        got = gpuhal_os_process_read(&process, bytes, sizeof bytes);
    } while (got == -1);
    assert_int_equal(got, 0);
    int value;
    gpuhal_os_process_finish(&process, PATIENT_NS, 0, &value);
}

/* The test runs a copy of this program, so that it can place a bad helper beside the copy. */
TEST(a_refused_helper_of_ones_own_is_named_with_the_reason)
{
    if (getenv("GPUHAL_TEST_COPY")) {
        gpuhal_settings settings = {.isolation = GPUHAL_ISOLATION_ALWAYS, .helper_deadline_ns = PATIENT_NS};
        settings.plugin_path = getenv("GPUHAL_TEST_COPY");
        gpuhal_candidates candidates = run_loader(&settings);
        assert_int_equal(candidates.note_count, 1);
        assert_non_null(strstr(candidates.notes[0], "gpuhal/gpuhal-helper may be written to by everybody"));
        gpuhal_candidates_finish(&candidates);
        return;
    }
    new_folder();
    assert_int_equal(mkdir(in_folder("gpuhal"), 0755), 0);
    write_manifest("a.gpuhal", "good", test_plugin("good"), "");
    copy_file(GPUHAL_HELPER, in_folder("gpuhal/gpuhal-helper"));
    assert_int_equal(chmod(in_folder("gpuhal/gpuhal-helper"), 0777), 0);
    copy_file("/proc/self/exe", in_folder("program"));
    assert_int_equal(chmod(in_folder("program"), 0755), 0);
    setenv("GPUHAL_TEST_COPY", own_folder(), 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execl(in_folder("program"), "program", "a_refused_helper_of_ones_own_is_named_with_the_reason", NULL);
        _exit(77);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    unsetenv("GPUHAL_TEST_COPY");
    assert_int_equal(status, 0);
}

TEST(a_helper_path_that_is_not_absolute_is_an_error)
{
    new_folder();
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates;
    settings.helper_path = (char *)"gpuhal-helper";
    assert_int_equal(gpuhal_loader_run(&settings, NULL, NULL, false, &candidates), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "config.helper_path is \"gpuhal-helper\""));
}

#include "test_main.h"
