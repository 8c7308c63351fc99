/* device/worker.h: workers, which are threads that do one thing and then end.
 *
 * Workers are counted, and the gpuhal object exists as long as it has one; gpuhal_close() waits for them. A queue has a
 * worker until its work is complete. All other workers are started on demand, at most one of each kind for each
 * subject. They report a hang, query a driver for progress, rescan, or write the fault log.
 */
#ifndef GPUHAL_DEVICE_WORKER_H
#define GPUHAL_DEVICE_WORKER_H

#include "os/os.h"

#include <gpuhal/instance.h>

typedef struct gpuhal_workers {
    gpuhal_mutex mutex; /* protects the members below, and `state` of the object's gpuhal_worker */
    gpuhal_condition condition;
    uint64_t count;
    uint64_t open_queues; /* not yet destroyed by their users */
    bool closing;         /* the user has closed the object */
} gpuhal_workers;
void gpuhal_workers_init(gpuhal_workers *workers);
void gpuhal_workers_finish(gpuhal_workers *workers);

/* Starts a worker. Its last use of the object must be gpuhal_worker_ends(). Returns 0 or an errno. The caller must hold
 * a reference to the object. */
int gpuhal_worker_start(gpuhal *gpu, void *(*run)(void *user), void *user);
void gpuhal_worker_ends(gpuhal *gpu);
/* Marks this thread as a worker, so that a function called by a queue does not wait for the worker that runs it. */
void gpuhal_worker_is_this(const gpuhal *gpu);

/* Work of one kind for one subject. Zeroed means that no worker is doing it. */
typedef struct gpuhal_worker {
    gpuhal *gpu;
    void (*run)(void *subject);
    void *subject;
    enum { GPUHAL_WORKER_NONE = 0, GPUHAL_WORKER_OWED, GPUHAL_WORKER_RUNS, GPUHAL_WORKER_RUNS_AGAIN } state;
} gpuhal_worker;
/* Makes a worker call `run`; if one is running already, it calls `run` once more. Returns 0 or an errno: no thread
 * could be started, or ESRCH because the object is being destroyed. Never blocks, and never releases the object's last
 * reference. A caller without a reference may therefore call this while it prevents the object's memory from being
 * freed. */
int gpuhal_worker_request(gpuhal_worker *worker, gpuhal *gpu, void (*run)(void *subject), void *subject);
/* Waits until no worker is doing it. */
void gpuhal_worker_await(gpuhal *gpu, const gpuhal_worker *worker);

/* Takes a reference to the object. Fails if the last reference was released, because the object is then being
 * destroyed. */
bool gpuhal_reference(gpuhal *gpu);
/* Adds `change` to the number of the user's queues. */
void gpuhal_workers_queue(gpuhal *gpu, int change);
/* Called when the user closes the object (`closing`) or destroys a queue after that. The last such call waits until no
 * worker is left, at most for the hang timeout, so that no thread is inside a driver when the program ends. */
void gpuhal_workers_settle(gpuhal *gpu, bool closing);

#endif
