/* queue/observer.h: the interface for notifying an observer of a queue's work. The trace (timeline.h) is the only
 * observer.
 *
 * Work that is enqueued while the queue is observed has an observer pointer until its last transition. An observer
 * never makes work fail, and preserves the thread's last error.
 */
#ifndef GPUHAL_QUEUE_OBSERVER_H
#define GPUHAL_QUEUE_OBSERVER_H

#include "queue/timepoint.h"

struct gpuhal_op;

/* A transition of work that has an observer pointer. Recording an event counts as work. */
typedef void gpuhal_transition_fn(gpuhal_queue *queue, const struct gpuhal_op *op, gpuhal_status status);

/* Called without the mutex unless a member says otherwise. */
typedef struct gpuhal_observer {
    /* Called before work is enqueued. Returns the work's observer pointer, or NULL if this work is not observed. */
    void *(*enqueue)(gpuhal_queue *queue, const struct gpuhal_op *op);
    gpuhal_transition_fn *deferred; /* with the mutex held */
    gpuhal_transition_fn *submits;  /* with the right to call, before each attempt to submit the work to the plugin */
    gpuhal_transition_fn *runs;     /* before the worker runs the work */
    /* Each piece of work ends with exactly one of these three transitions. */
    gpuhal_transition_fn *submitted_unlocks; /* with the mutex and the right to call; also for a recording that is
                                              * done */
    gpuhal_transition_fn *ran;
    gpuhal_transition_fn *dropped; /* with the mutex held; in the enqueuing call, or while the work is deferred */
    void (*waits)(gpuhal_queue *queue, const gpuhal_timepoint *timepoint); /* the application makes the queue wait for
                                                                            * the timepoint */
    void (*ends)(gpuhal_queue *queue); /* the queue is closed, or has failed and its plugin queue must be destroyed; the
                                        * observer releases its timepoints that are done */
} gpuhal_observer;

#endif
