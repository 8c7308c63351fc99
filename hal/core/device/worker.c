/* device/worker.c: see worker.h. */
#include "device/worker.h"

#include "device/device.h"

#include <errno.h>

void gpuhal_workers_init(gpuhal_workers *workers)
{
    gpuhal_mutex_init(&workers->mutex);
    gpuhal_condition_init(&workers->condition);
}

void gpuhal_workers_finish(gpuhal_workers *workers)
{
    gpuhal_condition_finish(&workers->condition);
    gpuhal_mutex_finish(&workers->mutex);
}

static gpuhal_workers *lock(gpuhal *gpu)
{
    gpuhal_mutex_lock(&gpu->workers.mutex);
    return &gpu->workers;
}

bool gpuhal_reference(gpuhal *gpu)
{
    uint64_t references = atomic_load(&gpu->references);
    while (references > 0) {
        if (atomic_compare_exchange_weak(&gpu->references, &references, references + 1)) {
            return true;
        }
    }
    return false;
}

/* Releases a reference, unless it is the last. */
static bool release_early(gpuhal *gpu)
{
    uint64_t references = atomic_load(&gpu->references);
    while (references > 1) {
        if (atomic_compare_exchange_weak(&gpu->references, &references, references - 1)) {
            return true;
        }
    }
    return false;
}

/* All workers together have one reference to the object. Called with the mutex held. */
static bool count(gpuhal *gpu)
{
    bool counted = gpu->workers.count > 0 || gpuhal_reference(gpu);
    gpu->workers.count += counted;
    return counted;
}

/* Returns false and changes nothing if the removal would release the object's last reference. Called with the mutex
 * held, so that a thread in gpuhal_workers_settle() that finds no worker has the last reference. */
static bool uncount(gpuhal *gpu)
{
    if (gpu->workers.count == 1 && !release_early(gpu)) {
        return false;
    }
    gpu->workers.count--;
    gpuhal_condition_signal_all(&gpu->workers.condition);
    return true;
}

/* ---- threads */

static _Thread_local const gpuhal *works_for;

void gpuhal_worker_is_this(const gpuhal *gpu)
{
    works_for = gpu;
}

int gpuhal_worker_start(gpuhal *gpu, void *(*run)(void *user), void *user)
{
    gpuhal_workers *workers = lock(gpu);
    (void)count(gpu);
    int error = gpuhal_thread_start_detached(run, user);
    if (error) {
        (void)uncount(gpu);
    }
    gpuhal_mutex_unlock(&workers->mutex);
    return error;
}

void gpuhal_worker_ends(gpuhal *gpu)
{
    gpuhal_workers *workers = lock(gpu);
    bool last = !uncount(gpu);
    workers->count -= last;
    gpuhal_mutex_unlock(&workers->mutex);
    if (last) {
        gpuhal_unreference(gpu);
    }
}

static void *run_requested(void *user)
{
    gpuhal_worker *worker = user;
    gpuhal *gpu = worker->gpu;
    gpuhal_worker_is_this(gpu);
    for (bool again = true; again;) {
        worker->run(worker->subject);
        gpuhal_workers *workers = lock(gpu);
        again = worker->state == GPUHAL_WORKER_RUNS_AGAIN;
        worker->state = again ? GPUHAL_WORKER_RUNS : GPUHAL_WORKER_NONE;
        gpuhal_condition_signal_all(&workers->condition);
        gpuhal_mutex_unlock(&workers->mutex);
    }
    gpuhal_worker_ends(gpu);
    return NULL;
}

/* If no thread can be started, a worker whose reference has become the object's last reference stays counted. The next
 * request must start the thread, which destroys the object. */
int gpuhal_worker_request(gpuhal_worker *worker, gpuhal *gpu, void (*run)(void *subject), void *subject)
{
    int error = 0;
    gpuhal_workers *workers = lock(gpu);
    if (worker->state >= GPUHAL_WORKER_RUNS) {
        worker->state = GPUHAL_WORKER_RUNS_AGAIN;
    } else if (worker->state == GPUHAL_WORKER_OWED || count(gpu)) {
        worker->gpu = gpu;
        worker->run = run;
        worker->subject = subject;
        error = gpuhal_thread_start_detached(run_requested, worker);
        worker->state = !error ? GPUHAL_WORKER_RUNS : uncount(gpu) ? GPUHAL_WORKER_NONE : GPUHAL_WORKER_OWED;
    } else {
        error = ESRCH;
    }
    gpuhal_mutex_unlock(&workers->mutex);
    return error;
}

void gpuhal_worker_await(gpuhal *gpu, const gpuhal_worker *worker)
{
    gpuhal_workers *workers = lock(gpu);
    while (worker->state >= GPUHAL_WORKER_RUNS) {
        gpuhal_condition_wait(&workers->condition, &workers->mutex);
    }
    gpuhal_mutex_unlock(&workers->mutex);
}

/* ---- the end of the object */

void gpuhal_workers_queue(gpuhal *gpu, int change)
{
    gpuhal_workers *workers = lock(gpu);
    workers->open_queues += (uint64_t)(int64_t)change;
    gpuhal_mutex_unlock(&workers->mutex);
}

void gpuhal_workers_settle(gpuhal *gpu, bool closing)
{
    uint64_t deadline = gpuhal_deadline(gpu->settings.hang_ns);
    gpuhal_workers *workers = lock(gpu);
    workers->closing = workers->closing || closing;
    uint64_t own = works_for == gpu ? 1 : 0; /* 1 if this thread is a worker, as in a function that a queue runs */
    while (workers->closing && workers->open_queues == 0 && workers->count > own &&
           gpuhal_os_monotonic_ns() < deadline) {
        gpuhal_condition_wait_until(&workers->condition, &workers->mutex, deadline);
    }
    gpuhal_mutex_unlock(&workers->mutex);
}
