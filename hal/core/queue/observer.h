/* queue/observer.h: what is notified of the work of a queue: the trace (timeline.h), of which the queue knows no more
 * than this.
 *
 * Work that is enqueued while it is observed carries a pointer of the observer's through its transitions. An observer
 * fails no work, and leaves the thread's last error alone.
 */
#ifndef GPUHAL_QUEUE_OBSERVER_H
#define GPUHAL_QUEUE_OBSERVER_H

#include "queue/timepoint.h"

struct gpuhal_op;

/* Of work that carries a pointer; a recording of an event is work, too. */
typedef void gpuhal_transition_fn(gpuhal_queue *queue, const struct gpuhal_op *op, gpuhal_status status);

/* Without the mutex, unless it says otherwise. */
typedef struct gpuhal_observer {
    /* Before the call enqueues: returns what the work carries; NULL: it is not observed. */
    void *(*enqueue)(gpuhal_queue *queue, const struct gpuhal_op *op);
    gpuhal_transition_fn *deferred; /* with the mutex held */
    gpuhal_transition_fn *submits;  /* with the right to call: the plugin gets it next; perhaps once more */
    gpuhal_transition_fn *runs;     /* the worker does it next */
    /* One of these is the last: the work carries nothing any more. */
    gpuhal_transition_fn *submitted_unlocks; /* with the mutex held and the right to call; or a recording is done */
    gpuhal_transition_fn *ran;
    gpuhal_transition_fn *dropped; /* with the mutex held: by the call that enqueues, or from the deferred work */
    void (*waits)(gpuhal_queue *queue, const gpuhal_timepoint *timepoint); /* as the application asked */
    void (*ends)(gpuhal_queue *queue); /* it is closed */
} gpuhal_observer;

#endif
