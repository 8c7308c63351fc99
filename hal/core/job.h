/* core/job.h: one piece of work on another thread, which its caller abandons when a deadline has passed.
 *
 * A thread inside a driver that never returns cannot be ended, only left behind. So everything that the work reads
 * and writes belongs to the job: the caller and the thread hold one reference each, and the side that lets go last
 * frees it. What the thread finds once its caller has gone (a device that was opened after all) it gives back
 * itself, in `late`.
 *
 *     typedef struct opening { gpuhal_job job; ... } opening;       the job comes first
 *     gpuhal_job_init(&own->job, run, late, destroy);
 *     bool in_time = gpuhal_job_run(&own->job, deadline_ns) == GPUHAL_JOB_DONE;
 *     ...                                                           results may be read only if in_time
 *     gpuhal_job_release(&own->job);
 *
 * Several jobs run side by side where each is begun by gpuhal_job_begin(), and then awaited by gpuhal_job_await().
 *
 * The threads belong to the process. One whose job ended in time keeps nothing of it, and waits for the next job
 * until a gpuhal object ends; one that was abandoned is never used again, and is not joined. All signals are blocked
 * on them. */
#ifndef GPUHAL_CORE_JOB_H
#define GPUHAL_CORE_JOB_H

#include "core/error.h"
#include "os/os.h"

typedef enum { GPUHAL_JOB_RUNNING, GPUHAL_JOB_DONE, GPUHAL_JOB_ABANDONED, GPUHAL_JOB_NO_THREAD } gpuhal_job_state;

typedef struct gpuhal_job gpuhal_job;
typedef struct gpuhal_job_worker gpuhal_job_worker;
typedef void gpuhal_job_fn(gpuhal_job *job);
struct gpuhal_job {
    gpuhal_job_fn *run;     /* on the job's thread */
    gpuhal_job_fn *late;    /* there, after run(), when the caller has gone; may be NULL */
    gpuhal_job_fn *destroy; /* frees it, on the side that lets go last */
    const void *caller;     /* gpuhal_job_caller() of the caller */
    bool calls_no_driver;   /* so it runs on the caller's thread where the system gives none, and so do jobs inside of it */
    bool at_once;           /* and waits for nothing that a driver may hold, so it runs there in any case; likewise */
    gpuhal_job_worker *worker; /* runs it; the caller's until it was awaited */
    gpuhal_job_state state; /* protected by the mutex of job.c */
    _Atomic uint32_t references;
    _Atomic uint64_t steps;          /* the deadline counts from the last one */
    _Atomic bool ended;              /* its thread is past run() and late() */
    _Atomic bool in_dynamic_loader;  /* it is inside dlopen, whose lock the whole process shares */
    gpuhal_error_detail detail;      /* the thread's last error when run() returned; of a job that is DONE */
};

/* One reference, the caller's. `late` may be NULL. */
void gpuhal_job_init(gpuhal_job *job, gpuhal_job_fn *run, gpuhal_job_fn *late, gpuhal_job_fn *destroy);
/* Runs the job and waits for it: DONE, ABANDONED after so long without a step, or NO_THREAD with the error detail set,
 * when it did not run. */
gpuhal_job_state gpuhal_job_run(gpuhal_job *job, uint64_t deadline_ns);
/* The same in two steps. RUNNING, NO_THREAD, or DONE where it ran on the caller's thread. */
gpuhal_job_state gpuhal_job_begin(gpuhal_job *job);
/* Once for each job that is RUNNING. DONE or ABANDONED; takes the time that it waited off *left_ns, which may serve
 * several jobs. */
gpuhal_job_state gpuhal_job_await(gpuhal_job *job, uint64_t *left_ns);
/* Waits for the condition for at most so long, and less than a second. Returns for how long this process was running meanwhile: adding that up
 * gives a deadline in which time does not count when the process was stopped. Called with the mutex held. */
uint64_t gpuhal_job_wait(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t most_ns);
/* The work goes on: its deadline begins anew. */
void gpuhal_job_step(gpuhal_job *job);
void gpuhal_job_retain(gpuhal_job *job);
/* NULL does nothing. */
void gpuhal_job_release(gpuhal_job *job);
/* Ends the threads that wait for a job, and joins them. For the end of a gpuhal object; later jobs start new
 * threads. */
void gpuhal_jobs_end(void);

/* The job that this thread runs; NULL on every other thread. */
gpuhal_job *gpuhal_job_current(void);
/* Names the thread for which this one works: the same for a thread and for all jobs that it waits for, however deep. So a call that comes back
 * to its beginning (a plugin that opens itself) is noticed. */
const void *gpuhal_job_caller(void);

#endif
