/* base/job.h: runs work on another thread, which its caller abandons at a deadline.
 *
 * A thread inside a driver that never returns cannot be ended, only abandoned. So all data that the work reads and
 * writes must belong to the job: the caller and the thread have one reference each, and the side that releases the
 * last one frees it. If the thread completes after its caller has gone (it opened a device after all), it releases
 * the result itself, in `late`.
 *
 *     typedef struct opening { gpuhal_job job; ... } opening;       the job comes first
 *     gpuhal_job_init(&own->job, run, late, destroy);
 *     bool in_time = gpuhal_job_run(&own->job, deadline_ns) == GPUHAL_JOB_DONE;
 *     ...                                                           results may be read only if in_time
 *     gpuhal_job_release(&own->job);
 *
 * Several jobs run concurrently if each is begun by gpuhal_job_begin(), and then awaited by gpuhal_job_await().
 *
 * The threads belong to the process. A thread whose job ended in time waits for the next job until a gpuhal object
 * ends. An abandoned thread is never used again, and is not joined. Signals that others send are blocked on them.
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
    gpuhal_job_fn *run;     /* on the job's thread */
    gpuhal_job_fn *late;    /* called there after run(), if the caller has gone; may be NULL */
    gpuhal_job_fn *destroy; /* frees the job, on the side with the last reference */
    const void *caller;     /* gpuhal_job_caller() of the caller */
    bool calls_no_driver;   /* runs on the caller's thread if the system gives none, and so do jobs inside it */
    /* waits for nothing that a driver may hold, so it always runs on the caller's thread, and so do jobs inside it */
    bool at_once;
    gpuhal_job_worker *worker; /* the running thread; belongs to the caller until it was awaited */
    gpuhal_job_state state; /* protected by the mutex of job.c */
    _Atomic uint32_t references;
    _Atomic uint64_t steps;          /* the deadline counts from the last step */
    _Atomic bool ended;              /* its thread has returned from run() and late() */
    _Atomic bool in_dynamic_loader;  /* in dlopen, whose lock the whole process shares */
    gpuhal_error_detail detail;      /* the thread's last error when run() returned; valid for DONE */
};

/* Initialises the job with one reference, the caller's. `late` may be NULL. */
void gpuhal_job_init(gpuhal_job *job, gpuhal_job_fn *run, gpuhal_job_fn *late, gpuhal_job_fn *destroy);
/* Runs the job and waits for it. Returns DONE, ABANDONED after `deadline_ns` without a step, or NO_THREAD with the
 * error detail set, if it did not run. */
gpuhal_job_state gpuhal_job_run(gpuhal_job *job, uint64_t deadline_ns);
/* Makes the job a caller separate from the thread that begins it. Must be called before it begins. It serves jobs that
 * one thread runs side by side, or abandons and repeats: deadlines then end their calls, which are not mistaken for
 * recursive ones. */
void gpuhal_job_stand_alone(gpuhal_job *job);
/* Begins the job without waiting. Returns RUNNING, NO_THREAD, or DONE if it ran on the caller's thread. */
gpuhal_job_state gpuhal_job_begin(gpuhal_job *job);
/* Waits for a job that is RUNNING; must be called once for each. Returns DONE or ABANDONED. Subtracts the time from
 * *left_ns, which may serve several jobs. */
gpuhal_job_state gpuhal_job_await(gpuhal_job *job, uint64_t *left_ns);
/* Waits for the condition for at most `most_ns`, and less than a second. Returns how long this process ran meanwhile: a
 * deadline for the sum does not count the time of a stopped process. Called with the mutex held. */
uint64_t gpuhal_job_wait(gpuhal_condition *condition, gpuhal_mutex *mutex, uint64_t most_ns);
/* Returns a time on the monotonic clock; UINT64_MAX stays no limit. */
uint64_t gpuhal_deadline(uint64_t timeout_ns);
/* Reports progress: the deadline begins again. */
void gpuhal_job_step(gpuhal_job *job);
void gpuhal_job_retain(gpuhal_job *job);
/* NULL does nothing. */
void gpuhal_job_release(gpuhal_job *job);
/* Ends and joins the idle threads. Called at the end of a gpuhal object; later jobs start new threads. */
void gpuhal_jobs_end(void);

/* Returns the job that this thread runs; NULL on every other thread. */
gpuhal_job *gpuhal_job_current(void);
/* Identifies the thread that this one works for. A thread and all jobs that it waits for, at any depth, have the same
 * value. So a recursive call (a plugin that opens itself) is detected. */
const void *gpuhal_job_caller(void);

#endif
