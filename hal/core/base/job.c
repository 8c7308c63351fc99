/* base/job.c: see job.h. */
#include "base/job.h"

#include <errno.h>
#include <stdlib.h>

/* Maximum number of idle threads. GPUs are sampled concurrently, and few machines have more GPUs than this. */
#define IDLE_MAX 8u

/* Maximum length of one wait, and of the time counted for it. If the process is stopped for a minute, only this much
 * counts as waiting. */
#define SLICE_NS 500000000u

static _Thread_local char thread_mark; /* its address identifies the thread */
static _Thread_local gpuhal_job *current;

/* A worker thread. It is owned by its job's caller until the job was awaited, then by the idle list, or by itself
 * after it was abandoned. */
struct gpuhal_job_worker {
    gpuhal_thread thread;
    uint32_t generation;        /* fork generation of the thread's start */
    gpuhal_condition condition; /* signalled when the thread receives a job or must end, and when its job has ended */
    gpuhal_job *job;            /* may be NULL */
    bool ends;
    gpuhal_job_worker *next;    /* in the idle list */
};

static struct {
    gpuhal_mutex mutex;  /* protects the members below, all workers, and the state of all jobs */
    uint32_t generation; /* fork generation of the list */
    gpuhal_job_worker *idle;        /* most recently used first */
    uint32_t idle_count;
} pool = {.mutex = GPUHAL_MUTEX_INITIALIZER};

static void free_worker(gpuhal_job_worker *own)
{
    gpuhal_condition_finish(&own->condition);
    free(own);
}

/* Called with the mutex held. */
static gpuhal_job_worker *take_idle(void)
{
    gpuhal_job_worker *own = pool.idle;
    if (own) {
        pool.idle = own->next;
        pool.idle_count--;
    }
    return own;
}

/* The parent's threads do not exist in the child of a fork. */
static void lock_pool(void)
{
    gpuhal_mutex_lock(&pool.mutex);
    if (pool.generation != gpuhal_os_fork_generation()) {
        pool.generation = gpuhal_os_fork_generation();
        for (gpuhal_job_worker *own; (own = take_idle());) {
            free_worker(own);
        }
        pool.idle_count = 0; /* the fork may have happened between the changes of the list and of the count */
    }
}

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
}

void gpuhal_job_stand_alone(gpuhal_job *job)
{
    job->caller = job;
}

void gpuhal_job_retain(gpuhal_job *job)
{
    atomic_fetch_add(&job->references, 1);
}

void gpuhal_job_release(gpuhal_job *job)
{
    if (job && atomic_fetch_sub(&job->references, 1) == 1) {
        job->destroy(job);
    }
}

void gpuhal_job_step(gpuhal_job *job)
{
    atomic_fetch_add(&job->steps, 1);
}

/* Called with the mutex held, and unlocks it while the job runs. A caller that waits for the job may free the job as
 * soon as its state is DONE, so the job is not accessed after that. Returns false if the caller has given up. */
static bool run_job(gpuhal_job_worker *own)
{
    gpuhal_job *job = own->job;
    gpuhal_mutex_unlock(&pool.mutex);
    current = job;
    gpuhal_error_clear();
    job->run(job);
    gpuhal_error_save(&job->detail);
    lock_pool();
    if (job->state == GPUHAL_JOB_ABANDONED) {
        return false;
    }
    current = NULL;
    own->job = NULL;
    atomic_store(&job->ended, true);
    atomic_fetch_sub(&job->references, 1);
    job->state = GPUHAL_JOB_DONE;
    gpuhal_condition_signal_all(&own->condition);
    return true;
}

static void end_late(gpuhal_job_worker *own)
{
    gpuhal_job *job = own->job;
    if (job->late) {
        job->late(job);
    }
    atomic_store(&job->ended, true);
    current = NULL; /* destroying the job may close a gpuhal object, and closing begins other jobs */
    gpuhal_job_release(job);
    free_worker(own);
}

/* If a plugin forks inside a job, the child also returns here. The child must not take further jobs. */
static void *work(void *user)
{
    gpuhal_job_worker *own = user;
    bool in_time = true;
    gpuhal_os_thread_name("gpuhal-job");
    lock_pool();
    while (in_time && !own->ends && own->generation == gpuhal_os_fork_generation()) {
        if (own->job) {
            in_time = run_job(own);
        } else {
            gpuhal_condition_wait(&own->condition, &pool.mutex);
        }
    }
    gpuhal_mutex_unlock(&pool.mutex);
    if (!in_time) {
        end_late(own);
    }
    return NULL;
}

uint64_t gpuhal_job_wait(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t most_ns)
{
    uint64_t begun = gpuhal_os_monotonic_ns();
    gpuhal_condition_wait_until(condition, mutex, begun + (most_ns < SLICE_NS ? most_ns : SLICE_NS));
    uint64_t passed = gpuhal_os_monotonic_ns() - begun;
    return passed < SLICE_NS ? passed : SLICE_NS;
}

uint64_t gpuhal_deadline(uint64_t timeout_ns)
{
    uint64_t now = timeout_ns == UINT64_MAX ? 0 : gpuhal_os_monotonic_ns();
    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

/* Returns the waiting time since the last step. Called with the mutex held. */
static uint64_t wait_for(gpuhal_job_worker *own, const gpuhal_job *job, uint64_t deadline_ns)
{
    uint64_t waited = 0, steps = atomic_load(&job->steps);
    while (job->state == GPUHAL_JOB_RUNNING && waited < deadline_ns) {
        waited += gpuhal_job_wait(&own->condition, &pool.mutex, deadline_ns - waited);
        uint64_t now = atomic_load(&job->steps);
        waited = now == steps ? waited : 0;
        steps = now;
    }
    return waited;
}

/* Called with the mutex held. Returns NULL with *out_error on failure. */
static gpuhal_job_worker *start_worker(gpuhal_job *job, int *out_error)
{
    gpuhal_job_worker *own = calloc(1, sizeof *own);
    *out_error = ENOMEM;
    if (own) {
        own->generation = pool.generation;
        own->job = job;
        gpuhal_condition_init(&own->condition);
        *out_error = gpuhal_thread_start(&own->thread, work, own);
    }
    if (own && *out_error) {
        free_worker(own);
        own = NULL;
    }
    return own;
}

static gpuhal_job_worker *begin_job(gpuhal_job *job, int *out_error)
{
    gpuhal_job_worker *own = take_idle();
    if (!own) {
        return start_worker(job, out_error);
    }
    own->job = job;
    gpuhal_condition_signal_all(&own->condition);
    return own;
}

/* Called with the mutex held, for a thread without a job. */
static void end_worker(gpuhal_job_worker *own)
{
    own->ends = true;
    gpuhal_condition_signal_all(&own->condition);
    gpuhal_mutex_unlock(&pool.mutex);
    gpuhal_thread_join(&own->thread);
    free_worker(own);
    lock_pool();
}

static void keep_worker(gpuhal_job_worker *own)
{
    if (pool.idle_count == IDLE_MAX) {
        end_worker(own);
        return;
    }
    own->next = pool.idle;
    pool.idle = own;
    pool.idle_count++;
}

/* A separate function, so that its stack space is free while the job runs. */
static __attribute__((noinline)) void swap_details(gpuhal_job *job)
{
    gpuhal_error_detail own;
    gpuhal_error_save(&own);
    gpuhal_error_restore(&job->detail);
    job->detail = own;
}

/* Cancellation is deferred, since other threads may wait for locks and results of this thread. */
static void run_here(gpuhal_job *job)
{
    gpuhal_job *outer = current;
    int cancel = gpuhal_os_cancel_defer();
    gpuhal_error_save(&job->detail);
    current = job;
    gpuhal_error_clear();
    job->run(job);
    current = outer;
    swap_details(job);
    atomic_store(&job->ended, true);
    job->state = GPUHAL_JOB_DONE;
    gpuhal_os_cancel_restore(cancel);
}

gpuhal_job_state gpuhal_job_begin(gpuhal_job *job)
{
    int error = 0;
    job->calls_no_driver = job->calls_no_driver || (current && current->calls_no_driver);
    job->at_once = job->at_once || (current && current->at_once);
    if (job->at_once) {
        run_here(job);
        return GPUHAL_JOB_DONE;
    }
    gpuhal_job_retain(job);
    lock_pool();
    job->worker = begin_job(job, &error);
    gpuhal_mutex_unlock(&pool.mutex);
    if (job->worker) {
        return GPUHAL_JOB_RUNNING;
    }
    gpuhal_job_release(job);
    if (job->calls_no_driver) {
        run_here(job);
        return GPUHAL_JOB_DONE;
    }
    gpuhal_error_no_thread(error);
    return GPUHAL_JOB_NO_THREAD;
}

gpuhal_job_state gpuhal_job_await(gpuhal_job *job, uint64_t *left_ns)
{
    gpuhal_job_worker *own = job->worker;
    lock_pool();
    uint64_t waited = wait_for(own, job, *left_ns);
    *left_ns -= waited < *left_ns ? waited : *left_ns;
    if (job->state == GPUHAL_JOB_DONE) {
        keep_worker(own);
    } else {
        job->state = GPUHAL_JOB_ABANDONED;
        gpuhal_thread_detach(&own->thread); /* detached by the caller, since a plugin may have called pthread_exit() */
    }
    gpuhal_job_state state = job->state;
    gpuhal_mutex_unlock(&pool.mutex);
    return state;
}

gpuhal_job_state gpuhal_job_run(gpuhal_job *job, uint64_t deadline_ns)
{
    gpuhal_job_state state = gpuhal_job_begin(job);
    return state == GPUHAL_JOB_RUNNING ? gpuhal_job_await(job, &deadline_ns) : state;
}

void gpuhal_jobs_end(void)
{
    lock_pool();
    gpuhal_job_worker *ending = NULL;
    for (gpuhal_job_worker *own;
         (own = take_idle());) { /* notify all threads before joining the first, so that they end concurrently */
        own->ends = true;
        gpuhal_condition_signal_all(&own->condition);
        own->next = ending;
        ending = own;
    }
    while (ending) {
        gpuhal_job_worker *own = ending;
        ending = own->next;
        end_worker(own);
    }
    gpuhal_mutex_unlock(&pool.mutex);
}
