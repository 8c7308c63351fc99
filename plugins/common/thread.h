/* common/thread.h: threads of a plugin. */
#ifndef GPUHAL_PLUGIN_THREAD_H
#define GPUHAL_PLUGIN_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* With all signals blocked but those that an instruction of the thread causes, since the application's handlers run on
 * its own threads. Returns what pthread_create() does. */
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
