/* queue/observer.h: the observer of a queue's work. The trace (timeline.h) is the only observer, and the queue knows
 * only this interface of it.
 *
 * Work that is enqueued while the queue is observed carries a pointer of the observer through its transitions. An
 * observer fails no work, and keeps the thread's last error.
 */
#ifndef GPUHAL_QUEUE_OBSERVER_H
#define GPUHAL_QUEUE_OBSERVER_H

#include "queue/timepoint.h"

struct gpuhal_op;

/* A transition of work that carries a pointer; a recording of an event is work, too. */
typedef void gpuhal_transition_fn(gpuhal_queue *queue, const struct gpuhal_op *op, gpuhal_status status);

/* All are called without the mutex, unless they say otherwise. */
typedef struct gpuhal_observer {
    /* Before the call enqueues: returns the pointer that the work carries; NULL: this work is not observed. */
    void *(*enqueue)(gpuhal_queue *queue, const struct gpuhal_op *op);
    gpuhal_transition_fn *deferred; /* with the mutex held */
    gpuhal_transition_fn *submits;  /* with the right to call: the plugin gets it next; may be repeated */
    gpuhal_transition_fn *runs;     /* the worker does it next */
    /* One of these three is the last: after it the work carries no pointer. */
    gpuhal_transition_fn *submitted_unlocks; /* with the mutex held and the right to call; or a recording is done */
    gpuhal_transition_fn *ran;
    gpuhal_transition_fn *dropped; /* with the mutex held: by the enqueuing call, or from the deferred work */
    void (*waits)(gpuhal_queue *queue, const gpuhal_timepoint *timepoint); /* the application makes the queue wait */
    void (*ends)(gpuhal_queue *queue); /* it is closed */
} gpuhal_observer;

#endif
