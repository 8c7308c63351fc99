/* verify.c: see verify.h. The child is forked, not executed: a backend that was only ever met in a helper process has not been
 * started here, so the child may start it. The child sends one verdict through a pipe; when it ends without one, the way it ended
 * is the verdict. */
#include "verify.h"

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

static void verify_here(gpuhal_device *device, gpuhal_probe_verdict *out_verdict)
{
    *out_verdict = (gpuhal_probe_verdict){.status = gpuhal_device_verify(device)};
    if (out_verdict->status) {
        /* The sentence is shown behind the device's id: not twice. */
        const char *sentence = gpuhal_last_error()->sentence, *id = gpuhal_device_id(device);
        size_t length = strlen(id);
        if (strncmp(sentence, id, length) == 0 && strncmp(sentence + length, ": ", 2) == 0) {
            sentence += length + 2;
        }
        snprintf(out_verdict->sentence, sizeof out_verdict->sentence, "%s",
                 *sentence ? sentence : gpuhal_status_name(out_verdict->status));
    }
}

/* The child: no core dump, not longer than its parent, and a group of its own so that what it starts goes with it. */
__attribute__((noreturn)) static void run_child(gpuhal_device *device, int to)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    gpuhal_probe_verdict verdict;
    verify_here(device, &verdict);
    /* Smaller than PIPE_BUF: it arrives whole or not at all. */
    ssize_t sent = write(to, &verdict, sizeof verdict);
    _exit(sent == (ssize_t)sizeof verdict ? 0 : 1);
}

/* Waits for the verdict. 1: it is there; 0: the child ended without one; -1: the time ran out. */
static int receive(int from, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict)
{
    uint64_t end = now_ns() + timeout_ns;
    for (;;) {
        uint64_t now = now_ns();
        if (now >= end) {
            return -1;
        }
        struct pollfd wait = {.fd = from, .events = POLLIN};
        int ready = poll(&wait, 1, (int)((end - now) / 1000000u) + 1);
        if (ready > 0) {
            ssize_t count = read(from, out_verdict, sizeof *out_verdict);
            if (count >= 0 || errno != EINTR) {
                return count == (ssize_t)sizeof *out_verdict;
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

void gpuhal_probe_verify(gpuhal_device *device, bool apart, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict)
{
    int ends[2];
    if (!apart || pipe(ends) != 0) {
        verify_here(device, out_verdict);
        return;
    }
    fflush(NULL); /* nothing buffered is written twice */
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(device, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        verify_here(device, out_verdict);
        return;
    }
    int received = receive(ends[0], timeout_ns, out_verdict);
    close(ends[0]);
    int state = 0;
    bool known = finish(child, received == 0, &state);
    if (received != 1) {
        word_end(received < 0, known, state, timeout_ns, out_verdict);
    }
}
