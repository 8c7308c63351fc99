/* fd_thread.c: a semaphore passes one request at a time to the thread; the eventfd signals its result. */
#include "fd_thread.h"
#include "failure.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gpuhal_bench_fd_thread {
    gpuhal_bench_baseline *baseline;
    pthread_t thread;
    sem_t request;
    int descriptor;
    bool stop; /* Written before the semaphore is posted, like all members that the thread reads. */
    bool good; /* Written before the eventfd is signalled. */
};

static void *serve(void *user)
{
    gpuhal_bench_fd_thread *t = user;
    const uint64_t one = 1;
    for (;;) {
        while (sem_wait(&t->request) != 0) {
        }
        if (t->stop) {
            return NULL;
        }
        t->good = t->baseline->calls->await(t->baseline);
        if (write(t->descriptor, &one, sizeof one) != (ssize_t)sizeof one) {
            return NULL;
        }
    }
}

gpuhal_bench_fd_thread *gpuhal_bench_fd_thread_start(gpuhal_bench_baseline *baseline)
{
    gpuhal_bench_fd_thread *t = calloc(1, sizeof *t);
    if (t == NULL) {
        gpuhal_bench_failed("out of memory");
        return NULL;
    }
    t->baseline = baseline;
    t->descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sem_init(&t->request, 0, 0);
    if (t->descriptor < 0 || pthread_create(&t->thread, NULL, serve, t) != 0) {
        gpuhal_bench_failed("no eventfd or no thread");
        if (t->descriptor >= 0) {
            close(t->descriptor);
        }
        sem_destroy(&t->request);
        free(t);
        return NULL;
    }
    return t;
}

void gpuhal_bench_fd_thread_stop(gpuhal_bench_fd_thread *thread)
{
    if (thread == NULL) {
        return;
    }
    thread->stop = true;
    sem_post(&thread->request);
    pthread_join(thread->thread, NULL);
    sem_destroy(&thread->request);
    close(thread->descriptor);
    free(thread);
}

bool gpuhal_bench_fd_thread_watch(gpuhal_bench_fd_thread *thread)
{
    return sem_post(&thread->request) == 0 || gpuhal_bench_failed("sem_post failed");
}

bool gpuhal_bench_fd_thread_accept(gpuhal_bench_fd_thread *thread)
{
    uint64_t count;
    if (read(thread->descriptor, &count, sizeof count) != (ssize_t)sizeof count) {
        return gpuhal_bench_failed("the eventfd is not readable");
    }
    return thread->good;
}

int gpuhal_bench_fd_thread_descriptor(const gpuhal_bench_fd_thread *thread)
{
    return thread->descriptor;
}
