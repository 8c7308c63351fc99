/* os/linux/notifier.c: notifiers (eventfd) and pollers (epoll). */
#include "os/os.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define NS_PER_MS    1000000u
#define WAIT_MOST_MS 10000

int gpuhal_os_notifier_create(intptr_t *out_notifier)
{
    int notifier = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = notifier < 0 ? errno : 0;
    if (!error) {
        *out_notifier = notifier;
    }
    return error;
}

/* Set fails only if the counter is at its maximum, clear only if it is 0. The notifier then already has the desired
 * state. Cancellation is disabled, because callers hold locks, which a cancelled thread would never release. */
void gpuhal_os_notifier_set(intptr_t notifier)
{
    const int cancel = gpuhal_os_cancel_defer();
    (void)!eventfd_write((int)notifier, 1);
    gpuhal_os_cancel_restore(cancel);
}

bool gpuhal_os_notifier_clear(intptr_t notifier)
{
    eventfd_t count;
    const int cancel = gpuhal_os_cancel_defer();
    bool was_set = eventfd_read((int)notifier, &count) == 0;
    gpuhal_os_cancel_restore(cancel);
    return was_set;
}

int gpuhal_os_poller_create(intptr_t *out_poller)
{
    int poller = epoll_create1(EPOLL_CLOEXEC);
    int error = poller < 0 ? errno : 0;
    if (!error) {
        *out_poller = poller;
    }
    return error;
}

int gpuhal_os_poller_add(intptr_t poller, intptr_t descriptor)
{
    struct epoll_event event = {.events = EPOLLIN};
    return descriptor >= 0 && epoll_ctl((int)poller, EPOLL_CTL_ADD, (int)descriptor, &event) ? errno : 0;
}

void gpuhal_os_poller_remove(intptr_t poller, intptr_t descriptor)
{
    struct epoll_event unused = {0};
    (void)epoll_ctl((int)poller, EPOLL_CTL_DEL, (int)descriptor, &unused);
}

/* An application that closes all its descriptors also closes the poller. The function then sleeps. Closing does not end
 * a wait in progress, so the timeout is limited. */
bool gpuhal_os_poller_wait(intptr_t poller, uint64_t timeout_ns)
{
    struct epoll_event event;
    uint64_t ms = timeout_ns / NS_PER_MS + (timeout_ns % NS_PER_MS > 0);
    int ready = epoll_wait((int)poller, &event, 1, ms < WAIT_MOST_MS ? (int)ms : WAIT_MOST_MS);
    if (ready < 0 && errno != EINTR) {
        gpuhal_os_sleep(timeout_ns < 500 * NS_PER_MS ? timeout_ns : 500 * NS_PER_MS);
    }
    return ready > 0;
}
