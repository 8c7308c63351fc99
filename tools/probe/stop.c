/* stop.c: see stop.h. */
#include "stop.h"

#include "../common/subprocess.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ended_by, resized, stopped;
static int waker = -1;

static void keep(int number)
{
    const int reason = errno;
    if (number == SIGWINCH) {
        resized = 1;
    } else if (number == SIGTSTP) {
        stopped = 1;
    } else {
        ended_by = number;
    }
    (void)!write(waker, &(uint64_t){1}, sizeof(uint64_t));
    errno = reason;
}

bool gpuhal_probe_stop_catch(bool screen)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP};
    const size_t count = screen ? 5 : 3;
    waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool caught = waker >= 0;
    for (size_t i = 0; caught && i < count; i++) {
        caught = sigaction(numbers[i], &(struct sigaction){.sa_handler = keep, .sa_flags = SA_RESTART}, NULL) == 0;
    }
    return caught;
}

int gpuhal_probe_stopped(void)
{
    return ended_by;
}

int gpuhal_probe_stop_next(void)
{
    (void)!read(waker, &(uint64_t){0}, sizeof(uint64_t));
    const int number = resized ? SIGWINCH : stopped ? SIGTSTP : 0;
    if (number == SIGWINCH) {
        resized = 0;
    } else if (number == SIGTSTP) {
        stopped = 0;
    }
    return number;
}

int gpuhal_probe_stop_descriptor(void)
{
    return waker;
}

bool gpuhal_probe_stop_wait(uint64_t until_ns, int descriptor)
{
    struct pollfd polled[] = {{.fd = waker, .events = POLLIN}, {.fd = descriptor, .events = POLLIN}};
    for (;;) {
        const uint64_t now = gpuhal_tool_now_ns(), left = until_ns > now ? until_ns - now : 0;
        const struct timespec time = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        const int ready = ppoll(polled, 2, &time, NULL);
        if (ended_by || (ready > 0 && polled[1].revents)) {
            return !ended_by;
        }
        if (ready == 0 || (ready < 0 && errno != EINTR)) {
            return false;
        }
    }
}
