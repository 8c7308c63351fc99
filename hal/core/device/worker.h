/* device/worker.h: workers, which are threads that do one task and then end.
 *
 * Workers are counted. The gpuhal object exists as long as it has a worker, and gpuhal_close() waits for the workers
 * (see gpuhal_workers_settle()). All workers are started on demand, at most one of each kind for each subject. A
 * queue's worker ends after the queue was destroyed and its work is complete. Other workers report a hang, query a
 * driver for progress, rescan, write the fault log, free ended runs of recordings, wait for a lease, or take a
 * sampler's samples.
 */
#ifndef GPUHAL_DEVICE_WORKER_H
#define GPUHAL_DEVICE_WORKER_H

#include "os/os.h"

#include <gpuhal/instance.h>

typedef struct gpuhal_workers {
    gpuhal_mutex mutex; /* protects the members below, and `state` of the object's gpuhal_worker */
    gpuhal_condition condition;
    uint64_t count;
    uint64_t open_queues; /* number of queues that the user has not destroyed yet */
    bool closing;         /* the user has closed the object */
} gpuhal_workers;
void gpuhal_workers_init(gpuhal_workers *workers);
void gpuhal_workers_finish(gpuhal_workers *workers);

/* The worker's last use of the object must be the call of gpuhal_worker_ends(). Returns 0 or an errno. The caller must
 * hold a reference to the object. */
int gpuhal_worker_start(gpuhal *gpu, void *(*run)(void *user), void *user);
void gpuhal_worker_ends(gpuhal *gpu);
/* Marks this thread as a worker, so that a function called by a queue does not wait for its own worker. */
void gpuhal_worker_is_this(const gpuhal *gpu);

/* Work of one kind for one subject. Zeroed means that no worker is doing it. */
typedef struct gpuhal_worker {
    gpuhal *gpu;
    void (*run)(void *subject);
    void *subject;
    enum { GPUHAL_WORKER_NONE = 0, GPUHAL_WORKER_OWED, GPUHAL_WORKER_RUNS, GPUHAL_WORKER_RUNS_AGAIN } state;
} gpuhal_worker;
/* Makes a worker call `run`. If a worker is running already, that worker calls `run` once more. Returns 0, ESRCH if the
 * object is being destroyed, or the errno of a failed thread start. Never blocks, and never releases the object's last
 * reference. A caller without a reference may therefore call this function if it prevents the object's memory from
 * being freed meanwhile. */
int gpuhal_worker_request(gpuhal_worker *worker, gpuhal *gpu, void (*run)(void *subject), void *subject);
/* Waits until no worker is doing this work. */
void gpuhal_worker_await(gpuhal *gpu, const gpuhal_worker *worker);

/* Fails if the last reference was released, because the object is being destroyed. */
bool gpuhal_reference(gpuhal *gpu);
/* Adds `change` to `open_queues`. */
void gpuhal_workers_queue(gpuhal *gpu, int change);
/* Called when the user closes the object (`closing`), and when the user destroys a queue. If the object is closed and
 * the user has no queue left, waits until no other worker is left, but at most for the hang timeout, so that no thread
 * is inside a driver when the program ends. */
void gpuhal_workers_settle(gpuhal *gpu, bool closing);

#endif
