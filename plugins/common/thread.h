/* common/thread.h: starts a plugin's threads. */
#ifndef GPUHAL_PLUGIN_THREAD_H
#define GPUHAL_PLUGIN_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Starts a thread that blocks all signals except synchronous faults, so that the application's signal handlers run on
 * the application's threads. Returns the result of pthread_create(). */
static inline int gpuhal_plugin_thread_start(pthread_t *out_thread, void *(*run)(void *), void *user)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        sigdelset(&all, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(out_thread, NULL, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

#endif
