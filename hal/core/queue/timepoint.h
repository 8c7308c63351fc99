/* queue/timepoint.h: one recording of an event, and the completions of its end.
 *
 * A timepoint belongs to a queue. It is DEFERRED until the queue submits it, SUBMITTED until it is known to be done,
 * then DONE for good, with or without a failure. Threads that need it hold references; recording an event again makes a
 * new timepoint. `state` is written with the queue's mutex held and may be read without; that mutex protects all other
 * members that change.
 */
#ifndef GPUHAL_QUEUE_TIMEPOINT_H
#define GPUHAL_QUEUE_TIMEPOINT_H

#include "os/os.h"
#include "queue/failure.h"

#include <gpuhal/plugin.h>
#include <gpuhal/queue.h>

/* The descriptor of an event: readable once its newest recording is done. Applications get copies, so the event may be
 * destroyed first. */
typedef struct gpuhal_waitable {
    _Atomic uint32_t references;
    gpuhal_mutex mutex; /* protects `turn`, and the notifier's state, which belongs to it */
    uint64_t turn;      /* number of the recording that counts */
    intptr_t notifier;
} gpuhal_waitable;

gpuhal_status gpuhal_waitable_create(gpuhal_waitable **out_waitable);
void gpuhal_waitable_release(gpuhal_waitable *waitable);
/* Clears the descriptor and returns a number: only a completion with this number signals it from now on. */
uint64_t gpuhal_waitable_arm(gpuhal_waitable *waitable);

/* The receiver of a timepoint's end, notified once. Exactly one of `queue`, `waitable`, `done` and `listed` is set. */
typedef struct gpuhal_completion {
    struct gpuhal_completion *next;
    gpuhal_queue *queue;   /* with a reference: deferred work of this queue waits */
    gpuhal_waitable *waitable; /* with a reference */
    gpuhal_completion_fn *done;  /* a callback */
    bool listed;           /* for gpuhal_next_completion() */
    void *user;
    uint64_t turn;         /* for the waitable */
    gpuhal *gpu;           /* of a callback and of the list */
    gpuhal_status status;  /* of the timepoint, once it is done */
} gpuhal_completion;

typedef enum {
    GPUHAL_TIMEPOINT_DEFERRED = 0,
    GPUHAL_TIMEPOINT_SUBMITTED,
    GPUHAL_TIMEPOINT_DONE
} gpuhal_timepoint_state;

typedef struct gpuhal_timepoint {
    _Atomic uint32_t references;
    _Atomic int state;          /* gpuhal_timepoint_state */
    gpuhal_queue *queue;        /* with a reference; NULL: the host ends it */
    uint64_t number;            /* of the queue's submissions before it */
    uint64_t ordinal;           /* among all timepoints of the process; set before it is put into its queue */
    bool timed;
    bool stamped;               /* done_ns is wanted, although it is not timed */
    uint64_t observed;          /* the observer's number of the work before it; 0: none */
    _Atomic bool retired;       /* DONE, and all objects that the work before it kept alive have been given back */
    bool notify_requested;      /* a thread waits or a completion is set: the end must be noticed without polling */
    bool armed, signaled;        /* the plugin must call back; it has called */
    bool blocked_on;            /* an application thread blocks in the plugin for it, and takes over the result */
    /* vendor_event.c. Once submitted; may only be read by a user. */
    gpuhal_plugin_event *event;
    struct gpuhal_vendor_queue *vendor; /* the plugin's queue of the event, with a reference */
    _Atomic uint32_t users; /* of the event: its queue until it is done, threads in calls with it, work of other queues
                             * that waits for it, and a timed timepoint itself. 0: the event is gone, or none yet */
    uint64_t done_ns; /* if timed or stamped: when it was found done; its time if the plugin has no queues */
    gpuhal_failure *failure;        /* NULL: it has not failed */
    struct gpuhal_timepoint *next;  /* in the queue's list of submitted timepoints */
    gpuhal_completion *completions;   /* the oldest first */
} gpuhal_timepoint;

gpuhal_timepoint *gpuhal_timepoint_create(gpuhal_queue *queue, bool timed);
/* Returns the newest ordinal: a timepoint with a higher one comes after all work that the calling thread has enqueued
 * in its queue. */
uint64_t gpuhal_timepoint_newest(void);
gpuhal_timepoint *gpuhal_timepoint_retain(gpuhal_timepoint *timepoint);
/* NULL does nothing. Not with a queue's mutex held: releasing the last reference calls the plugin. */
void gpuhal_timepoint_release(gpuhal_timepoint *timepoint);
/* Locks the mutex that protects the timepoint: its queue's, or its own. */
void gpuhal_timepoint_lock(gpuhal_timepoint *timepoint);
void gpuhal_timepoint_unlock(gpuhal_timepoint *timepoint);
static inline gpuhal_timepoint_state gpuhal_timepoint_now(const gpuhal_timepoint *timepoint)
{
    return (gpuhal_timepoint_state)atomic_load_explicit(&timepoint->state, memory_order_acquire);
}
/* Returns OK for a timepoint that is DONE, or its failure as this thread's last error. */
gpuhal_status gpuhal_timepoint_result(const gpuhal_timepoint *timepoint);
/* Ends it, with the mutex held that protects it. Its completions go to the front of *list, each before the earlier
 * ones, for gpuhal_completions_notify(). NULL failure: success. */
void gpuhal_timepoint_finish(gpuhal_timepoint *timepoint, gpuhal_failure *failure, gpuhal_completion **list);

/* Notifies and frees all completions of a list, from its back: in the order of the timepoints' ends. With no mutex
 * held. */
void gpuhal_completions_notify(gpuhal_completion *list);
/* Frees a completion that was not notified. */
void gpuhal_completion_free(gpuhal_completion *completion);

/* Makes a timepoint that the host ends; NULL without memory. */
gpuhal_timepoint *gpuhal_host_timepoint_create(void);
/* Ends it, with a failure or NULL; returns false when it had ended before. */
bool gpuhal_host_timepoint_signal(gpuhal_timepoint *timepoint, gpuhal_failure *failure);
gpuhal_status gpuhal_host_timepoint_wait(gpuhal_timepoint *timepoint, uint64_t deadline_ns);

#endif
