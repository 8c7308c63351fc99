/* os/linux/helper_process.c: functions for the helper program: its descriptors, limits and crash report. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FIRST_CLOSED      4u
#define CRASH_STACK_BYTES (64u << 10)
#define CRASH_EXIT_BASE   128

enum { STREAM = 3 };

static bool (*describe_crash)(int signal_number);
static pid_t helper_pid;

/* Hosts may open files without close-on-exec. A driver must not access these files, nor keep a lock or pipe of the host
 * open. */
static void close_descriptors(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, FIRST_CLOSED, ~0u, 0u) == 0) {
        return;
    }
#endif
    struct rlimit limit = {0};
    int last = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 65536 ? (int)limit.rlim_cur : 65536;
    for (int file = (int)FIRST_CLOSED; file < last; file++) {
        close(file);
    }
}

/* If a driver exhausts memory, the OOM killer must kill this process and no other. */
static void be_first_without_memory(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t written = write(file, "1000", 4);
        (void)written;
        close(file);
    }
}

void gpuhal_os_helper_prepare(int64_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* If the parent ended before the prctl call, no signal is sent. A parent id of 1 does not show this, because in a
     * container the host may be process 1. */
    if (getppid() != (pid_t)parent) {
        _exit(CRASH_EXIT_BASE);
    }
    close_descriptors();
    /* Processes that the driver starts must not inherit the stream. */
    fcntl(STREAM, F_SETFD, FD_CLOEXEC);
    /* The limit is 1 byte, not 0, because only 1 also prevents the kernel from piping a dump to a program
     * (fs/coredump.c). */
    const struct rlimit no_core = {.rlim_cur = 1, .rlim_max = 1};
    setrlimit(RLIMIT_CORE, &no_core);
    be_first_without_memory();
    setenv(GPUHAL_WITHIN_HELPER, "1", 1);
}

/* Without memory the driver starts without the variable, as it would in the application. */
void gpuhal_os_helper_set_variable(const char *name, const char *value)
{
    setenv(name, value, 0);
}

bool gpuhal_os_helper_send(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = write(STREAM, bytes, count);
        if (sent < 0 && errno != EINTR) {
            return false;
        }
        bytes += sent > 0 ? sent : 0;
        count -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

void gpuhal_os_helper_exit(int code)
{
    _exit(code);
}

/* Exits immediately, because returning to the faulting instruction would crash again. A child forked by the driver
 * inherits this handler, but its crash is not reported. The signal is raised again and kills the child when this
 * handler returns. The same happens in a helper whose stream the driver has closed. Calls only async-signal-safe
 * functions, since the thread may hold any lock. */
static void on_crash(int signal_number)
{
    if (getpid() != helper_pid || !describe_crash(signal_number)) {
        const struct sigaction ordinary = {.sa_handler = SIG_DFL};
        sigaction(signal_number, &ordinary, NULL);
        raise(signal_number);
        return;
    }
    _exit(CRASH_EXIT_BASE + signal_number);
}

void gpuhal_os_helper_on_crash(bool (*describe)(int signal_number))
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
    static _Alignas(16) unsigned char crash_stack[CRASH_STACK_BYTES];
    describe_crash = describe;
    helper_pid = getpid();
    /* On this thread the handler uses an alternate stack, since the crash may be a stack overflow. */
    const stack_t stack = {.ss_sp = crash_stack, .ss_size = sizeof crash_stack};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND)};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        sigaction(deadly[i], &action, NULL);
    }
}
