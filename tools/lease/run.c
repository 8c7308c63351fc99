/* run.c: see run.h. Signals from the terminal reach the command directly, because it is in the same process group. */
#include "run.h"

#include "options.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t child;

static void pass_on(int signal_number)
{
    const int before = errno;
    if (child > 0) {
        kill((pid_t)child, signal_number);
    }
    errno = before;
}

static const int passed_on[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
static const int of_terminal[] = {SIGINT, SIGQUIT};

/* Blocks the signals until the command has started, so that no signal is lost. The command inherits this program's
 * original signal mask and dispositions. */
static void prepare(sigset_t *out_blocked, sigset_t *out_before, posix_spawnattr_t *how)
{
    sigset_t defaults;
    sigemptyset(out_blocked);
    sigemptyset(&defaults);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
        sigaddset(out_blocked, passed_on[i]);
    }
    sigprocmask(SIG_BLOCK, out_blocked, out_before);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
        struct sigaction old, action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
        sigaction(passed_on[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) {
            sigaction(passed_on[i], &action, NULL);
            sigaddset(&defaults, passed_on[i]);
        }
    }
    for (size_t i = 0; i < sizeof of_terminal / sizeof *of_terminal; i++) {
        struct sigaction old, action = {.sa_handler = SIG_IGN};
        sigaction(of_terminal[i], &action, &old);
        if (old.sa_handler != SIG_IGN) {
            sigaddset(&defaults, of_terminal[i]);
        }
    }
    /* If SIGCHLD is ignored, the kernel discards the exit status. The command also starts with the default
     * disposition. */
    signal(SIGCHLD, SIG_DFL);
    posix_spawnattr_init(how);
    posix_spawnattr_setsigmask(how, out_before);
    posix_spawnattr_setsigdefault(how, &defaults);
    posix_spawnattr_setflags(how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

int gpuhal_lease_run_command(char **command, int *out_error)
{
    sigset_t blocked, before;
    posix_spawnattr_t how;
    pid_t pid = 0;
    int status = 0;
    prepare(&blocked, &before, &how);
    *out_error = posix_spawnp(&pid, command[0], NULL, &how, command, environ);
    posix_spawnattr_destroy(&how);
    child = *out_error ? 0 : pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (*out_error) {
        return *out_error == ENOENT ? LEASE_EXIT_NOT_FOUND : LEASE_EXIT_NOT_EXECUTABLE;
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            *out_error = errno;
            return LEASE_EXIT_FAILED;
        }
    }
    child = 0;
    return WIFSIGNALED(status) ? LEASE_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
