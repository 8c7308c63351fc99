/* Results of a restricted process. The failures must not be shared with other processes, but the successes must be.
 * The restricted process is a child. */
#include "loader_cache.h"

#include "support/stack.h"

#include <gpuhal/gpuhal.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void set_limit(__rlimit_resource_t resource, rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(resource, &limit), 0);
    limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
    assert_int_equal(setrlimit(resource, &limit), 0);
}

/* The limit leaves room for the sanitizers' shadow memory. */
static void limit_address_space(void)
{
    set_limit(RLIMIT_AS, (rlim_t)1 << 62);
}

static void limit_data(void)
{
    set_limit(RLIMIT_DATA, (rlim_t)1 << 62);
}

static void limit_stack(void)
{
    set_limit(RLIMIT_STACK, 4u << 20);
}

static void limit_files(void)
{
    set_limit(RLIMIT_NOFILE, 512);
}

static void limit_processes(void)
{
    set_limit(RLIMIT_NPROC, 1000);
}

static void forgo_privileges(void)
{
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
}

/* A filter that allows everything counts as well, because the library cannot read a filter's rules. */
static void filter_calls(void)
{
    struct sock_filter all[] = {{.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW}};
    const struct sock_fprog program = {.len = 1, .filter = all};
    forgo_privileges();
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void (*const restraints[])(void) = {limit_address_space, limit_data,       limit_stack, limit_files,
                                           limit_processes,     forgo_privileges, filter_calls};
enum { RESTRAINTS = sizeof restraints / sizeof *restraints };

/* Simulates the start of a restricted program, and expects the state. */
static void start_limited(void (*restrain)(void), const char *name, gpuhal_plugin_state state)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        gpuhal_settings settings = once();
        restrain();
        gpuhal_candidates candidates = start(&settings, NULL);
        const gpuhal_candidate *candidate = candidate_of(&candidates, name);
        bool noted =
            state == GPUHAL_PLUGIN_OK || (candidate->note && strstr(candidate->note, "this process is restricted: "));
        _exit(candidate->state == state && noted ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void need_freedom(void)
{
    char why[128];
    if (gpuhal_os_is_limited(why, sizeof why)) {
        printf("skipped: this process is limited itself: %s\n", why);
        exit(77);
    }
}

TEST(a_failure_that_a_limited_process_saw_is_not_kept_for_others)
{
    need_freedom();
    static const struct {
        const char *name;
        gpuhal_plugin_state state;
    } cases[] = {{"start_without_driver", GPUHAL_PLUGIN_NO_DRIVER},
                 {"no_device", GPUHAL_PLUGIN_NO_DEVICE},
                 {"start_crashes", GPUHAL_PLUGIN_FAILED}};
    gpuhal_settings settings = once();
    for (size_t r = 0; r < RESTRAINTS; r++) {
        size_t c = r % (sizeof cases / sizeof *cases);
        new_folder();
        settings.plugin_path = (char *)own_folder();
        own_plugin(cases[c].name, "watch = /etc/none\n");
        start_limited(restraints[r], cases[c].name, cases[c].state);
        assert_false(result_is_cached(&settings, cases[c].name, cases[c].state));
    }
}

TEST(a_success_that_a_limited_process_saw_is_kept)
{
    need_freedom();
    new_folder();
    own_plugin("good", "");
    start_limited(filter_calls, "good", GPUHAL_PLUGIN_OK);
    gpuhal_settings no_helper = without_helper();
    assert_true(result_is_cached(&no_helper, "good", GPUHAL_PLUGIN_OK));
}

TEST(a_failure_in_a_limited_process_takes_no_success_away)
{
    need_freedom();
    new_folder();
    own_plugin("start_hangs_while", "environment = GPUHAL_START_HANGS_WHILE_SWITCH\n");
    setenv("GPUHAL_START_HANGS_WHILE_SWITCH", in_folder("switch"), 1);
    gpuhal_settings settings = once(), brief = once();
    brief.isolation = GPUHAL_ISOLATION_ALWAYS;
    brief.helper_deadline_ns = 500000000u;
    assert_false(result_is_cached(&settings, "start_hangs_while", GPUHAL_PLUGIN_OK));
    write_file(in_folder("switch"), "x", 1);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        limit_files();
        gpuhal_candidates candidates = start(&brief, NULL);
        _exit(candidate_of(&candidates, "start_hangs_while")->state == GPUHAL_PLUGIN_TIMED_OUT ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(result_is_cached(&settings, "start_hangs_while", GPUHAL_PLUGIN_OK));
    unsetenv("GPUHAL_START_HANGS_WHILE_SWITCH");
}

/* The CPU plugin is the last resort, so its failures are not cached. A failure that an earlier version recorded must
 * not be used either. */
TEST(a_failure_of_the_cpu_plugin_is_never_kept)
{
    new_folder();
    copy_file(GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so", in_folder("gpuhal-cpu.so"));
    write_manifest("cpu.gpuhal", "cpu", "gpuhal-cpu.so", "");
    char options[] = "cpu.devices=no size";
    gpuhal_settings settings = once();
    settings.options = options;
    gpuhal_candidates first = start(&settings, NULL);
    assert_true(candidate_of(&first, "cpu")->state != GPUHAL_PLUGIN_OK);
    assert_int_equal(first.learned_count, 0);
    gpuhal_candidates_finish(&first);
    settings.options = NULL;
    assert_false(result_is_cached(&settings, "cpu", GPUHAL_PLUGIN_OK));
    assert_true(result_is_cached(&settings, "cpu", GPUHAL_PLUGIN_OK));
}

TEST(a_plugin_that_prints_without_end_is_ended_at_once_with_that_reason)
{
    new_folder();
    own_plugin("start_prints_without_end", "");
    own_plugin("good", "");
    gpuhal_settings settings = once();
    for (int i = 0; i < 2; i++) {
        uint64_t begun = gpuhal_os_monotonic_ns();
        gpuhal_candidates candidates = start(&settings, NULL);
        assert_true(gpuhal_os_monotonic_ns() - begun < settings.helper_deadline_ns);
        assert_result(&candidates, candidate_of(&candidates, "start_prints_without_end"), GPUHAL_PLUGIN_FAILED,
                      GPUHAL_STAGE_START, "it printed more than 4 MiB while starting");
        assert_listed(&candidates, "good");
        gpuhal_candidates_finish(&candidates);
    }
}

/* The library used to count only the time between polls, so three helpers with output at every poll extended each
 * other's deadline tenfold. */
TEST(helpers_that_print_without_end_stretch_no_deadline)
{
    new_folder();
    write_copies("good", 3);
    gpuhal_settings settings = own_settings();
    settings.helper_path = (char *)"/usr/bin/yes";
    settings.helper_deadline_ns = 150000000u;
    uint64_t begun = gpuhal_os_monotonic_ns();
    gpuhal_candidates candidates = run_loader(&settings);
    /* A busy machine may add some seconds. */
    assert_true(gpuhal_os_monotonic_ns() - begun < 4000000000u);
    assert_result(&candidates, find_candidate(&candidates, "copy_2"), GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_STAGE_SPAWN,
                  "within 150 ms");
    gpuhal_candidates_finish(&candidates);
}

static gpuhal *open_with(uint64_t deadline_ns)
{
    gpuhal *gpu = NULL;
    setenv("GPUHAL_REGISTRY", in_folder("state"), 1);
    const gpuhal_config config = {.size = sizeof config,
                                  .plugin_path = own_folder(),
                                  .helper_path = GPUHAL_HELPER,
                                  .helper_deadline_ns = deadline_ns};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    return gpu;
}

static gpuhal_plugin_state state_of(const gpuhal *gpu)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_PLUGIN, 0, &report), GPUHAL_OK);
    assert_string_equal(report.name, "start_hangs_while");
    return report.state;
}

TEST(a_device_that_opens_ends_the_quarantine_of_its_plugin_for_every_program)
{
    new_folder();
    own_plugin("start_hangs_while", "environment = GPUHAL_START_HANGS_WHILE_SWITCH\n");
    setenv("GPUHAL_START_HANGS_WHILE_SWITCH", in_folder("switch"), 1);
    gpuhal *first = open_with(PATIENT_NS);
    assert_int_equal(state_of(first), GPUHAL_PLUGIN_OK);
    write_file(in_folder("switch"), "x", 1);
    gpuhal *second = open_with(2000000000u);
    assert_int_equal(gpuhal_rescan(second, NULL), GPUHAL_OK);
    assert_int_equal(state_of(second), GPUHAL_PLUGIN_TIMED_OUT);
    assert_int_equal(gpuhal_rescan(second, NULL), GPUHAL_OK);
    assert_int_equal(state_of(second), GPUHAL_PLUGIN_TIMED_OUT);
    assert_int_equal(gpuhal_rescan(second, NULL), GPUHAL_OK);
    assert_int_equal(state_of(second), GPUHAL_PLUGIN_QUARANTINED);
    gpuhal_close(second);
    assert_int_equal(unlink(in_folder("switch")), 0);
    gpuhal *third = open_with(2000000000u);
    assert_int_equal(state_of(third), GPUHAL_PLUGIN_QUARANTINED);
    gpuhal_close(third);
    assert_int_equal(gpuhal_device_open(gpuhal_device_at(first, 0)), GPUHAL_OK);
    gpuhal_close(first);
    gpuhal *fourth = open_with(PATIENT_NS);
    assert_int_equal(state_of(fourth), GPUHAL_PLUGIN_OK);
    gpuhal_close(fourth);
    unsetenv("GPUHAL_START_HANGS_WHILE_SWITCH");
}

static void *open_once(__attribute__((unused)) void *unused)
{
    gpuhal *gpu = open_with(PATIENT_NS);
    gpuhal_status status = gpuhal_device_open(gpuhal_device_at(gpu, 0));
    gpuhal_close(gpu);
    return status ? gpu : NULL;
}

TEST(opening_needs_less_than_16_kib_of_the_callers_stack)
{
    if (!STACK_IS_REPORTED) {
        SKIP_TEST("sanitizers make frames larger");
    }
    new_folder();
    own_plugin("good", "");
    assert_true(stack_taken_by(open_once) < 16384);
}

static void *rescan(void *gpu)
{
    return gpuhal_rescan(gpu, NULL) == GPUHAL_OK ? NULL : gpu;
}

/* A cancelled thread used to leave the rescan's mutexes locked, so that all other threads waited forever. */
TEST(a_thread_that_is_cancelled_in_a_rescan_leaves_the_object_usable)
{
    new_folder();
    own_plugin("good_slow_start", "");
    gpuhal *gpu = open_with(PATIENT_NS);
    for (useconds_t wait = 1000; wait < 200000; wait *= 3) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, rescan, gpu), 0);
        usleep(wait);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
    gpuhal_close(gpu);
}

#include "test_main.h"
