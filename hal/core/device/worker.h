/* device/worker.h: workers, threads that do one thing and end.
 *
 * They are counted, and the gpuhal object stays as long as there is one; gpuhal_close() waits for them. A queue has a
 * worker until its work has ended. All others are started when there is something to do, at most one of a kind for its
 * subject: it reports a hang, asks a driver whether work goes on, rescans, or writes the fault log.
 */
#ifndef GPUHAL_DEVICE_WORKER_H
#define GPUHAL_DEVICE_WORKER_H

#include "os/os.h"

#include <gpuhal/instance.h>

/* The workers of one gpuhal object. */
typedef struct gpuhal_workers {
    gpuhal_mutex mutex; /* protects the members below, and the states of the object's gpuhal_worker */
    gpuhal_condition condition;
    uint64_t count;
    uint64_t open_queues; /* that their users have not destroyed */
    bool closing;         /* the object's user is gone */
} gpuhal_workers;
void gpuhal_workers_init(gpuhal_workers *workers);
void gpuhal_workers_finish(gpuhal_workers *workers);

/* Starts a worker, which must call gpuhal_worker_ends() as its last use of the object. Returns 0 or errno. The caller
 * has a reference to the object. */
int gpuhal_worker_start(gpuhal *gpu, void *(*run)(void *user), void *user);
void gpuhal_worker_ends(gpuhal *gpu);
/* Marks this thread as a worker: a function that a queue calls does not wait for the end of its worker. */
void gpuhal_worker_is_this(const gpuhal *gpu);

/* Work of one kind for one subject. Zeroed: no worker does it. */
typedef struct gpuhal_worker {
    gpuhal *gpu;
    void (*run)(void *subject);
    void *subject;
    enum { GPUHAL_WORKER_NONE = 0, GPUHAL_WORKER_OWED, GPUHAL_WORKER_RUNS, GPUHAL_WORKER_RUNS_AGAIN } state;
} gpuhal_worker;
/* Has a worker call `run`, once more if one is at it already. Returns 0 or errno: no thread, or the object is being
 * destroyed, which is ESRCH. Never blocks, and the object's last reference is never released here, so a caller without
 * one may call this while it keeps the object's memory from being freed. */
int gpuhal_worker_request(gpuhal_worker *worker, gpuhal *gpu, void (*run)(void *subject), void *subject);
/* Returns when no worker is at it any more. */
void gpuhal_worker_await(gpuhal *gpu, const gpuhal_worker *worker);

/* Takes a reference to the object, unless its last one has gone: then it is being destroyed. */
bool gpuhal_reference(gpuhal *gpu);
/* Counts the queues that the user has. */
void gpuhal_workers_queue(gpuhal *gpu, int change);
/* Called when the user closes the object (`closing`), or destroys a queue after that. The last such call waits until no
 * worker is left, for as long as a driver may take, so that no thread is in a driver when the program ends. */
void gpuhal_workers_settle(gpuhal *gpu, bool closing);

#endif
