/* queue/point.h: one recording of an event, and who wants to know of its end.
 *
 * A point belongs to a queue and is HELD until the queue hands it to the vendor, SUBMITTED until it is known to be done, then DONE, with
 * a status, for good. Whoever is interested holds a reference; recording an event again makes a new point. `state` is written with the
 * queue's mutex held and may be read without; what else changes is protected by that mutex.
 */
#ifndef GPUHAL_QUEUE_POINT_H
#define GPUHAL_QUEUE_POINT_H

#include "os/os.h"
#include "queue/cause.h"

#include <gpuhal/plugin.h>
#include <gpuhal/queue.h>

/* What becomes readable with an event's latest recording. Descriptors that were handed out are copies, the event may go first. */
typedef struct gpuhal_beacon {
    _Atomic uint32_t references;
    gpuhal_mutex mutex; /* protects `turn`, and that the notifier says what is true for it */
    uint64_t turn;      /* number of the recording that counts */
    intptr_t notifier;
} gpuhal_beacon;

gpuhal_status gpuhal_beacon_create(gpuhal_beacon **out_beacon);
void gpuhal_beacon_release(gpuhal_beacon *beacon);
/* From now on only a watcher with this number counts. */
uint64_t gpuhal_beacon_aim(gpuhal_beacon *beacon);

/* Somebody to be told of a point's end, once. Exactly one of the four is set. */
typedef struct gpuhal_watcher {
    struct gpuhal_watcher *next;
    gpuhal_queue *queue;   /* a queue whose held work waits for it; with a reference */
    gpuhal_beacon *beacon; /* with a reference */
    gpuhal_done_fn *done;  /* a callback */
    bool listed;           /* to be handed out by gpuhal_take_done() */
    void *user;
    uint64_t turn;         /* for the beacon */
    gpuhal *gpu;           /* of callback and list */
    gpuhal_status status;  /* once it ended */
} gpuhal_watcher;

typedef enum { GPUHAL_POINT_HELD = 0, GPUHAL_POINT_SUBMITTED, GPUHAL_POINT_DONE } gpuhal_point_state;

typedef struct gpuhal_point {
    _Atomic uint32_t references;
    _Atomic int state;          /* gpuhal_point_state */
    gpuhal_queue *queue;        /* with a reference; NULL: the host ends it */
    uint64_t number;            /* submissions of the queue that it comes after */
    bool timed;
    _Atomic bool retired;       /* DONE, and what the work before it held has been given back */
    bool wanted;                /* somebody waits: its end has to be noticed without being asked for */
    bool armed, noticed;        /* the plugin will tell; it has told */
    bool blocked_on;            /* a thread of the application waits for it in the plugin, and will tell */
    gpuhal_plugin_event *event; /* once submitted; stays until the point is freed, since its time may be asked for */
    uint64_t done_ns;           /* of a timed one: when it was known to be done, which is its time in queues of the library's own */
    gpuhal_cause *cause;        /* why it failed; NULL: it did not */
    struct gpuhal_point *next;  /* in the queue's list of submitted ones */
    gpuhal_watcher *watchers;   /* the first one first */
} gpuhal_point;

gpuhal_point *gpuhal_point_create(gpuhal_queue *queue, bool timed);
gpuhal_point *gpuhal_point_retain(gpuhal_point *point);
/* NULL does nothing. Not with a queue's mutex held: the last one calls the plugin. */
void gpuhal_point_release(gpuhal_point *point);
/* What protects the point: its queue, or a mutex of its own. */
void gpuhal_point_lock(gpuhal_point *point);
void gpuhal_point_unlock(gpuhal_point *point);
static inline gpuhal_point_state gpuhal_point_now(const gpuhal_point *point)
{
    return (gpuhal_point_state)atomic_load_explicit(&point->state, memory_order_acquire);
}
/* Of a point that is DONE: OK, or its failure as this thread's last error. */
gpuhal_status gpuhal_point_result(const gpuhal_point *point);
/* Ends it, with its queue's mutex held. Its watchers are put in front of *list, for gpuhal_watchers_tell(), each before those that came
 * earlier. NULL cause: success. */
void gpuhal_point_finish(gpuhal_point *point, gpuhal_cause *cause, gpuhal_watcher **list);

/* Tells and frees all of a list, from its end on, which is the order in which they ended; with no mutex held. */
void gpuhal_watchers_tell(gpuhal_watcher *list);
/* Frees one that was not told. */
void gpuhal_watcher_free(gpuhal_watcher *watcher);

/* A point that the host ends; NULL without memory. */
gpuhal_point *gpuhal_host_point_create(void);
/* Ends it, with a failure or NULL; false when it was ended before. */
bool gpuhal_host_point_signal(gpuhal_point *point, gpuhal_cause *cause);
gpuhal_status gpuhal_host_point_wait(gpuhal_point *point, uint64_t deadline_ns);

#endif
