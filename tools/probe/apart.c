/* apart.c: see apart.h. The child is forked, not executed: a backend that was only ever met in a helper process has not been started
 * here, so the child may start it. When it ends without an answer, the way it ended is the verdict. */
#include "apart.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void gpuhal_probe_judge(gpuhal_status status, const char *subject, gpuhal_probe_verdict *out_verdict)
{
    *out_verdict = (gpuhal_probe_verdict){.status = status};
    if (status) {
        const char *sentence = gpuhal_last_error()->sentence;
        size_t length = strlen(subject);
        if (strncmp(sentence, subject, length) == 0 && strncmp(sentence + length, ": ", 2) == 0) {
            sentence += length + 2;
        }
        snprintf(out_verdict->sentence, sizeof out_verdict->sentence, "%s", *sentence ? sentence : gpuhal_status_name(status));
    }
}

bool gpuhal_probe_child_start(void (*work)(void *user, int to), void *user, gpuhal_probe_child *out_child)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return false;
    }
    fflush(NULL); /* nothing buffered is written twice */
    pid_t pid = fork();
    if (pid == 0) {
        /* No core dump, not longer than its parent, and a group of its own so that what it starts goes with it. */
        close(ends[0]);
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        work(user, ends[1]);
        _exit(0);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    *out_child = (gpuhal_probe_child){.pid = pid, .from = ends[0]};
    return true;
}

void gpuhal_probe_child_send(int to, const void *answer, size_t bytes)
{
    if (write(to, answer, bytes) != (ssize_t)bytes) {
        _exit(1);
    }
}

gpuhal_probe_answer gpuhal_probe_child_hear(const gpuhal_probe_child *child, uint64_t timeout_ns, void *answer, size_t bytes)
{
    uint64_t end = now_ns() + timeout_ns;
    for (;;) {
        uint64_t now = now_ns();
        if (now >= end) {
            return PROBE_TIMED_OUT;
        }
        struct pollfd wait = {.fd = child->from, .events = POLLIN};
        int ready = poll(&wait, 1, (int)((end - now) / 1000000u) + 1);
        if (ready > 0) {
            ssize_t count = read(child->from, answer, bytes);
            if (count >= 0 || errno != EINTR) {
                return count == (ssize_t)bytes ? PROBE_ANSWERED : PROBE_ENDED;
            }
        }
    }
}

/* Whether the child ends within a second; leaves it to be reaped. */
static bool ends_soon(pid_t child)
{
    const struct timespec moment = {.tv_nsec = 2000000};
    for (int i = 0; i < 500; i++) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == child) {
            return true;
        }
        nanosleep(&moment, NULL);
    }
    return false;
}

/* Ends the child with its group and tells how it ended; false when nobody knows. A child that is stuck inside a driver cannot be
 * reaped and is left behind. */
static bool finish(pid_t child, bool by_itself, int *out_state)
{
    if (by_itself) {
        ends_soon(child); /* a kill now would hide the signal that the driver died of */
    }
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    return ends_soon(child) && waitpid(child, out_state, WNOHANG) == child;
}

static void word_end(bool timed_out, bool known, int state, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict)
{
    *out_verdict = (gpuhal_probe_verdict){.status = timed_out ? GPUHAL_ERROR_TIMEOUT : GPUHAL_ERROR_DEVICE_LOST};
    char *to = out_verdict->sentence;
    size_t space = sizeof out_verdict->sentence;
    if (timed_out) {
        snprintf(to, space, "the driver did not finish within %.3g s", (double)timeout_ns / 1e9);
    } else if (known && WIFSIGNALED(state)) {
        snprintf(to, space, "the driver crashed: signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
    } else if (known && WIFEXITED(state)) {
        snprintf(to, space, "the driver ended the process with exit code %d", WEXITSTATUS(state));
    } else {
        snprintf(to, space, "the driver ended the process");
    }
}

void gpuhal_probe_child_end(gpuhal_probe_child *child, gpuhal_probe_answer last, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict)
{
    int state = 0;
    close(child->from);
    bool known = finish(child->pid, last == PROBE_ENDED, &state);
    if (last != PROBE_ANSWERED) {
        word_end(last == PROBE_TIMED_OUT, known, state, timeout_ns, out_verdict);
    }
}
