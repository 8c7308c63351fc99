/* transfer/thread_pool.h: helper threads for transfers, shared by all transfers of a gpuhal object.
 *
 * A thread that submits work can also do all the work alone; helpers join only if they are free. So no thread waits
 * until another thread becomes free. Helper threads start on demand, sleep while there is no work, and end with the
 * gpuhal object. */
#ifndef GPUHAL_TRANSFER_THREAD_POOL_H
#define GPUHAL_TRANSFER_THREAD_POOL_H

#include "device/device.h"

/* A job is on its owner's stack, and must exist from submission to cancellation. */
typedef struct gpuhal_thread_pool_job {
    void (*work)(void *user); /* called once by each helper */
    void *user;
    struct gpuhal_thread_pool_job *next;
    uint32_t wanted, running; /* number of helpers; the pool's mutex protects these and the members below */
    bool listed;
    bool withdrawn; /* further submissions of this job have no effect, e.g. by a helper while the owner cancels the
                     * job */
} gpuhal_thread_pool_job;

/* Returns how many threads can usefully work on one transfer, including the caller's thread. This is the number of
 * processors available to this process, but at least two, because one thread mostly waits for a device, and at most
 * 64. */
uint32_t gpuhal_thread_pool_most(void);
/* Requests `helpers` more helpers and returns immediately. If memory is short or no thread can be started, fewer
 * helpers or none join. */
void gpuhal_thread_pool_submit(gpuhal *gpu, gpuhal_thread_pool_job *job, uint32_t helpers);
/* Prevents more helpers from joining, and returns when all running helpers have ended. */
void gpuhal_thread_pool_cancel(gpuhal *gpu, gpuhal_thread_pool_job *job);
/* Ends the threads. If a thread is stuck in a driver, waits for no thread and leaks the pool. */
void gpuhal_thread_pool_destroy(gpuhal *gpu);

#endif
