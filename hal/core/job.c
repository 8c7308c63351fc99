/* core/job.c: see job.h. */
#include "core/job.h"

#include <string.h>

/* The longest wait, and what one counts for at most: a process that was stopped for a minute has not waited for a minute. */
#define SLICE_NS 500000000u

static _Thread_local char thread_mark; /* its address names the thread */
static _Thread_local gpuhal_job *current;

gpuhal_job *gpuhal_job_current(void)
{
    return current;
}

const void *gpuhal_job_caller(void)
{
    return current ? current->caller : &thread_mark;
}

void gpuhal_job_init(gpuhal_job *job, gpuhal_job_fn *run, gpuhal_job_fn *late, gpuhal_job_fn *destroy)
{
    *job = (gpuhal_job){.run = run, .late = late, .destroy = destroy, .caller = gpuhal_job_caller(), .references = 1};
    gpuhal_mutex_init(&job->mutex);
    gpuhal_condition_init(&job->condition);
}

void gpuhal_job_retain(gpuhal_job *job)
{
    atomic_fetch_add(&job->references, 1);
}

void gpuhal_job_release(gpuhal_job *job)
{
    if (job && atomic_fetch_sub(&job->references, 1) == 1) {
        gpuhal_condition_finish(&job->condition);
        gpuhal_mutex_finish(&job->mutex);
        job->destroy(job);
    }
}

void gpuhal_job_step(gpuhal_job *job)
{
    atomic_fetch_add(&job->steps, 1);
}

static void *work(void *user)
{
    gpuhal_job *job = user;
    current = job;
    job->run(job);
    gpuhal_error_save(&job->detail);
    gpuhal_mutex_lock(&job->mutex);
    bool late = job->state == GPUHAL_JOB_ABANDONED;
    job->state = late ? job->state : GPUHAL_JOB_DONE;
    gpuhal_condition_signal_all(&job->condition);
    gpuhal_mutex_unlock(&job->mutex);
    if (late && job->late) {
        job->late(job);
    }
    atomic_store(&job->ended, true);
    gpuhal_job_release(job);
    return NULL;
}

uint64_t gpuhal_job_wait(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t most_ns)
{
    uint64_t begun = gpuhal_os_monotonic_ns();
    gpuhal_condition_wait_until(condition, mutex, begun + (most_ns < SLICE_NS ? most_ns : SLICE_NS));
    uint64_t passed = gpuhal_os_monotonic_ns() - begun;
    return passed < SLICE_NS ? passed : SLICE_NS;
}

/* With the mutex held. */
static void wait_for(gpuhal_job *job, uint64_t deadline_ns)
{
    uint64_t waited = 0, steps = atomic_load(&job->steps);
    while (job->state == GPUHAL_JOB_RUNNING && waited < deadline_ns) {
        waited += gpuhal_job_wait(&job->condition, &job->mutex, deadline_ns - waited);
        uint64_t now = atomic_load(&job->steps);
        waited = now == steps ? waited : 0;
        steps = now;
    }
}

gpuhal_job_state gpuhal_job_run(gpuhal_job *job, uint64_t deadline_ns)
{
    gpuhal_job_retain(job);
    int error = gpuhal_thread_start_detached(work, job);
    if (error) {
        gpuhal_job_release(job);
        gpuhal_error_set(GPUHAL_ERROR_HOST_MEMORY, "the system gives no further thread: %s", strerror(error));
        return GPUHAL_JOB_NO_THREAD;
    }
    gpuhal_mutex_lock(&job->mutex);
    wait_for(job, deadline_ns);
    job->state = job->state == GPUHAL_JOB_RUNNING ? GPUHAL_JOB_ABANDONED : job->state;
    gpuhal_job_state state = job->state;
    gpuhal_mutex_unlock(&job->mutex);
    return state;
}
