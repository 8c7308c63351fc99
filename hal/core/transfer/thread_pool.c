/* transfer/thread_pool.c: see thread_pool.h. Jobs that need helpers are in one list, and a free thread helps the first
 * job. The number of threads is at most the number of helpers wanted at one time, and of processors. */
#include "transfer/thread_pool.h"

#include <stdlib.h>

enum { THREADS_MAX = 64 };

struct gpuhal_thread_pool {
    gpuhal_mutex mutex;         /* protects the members below */
    gpuhal_condition wake;      /* a job needs helpers, or the pool is closing */
    gpuhal_condition ended;     /* a helper has finished its work */
    gpuhal_thread_pool_job *jobs;      /* jobs that need more helpers */
    uint32_t wanted;            /* total for all jobs */
    bool closing;
    uint32_t count, busy;       /* number of threads, and of those currently helping */
    gpuhal_thread threads[THREADS_MAX];
};

uint32_t gpuhal_thread_pool_most(void)
{
    uint32_t processors = gpuhal_os_processors();
    return processors < 2 ? 2 : processors < THREADS_MAX ? processors : THREADS_MAX;
}

static void unlist(struct gpuhal_thread_pool *pool, gpuhal_thread_pool_job *job)
{
    gpuhal_thread_pool_job **at = &pool->jobs;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
    job->listed = false;
}

static void *serve(void *user)
{
    struct gpuhal_thread_pool *pool = user;
    gpuhal_os_thread_name("gpuhal-copy");
    gpuhal_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->jobs && !pool->closing) {
            gpuhal_condition_wait(&pool->wake, &pool->mutex);
        }
        gpuhal_thread_pool_job *job = pool->jobs;
        if (!job) {
            break;
        }
        pool->wanted--;
        if (--job->wanted == 0) {
            unlist(pool, job);
        }
        /* Counted under the same lock that removed the job from the list, so that a cancelling thread finds the job
         * listed or the helper running. */
        job->running++;
        pool->busy++;
        gpuhal_mutex_unlock(&pool->mutex);
        job->work(job->user);
        gpuhal_mutex_lock(&pool->mutex);
        pool->busy--;
        job->running--;
        gpuhal_condition_signal_all(&pool->ended);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    return NULL;
}

/* The pool is created on first use, because many gpuhal objects never need it. */
static struct gpuhal_thread_pool *pool_of(gpuhal *gpu)
{
    struct gpuhal_thread_pool *pool = atomic_load_explicit(&gpu->layers.thread_pool, memory_order_acquire);
    if (pool || !(pool = calloc(1, sizeof *pool))) {
        return pool;
    }
    gpuhal_mutex_init(&pool->mutex);
    gpuhal_condition_init(&pool->wake);
    gpuhal_condition_init(&pool->ended);
    /* Two threads may create a pool at the same time; the second frees its pool, which no other thread has seen. */
    struct gpuhal_thread_pool *other = NULL;
    if (!atomic_compare_exchange_strong(&gpu->layers.thread_pool, &other, pool)) {
        gpuhal_condition_finish(&pool->ended);
        gpuhal_condition_finish(&pool->wake);
        gpuhal_mutex_finish(&pool->mutex);
        free(pool);
        return other;
    }
    return pool;
}

void gpuhal_thread_pool_submit(gpuhal *gpu, gpuhal_thread_pool_job *job, uint32_t helpers)
{
    struct gpuhal_thread_pool *pool = helpers > 0 ? pool_of(gpu) : NULL;
    if (!pool) {
        return;
    }
    uint32_t most = gpuhal_thread_pool_most() - 1;
    gpuhal_mutex_lock(&pool->mutex);
    if (job->withdrawn) {
        gpuhal_mutex_unlock(&pool->mutex);
        return;
    }
    if (!job->listed) {
        job->listed = true;
        job->next = pool->jobs;
        pool->jobs = job;
    }
    job->wanted += helpers;
    pool->wanted += helpers;
    /* Threads that are not busy are asleep or about to check for work, so they count as available. */
    while (pool->count - pool->busy < pool->wanted && pool->count < most &&
           gpuhal_thread_start(&pool->threads[pool->count], serve, pool) == 0) {
        pool->count++;
    }
    gpuhal_condition_signal_all(&pool->wake);
    gpuhal_mutex_unlock(&pool->mutex);
}

void gpuhal_thread_pool_cancel(gpuhal *gpu, gpuhal_thread_pool_job *job)
{
    struct gpuhal_thread_pool *pool = atomic_load_explicit(&gpu->layers.thread_pool, memory_order_acquire);
    if (!pool) {
        return;
    }
    gpuhal_mutex_lock(&pool->mutex);
    job->withdrawn = true;
    if (job->listed) {
        unlist(pool, job);
        pool->wanted -= job->wanted;
        job->wanted = 0;
    }
    while (job->running > 0) {
        gpuhal_condition_wait(&pool->ended, &pool->mutex);
    }
    gpuhal_mutex_unlock(&pool->mutex);
}

void gpuhal_thread_pool_destroy(gpuhal *gpu)
{
    struct gpuhal_thread_pool *pool = atomic_exchange(&gpu->layers.thread_pool, NULL);
    if (!pool) {
        return;
    }
    gpuhal_mutex_lock(&pool->mutex);
    pool->closing = true;
    /* A helper that hangs in a driver cannot be joined, so the pool is leaked. */
    bool stuck = pool->busy > 0;
    gpuhal_condition_signal_all(&pool->wake);
    gpuhal_mutex_unlock(&pool->mutex);
    if (stuck) {
        return;
    }
    for (uint32_t i = 0; i < pool->count; i++) {
        gpuhal_thread_join(&pool->threads[i]);
    }
    gpuhal_condition_finish(&pool->ended);
    gpuhal_condition_finish(&pool->wake);
    gpuhal_mutex_finish(&pool->mutex);
    free(pool);
}
