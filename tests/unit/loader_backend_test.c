/* Backends in this process, which are started once, shared, retried after a failure and refused after a fork. Also
 * tests the host table that plugins receive. */
#include "loader_support.h"

#include "base/log.h"
#include "loader/load_context.h"
#include "loader/backend.h"
#include "loader/host.h"

#include <pthread.h>
#include <sys/wait.h>

#define DEADLINE_NS UINT64_C(20000000000)

static gpuhal_candidate candidate_of(const char *name)
{
    gpuhal_candidate candidate = {.name = gpuhal_text_copy(name), .file = gpuhal_text_copy(test_plugin(name))};
    return candidate;
}

static void finish(gpuhal_candidate *candidate)
{
    free(candidate->name);
    free(candidate->file);
}

static gpuhal_status start(const char *name, gpuhal_backend **out_backend)
{
    gpuhal_candidate candidate = candidate_of(name);
    gpuhal_status status = gpuhal_backend_start(&candidate, DEADLINE_NS, out_backend);
    finish(&candidate);
    return status;
}

/* Starts a backend in a child, and returns the child's exit code: 0 for OK, 1 for FORKED with its message, 2
 * otherwise. */
static int start_in_child(const char *name)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        gpuhal_backend *backend;
        gpuhal_status status = start(name, &backend);
        bool worded = status && strstr(gpuhal_last_error()->sentence, "fork before opening, or exec");
        _exit(status == GPUHAL_OK ? 0 : status == GPUHAL_ERROR_FORKED && worded ? 1 : 2);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *start_in_thread(void *user)
{
    gpuhal_backend **backend = user;
    if (start("good_slow_start", backend)) {
        *backend = NULL;
    }
    return NULL;
}

TEST(threads_that_start_a_backend_at_once_get_the_same_one)
{
    pthread_t threads[8];
    gpuhal_backend *backends[8] = {NULL};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, start_in_thread, &backends[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 8; i++) {
        assert_non_null(backends[i]);
        assert_ptr_equal(backends[i], backends[0]);
    }
    assert_int_equal(gpuhal_backend_devices(backends[0])->count, 1);
}

TEST(a_failed_start_is_reported_with_the_vendors_code_and_may_be_retried)
{
    gpuhal_backend *backend;
    assert_int_equal(start("start_fails_once", &backend), GPUHAL_ERROR_BUSY);
    assert_null(backend);
    assert_string_equal(gpuhal_last_error()->backend, "start_fails_once");
    assert_string_equal(gpuhal_last_error()->vendor_call, "vendorInit");
    assert_int_equal(gpuhal_last_error()->vendor_code, 7);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "try again"));
    assert_int_equal(start("start_fails_once", &backend), GPUHAL_OK);
    assert_non_null(backend);
}

static gpuhal_status start_within(const char *name, uint64_t deadline_ns, uint64_t *out_ns)
{
    gpuhal_candidate candidate = candidate_of(name);
    gpuhal_backend *backend = NULL;
    uint64_t begun = gpuhal_os_monotonic_ns();
    gpuhal_status status = gpuhal_backend_start(&candidate, deadline_ns, &backend);
    *out_ns = gpuhal_os_monotonic_ns() - begun;
    finish(&candidate);
    return status;
}

TEST(a_plugin_that_hangs_while_starting_is_not_waited_for_twice_and_others_start)
{
    uint64_t ns = 0;
    assert_int_equal(start_within("start_hangs", 500000000u, &ns), GPUHAL_ERROR_TIMEOUT);
    assert_in_range(ns, 500000000u, 8000000000u);
    assert_string_equal(gpuhal_last_error()->sentence, "start_hangs: the driver hung while starting (0.5 s timeout)");
    assert_int_equal(start_within("start_hangs", DEADLINE_NS, &ns), GPUHAL_ERROR_TIMEOUT);
    assert_in_range(ns, 0, DEADLINE_NS / 2);
    assert_int_equal(start_in_child("start_hangs"), 1);
#ifndef __SANITIZE_THREAD__
    assert_int_equal(start_in_child("good_without_optional"), 0); /* the hanging thread was not inside dlopen() */
#endif
    assert_int_equal(start_within("good", DEADLINE_NS, &ns), GPUHAL_OK);
}

static int play_a_held_loader(void)
{
    uint64_t ns = 0;
    if (start_within("good", DEADLINE_NS, &ns) != GPUHAL_OK) {
        return 1;
    }
    if (start_within("constructor_sleeps", 500000000u, &ns) != GPUHAL_ERROR_TIMEOUT ||
        !strstr(gpuhal_last_error()->sentence, "while loading")) {
        return 2;
    }
    if (start_within("good_fork_safe", DEADLINE_NS, &ns) != GPUHAL_ERROR_BUSY || ns > DEADLINE_NS / 2 ||
        !strstr(gpuhal_last_error()->sentence, "constructor_sleeps hangs inside the dynamic loader")) {
        return 3;
    }
    return start_within("good", DEADLINE_NS, &ns) == GPUHAL_OK ? 0 : 4;
}

/* Forks a child while a thread is inside dlopen(). In the child, each call must immediately refuse a backend that is
 * not loaded yet. Backends that the parent had loaded must work. */
static int play_a_forked_loader(void)
{
    uint64_t ns = 0;
    gpuhal_status status = start_within("good_fork_safe", DEADLINE_NS, &ns);
    if (status != GPUHAL_OK || start_within("constructor_sleeps", 500000000u, &ns) != GPUHAL_ERROR_TIMEOUT) {
        return 1;
    }
    pid_t child = fork();
    if (child != 0) {
        int ended = -1;
        return waitpid(child, &ended, 0) == child && WIFEXITED(ended) ? WEXITSTATUS(ended) : 2;
    }
    for (int i = 0; i < 2; i++) {
        status = start_within("good_many_devices", DEADLINE_NS, &ns);
        if (status != GPUHAL_ERROR_FORKED || ns > DEADLINE_NS / 2 ||
            !strstr(gpuhal_last_error()->sentence, "good_many_devices: not loaded: this process was forked while")) {
            return 3;
        }
    }
    void (*function)(void) = NULL;
    const gpuhal_symbol symbols[] = {{"malloc", &function, 1, 0}};
    static const char *const sonames[] = {"libc.so.6", NULL};
    if (gpuhal_vendor_library(gpuhal_host_table(), NULL, sonames, symbols, 1) != GPUHAL_ERROR_FORKED || function) {
        return 4;
    }
    return start_within("good_fork_safe", DEADLINE_NS, &ns) == GPUHAL_OK ? 0 : 5;
}

/* Runs the scene in a child. The child ends with _exit(), because exit() would wait for the lock that the constructor
 * holds. */
static void play(int (*scene)(void))
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(scene());
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(a_plugin_that_hangs_while_it_loads_blocks_new_plugins_but_not_started_ones)
{
    play(play_a_held_loader);
}

TEST(a_child_forked_while_a_library_loads_loads_nothing_and_uses_started_ones)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    play(play_a_forked_loader);
}

TEST(a_plugin_is_started_once_even_when_its_first_listing_fails)
{
    gpuhal_backend *backend;
    assert_int_equal(start("enumerate_fails_once", &backend), GPUHAL_ERROR_BUSY);
    assert_int_equal(start_in_child("enumerate_fails_once"), 1);
    assert_int_equal(start("enumerate_fails_once", &backend), GPUHAL_OK);
    assert_int_equal(gpuhal_backend_devices(backend)->count, 1);
}

TEST(a_file_that_went_away_is_an_error_that_names_it)
{
    gpuhal_candidate candidate = {.name = (char *)"good", .file = (char *)"/nowhere/gpuhal-good.so"};
    gpuhal_backend *backend;
    assert_int_equal(gpuhal_backend_start(&candidate, DEADLINE_NS, &backend), GPUHAL_ERROR_NOT_FOUND);
    assert_string_equal(gpuhal_last_error()->sentence, "good: /nowhere/gpuhal-good.so does not exist");
}

TEST(a_started_backend_does_not_need_its_file_any_more)
{
    new_folder();
    copy_file(test_plugin("good"), in_folder("gpuhal-good.so"));
    write_manifest("good.gpuhal", "good", "gpuhal-good.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    const gpuhal_candidate *good = find_candidate(&candidates, "good");
    gpuhal_backend *first, *second;
    assert_int_equal(gpuhal_backend_start(good, DEADLINE_NS, &first), GPUHAL_OK);
    assert_int_equal(unlink(in_folder("gpuhal-good.so")), 0);
    assert_int_equal(gpuhal_backend_start(good, DEADLINE_NS, &second), GPUHAL_OK);
    assert_ptr_equal(first, second);
    gpuhal_candidates_finish(&candidates);
}

TEST(a_file_that_was_replaced_since_the_listing_is_started_as_it_is_now)
{
    new_folder();
    copy_file(test_plugin("good"), in_folder("gpuhal-good.so"));
    write_manifest("good.gpuhal", "good", "gpuhal-good.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    copy_file(test_plugin("good_many_devices"), in_folder("new.so"));
    assert_int_equal(rename(in_folder("new.so"), in_folder("gpuhal-good.so")), 0);
    gpuhal_backend *backend;
    assert_int_equal(gpuhal_backend_start(find_candidate(&candidates, "good"), DEADLINE_NS, &backend),
                     GPUHAL_ERROR_DRIVER);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "name is \"good_many_devices\", its manifest has \"good\""));
    gpuhal_candidates_finish(&candidates);
}

TEST(in_the_child_of_a_fork_a_started_backend_is_refused_unless_it_is_fork_safe)
{
    gpuhal_backend *backend;
    assert_int_equal(start("good", &backend), GPUHAL_OK);
    assert_int_equal(start_in_child("good"), 1);
    assert_int_equal(start("good_fork_safe", &backend), GPUHAL_OK);
    assert_int_equal(start_in_child("good_fork_safe"), 0);
    assert_int_equal(start("good", &backend), GPUHAL_OK);
}

TEST(in_the_child_of_a_fork_a_backend_that_was_not_started_works)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    gpuhal_backend *backend;
    assert_int_equal(start("good_fork_safe", &backend), GPUHAL_OK);
    assert_int_equal(start_in_child("good_many_devices"), 0);
}

static void *start_slowly(__attribute__((unused)) void *user)
{
    gpuhal_backend *backend;
    start("good_slow_start", &backend);
    return NULL;
}

TEST(a_fork_in_the_middle_of_a_start_does_not_hang_the_child)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer takes the parent's threads for the child's");
#endif
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, start_slowly, NULL), 0);
    usleep(100000);
    int answer = start_in_child("good_slow_start");
    assert_true(answer == 1 || answer == 0);
    pthread_join(thread, NULL);
}

TEST(a_function_that_a_plugin_does_not_have_is_null_even_past_its_structure)
{
    gpuhal_backend *backend;
    assert_int_equal(start("good_without_optional", &backend), GPUHAL_OK);
    assert_null(gpuhal_backend_plugin(backend)->sample);
    assert_null(gpuhal_backend_plugin(backend)->link);
    assert_int_equal(start("good_of_tomorrow", &backend), GPUHAL_OK);
    assert_non_null(gpuhal_backend_plugin(backend)->sample);
}

TEST(isolated_or_not_a_plugin_lists_the_same_facts)
{
    new_folder();
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
    gpuhal_text texts[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        gpuhal_settings settings = own_settings();
        settings.isolation = i == 0 ? GPUHAL_ISOLATION_ALWAYS : GPUHAL_ISOLATION_NEVER;
        gpuhal_candidates candidates = run_loader(&settings);
        const gpuhal_candidate *good = find_candidate(&candidates, "good");
        assert_int_equal(good->isolated, i == 0);
        gpuhal_facts_write(&good->devices.list[0].facts, &texts[i]);
        gpuhal_candidates_finish(&candidates);
    }
    assert_string_equal(gpuhal_text_get(&texts[0]), gpuhal_text_get(&texts[1]));
    gpuhal_text_finish(&texts[0]);
    gpuhal_text_finish(&texts[1]);
}

static char logged[8192];

static void keep_line(__attribute__((unused)) void *user, __attribute__((unused)) int32_t level, const char *line)
{
    size_t length = strlen(logged);
    snprintf(logged + length, sizeof logged - length, "%s\n", line);
}

static char *given_options; /* options for the plugins of the next probe */

static const gpuhal_candidate *probe_driver(gpuhal_candidates *candidates, bool isolate, bool ignore_environment,
                                            gpuhal_log *log)
{
    gpuhal_settings settings = own_settings();
    settings.isolation = isolate ? GPUHAL_ISOLATION_ALWAYS : GPUHAL_ISOLATION_NEVER;
    settings.ignore_environment = ignore_environment;
    settings.options = given_options;
    settings.log = log ? keep_line : NULL;
    settings.log_level = GPUHAL_LEVEL_DEBUG;
    assert_int_equal(gpuhal_loader_run(&settings, log, NULL, false, candidates), GPUHAL_OK);
    return find_candidate(candidates, "good_with_driver");
}

TEST(the_vendors_library_is_found_by_its_soname_and_its_path_is_reported)
{
    new_folder();
    write_manifest("good.gpuhal", "good_with_driver", test_plugin("good_with_driver"), "");
    gpuhal_candidates candidates;
    const gpuhal_candidate *candidate = probe_driver(&candidates, true, false, NULL);
    assert_listed(&candidates, "good_with_driver");
    assert_non_null(candidate->driver);
    assert_int_equal(candidate->driver[0], '/');
    assert_non_null(strstr(candidate->driver, "libc"));
    gpuhal_candidates_finish(&candidates);
}

TEST(a_variable_overrides_the_vendors_library_and_must_be_absolute)
{
    new_folder();
    write_manifest("good.gpuhal", "good_with_driver", test_plugin("good_with_driver"), "");
    gpuhal_candidates candidates = {0};
    setenv("GPUHAL_TESTVENDOR_LIBRARY", "libc.so.6", 1);
    assert_result(&candidates, probe_driver(&candidates, true, false, NULL), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_START,
                   "slots are wrong");
    gpuhal_candidates_finish(&candidates);
    setenv("GPUHAL_TESTVENDOR_LIBRARY", "/nowhere/libvendor.so", 1);
    assert_result(&candidates, probe_driver(&candidates, true, false, NULL), GPUHAL_PLUGIN_FAILED, GPUHAL_STAGE_START,
                   "slots are wrong");
    gpuhal_candidates_finish(&candidates);
    assert_result(&candidates, probe_driver(&candidates, true, true, NULL), GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE, NULL);
    gpuhal_candidates_finish(&candidates);
    write_manifest("good.gpuhal", "start_without_driver", test_plugin("start_without_driver"), "");
    gpuhal_settings settings = own_settings();
    candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "start_without_driver"), GPUHAL_PLUGIN_NO_DRIVER,
                  GPUHAL_STAGE_START, "tried /nowhere/libvendor.so: ");
    gpuhal_candidates_finish(&candidates);
    setenv("GPUHAL_TESTVENDOR_LIBRARY", "libvendor.so", 1);
    candidates = run_loader(&settings);
    assert_result(&candidates, find_candidate(&candidates, "start_without_driver"), GPUHAL_PLUGIN_NO_DRIVER,
                  GPUHAL_STAGE_START, "GPUHAL_TESTVENDOR_LIBRARY is \"libvendor.so\", which is not an absolute path");
    gpuhal_candidates_finish(&candidates);
    unsetenv("GPUHAL_TESTVENDOR_LIBRARY");
}

TEST(a_plugins_log_lines_and_options_pass_through_the_helper)
{
    char options[] = "good_with_driver.word=the word is given;good_with_driver.wrod=misspelt;missing.word=1";
    new_folder();
    write_manifest("good.gpuhal", "good_with_driver", test_plugin("good_with_driver"), "unheard-of = 1\n");
    gpuhal_log *log = gpuhal_log_create(keep_line, NULL, GPUHAL_LEVEL_DEBUG, false);
    gpuhal_candidates candidates;
    given_options = options;
    probe_driver(&candidates, true, false, log);
    given_options = NULL;
    gpuhal_candidates_finish(&candidates);
    assert_non_null(strstr(logged, "good_with_driver: there is no option good_with_driver.wrod\n"));
    assert_non_null(strstr(logged, "the option missing.word is for a plugin that was not found\n"));
    assert_null(strstr(logged, "no option good_with_driver.word"));
    assert_non_null(strstr(logged, "good_with_driver: the word is given\n"));
    assert_non_null(strstr(logged, "good_with_driver: opened /"));
    assert_non_null(strstr(logged, "has no gpuhal_test_optional, which is optional"));
    assert_non_null(strstr(logged, "line 5: unknown key unheard-of is ignored"));
    assert_non_null(strstr(logged, "ok, 1 device\n"));
    logged[0] = 0;
    probe_driver(&candidates, true, true, log);
    gpuhal_candidates_finish(&candidates);
    assert_null(strstr(logged, "the word is given"));
    assert_non_null(strstr(logged, "good_with_driver: no word\n"));
    gpuhal_log_destroy(log);
}

#include "test_main.h"
