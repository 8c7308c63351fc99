/* queue/timepoint.h: one recording of an event, and the completions to notify when it is done.
 *
 * A timepoint belongs to a queue, except a host timepoint (timepoint.c). It is DEFERRED until the queue submits it,
 * SUBMITTED until it is known to be done, and from then on DONE, with or without a failure. Threads that use a
 * timepoint hold references. Recording an event again creates a new timepoint. `state` is written with the queue's
 * mutex held and may be read without the mutex. The queue's mutex protects all other members that change, except
 * `event`, `vendor` and the atomic members. A host timepoint has its own mutex.
 */
#ifndef GPUHAL_QUEUE_TIMEPOINT_H
#define GPUHAL_QUEUE_TIMEPOINT_H

#include "os/os.h"
#include "queue/failure.h"

#include <gpuhal/plugin.h>
#include <gpuhal/queue.h>

/* An event's descriptor, readable once the event's newest recording is done. Applications receive duplicates of the
 * descriptor, so the event may be destroyed while a duplicate is open. */
typedef struct gpuhal_waitable {
    _Atomic uint32_t references;
    gpuhal_mutex mutex; /* protects `turn`, and the matching state of the notifier */
    uint64_t turn;      /* number of the current recording */
    intptr_t notifier;
} gpuhal_waitable;

gpuhal_status gpuhal_waitable_create(gpuhal_waitable **out_waitable);
void gpuhal_waitable_release(gpuhal_waitable *waitable);
/* Clears the descriptor and returns a new number. From then on only a completion with this number signals the
 * descriptor. */
uint64_t gpuhal_waitable_arm(gpuhal_waitable *waitable);

/* A recipient that is notified once when a timepoint ends. Exactly one of `queue`, `waitable`, `done` and `listed` is
 * set. */
typedef struct gpuhal_completion {
    struct gpuhal_completion *next;
    gpuhal_queue *queue;   /* with a reference; the queue's deferred work waits for the timepoint */
    gpuhal_waitable *waitable; /* with a reference */
    gpuhal_completion_fn *done;  /* callback */
    bool listed;           /* reported by gpuhal_next_completion() */
    void *user;
    uint64_t turn;         /* for the waitable */
    gpuhal *gpu;           /* for a callback or a listed completion */
    gpuhal_status status;  /* the timepoint's status, once it is done */
} gpuhal_completion;

typedef enum {
    GPUHAL_TIMEPOINT_DEFERRED = 0,
    GPUHAL_TIMEPOINT_SUBMITTED,
    GPUHAL_TIMEPOINT_DONE
} gpuhal_timepoint_state;

typedef struct gpuhal_timepoint {
    _Atomic uint32_t references;
    _Atomic int state;          /* gpuhal_timepoint_state */
    gpuhal_queue *queue;        /* with a reference; NULL if the host signals the timepoint */
    uint64_t number;            /* number of the queue's submissions before this timepoint */
    uint64_t ordinal;           /* unique in the process and increasing; set before the timepoint is added to its
                                 * queue */
    bool timed;
    bool stamped;               /* done_ns is needed even if `timed` is false */
    uint64_t observed;          /* observer's number of the newest work before the timepoint in its queue; 0 if there is
                                 * none, or if the recording is not observed */
    _Atomic bool retired;       /* DONE, and all objects kept alive by the work before it have been released */
    bool notify_requested;      /* a thread waits or a completion is set, so the end must be noticed even if no thread
                                 * polls */
    bool armed, signaled;        /* a callback was requested from the plugin; the plugin has called back */
    bool blocked_on;            /* an application thread blocks in the plugin for this timepoint and will apply the
                                 * result */
    /* See vendor_event.c. Set at submission; only a user of the event may read it. */
    gpuhal_plugin_event *event;
    struct gpuhal_vendor_queue *vendor; /* the plugin queue of the event, with a reference */
    _Atomic uint32_t users; /* users of the event: the queue until the timepoint is done, threads in calls with the
                             * event, other queues' work that waits for the event, and a timed timepoint itself. 0 if
                             * there is no event yet or any more */
    uint64_t done_ns; /* for a timed or stamped timepoint, the time when its end was noticed; exact if the plugin has no
                       * queues */
    gpuhal_failure *failure;        /* NULL if successful */
    struct gpuhal_timepoint *next;  /* in the queue's list of submitted timepoints, later in `ended` */
    gpuhal_completion *completions;   /* oldest first */
} gpuhal_timepoint;

gpuhal_timepoint *gpuhal_timepoint_create(gpuhal_queue *queue, bool timed);
/* Returns the newest ordinal. A timepoint with a higher ordinal comes after all work that the calling thread has
 * enqueued so far in the timepoint's queue. */
uint64_t gpuhal_timepoint_newest(void);
gpuhal_timepoint *gpuhal_timepoint_retain(gpuhal_timepoint *timepoint);
/* Accepts NULL. Must not be called with a queue's mutex held: releasing the last reference calls the plugin. */
void gpuhal_timepoint_release(gpuhal_timepoint *timepoint);
/* Lock and unlock the mutex that protects the timepoint: its queue's, or its own if it has no queue. */
void gpuhal_timepoint_lock(gpuhal_timepoint *timepoint);
void gpuhal_timepoint_unlock(gpuhal_timepoint *timepoint);
static inline gpuhal_timepoint_state gpuhal_timepoint_now(const gpuhal_timepoint *timepoint)
{
    return (gpuhal_timepoint_state)atomic_load_explicit(&timepoint->state, memory_order_acquire);
}
/* For a timepoint that is DONE: returns OK, or its failure as this thread's last error. */
gpuhal_status gpuhal_timepoint_result(const gpuhal_timepoint *timepoint);
/* Ends the timepoint. If `failure` is NULL, the timepoint succeeds. Prepends its completions one after the other to
 * *list for gpuhal_completions_notify(). The caller holds the timepoint's mutex. */
void gpuhal_timepoint_finish(gpuhal_timepoint *timepoint, gpuhal_failure *failure, gpuhal_completion **list);

/* Notifies and frees all completions of a list, from the last to the first, since this is the order of the timepoints'
 * ends. The caller must hold no mutex. */
void gpuhal_completions_notify(gpuhal_completion *list);
void gpuhal_completion_free(gpuhal_completion *completion);

/* Creates a timepoint that the host signals. Returns NULL if out of memory. */
gpuhal_timepoint *gpuhal_host_timepoint_create(void);
/* Ends the timepoint. Returns false if the timepoint had already ended. */
bool gpuhal_host_timepoint_signal(gpuhal_timepoint *timepoint, gpuhal_failure *failure);
gpuhal_status gpuhal_host_timepoint_wait(gpuhal_timepoint *timepoint, uint64_t deadline_ns);

#endif
