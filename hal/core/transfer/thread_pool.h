/* transfer/thread_pool.h: helper threads for transfers, shared by all transfers of a gpuhal object.
 *
 * A thread that submits work can also do all of it alone; helpers join only if they are free. So no thread ever waits
 * for a free helper. Threads start on demand, sleep while there is nothing to do, and end with the gpuhal object. */
#ifndef GPUHAL_TRANSFER_THREAD_POOL_H
#define GPUHAL_TRANSFER_THREAD_POOL_H

#include "device/device.h"

/* Exists on its owner's stack from submission to cancellation. */
typedef struct gpuhal_thread_pool_job {
    void (*work)(void *user); /* called once by each helper */
    void *user;
    struct gpuhal_thread_pool_job *next;
    uint32_t wanted, running; /* number of helpers; protected by the pool's mutex, as are the members below */
    bool listed;
    bool withdrawn; /* further submissions have no effect, e.g. by a helper while its job is being cancelled */
} gpuhal_thread_pool_job;

/* Returns how many threads can usefully work on one transfer, including the caller's: the number of processors
 * available to this process, but at least two, since one thread mostly waits for a device. */
uint32_t gpuhal_thread_pool_most(void);
/* Requests `helpers` more helpers and returns immediately. If memory or threads run out, none joins. */
void gpuhal_thread_pool_submit(gpuhal *gpu, gpuhal_thread_pool_job *job, uint32_t helpers);
/* Stops more helpers from joining, and returns when those that are running have ended. */
void gpuhal_thread_pool_cancel(gpuhal *gpu, gpuhal_thread_pool_job *job);
/* Ends the threads. A thread that is stuck in a driver is not waited for, and the pool's memory is then leaked. */
void gpuhal_thread_pool_destroy(gpuhal *gpu);

#endif
