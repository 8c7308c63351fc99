/* transfer/crew.c: see crew.h. One list of jobs that want helpers; whoever becomes free takes the first. There are never more threads than
 * helpers wanted at one time, nor than processors. */
#include "transfer/crew.h"

#include <stdlib.h>

enum { CREW_MOST = 64 };

struct gpuhal_crew {
    gpuhal_mutex mutex;         /* protects what follows */
    gpuhal_condition wake;      /* a job wants helpers, or the crew ends */
    gpuhal_condition ended;     /* a helper has ended its work */
    gpuhal_crew_job *jobs;      /* those that want more helpers */
    uint32_t wanted;            /* by all of them */
    bool closing;
    uint32_t generation;        /* fork generation of the threads */
    uint32_t count, busy;       /* threads, and how many of them help right now */
    gpuhal_thread threads[CREW_MOST];
};

uint32_t gpuhal_crew_most(void)
{
    uint32_t processors = gpuhal_os_processors();
    return processors < 2 ? 2 : processors < CREW_MOST ? processors : CREW_MOST;
}

/* Threads and jobs of the parent are not in the child. Called with the mutex held. */
static void forget_parents_threads(struct gpuhal_crew *crew)
{
    uint32_t now = gpuhal_os_fork_generation();
    if (crew->generation != now) {
        crew->generation = now;
        crew->jobs = NULL;
        crew->wanted = crew->busy = crew->count = 0;
    }
}

static void unlist(struct gpuhal_crew *crew, gpuhal_crew_job *job)
{
    gpuhal_crew_job **at = &crew->jobs;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
    job->listed = false;
}

/* One thread: works for whoever wants help, and sleeps otherwise. */
static void *serve(void *user)
{
    struct gpuhal_crew *crew = user;
    gpuhal_mutex_lock(&crew->mutex);
    for (;;) {
        while (!crew->jobs && !crew->closing) {
            gpuhal_condition_wait(&crew->wake, &crew->mutex);
        }
        gpuhal_crew_job *job = crew->jobs;
        if (!job) {
            break;
        }
        crew->wanted--;
        if (--job->wanted == 0) {
            unlist(crew, job);
        }
        job->running++;
        crew->busy++;
        gpuhal_mutex_unlock(&crew->mutex);
        job->work(job->user);
        gpuhal_mutex_lock(&crew->mutex);
        crew->busy--;
        job->running--;
        gpuhal_condition_signal_all(&crew->ended);
    }
    gpuhal_mutex_unlock(&crew->mutex);
    return NULL;
}

/* Made when first asked for: most gpuhal objects move little. NULL without memory. */
static struct gpuhal_crew *crew_of(gpuhal *gpu)
{
    struct gpuhal_crew *crew = atomic_load_explicit(&gpu->layers.crew, memory_order_acquire);
    if (crew || !(crew = calloc(1, sizeof *crew))) {
        return crew;
    }
    gpuhal_mutex_init(&crew->mutex);
    gpuhal_condition_init(&crew->wake);
    gpuhal_condition_init(&crew->ended);
    crew->generation = gpuhal_os_fork_generation();
    struct gpuhal_crew *other = NULL;
    if (!atomic_compare_exchange_strong(&gpu->layers.crew, &other, crew)) {
        gpuhal_condition_finish(&crew->ended);
        gpuhal_condition_finish(&crew->wake);
        gpuhal_mutex_finish(&crew->mutex);
        free(crew);
        return other;
    }
    return crew;
}

void gpuhal_crew_offer(gpuhal *gpu, gpuhal_crew_job *job, uint32_t helpers)
{
    struct gpuhal_crew *crew = helpers > 0 ? crew_of(gpu) : NULL;
    if (!crew) {
        return;
    }
    uint32_t most = gpuhal_crew_most() - 1;
    gpuhal_mutex_lock(&crew->mutex);
    forget_parents_threads(crew);
    if (job->withdrawn) {
        gpuhal_mutex_unlock(&crew->mutex);
        return;
    }
    if (!job->listed) {
        job->listed = true;
        job->next = crew->jobs;
        crew->jobs = job;
    }
    job->wanted += helpers;
    crew->wanted += helpers;
    /* What is not busy sleeps, or is about to look for work. */
    while (crew->count - crew->busy < crew->wanted && crew->count < most &&
           gpuhal_thread_start(&crew->threads[crew->count], serve, crew) == 0) {
        crew->count++;
    }
    gpuhal_condition_signal_all(&crew->wake);
    gpuhal_mutex_unlock(&crew->mutex);
}

void gpuhal_crew_withdraw(gpuhal *gpu, gpuhal_crew_job *job)
{
    struct gpuhal_crew *crew = atomic_load_explicit(&gpu->layers.crew, memory_order_acquire);
    if (!crew) {
        return;
    }
    gpuhal_mutex_lock(&crew->mutex);
    job->withdrawn = true;
    if (job->listed) {
        unlist(crew, job);
        crew->wanted -= job->wanted;
        job->wanted = 0;
    }
    while (job->running > 0) {
        gpuhal_condition_wait(&crew->ended, &crew->mutex);
    }
    gpuhal_mutex_unlock(&crew->mutex);
}

void gpuhal_crew_destroy(gpuhal *gpu)
{
    struct gpuhal_crew *crew = atomic_exchange(&gpu->layers.crew, NULL);
    if (!crew) {
        return;
    }
    gpuhal_mutex_lock(&crew->mutex);
    forget_parents_threads(crew);
    crew->closing = true;
    bool stuck = crew->busy > 0;
    gpuhal_condition_signal_all(&crew->wake);
    gpuhal_mutex_unlock(&crew->mutex);
    if (stuck) {
        return;
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        gpuhal_thread_join(&crew->threads[i]);
    }
    gpuhal_condition_finish(&crew->ended);
    gpuhal_condition_finish(&crew->wake);
    gpuhal_mutex_finish(&crew->mutex);
    free(crew);
}
