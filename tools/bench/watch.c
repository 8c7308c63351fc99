/* watch.c: see watch.h. The thread is never joined: it runs until the process exits. */
#include "watch.h"
#include "clock.h"
#include "failure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static struct {
    uint64_t limit_ns;
    void (*stuck)(void *user);
    void *user;
    _Atomic uint64_t alive_ns;
} watch;

static void *look(void *unused)
{
    (void)unused;
    const uint64_t step_ns = watch.limit_ns / 16;
    const struct timespec step = {.tv_sec = (time_t)(step_ns / 1000000000u), .tv_nsec = (long)(step_ns % 1000000000u)};
    for (;;) {
        const uint64_t alive_ns = atomic_load(&watch.alive_ns);
        if (gpuhal_bench_now_ns() - alive_ns > watch.limit_ns && alive_ns == atomic_load(&watch.alive_ns)) {
            watch.stuck(watch.user);
        }
        nanosleep(&step, NULL);
    }
    return NULL;
}

bool gpuhal_bench_watch_start(uint64_t limit_ns, void (*stuck)(void *user), void *user)
{
    pthread_t thread;
    watch.limit_ns = limit_ns;
    watch.stuck = stuck;
    watch.user = user;
    gpuhal_bench_watch_alive();
    if (pthread_create(&thread, NULL, look, NULL) != 0) {
        return gpuhal_bench_failed("a thread could not be started");
    }
    pthread_detach(thread);
    return true;
}

void gpuhal_bench_watch_alive(void)
{
    atomic_store_explicit(&watch.alive_ns, gpuhal_bench_now_ns(), memory_order_relaxed);
}
