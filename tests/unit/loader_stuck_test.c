/* Helpers that cannot be killed, for example while they wait in the kernel for a driver, and a host that is stopped
 * while it waits for helpers. Wrappers can suppress this process's signals and delay its waits. */
#include "loader_cache.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static atomic_bool signals_go_nowhere;
static atomic_size_t signals_sent;
static atomic_uint_fast64_t hold_up_ns;

int __wrap_kill(pid_t pid, int number);
long __wrap_syscall(long number, ...);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout);
int __real_kill(pid_t pid, int number);
long __real_syscall(long number, ...);
int __real_poll(struct pollfd *polled, nfds_t count, int timeout);

int __wrap_kill(pid_t pid, int number)
{
    if (number != 0 && atomic_load(&signals_go_nowhere)) {
        atomic_fetch_add(&signals_sent, 1);
        return 0;
    }
    return __real_kill(pid, number);
}

long __wrap_syscall(long number, ...)
{
    long values[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++) {
        values[i] = va_arg(arguments, long);
    }
    va_end(arguments);
#ifdef SYS_pidfd_send_signal
    if (number == SYS_pidfd_send_signal && atomic_load(&signals_go_nowhere)) {
        atomic_fetch_add(&signals_sent, 1);
        return 0;
    }
#endif
    return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}

int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout)
{
    for (uint64_t left = atomic_exchange(&hold_up_ns, 0); left > 0; left -= left < 500000000u ? left : 500000000u) {
        gpuhal_os_sleep(left < 500000000u ? left : 500000000u);
    }
    return __real_poll(polled, count, timeout);
}

static pid_t process_in(const gpuhal_candidates *candidates, const char *name)
{
    for (size_t i = 0; i < candidates->note_count; i++) {
        char begin[96];
        snprintf(begin, sizeof begin, "%s: the helper process ", name);
        const char *note = candidates->notes[i];
        if (strncmp(note, begin, strlen(begin)) == 0 && strstr(note, " cannot be ended, and was left behind")) {
            return atoi(note + strlen(begin));
        }
    }
    print_candidates(candidates);
    fail_msg("no note says that the helper of %s was left behind", name);
    return 0;
}

TEST(a_helper_that_cannot_be_ended_is_left_behind_and_reported_and_blocks_nothing)
{
    new_folder();
    own_plugin("start_hangs", "");
    own_plugin("constructor_sleeps", "");
    own_plugin("good", "");
    gpuhal_settings settings = once(), no_helper = without_helper();
    settings.helper_deadline_ns = no_helper.helper_deadline_ns = 2000000000u;
    size_t descriptors = count_descriptors();
    uint64_t begun = gpuhal_os_monotonic_ns();
    atomic_store(&signals_go_nowhere, true);
    gpuhal_candidates first = start(&settings, NULL);
    atomic_store(&signals_go_nowhere, false);
    assert_true(gpuhal_os_monotonic_ns() - begun < PATIENT_NS);
    assert_true(atomic_load(&signals_sent) >= 4); /* for each helper SIGTERM, and then SIGKILL */
    assert_listed(&first, "good");
    assert_result(&first, candidate_of(&first, "start_hangs"), GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_STAGE_START,
                  "the driver hung while starting (2 s timeout)");
    assert_result(&first, candidate_of(&first, "constructor_sleeps"), GPUHAL_PLUGIN_TIMED_OUT, GPUHAL_STAGE_LOAD,
                  "the driver hung");
    assert_int_equal(count_descriptors(), descriptors);
    pid_t left[] = {process_in(&first, "start_hangs"), process_in(&first, "constructor_sleeps")};
    assert_int_equal(first.note_count, 2);
    gpuhal_candidates_finish(&first);
    /* The helpers still run, and must not hold a lock that others need. */
    intptr_t lock = -1;
    assert_int_equal(gpuhal_os_lock_take(in_folder("state/registry.lock"), 0, &lock), 0);
    gpuhal_os_lock_give(lock);
    assert_true(result_is_cached(&no_helper, "start_hangs", GPUHAL_PLUGIN_QUARANTINED));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(left[i], NULL, WNOHANG), 0);
        assert_int_equal(kill(left[i], SIGKILL), 0);
        assert_int_equal(waitpid(left[i], NULL, 0), left[i]);
    }
}

/* The deadline is long enough for thousands of log lines. */
#ifdef __SANITIZE_THREAD__
#define DEADLINE_NS UINT64_C(20000000000)
#else
#define DEADLINE_NS UINT64_C(3000000000)
#endif

static void hear(__attribute__((unused)) void *user, __attribute__((unused)) int32_t level,
                 __attribute__((unused)) const char *line)
{
}

/* A debugger or the keyboard may stop the host. The helper's output does not fit into a pipe, so the helper waits for
 * the host as well. */
TEST(a_host_that_is_stopped_while_it_waits_blames_no_plugin)
{
    new_folder();
    own_plugin("good_logs_much", "");
    gpuhal_settings settings = once();
    settings.helper_deadline_ns = DEADLINE_NS;
    settings.log = hear;
    settings.log_level = GPUHAL_LEVEL_DEBUG;
    atomic_store(&hold_up_ns, settings.helper_deadline_ns + 500000000u);
    assert_false(result_is_cached(&settings, "good_logs_much", GPUHAL_PLUGIN_OK));
    assert_int_equal(atomic_load(&hold_up_ns), 0);
}

#include "test_main.h"
