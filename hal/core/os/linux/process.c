/* os/linux/process.c: the parent's side of helper processes.
 *
 * The host may ignore SIGCHLD, reap every child, block signals, have descriptors without close-on-exec, or have closed
 * descriptors 0 to 2. The exit status may therefore be unknown. The helper is started with default signal dispositions
 * and an empty signal mask. No descriptor number can be relied on. A process id may be signalled only while it cannot
 * belong to another process.
 */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL_PROCESS_GROUP 4u /* PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9 */
#define STREAM               3
/* timeout for a killed process to end, even on a busy machine. A process that is stuck in a driver may never end. */
#define REAP_NS              2000000000u
#define BLIND_NS             20000000u  /* interval between checks of a process without a pidfd */
#define NO_PROCESS           ((gpuhal_child){.pid = 0, .stream = -1, .output = -1, .pidfd = -1})

/* Creates a pipe whose descriptors are above the child's descriptors. Reads from it do not block. */
static int make_pipe(int ends[2])
{
    int raw[2];
    ends[0] = ends[1] = -1;
    if (pipe2(raw, O_CLOEXEC)) {
        return errno;
    }
    ends[0] = fcntl(raw[0], F_DUPFD_CLOEXEC, STREAM + 1);
    if (ends[0] >= 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
        ends[1] = fcntl(raw[1], F_DUPFD_CLOEXEC, STREAM + 1);
    }
    int error = ends[1] < 0 ? errno : 0;
    close(raw[0]);
    close(raw[1]);
    if (error && ends[0] >= 0) {
        close(ends[0]);
    }
    return error;
}

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

/* Gives the helper its own process group, so that all processes that the driver starts can be killed with it. Resets
 * the signal dispositions and the signal mask, which the helper would inherit from the host's thread. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error =
        posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    error = error ? error : posix_spawnattr_setpgroup(attributes, 0);
    error = error ? error : posix_spawnattr_setsigdefault(attributes, &all);
    return error ? error : posix_spawnattr_setsigmask(attributes, &none);
}

static int set_actions(posix_spawn_file_actions_t *actions, int stream, int output)
{
    int error = posix_spawn_file_actions_adddup2(actions, stream, STREAM);
    error = error ? error : posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    error = error ? error : posix_spawn_file_actions_adddup2(actions, output, 1);
    return error ? error : posix_spawn_file_actions_adddup2(actions, output, 2);
}

/* A privileged process does not pass its caller's environment to a child. A child cannot detect that it was started by
 * a privileged process, and vendor loaders in it would read library names from the environment. */
static char *const *environment_for_helper(void)
{
    static char path[] = "PATH=/usr/bin:/bin", language[] = "LANG=C.UTF-8";
    static char *const bare[] = {path, language, NULL};
    return gpuhal_os_privileged() ? bare : environ;
}

static int spawn(const char *const *arguments, int stream, int output, pid_t *out_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = set_attributes(&attributes);
        error = error ? error : set_actions(&actions, stream, output);
        error = error ? error
                      : posix_spawn(out_pid, arguments[0], &actions, &attributes, (char *const *)arguments,
                                    environment_for_helper());
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    return -1;
#endif
}

int64_t gpuhal_os_process_own(void)
{
    return getpid();
}

/* The child's ends of the pipes are closed here after the start. Otherwise the stream would never end. */
int gpuhal_os_process_start(const char *const *arguments, gpuhal_child *out_process)
{
    *out_process = NO_PROCESS;
    int stream[2], output[2];
    int error = make_pipe(stream);
    if (error) {
        return error;
    }
    error = make_pipe(output);
    if (error) {
        close_both(stream);
        return error;
    }
    pid_t pid = 0;
    error = spawn(arguments, stream[1], output[1], &pid);
    if (error) {
        close_both(stream);
        close_both(output);
        return error;
    }
    close(stream[1]);
    close(output[1]);
    *out_process = (gpuhal_child){.pid = pid, .stream = stream[0], .output = output[0], .pidfd = open_pidfd(pid)};
    return 0;
}

static int poll_time(uint64_t ns)
{
    uint64_t milliseconds = ns / 1000000u + (ns % 1000000u != 0);
    return milliseconds > INT32_MAX ? INT32_MAX : (int)milliseconds;
}

/* Does not reap the process. Returns 1 if it has ended, 0 if it runs, or -1 if it is no longer a child of this
 * process. */
static int peek(const gpuhal_child *process, siginfo_t *out_info)
{
    *out_info = (siginfo_t){0};
    int error;
    do {
        error = waitid(P_PID, (id_t)process->pid, out_info, WEXITED | WNOHANG | WNOWAIT) ? errno : 0;
    } while (error == EINTR);
    return error ? -1 : out_info->si_pid != 0;
}

static bool has_ended(const gpuhal_child *process)
{
    struct pollfd polled = {.fd = process->pidfd, .events = POLLIN};
    siginfo_t info;
    return process->pidfd >= 0 ? poll(&polled, 1, 0) > 0 : peek(process, &info) != 0;
}

/* Polls streams first, then outputs, then pidfds, because poll fails for more entries than the descriptor limit. Then
 * fewer kinds are polled, and processes with an open stream are checked periodically. */
int gpuhal_os_process_wait(gpuhal_child *const *processes, size_t count, uint64_t timeout_ns, bool *ready)
{
    struct pollfd polled[3 * GPUHAL_PROCESSES_MAX];
    bool blind = false;
    if (count > GPUHAL_PROCESSES_MAX) {
        return EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        blind = blind || processes[i]->pidfd < 0;
        polled[i] = (struct pollfd){.fd = processes[i]->stream, .events = POLLIN};
        polled[count + i] =
            (struct pollfd){.fd = processes[i]->stream < 0 ? -1 : processes[i]->output, .events = POLLIN};
        polled[2 * count + i] = (struct pollfd){.fd = processes[i]->pidfd, .events = POLLIN};
    }
    uint64_t blind_ns = timeout_ns > BLIND_NS ? BLIND_NS : timeout_ns;
    int got = poll(polled, (nfds_t)(3 * count), poll_time(blind ? blind_ns : timeout_ns));
    for (size_t sorts = 2; sorts > 0 && got < 0 && errno == EINVAL; sorts--) {
        blind = true;
        got = poll(polled, (nfds_t)(sorts * count), poll_time(blind_ns));
    }
    if (got < 0 && errno != EINTR) {
        return errno;
    }
    for (size_t i = 0; i < count; i++) {
        int events = polled[i].revents | polled[count + i].revents | polled[2 * count + i].revents;
        ready[i] = got > 0 && events != 0;
        ready[i] = ready[i] || (blind && (processes[i]->stream >= 0 || has_ended(processes[i])));
    }
    return 0;
}

static int64_t read_once(int from, void *to, size_t bytes)
{
    for (;;) {
        ssize_t got = read(from, to, bytes);
        if (got >= 0) {
            return got;
        }
        if (errno != EINTR) {
            return errno == EAGAIN ? -1 : -2;
        }
    }
}

int64_t gpuhal_os_process_read(gpuhal_child *process, void *to, size_t bytes)
{
    int64_t got = read_once(process->stream, to, bytes);
    if (got != -1 || !has_ended(process)) {
        return got;
    }
    /* Reads again, because bytes may have been written just before the end. */
    got = read_once(process->stream, to, bytes);
    return got == -1 ? 0 : got;
}

static void close_end(int *end)
{
    if (*end >= 0) {
        close(*end);
        *end = -1;
    }
}

/* Closes the descriptor at the end of the output, so that it does not wake the caller again. */
size_t gpuhal_os_process_read_output(gpuhal_child *process, void *to, size_t bytes)
{
    int64_t got = process->output < 0 ? -1 : read_once(process->output, to, bytes);
    if (got == 0 || got == -2) {
        close_end(&process->output);
    }
    return got > 0 ? (size_t)got : 0;
}

/* Parses "147318 2951 6": CPU time, time in the run queue, time slices (Documentation/scheduler/sched-stats.rst). The
 * numbers describe the main thread, which loads and probes the plugin. */
uint64_t gpuhal_os_process_starved_ns(const gpuhal_child *process)
{
    char path[48], text[96] = "", *second = text;
    snprintf(path, sizeof path, "/proc/%lld/schedstat", (long long)process->pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return 0;
    }
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got > 0) {
        (void)strtoull(text, &second, 10);
    }
    return strtoull(second, NULL, 10);
}

void gpuhal_os_process_close_stream(gpuhal_child *process)
{
    close_end(&process->stream);
}

/* Also signals the process itself, because a driver may have moved it into another group. */
static void signal_group(const gpuhal_child *process, int number)
{
    pid_t pid = (pid_t)process->pid;
#ifdef SYS_pidfd_send_signal
    if (process->pidfd >= 0) {
        syscall(SYS_pidfd_send_signal, process->pidfd, number, NULL, 0);
        if (syscall(SYS_pidfd_send_signal, process->pidfd, number, NULL, SIGNAL_PROCESS_GROUP) == 0 || errno == ESRCH) {
            return;
        }
    }
#endif
    /* The id belongs to the process until the process is reaped, then to the process group, unless a new process has
     * it. */
    siginfo_t info;
    int state = peek(process, &info);
    if (state == 0) {
        kill(pid, number);
    }
    if (state >= 0 || (kill(pid, 0) && errno == ESRCH)) {
        kill(-pid, number);
    }
}

static int wait_for_end(const gpuhal_child *process, uint64_t ns, siginfo_t *out_info)
{
    uint64_t deadline = gpuhal_os_monotonic_ns() + ns;
    int state = peek(process, out_info);
    while (state == 0) {
        uint64_t now = gpuhal_os_monotonic_ns();
        if (now >= deadline) {
            break;
        }
        if (process->pidfd >= 0) {
            struct pollfd polled = {.fd = process->pidfd, .events = POLLIN};
            poll(&polled, 1, poll_time(deadline - now));
        } else {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        state = peek(process, out_info);
    }
    return state;
}

static gpuhal_ended ended_how(const siginfo_t *info, int *out_value)
{
    *out_value = info->si_status;
    return info->si_code == CLD_EXITED ? GPUHAL_ENDED_EXIT : GPUHAL_ENDED_SIGNAL;
}

/* The group is killed before its leader is reaped, because until then the group's id cannot be reused. The signal that
 * kills the process here is not reported as its result. */
gpuhal_ended gpuhal_os_process_finish(gpuhal_child *process, uint64_t grace_ns, uint64_t term_ns, int *out_value)
{
    siginfo_t info;
    *out_value = 0;
    int state = wait_for_end(process, grace_ns, &info);
    gpuhal_ended ended = state == 1 ? ended_how(&info, out_value) : GPUHAL_ENDED_UNKNOWN;
    if (state == 0 && term_ns > 0) {
        signal_group(process, SIGTERM);
        state = wait_for_end(process, term_ns, &info);
    }
    signal_group(process, SIGKILL);
    if (state == 0) {
        state = wait_for_end(process, REAP_NS, &info);
    }
    ended = state == 0 ? GPUHAL_ENDED_NOT : ended;
    while (state == 1 && waitpid((pid_t)process->pid, NULL, WNOHANG) < 0 && errno == EINTR) {
    }
    close_end(&process->stream);
    close_end(&process->output);
    close_end(&process->pidfd);
    *process = NO_PROCESS;
    return ended;
}

const char *gpuhal_os_signal_name(int signal_number)
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {SIGSEGV, "Segmentation fault"},  {SIGBUS, "Bus error"},    {SIGILL, "Illegal instruction"},
        {SIGFPE, "Arithmetic exception"}, {SIGABRT, "Aborted"},     {SIGTRAP, "Trap"},
        {SIGSYS, "Bad system call"},      {SIGKILL, "Killed"},      {SIGTERM, "Terminated"},
        {SIGPIPE, "Broken pipe"},         {SIGALRM, "Alarm clock"}, {SIGXCPU, "CPU time limit"},
        {SIGINT, "Interrupt"},            {SIGHUP, "Hangup"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].number == signal_number) {
            return names[i].name;
        }
    }
    return "unnamed signal";
}

bool gpuhal_os_signal_is_from_outside(int signal_number)
{
    return signal_number == SIGKILL || signal_number == SIGTERM || signal_number == SIGINT || signal_number == SIGHUP ||
           signal_number == SIGXCPU;
}
