/* queue/observer.h: the observer of a queue's work. The trace (timeline.h) is the only observer; the queue knows it
 * only through this interface.
 *
 * Work that is enqueued while the queue is observed carries an observer pointer through its transitions. An observer
 * never makes work fail, and preserves the thread's last error.
 */
#ifndef GPUHAL_QUEUE_OBSERVER_H
#define GPUHAL_QUEUE_OBSERVER_H

#include "queue/timepoint.h"

struct gpuhal_op;

/* A transition of work that carries an observer pointer. Recording an event counts as work. */
typedef void gpuhal_transition_fn(gpuhal_queue *queue, const struct gpuhal_op *op, gpuhal_status status);

/* Called without the mutex unless a member says otherwise. */
typedef struct gpuhal_observer {
    /* Called before work is enqueued. Returns the pointer that the work carries, or NULL if this work is not
     * observed. */
    void *(*enqueue)(gpuhal_queue *queue, const struct gpuhal_op *op);
    gpuhal_transition_fn *deferred; /* with the mutex held */
    gpuhal_transition_fn *submits;  /* with the right to call, before the plugin receives the work; may be repeated */
    gpuhal_transition_fn *runs;     /* before the worker runs the work */
    /* The work makes exactly one of these three as its last transition. After it, the work has no observer pointer. */
    gpuhal_transition_fn *submitted_unlocks; /* with the mutex and the right to call; or a recording is done */
    gpuhal_transition_fn *ran;
    gpuhal_transition_fn *dropped; /* with the mutex held: by the enqueuing call, or while it is deferred */
    void (*waits)(gpuhal_queue *queue, const gpuhal_timepoint *timepoint); /* the application makes the queue wait */
    void (*ends)(gpuhal_queue *queue); /* the queue is closed */
} gpuhal_observer;

#endif
