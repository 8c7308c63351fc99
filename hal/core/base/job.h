/* base/job.h: runs work on another thread, and abandons that thread after a deadline.
 *
 * A thread that hangs inside a driver cannot be killed, only abandoned. All data that the work accesses must therefore
 * belong to the job. The caller and the thread each have a reference. Releasing the last reference frees the job. If
 * the work completes after the caller has given up (for example, a device was opened too late), the thread releases the
 * result in `late`.
 *
 *     typedef struct opening { gpuhal_job job; ... } opening;       the job comes first
 *     gpuhal_job_init(&own->job, run, late, destroy);
 *     bool in_time = gpuhal_job_run(&own->job, deadline_ns) == GPUHAL_JOB_DONE;
 *     ...                                                           results may be read only if in_time
 *     gpuhal_job_release(&own->job);
 *
 * To run several jobs concurrently, call gpuhal_job_begin() for each, then gpuhal_job_await() for each.
 *
 * The threads are shared by the whole process. A thread whose job ended in time ends if enough threads are idle.
 * Otherwise it stays idle until it gets the next job, or a gpuhal object has been opened or closed. An abandoned thread
 * is never reused or joined. Asynchronous signals are blocked on all these threads.
 */
#ifndef GPUHAL_BASE_JOB_H
#define GPUHAL_BASE_JOB_H

#include "base/error.h"
#include "os/os.h"

typedef enum { GPUHAL_JOB_RUNNING, GPUHAL_JOB_DONE, GPUHAL_JOB_ABANDONED, GPUHAL_JOB_NO_THREAD } gpuhal_job_state;

typedef struct gpuhal_job gpuhal_job;
typedef struct gpuhal_job_worker gpuhal_job_worker;
typedef void gpuhal_job_fn(gpuhal_job *job);
struct gpuhal_job {
    gpuhal_job_fn *run;     /* called on the job's thread */
    gpuhal_job_fn *late;    /* called on the job's thread after run() if the caller has given up; may be NULL */
    gpuhal_job_fn *destroy; /* frees the job; called by the release of the last reference */
    const void *caller;     /* the caller's gpuhal_job_caller() */
    bool calls_no_driver;   /* if no thread can be started, the job and its nested jobs run on the caller's thread */
    /* never waits for anything held by a driver, so the job and its nested jobs always run on the caller's thread */
    bool at_once;
    gpuhal_job_worker *worker; /* the running thread; owned by the caller until awaited */
    gpuhal_job_state state; /* protected by the mutex of job.c */
    _Atomic uint32_t references;
    _Atomic uint64_t steps;          /* number of progress steps; each step restarts the deadline */
    _Atomic bool ended;              /* run() and late() have returned */
    _Atomic bool in_dynamic_loader;  /* in dlopen, with the process-wide lock of the dynamic loader */
    gpuhal_error_detail detail;      /* the thread's last error when run() returned; valid for DONE */
};

/* Initialises the job with the caller's reference. */
void gpuhal_job_init(gpuhal_job *job, gpuhal_job_fn *run, gpuhal_job_fn *late, gpuhal_job_fn *destroy);
/* Returns DONE, ABANDONED if `deadline_ns` passed without a step, or NO_THREAD with the error detail if the job did not
 * run. */
gpuhal_job_state gpuhal_job_run(gpuhal_job *job, uint64_t deadline_ns);
/* Makes the job its own caller, separate from the thread that begins it. Must be called before the job begins. Use it
 * for jobs that one thread runs concurrently, or abandons and repeats. Calls of such jobs are not mistaken for
 * recursive calls, and end at their deadlines. */
void gpuhal_job_stand_alone(gpuhal_job *job);
/* Begins the job without waiting. Returns RUNNING, DONE if it ran on the caller's thread, or NO_THREAD. */
gpuhal_job_state gpuhal_job_begin(gpuhal_job *job);
/* Waits for a RUNNING job; must be called once for each. Returns DONE or ABANDONED. Subtracts the waiting time since
 * the job's last step from *left_ns, which several jobs may share. */
gpuhal_job_state gpuhal_job_await(gpuhal_job *job, uint64_t *left_ns);
/* Waits for the condition for at most `most_ns`, and at most half a second. Returns the elapsed time, at most half a
 * second, so that time that the process spent stopped hardly counts towards a deadline. Called with the mutex held. */
uint64_t gpuhal_job_wait(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t most_ns);
/* Converts a timeout to a time of the monotonic clock. UINT64_MAX stays unlimited. */
uint64_t gpuhal_deadline(uint64_t timeout_ns);
/* Reports progress and restarts the deadline. */
void gpuhal_job_step(gpuhal_job *job);
void gpuhal_job_retain(gpuhal_job *job);
/* NULL does nothing. */
void gpuhal_job_release(gpuhal_job *job);
/* Ends and joins idle threads. Later jobs start new threads. */
void gpuhal_jobs_end(void);

/* Returns the job that this thread is running; NULL if none. */
gpuhal_job *gpuhal_job_current(void);
/* Identifies the thread on whose behalf the calling thread runs. The result is the same in a thread and in all jobs
 * that the thread waits for, at any depth. Used to detect recursive calls, such as a plugin that opens itself. */
const void *gpuhal_job_caller(void);

#endif
