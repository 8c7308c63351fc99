/* subprocess.c: see subprocess.h. */
#include "subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000u;

uint64_t gpuhal_tool_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

bool gpuhal_tool_fork(void (*work)(void *user, int to), void *user, gpuhal_tool_child *out_child)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    fflush(NULL); /* otherwise the child would write the buffered output again */
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        /* The child leads its own process group. Its descendants can be killed with it, and a driver that kills its
         * process group does not kill the parent. */
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
        work(user, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    setpgid(pid, pid); /* the child makes the same call, because either process may run first */
    *out_child = (gpuhal_tool_child){pid, ends[0]};
    return true;
}

void gpuhal_tool_send(int to, const void *record, size_t bytes)
{
    if (write(to, record, bytes) != (ssize_t)bytes) {
        _exit(1);
    }
}

static bool spawn(const char *file, const char *const *arguments, int output, pid_t *out_pid)
{
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    char *const *words = (char *const *)(uintptr_t)arguments; /* posix_spawn() does not modify them */
    const bool good = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) == 0 &&
                      posix_spawn(out_pid, file, &actions, NULL, words, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return good;
}

bool gpuhal_tool_spawn(const char *file, const char *const *arguments, int output, gpuhal_tool_child *out_child)
{
    int ends[2] = {-1, -1};
    if (output < 0 && pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    out_child->from = ends[0];
    const bool started = spawn(file, arguments, output < 0 ? ends[1] : output, &out_child->pid);
    if (output < 0) {
        close(ends[1]);
    }
    if (!started && output < 0) {
        close(ends[0]);
    }
    return started;
}

/* Converts to milliseconds for poll(), rounded up so that poll() does not return early. */
static int milliseconds(uint64_t ns)
{
    const uint64_t whole = ns / 1000000u + 1;
    return whole < INT_MAX ? (int)whole : INT_MAX;
}

gpuhal_tool_heard gpuhal_tool_hear(const gpuhal_tool_child *child, uint64_t until_ns, void *record, size_t bytes)
{
    size_t have = 0;
    while (have < bytes) {
        const uint64_t now = gpuhal_tool_now_ns();
        if (now >= until_ns) {
            return GPUHAL_TOOL_TIMED_OUT;
        }
        struct pollfd wait = {.fd = child->from, .events = POLLIN};
        if (poll(&wait, 1, milliseconds(until_ns - now)) <= 0) {
            continue;
        }
        const ssize_t got = read(child->from, (char *)record + have, bytes - have);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return GPUHAL_TOOL_ENDED;
        }
        have += got > 0 ? (size_t)got : 0;
    }
    return GPUHAL_TOOL_HEARD;
}

/* Waits for the child to exit without reaping it, so that its pid is not reused. */
static bool ends_within(pid_t child, uint64_t patience_ns)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    const int flags = WEXITED | WNOWAIT | (patience_ns == GPUHAL_TOOL_FOREVER ? 0 : WNOHANG);
    const uint64_t begin = gpuhal_tool_now_ns();
    for (;;) {
        siginfo_t info = {0};
        const int answer = waitid(P_PID, (id_t)child, &info, flags);
        if ((answer == 0 && info.si_pid == child) || (answer != 0 && errno != EINTR)) {
            return true;
        }
        if (gpuhal_tool_now_ns() - begin >= patience_ns) {
            return false;
        }
        nanosleep(&moment, NULL);
    }
}

bool gpuhal_tool_end(gpuhal_tool_child *child, uint64_t patience_ns, int *out_status)
{
    if (child->from >= 0) {
        close(child->from);
    }
    const bool by_itself = ends_within(child->pid, patience_ns);
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);
    if (!ends_within(child->pid, second_ns) || waitpid(child->pid, out_status, WNOHANG) != child->pid) {
        *out_status = -1;
    }
    return by_itself;
}
