/* os/linux/size_limit.h: blocks SIGXFSZ, which would kill a host whose file exceeds its limit (RLIMIT_FSIZE). A signal
 * that was already pending belongs to the host and stays pending. The kernel sends the signal to the writing thread,
 * and restoring the mask would deliver it. A signal raised meanwhile is therefore consumed. */
#ifndef GPUHAL_OS_SIZE_LIMIT_H
#define GPUHAL_OS_SIZE_LIMIT_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>

typedef struct gpuhal_size_limit {
    sigset_t limit, before, pending;
} gpuhal_size_limit;

static inline void gpuhal_size_limit_begin(gpuhal_size_limit *own)
{
    sigemptyset(&own->limit);
    sigaddset(&own->limit, SIGXFSZ);
    sigpending(&own->pending);
    pthread_sigmask(SIG_BLOCK, &own->limit, &own->before);
}

/* `error` is the errno of the call, or 0 after a success. */
static inline void gpuhal_size_limit_end(const gpuhal_size_limit *own, int error)
{
    const struct timespec at_once = {0};
    if (error == EFBIG && !sigismember(&own->pending, SIGXFSZ)) {
        sigtimedwait(&own->limit, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &own->before, NULL);
    errno = error;
}

#endif
