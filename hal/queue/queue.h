/* queue/queue.h: a queue as the files of this folder see it.
 *
 * Work goes one of two ways. What the plugin can enqueue is handed to its queue in the caller's thread. What has to be done by blocking
 * calls, or has to wait for somebody else's event, is held in a list with everything behind it, and the queue's own thread works that
 * list off: it hands over what can be handed over, and does the rest itself once all that was handed over before has ended. A plugin
 * without queues has every piece of work done like that.
 *
 * `mutex` protects the queue and its points, and is never held across a call of the plugin, a callback or a release. Calls of the plugin
 * on its queue are made by the thread that has the right to call, or has taken the gate (gate.c), one at a time.
 */
#ifndef GPUHAL_QUEUE_QUEUE_H
#define GPUHAL_QUEUE_QUEUE_H

#include "device/device.h"
#include "queue/point.h"
#include "queue/states.h"

#include <gpuhal/queue.h>
#include <gpuhal/transfer.h>

typedef struct gpuhal_op gpuhal_op;

/* What can be enqueued. */
typedef struct gpuhal_op_kind {
    /* Enqueues on the plugin's queue; NOT_SUPPORTED without a detail and without side effects: it has to be done by `run`. NULL: always.
     * NOT_READY likewise: not now. */
    gpuhal_status (*submit)(gpuhal_plugin_queue *queue, const gpuhal_op *op);
    /* Does it; blocks. */
    gpuhal_status (*run)(const gpuhal_op *op);
    enum { GPUHAL_OP_WRITE, GPUHAL_OP_READ, GPUHAL_OP_COPY, GPUHAL_OP_FILL, GPUHAL_OP_RECT, GPUHAL_OP_JOB, GPUHAL_OP_CALL, GPUHAL_OP_KEEP } form;
} gpuhal_op_kind;

/* A piece of work. The queue copies it and keeps references to the buffers. */
struct gpuhal_op {
    const gpuhal_op_kind *kind; /* NULL: not a transfer but one of the next two */
    gpuhal_point *record;       /* to hand over, or to finish */
    gpuhal_point *await;        /* of another queue */
    gpuhal_buffer *to, *from;   /* either may be NULL */
    gpuhal_buffer *kept;        /* only kept until the work has ended; mostly NULL */
    uint64_t to_offset, from_offset, bytes;
    gpuhal_counter *counter;    /* where it counts once it was handed to the plugin; `run` counts for itself */
    union {                     /* by kind->form; small, since every call of the application makes one */
        const void *source;     /* host memory; the caller's until the work is done */
        void *target;
        struct {
            uint32_t pattern, pattern_bytes;
        };
        struct { /* copied along */
            const gpuhal_rect *to_rect, *from_rect;
            const uint64_t *extent;
        };
        struct { /* freed with the work */
            void *job;
            void (*free_job)(void *job);
        };
        struct { /* a function of the application */
            gpuhal_queue *queue;
            void *user;
            union {
                gpuhal_call_fn *fn;
                gpuhal_native_fn *native_fn;
            };
        };
    };
};

/* A piece of work in the list. */
typedef struct gpuhal_held {
    struct gpuhal_held *next;
    gpuhal_op op;
    bool on_host; /* the plugin refused it */
    gpuhal_rect rects[2];
    uint64_t extent[3];
} gpuhal_held;

/* What work that was handed over holds. */
typedef struct gpuhal_flight {
    uint64_t number; /* of the last submission that it is for; UINT64_MAX while more may come */
    gpuhal_buffer *to, *from, *kept;
    gpuhal_point *awaited; /* by the plugin's own waiting */
} gpuhal_flight;

enum { GPUHAL_SPARE_EVENTS = 16 };

/* After so many submissions the library records a point of its own: it shows whether work goes on when a driver whose
 * ring is full waits in a call that enqueues, and what completed is given back although no thread waits. Rings of
 * drivers that wait are longer. */
enum { GPUHAL_POINT_EVERY = 256 };

struct gpuhal_queue {
    /* What the short way touches lies together. */
    gpuhal_device *device;
    gpuhal_plugin_queue *vendor; /* NULL: the plugin has no queues */
    uint32_t generation;         /* fork generation that it was made in: nobody else may use it */
    _Atomic uint32_t gate;       /* GPUHAL_GATE_ bits: gate.c */
    gpuhal_buffer *gate_to, *gate_from; /* of the last flight, while the gate is not shut */
    _Atomic uint64_t submitted;  /* number of the last submission; counted by whoever may call */

    _Atomic uint32_t references; /* the structure: its user, its thread, its points, and watchers of other points */
    int32_t priority;
    uint32_t flags;
    void *(*thread)(void *queue); /* gpuhal_queue_thread(), which needs a queue's thread only when something is held: pending.c starts it */
    bool adopted;
    gpuhal_native adopt; /* then: what */
    gpuhal_queue *next;  /* in gpuhal_async */

    gpuhal_mutex mutex;         /* by gpuhal_queue_lock() */
    gpuhal_condition condition; /* something below changed */
    uint32_t waiting[GPUHAL_WAITING_PLACES]; /* threads that wait for it, by place */

    /* States, one of each region of states.inc: by gpuhal_queue_change(). */
    gpuhal_queue_state life, health, worker;
    gpuhal_queue_state right; /* gate.c has another way to call the plugin */
    bool joined;              /* the present call is for work with the buffers of the last flight */
    uint64_t retry_ns;       /* how long it slept before it asked the plugin once more, which had no time; 0: the plugin took the last piece */

    gpuhal_held *held, **held_end;
    uint64_t marked;         /* number that the last submitted point comes after */
    _Atomic uint64_t done;   /* submissions known to have ended; also read without the mutex */
    gpuhal_point *points, **points_end; /* submitted and not known to be done, in order */
    gpuhal_point *ended;     /* to be let go of, as soon as the plugin has told of those for which it was asked to */
    gpuhal_held *dropped;    /* to be freed */
    uint64_t retiring;       /* the oldest submission that a thread gives back right now (retire.c), UINT64_MAX: none of them; 0: nobody does */
    gpuhal_flight *flights;  /* a ring */
    size_t flight_first, flight_count, flight_space;
    gpuhal_plugin_event *spare[2][GPUHAL_SPARE_EVENTS]; /* not timed, timed */
    uint32_t spare_count[2];

    gpuhal_cause *cause;     /* why it failed */
    gpuhal_cause *refusal;   /* why it could not be reset */
    _Atomic uint64_t caller; /* the thread in which it calls a function of the application; 0: none */
    _Atomic bool asking;     /* somebody looks for the cause of its failure */
    bool probed;             /* the watchdog asks whether the work has ended: the worker records a point and waits */
    bool uncounted;          /* the object counts on no worker: it is stuck in the driver, has ended, or is a thread of the application */
};

static inline bool gpuhal_queue_has_failed(const gpuhal_queue *queue)
{
    return queue->health != GPUHAL_QUEUE_USABLE;
}

/* Whether there is deferred work: all that comes has to wait behind it. */
static inline bool gpuhal_queue_has_deferred(const gpuhal_queue *queue)
{
    return queue->held || queue->worker == GPUHAL_QUEUE_RUNNING;
}

static inline bool gpuhal_queue_is_closed(const gpuhal_queue *queue)
{
    return queue->life == GPUHAL_QUEUE_CLOSED || queue->life == GPUHAL_QUEUE_FINISHED;
}

/* Whether a thread waits for anything but work. */
static inline bool gpuhal_queue_has_waiters(const gpuhal_queue *queue)
{
    uint32_t waiters = 0;
    for (int place = 0; place < GPUHAL_WAITS_WORK; place++) {
        waiters += queue->waiting[place];
    }
    return waiters > 0;
}

/* What follows stands file by file, each of which uses the ones before it. */

/* ---- gate.c */

enum { GPUHAL_GATE_TAKEN = 1u, GPUHAL_GATE_SHUT = 2u };
/* Locks the mutex and shuts the gate. */
void gpuhal_queue_lock(gpuhal_queue *queue);
/* Waits for the condition until then; UINT64_MAX: without limit. */
void gpuhal_queue_doze(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* With the mutex held: whether somebody has the right to call. */
bool gpuhal_queue_is_called(const gpuhal_queue *queue);
/* With the mutex held, right behind a transfer that was handed over: opens the gate for more with its buffers, where that may be. */
void gpuhal_queue_open_gate(gpuhal_queue *queue);
/* Hands work like the last over, if the gate is open; true when *out_status is the answer of the plugin. Where it is not OK, the caller
 * has the right to call, as after gpuhal_queue_begin_call() and gpuhal_queue_reserve(). */
bool gpuhal_queue_pass_gate(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status *out_status);
gpuhal_flight *gpuhal_queue_last_flight(gpuhal_queue *queue);
/* With the mutex held: nothing more comes to the last flight. */
void gpuhal_queue_close_flight(gpuhal_queue *queue);

/* ---- state.c */

gpuhal_queue *gpuhal_queue_retain(gpuhal_queue *queue);
void gpuhal_queue_release(gpuhal_queue *queue);
/* OK, or why calls on it are refused: FORKED, DEVICE_LOST. */
gpuhal_status gpuhal_queue_unusable(const gpuhal_queue *queue);
static inline gpuhal_status gpuhal_queue_check(const gpuhal_queue *queue)
{
    bool lost = atomic_load_explicit(&queue->device->lost, memory_order_relaxed) != GPUHAL_NOT_LOST;
    return __builtin_expect(lost || queue->generation != gpuhal_os_fork_generation(), 0) ? gpuhal_queue_unusable(queue) : GPUHAL_OK;
}
/* Whether threads of the application may have the plugin record, ask it, and wait in it. */
static inline bool gpuhal_device_honors_timeouts(const gpuhal_device *device)
{
    return device->plugin->flags & GPUHAL_PLUGIN_HONORS_TIMEOUTS;
}
/* BUSY with its detail. */
gpuhal_status gpuhal_queue_section_error(const gpuhal_queue *queue);
/* With the mutex held: why nothing is deferred: the failure of the queue, or BUSY; OK. */
gpuhal_status gpuhal_queue_refusal(const gpuhal_queue *queue);
/* BUSY with its detail in the thread in which the queue calls a function of the application: it would wait for itself. */
gpuhal_status gpuhal_queue_own_call(const gpuhal_queue *queue);
/* UINT64_MAX for no limit. */
uint64_t gpuhal_deadline(uint64_t timeout_ns);
/* Something may have changed: sleeping threads look again. */
void gpuhal_queue_wake(gpuhal_queue *queue);
/* Sleeps, with the mutex held, until something changes. OK, or TIMEOUT once the deadline has passed. */
gpuhal_status gpuhal_queue_sleep(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* Sleeps until the present call may have ended. BUSY in native access, TIMEOUT, DEVICE_LOST. */
gpuhal_status gpuhal_queue_sleep_through_call(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* With the mutex held, which is let go meanwhile: the right to call the plugin on `vendor`, and the end of it. BUSY in a native section,
 * TIMEOUT, DEVICE_LOST. */
gpuhal_status gpuhal_queue_begin_call(gpuhal_queue *queue, uint64_t deadline_ns);
/* On the queue's own thread, whose work may have come while a native section began: the right comes when that ends. */
gpuhal_status gpuhal_queue_begin_late_call(gpuhal_queue *queue);
void gpuhal_queue_end_call(gpuhal_queue *queue);
/* With the mutex held and the right to call: a flight for what is to be handed over, the last one or space for another. */
bool gpuhal_queue_reserve(gpuhal_queue *queue, const gpuhal_op *op);
/* With the mutex held: whether nothing is left to do; whether the oldest flight has ended; whether there is something to give back. */
bool gpuhal_queue_is_idle(const gpuhal_queue *queue);
static inline bool gpuhal_queue_has_ended(const gpuhal_queue *queue)
{
    return queue->flight_count > 0 && queue->flights[queue->flight_first].number <= queue->done;
}
bool gpuhal_queue_has_rest(const gpuhal_queue *queue);

/* ---- point.c, which also keeps spare events of the plugin */

/* NULL: there is none. */
gpuhal_plugin_event *gpuhal_queue_take_event(gpuhal_queue *queue, bool timed);
/* Puts one back, or destroys it. */
void gpuhal_queue_put_event(gpuhal_queue *queue, gpuhal_plugin_event *event, bool timed);

/* ---- pending.c */

/* With the mutex held: starts the queue's thread, unless it is there. Returns 0 or errno. */
int gpuhal_queue_need_thread(gpuhal_queue *queue);
/* Puts work at the end of the list, with the mutex held. */
gpuhal_status gpuhal_queue_hold(gpuhal_queue *queue, const gpuhal_op *op, bool on_host);
void gpuhal_held_free(gpuhal_held *held);

/* ---- retire.c */

/* Gives back what has ended; true when there was something, and no other thread at it. Not with the mutex held, and not in a driver's
 * callback, since it calls the plugin. */
bool gpuhal_queue_reap(gpuhal_queue *queue);
/* The same with the mutex held, which is let go meanwhile. */
bool gpuhal_queue_reap_locked(gpuhal_queue *queue);
/* OK once what submissions up to a number held has been given back, by whichever thread; those have ended. TIMEOUT, DEVICE_LOST;
 * NOT_READY for a deadline of 0. */
gpuhal_status gpuhal_queue_retire(gpuhal_queue *queue, uint64_t number, uint64_t deadline_ns);

/* ---- complete.c */

/* With the mutex held: everything held fails with the cause, and so do submitted points where `submitted` says so. The driver may still be
 * at the work behind those, whose buffers stay, unless the device is lost. Watchers are put in front of *told. */
void gpuhal_queue_fail(gpuhal_queue *queue, gpuhal_cause *cause, bool submitted, gpuhal_watcher **told);
/* The same without the mutex. */
void gpuhal_queue_break(gpuhal_queue *queue, gpuhal_cause *cause, bool submitted);
/* What the plugin said of a submitted point: ends it and those before, or the queue. Not with the mutex held. */
void gpuhal_point_settle(gpuhal_point *point, gpuhal_status status);
/* The same in a callback of the driver's: nothing is given back. */
void gpuhal_point_settle_notified(gpuhal_point *point, gpuhal_status status);
/* The same for a status of the plugin's that is a failure. Asks the plugin for what was awaited, to learn the original cause. */
void gpuhal_point_failed(gpuhal_point *point, gpuhal_status status);
/* Asks the plugin. OK, NOT_READY, or the failure. */
gpuhal_status gpuhal_point_poll(gpuhal_point *point);

/* ---- reclaim.c */

/* Memory of the device is short: gives back what completed work of all queues holds. *out_pending: bytes that come free once queued work
 * has ended. */
void gpuhal_queues_reclaim(gpuhal_device *device, uint64_t *out_pending);

/* ---- wait.c */

/* The end of this point is to be noticed, without a caller that asks. Returns 0, or errno where no thread can do it. Not with the mutex held. */
int gpuhal_queue_want(gpuhal_point *point);
/* Adds a watcher to a point, or tells it at once when that has ended. The watcher is taken over. HOST_MEMORY, with the watcher freed, when
 * there is nobody to notice the end. */
gpuhal_status gpuhal_point_watch(gpuhal_point *point, gpuhal_watcher *watcher);
/* Waits, without the mutex, until the plugin says that a submitted point is done. */
void gpuhal_point_block(gpuhal_point *point);
/* Calls no plugin as long as the queue's thread can: a driver that hangs does not keep who waits. */
gpuhal_status gpuhal_point_wait(gpuhal_point *point, uint64_t deadline_ns);
/* Of a point that is DONE: its failure; or OK once everything that the work before it held has been given back, by this thread or another
 * one; TIMEOUT, and NOT_READY for a deadline of 0, while that goes on. */
gpuhal_status gpuhal_point_retire(gpuhal_point *point, uint64_t deadline_ns);

/* ---- submit.c */

/* Enqueues a transfer whose arguments were checked, or buffers to keep. INVALID_ARGUMENT for a queue of a device that has none of the buffers
 * of a transfer. */
gpuhal_status gpuhal_queue_enqueue(gpuhal_queue *queue, const gpuhal_op *op);
/* Has the queue's thread do it in its turn. BUSY in a native section. */
gpuhal_status gpuhal_queue_defer(gpuhal_queue *queue, const gpuhal_op *op);
/* A new point behind everything enqueued; flushes. */
gpuhal_status gpuhal_queue_mark(gpuhal_queue *queue, bool timed, gpuhal_point **out_point);
/* The same for a thread that is going to wait, and has to be back in its time: where the plugin makes no promise of that, and where it has
 * no time right now, the queue's thread has the point recorded. */
gpuhal_status gpuhal_queue_mark_to_wait(gpuhal_queue *queue, uint64_t deadline_ns, gpuhal_point **out_point);
/* What is enqueued from now on comes after the point; NULL: after nothing more. */
gpuhal_status gpuhal_queue_await(gpuhal_queue *queue, gpuhal_point *point);
/* The plugin refused a call; this thread's last error is why. What was submitted before is not concerned; what the plugin has no time for now
 * is not lost, and the queue goes on. Without the mutex. */
gpuhal_status gpuhal_queue_refused(gpuhal_queue *queue, gpuhal_status status);
/* Hands a transfer, or a point, to the plugin: with the right to call and without the mutex. Without a detail: NOT_SUPPORTED, it has to be
 * done by the queue's thread; NOT_READY, it would have to wait, and the queue's thread tries again. What the plugin refuses for another
 * reason is missing from then on, so the queue has failed. On success the caller tells by the functions below, with the mutex held. */
gpuhal_status gpuhal_queue_hand_over(gpuhal_queue *queue, const gpuhal_op *op);
gpuhal_status gpuhal_queue_hand_over_point(gpuhal_queue *queue, gpuhal_point *point);
void gpuhal_queue_note(gpuhal_queue *queue, const gpuhal_op *op);
/* Watchers to be told are put in front of the list: the queue may have failed meanwhile, and the point with it. */
void gpuhal_queue_note_point(gpuhal_queue *queue, gpuhal_point *point, gpuhal_watcher **told);
void gpuhal_queue_list_point(gpuhal_queue *queue, gpuhal_point *point);
/* Records a point behind what the caller has submitted by itself. With the right to call and the mutex held, which is
 * let go meanwhile. */
void gpuhal_queue_mark_access(gpuhal_queue *queue, gpuhal_watcher **told);

/* ---- vendor.c */

/* Asks the plugin for a queue like that, where it has any. */
gpuhal_status gpuhal_queue_make_vendor(gpuhal_queue *queue, gpuhal_plugin_queue **out_vendor);
/* Gives back what the queue has of the plugin, once idle and closing, and takes it out of the object's list. */
void gpuhal_queue_finish(gpuhal_queue *queue);

/* ---- reset.c */

/* By the queue's thread, with the mutex held, which is let go meanwhile: makes a queue that failed usable, or says why not. */
void gpuhal_queue_renew(gpuhal_queue *queue);

/* ---- worker.c */

/* The queue's thread. */
void *gpuhal_queue_thread(void *queue);
/* Of a queue that is closing: does the thread's work, in this thread. */
void gpuhal_queue_work_off(gpuhal_queue *queue);

/* ---- hang.c */

/* The device was lost, for the reason that is this thread's last error: all its queues fail, and where it hangs, so do others whose thread
 * is in its driver. Calls no plugin. */
void gpuhal_queues_lost(gpuhal_device *device);
/* Asks the driver whether work of the device's queues goes on. */
bool gpuhal_queues_go_on(gpuhal_device *device);

#endif
