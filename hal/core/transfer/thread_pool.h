/* transfer/thread_pool.h: threads that help with transfers, shared by all transfers of a gpuhal object.
 *
 * A thread with work can do it alone, and submits a part of it: helpers come if any are free. So no thread ever waits
 * for another to become free. Threads start when they are first needed, sleep while there is nothing to do, and end
 * with the gpuhal object. */
#ifndef GPUHAL_TRANSFER_THREAD_POOL_H
#define GPUHAL_TRANSFER_THREAD_POOL_H

#include "device/device.h"

/* Lives from the submission to the cancellation, on its owner's stack. */
typedef struct gpuhal_thread_pool_job {
    void (*work)(void *user); /* each helper runs it once */
    void *user;
    struct gpuhal_thread_pool_job *next;
    uint32_t wanted, running; /* helpers; protected by the pool's mutex, as are the members below */
    bool listed;
    bool withdrawn; /* submitting has no effect any more: a helper may ask for another one while its job is being
                       cancelled */
} gpuhal_thread_pool_job;

/* Returns how many threads may usefully work on one transfer, the caller's included: as many as there are processors
 * for this process, at least two, since one waits for a device most of the time. */
uint32_t gpuhal_thread_pool_most(void);
/* Asks for `helpers` more helpers and returns at once. Without memory or threads none comes. */
void gpuhal_thread_pool_submit(gpuhal *gpu, gpuhal_thread_pool_job *job, uint32_t helpers);
/* Lets no more helpers come, and returns when the running ones have ended. */
void gpuhal_thread_pool_cancel(gpuhal *gpu, gpuhal_thread_pool_job *job);
/* Ends the threads. One that is stuck in a driver keeps the pool's memory, and is not waited for. */
void gpuhal_thread_pool_destroy(gpuhal *gpu);

#endif
