/* queue/queue.h: a queue as the files of this folder see it.
 *
 * Work takes one of two paths. Work that the plugin can enqueue is submitted to its queue on the caller's thread. Work
 * that needs blocking calls, or has to wait for an event of another queue, is appended to a list of deferred work, and
 * so is all work after it. The queue's worker thread takes that list from the front: it submits the work if it can,
 * else does it itself once everything submitted before has completed. The worker does all work of a plugin without
 * queues.
 *
 * `mutex` protects the queue and its timepoints. It is never held across a call of the plugin, a callback or a release.
 * One thread at a time calls the plugin on its queue: the one that has the right to call, or that took the fast path
 * (fast_path.c).
 */
#ifndef GPUHAL_QUEUE_QUEUE_H
#define GPUHAL_QUEUE_QUEUE_H

#include "device/device.h"
#include "memory/buffer.h"
#include "queue/states.h"
#include "queue/timeline.h"
#include "queue/timepoint.h"

#include <gpuhal/queue.h>
#include <gpuhal/transfer.h>

typedef struct gpuhal_op gpuhal_op;

/* The uses of a piece of work beside two buffers: a launch has any number of buffers, and its kernel. The layer above
 * makes and extends the structure, and begins its own with it. The buffers are wholes. The structure of an enqueueing
 * call has no references, and none to its uses: it is only valid during the call. */
typedef struct gpuhal_uses {
    _Atomic uint32_t references;
    uint32_t count;
    /* Further uses of the same submission, each of one launch: fast_path.c. */
    _Atomic(struct gpuhal_uses *) next;
    struct gpuhal_kernel *kernel;
    struct gpuhal_use {
        gpuhal_buffer *buffer;
        bool writes;
    } *buffers;
    const struct gpuhal_uses_kind *kind;
    bool first;       /* the driver may compile the kernel for this launch, and until it has ended */
    bool needs_clean; /* memory of a buffer has to be made coherent around every access */
    const char *name; /* of the kernel */
    const uint32_t *groups; /* three; NULL in uses that are only kept alive */
} gpuhal_uses;

/* The operations of the layer above on its structure. Copies have one reference, and references to their uses; NULL
 * without memory. */
typedef struct gpuhal_uses_kind {
    /* For work that may be done after the call. */
    gpuhal_uses *(*make_lasting)(const gpuhal_uses *uses);
    /* For work that the plugin gets during the call: keeps its uses alive. */
    gpuhal_uses *(*keep)(const gpuhal_uses *uses);
    /* After the last reference to a copy of either sort; calls no function of the application. */
    void (*destroy)(gpuhal_uses *uses);
} gpuhal_uses_kind;

/* A kind of work. */
typedef struct gpuhal_op_kind {
    /* Enqueues on the plugin's queue. NOT_SUPPORTED, without a detail and without side effects: the worker must use
     * `run`. NOT_READY, also without these: try again later. NULL: always use `run`. */
    gpuhal_status (*submit)(gpuhal_plugin_queue *queue, const gpuhal_op *op);
    /* Does the work; blocks. */
    gpuhal_status (*run)(const gpuhal_op *op);
    enum {
        GPUHAL_OP_WRITE,
        GPUHAL_OP_READ,
        GPUHAL_OP_COPY,
        GPUHAL_OP_FILL,
        GPUHAL_OP_RECT,
        GPUHAL_OP_JOB,
        GPUHAL_OP_CALL,
        GPUHAL_OP_KEEP,
        GPUHAL_OP_LAUNCH,
        GPUHAL_OP_EVENT /* of no kind: a recording of an event, in traces */
    } form;
} gpuhal_op_kind;

/* A piece of work. The queue copies it and keeps references to the buffers. */
struct gpuhal_op {
    const gpuhal_op_kind *kind; /* NULL: not a transfer but one of the next two */
    gpuhal_timepoint *record;       /* to be submitted, or ended if there is no plugin's queue */
    gpuhal_timepoint *await;        /* of another queue: later work comes after it */
    gpuhal_buffer *to, *from;   /* either may be NULL */
    gpuhal_buffer *kept;        /* kept alive until the work has ended; mostly NULL */
    gpuhal_uses *uses;          /* of a launch; else NULL */
    void *observed;             /* the observer's; NULL: it is not observed */
    uint64_t to_offset, from_offset, bytes;
    gpuhal_counter *counter;    /* counts the bytes once they are submitted; `run` counts for itself */
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

/* Deferred work: an element of the list. Each piece of work that an application is ahead of a device takes one, so
 * members that few of them need have no room here. */
typedef struct gpuhal_deferred {
    struct gpuhal_deferred *next;
    gpuhal_op op;
    bool on_host; /* the plugin refused it */
    struct gpuhal_deferred_rect {
        gpuhal_rect rects[2];
        uint64_t extent[3];
    } rect[]; /* one, for work of the form GPUHAL_OP_RECT alone */
} gpuhal_deferred;

/* The objects that submitted work keeps alive. */
typedef struct gpuhal_submission {
    uint64_t number; /* of the last piece of its work; UINT64_MAX while more may be added */
    gpuhal_buffer *to, *from, *kept;
    gpuhal_uses *uses;         /* the first of a list */
    gpuhal_timepoint *awaited; /* the plugin's queue itself waits for it, and is a user of its event */
} gpuhal_submission;

/* The plugin's queue, and its count of references. */
typedef struct gpuhal_vendor_queue {
    _Atomic uint32_t references; /* the queue's, and one for each timepoint that has an event of it */
    gpuhal_plugin_queue *queue;
} gpuhal_vendor_queue;

enum { GPUHAL_SPARE_EVENTS = 16 };

/* After this number of submissions the library records a timepoint by itself. It shows whether work goes on when a
 * driver blocks in an enqueue call because its ring is full, and lets completed work be retired although no thread
 * waits. Rings of drivers that block are longer. */
enum { GPUHAL_TIMEPOINT_EVERY = 256 };

/* The number of other queues whose timepoints a queue keeps, after the application made it wait for them. */
enum { GPUHAL_AWAITED = 8 };

struct gpuhal_queue {
    /* The members that the fast path uses lie together. */
    gpuhal_device *device;
    gpuhal_plugin_queue *vendor; /* NULL: the plugin has no queues */
    _Atomic uint32_t fast_path;       /* GPUHAL_FAST_PATH_ bits: fast_path.c */
    gpuhal_buffer *fast_to, *fast_from; /* of the newest submission, while the fast path is open */
    gpuhal_uses *fast_uses;             /* of the newest submission, too: the last of its list */
    _Atomic uint64_t submitted;  /* number of the newest submission; written by the thread that may call */
    uint64_t recorded; /* number of the newest submission that a timepoint comes after; also written by that thread */
    const _Atomic bool *observing; /* whether work that is enqueued now is observed */
    const gpuhal_observer *observer;

    _Atomic uint32_t
        references; /* the structure: its user, its worker, its timepoints, and completions of other timepoints */
    int32_t priority;
    uint32_t flags;
    void *(*thread)(void *queue); /* gpuhal_queue_thread(): deferred.c starts the worker, and lies below it */
    bool adopted;
    gpuhal_native adopt; /* the caller's queue, if it is adopted */
    gpuhal_queue *next;  /* in the list of the completion service */

    gpuhal_mutex mutex;         /* by gpuhal_queue_lock() */
    gpuhal_condition condition; /* a member below changed */
    uint32_t waiting[GPUHAL_WAITING_PLACES]; /* threads that wait for the condition, by place */

    /* One state of each region of states.inc, changed by gpuhal_queue_change(). */
    gpuhal_queue_state life, health, worker;
    gpuhal_queue_state right; /* the fast path is another way to call the plugin */
    bool joined;       /* coalesced: the present call adds to the newest submission, which has the same buffers */
    uint64_t retry_ns; /* pause before the next call of the plugin, which was NOT_READY; 0: it took the last piece */

    gpuhal_deferred *deferred, **deferred_end;
    _Atomic uint64_t done; /* number up to which all submissions are known to have ended; also read without the mutex */
    gpuhal_timepoint *timepoints, **timepoints_end; /* submitted, not known to be done; in order */
    gpuhal_timepoint *ended;     /* done; released once the plugin has called back for the armed ones */
    gpuhal_deferred *dropped;    /* to be freed */
    uint64_t retiring; /* the oldest submission that a thread is retiring; UINT64_MAX: it retires none, only timepoints;
                          0: no thread retires */
    gpuhal_submission *submissions;  /* a ring */
    size_t first_submission, submission_count, submission_space;
    gpuhal_vendor_queue *counted; /* the count for `vendor`; changed with the right to call and the mutex */
    gpuhal_plugin_event *spare[2][GPUHAL_SPARE_EVENTS]; /* of `vendor`; not timed, timed */
    uint32_t spare_count[2];

    gpuhal_timepoint *awaited[GPUHAL_AWAITED]; /* awaited.c: the newest timepoints, each of another queue */
    uint32_t awaited_next;                     /* the next place to be replaced */
    gpuhal_timepoint **followed; /* follow.c */
    uint32_t followed_count;
    _Atomic bool in_flight; /* it has failed, and the driver may still be at its work */

    gpuhal_queue_timeline trace; /* the observer's */
    _Atomic bool has_times;      /* the plugin's events of this queue can be asked for times */

    gpuhal_failure *failure;     /* why it failed */
    gpuhal_failure *refusal;   /* why it could not be reset */
    _Atomic uint64_t caller; /* thread in which the queue calls a function of the application; 0: none */
    bool busy;               /* it counts as a queue with work: device/busy.c */
    _Atomic bool asking;     /* a thread polls awaited timepoints for the original failure */
    bool probed; /* the watchdog asks whether work goes on: the worker records a timepoint and waits for it */
    bool uncounted; /* the object does not count on this worker: it is stuck in the driver, has ended, or is a thread of
                     * the application */
};

/* state.c: counts the time in which a device is busy, once that is wanted, when its queue may have got work, or ended
 * it. With the mutex held. */
void gpuhal_queue_count_busy(gpuhal_queue *queue);
static inline void gpuhal_queue_note_busy(gpuhal_queue *queue)
{
    if (__builtin_expect(atomic_load_explicit(&queue->device->busy.wanted, memory_order_relaxed), 0)) {
        gpuhal_queue_count_busy(queue);
    }
}

/* Costs a load, while there is no observer. */
static inline bool gpuhal_queue_is_observed(const gpuhal_queue *queue)
{
    return __builtin_expect(atomic_load_explicit(queue->observing, memory_order_relaxed), 0);
}
static inline void gpuhal_queue_notify(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_transition_fn *observe,
                                       gpuhal_status status)
{
    if (__builtin_expect(op->observed != NULL, 0)) {
        observe(queue, op, status);
    }
}

static inline bool gpuhal_queue_has_failed(const gpuhal_queue *queue)
{
    return queue->health != GPUHAL_QUEUE_USABLE;
}

/* Returns true while there is deferred work: new work must wait after it. */
static inline bool gpuhal_queue_has_deferred(const gpuhal_queue *queue)
{
    return queue->deferred || queue->worker == GPUHAL_QUEUE_RUNNING;
}

static inline bool gpuhal_queue_is_closed(const gpuhal_queue *queue)
{
    return queue->life == GPUHAL_QUEUE_CLOSED || queue->life == GPUHAL_QUEUE_FINISHED;
}

/* With the right to call. Return the number of submissions after the newest timepoint, and whether the library records
 * one by itself now. */
static inline uint64_t gpuhal_queue_unrecorded(const gpuhal_queue *queue)
{
    return atomic_load_explicit(&queue->submitted, memory_order_relaxed) - queue->recorded;
}
static inline bool gpuhal_queue_needs_timepoint(const gpuhal_queue *queue)
{
    return gpuhal_queue_unrecorded(queue) >= GPUHAL_TIMEPOINT_EVERY;
}

/* Returns true while a thread waits for anything but work. */
static inline bool gpuhal_queue_has_waiters(const gpuhal_queue *queue)
{
    uint32_t waiters = 0;
    for (int place = 0; place < GPUHAL_WAITS_WORK; place++) {
        waiters += queue->waiting[place];
    }
    return waiters > 0;
}

/* The functions of each file follow, from the bottom: each file uses only those above it here. */

/* ---- uses.c: functions that accept NULL for no uses */

gpuhal_uses *gpuhal_uses_retain(gpuhal_uses *uses);
/* Returns whether both are of one kernel, with the same buffers in the same order. */
bool gpuhal_uses_are_alike(const gpuhal_uses *one, const gpuhal_uses *other);
void gpuhal_uses_release(gpuhal_uses *uses);
/* Enters all buffers, as gpuhal_buffers_enter() does, or none. */
gpuhal_status gpuhal_uses_enter(const gpuhal_uses *uses);
void gpuhal_uses_leave(const gpuhal_uses *uses);
/* Returns the next uses of a submission's list, also while it grows on the fast path. */
static inline gpuhal_uses *gpuhal_uses_next(const gpuhal_uses *uses)
{
    return atomic_load_explicit(&uses->next, memory_order_acquire);
}
/* Returns whether one buffer is mapped. */
bool gpuhal_uses_are_mapped(const gpuhal_uses *uses);

/* ---- fast_path.c */

enum { GPUHAL_FAST_PATH_TAKEN = 1u, GPUHAL_FAST_PATH_CLOSED = 2u };
/* Locks the mutex and closes the fast path. */
void gpuhal_queue_lock(gpuhal_queue *queue);
/* Waits for the condition until the deadline; UINT64_MAX: no limit. */
void gpuhal_queue_wait_at(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* Returns, with the mutex held, whether a thread has the right to call. */
bool gpuhal_queue_is_called(const gpuhal_queue *queue);
/* Opens the fast path for more work with a transfer's buffers, if that is allowed, right after the transfer was
 * submitted. With the mutex held. */
void gpuhal_queue_open_fast_path(gpuhal_queue *queue);
/* Submits work like the newest, if the fast path is open. Returns true when *out_status is the plugin's result; if that
 * is not OK, the caller has the right to call, as after gpuhal_queue_begin_call_unlocks() and
 * gpuhal_queue_reserve(). */
bool gpuhal_queue_try_fast_path(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status *out_status);
gpuhal_submission *gpuhal_queue_last_submission(gpuhal_queue *queue);
/* With the mutex held: seals the newest submission, so that nothing is added to it any more. */
void gpuhal_queue_seal_submission(gpuhal_queue *queue);

/* ---- state.c */

gpuhal_queue *gpuhal_queue_retain(gpuhal_queue *queue);
void gpuhal_queue_release(gpuhal_queue *queue);
/* Returns OK, or the reason why calls on it are refused: FORKED, DEVICE_LOST. */
static inline gpuhal_status gpuhal_queue_check(const gpuhal_queue *queue)
{
    return gpuhal_device_check(queue->device);
}
/* Returns whether application threads may call the plugin to record, query and block: it promises to be back in
 * time. */
static inline bool gpuhal_device_honors_timeouts(const gpuhal_device *device)
{
    return device->plugin->flags & GPUHAL_PLUGIN_HONORS_TIMEOUTS;
}
/* Sets BUSY: the application has native access. */
gpuhal_status gpuhal_queue_native_error(const gpuhal_queue *queue);
/* Returns, with the mutex held, why work cannot be deferred now: the queue's failure, or BUSY; OK if it can. */
gpuhal_status gpuhal_queue_refusal(const gpuhal_queue *queue);
/* Sets BUSY on the thread in which the queue calls a function of the application, which would wait for itself; else
 * OK. */
gpuhal_status gpuhal_queue_own_call(const gpuhal_queue *queue);
/* Wakes all threads that wait for the queue. */
void gpuhal_queue_wake(gpuhal_queue *queue);
/* With the mutex held: sets TIMEOUT, with `what` and the kernel that the driver may still be compiling. */
gpuhal_status gpuhal_queue_late(gpuhal_queue *queue, const char *what);
/* Waits, with the mutex held, until something changes. Returns OK, or TIMEOUT once the deadline has passed. */
gpuhal_status gpuhal_queue_wait_until(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* Waits until the present call may have ended. Returns BUSY during native access, TIMEOUT, DEVICE_LOST. */
gpuhal_status gpuhal_queue_wait_for_call(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* Take the right to call the plugin on `vendor`, and give it back. With the mutex held. BUSY during native access,
 * TIMEOUT, DEVICE_LOST. */
gpuhal_status gpuhal_queue_begin_call_unlocks(gpuhal_queue *queue, uint64_t deadline_ns);
/* Does the same for the worker, whose work may have come before native access began: it waits until that ends. */
gpuhal_status gpuhal_queue_begin_late_call(gpuhal_queue *queue);
void gpuhal_queue_end_call(gpuhal_queue *queue);
/* Makes room for a submission, or decides to add to the newest one. With the mutex held and the right to call. */
bool gpuhal_queue_reserve(gpuhal_queue *queue, const gpuhal_op *op);
/* With the mutex held: nothing is left to do; the oldest submission has ended; completed work can be retired. */
bool gpuhal_queue_is_idle(const gpuhal_queue *queue);
static inline bool gpuhal_queue_oldest_has_ended(const gpuhal_queue *queue)
{
    return queue->submission_count > 0 && queue->submissions[queue->first_submission].number <= queue->done;
}
bool gpuhal_queue_has_completed(const gpuhal_queue *queue);

/* ---- vendor_event.c: calls the plugin, so no function of it with the mutex held */

/* Makes one with one reference, to be filled; returns NULL without memory. */
gpuhal_vendor_queue *gpuhal_vendor_queue_create(void);
/* Destroys the spare events, and releases the plugin's queue, which is destroyed with the last event that was recorded
 * in it. With the right to call. */
void gpuhal_queue_drop_vendor(gpuhal_queue *queue);
/* Takes a spare event; NULL: there is none. With the right to call. */
gpuhal_plugin_event *gpuhal_queue_take_event(gpuhal_queue *queue, bool timed);
/* Keeps an event that was not recorded for the next timepoint, or destroys it. With the right to call. */
void gpuhal_queue_put_event(gpuhal_queue *queue, gpuhal_plugin_event *event, bool timed);
/* Gives the timepoint the event that was recorded for it; its queue is the event's first user. With the right to
 * call. */
void gpuhal_timepoint_give_event(gpuhal_timepoint *timepoint, gpuhal_plugin_event *event);
/* Begin and end the use of the timepoint's event in a call. False: the timepoint is done, or was never submitted. */
bool gpuhal_timepoint_use_event(gpuhal_timepoint *timepoint);
void gpuhal_timepoint_leave_event(gpuhal_timepoint *timepoint);

/* ---- timepoint.c */

/* Measures the time between two timed timepoints that are done. Returns INVALID_ARGUMENT in the other order, or the
 * plugin's error. */
gpuhal_status gpuhal_timepoint_elapsed(const gpuhal_timepoint *from, const gpuhal_timepoint *to, uint64_t *out_ns);

/* ---- deferred.c */

/* With the mutex held: starts the worker, unless there is one. Returns 0 or errno. */
int gpuhal_queue_need_thread(gpuhal_queue *queue);
/* With the mutex held: appends work to the list of deferred work. */
gpuhal_status gpuhal_queue_append_deferred(gpuhal_queue *queue, const gpuhal_op *op, bool on_host);
void gpuhal_deferred_free(gpuhal_deferred *deferred);

/* ---- retire.c */

/* Retires completed work; returns true when there was some and no other thread was at it. Not with the mutex held, and
 * not in a callback of the driver, since it calls the plugin. */
bool gpuhal_queue_retire(gpuhal_queue *queue);
/* Does the same with the mutex held. */
bool gpuhal_queue_retire_unlocks(gpuhal_queue *queue);
/* Waits until this thread or another has given back all objects that submissions up to `number` kept alive. They must
 * have ended. Returns TIMEOUT, DEVICE_LOST; NOT_READY for a deadline of 0. */
gpuhal_status gpuhal_queue_wait_retired(gpuhal_queue *queue, uint64_t number, uint64_t deadline_ns);

/* ---- complete.c */

/* Fails the queue, with the mutex held. All deferred work fails, and with `submitted` all submitted timepoints. The
 * driver may still execute submitted work; its buffers stay, unless the device is lost. Completions go to the front of
 * *completions. */
void gpuhal_queue_fail(gpuhal_queue *queue, gpuhal_failure *failure, bool submitted, gpuhal_completion **completions);
/* Does the same without the mutex. */
void gpuhal_queue_break(gpuhal_queue *queue, gpuhal_failure *failure, bool submitted);
/* Takes over the plugin's result for a submitted timepoint: ends it and those before it, or fails the queue. Not with
 * the mutex held. */
void gpuhal_timepoint_settle(gpuhal_timepoint *timepoint, gpuhal_status status);
/* Does the same in a callback of the driver: nothing is retired. */
void gpuhal_timepoint_settle_notified(gpuhal_timepoint *timepoint, gpuhal_status status);
/* Does the same for a failure. First polls the timepoints that the queue waited for, to learn the original failure. */
void gpuhal_timepoint_failed(gpuhal_timepoint *timepoint, gpuhal_status status);
/* Queries the plugin. Returns OK, NOT_READY, or the failure. */
gpuhal_status gpuhal_timepoint_poll(gpuhal_timepoint *timepoint);

/* ---- record.c */

/* Fails the queue because the plugin refused a call, with this thread's last error; earlier submissions are not
 * affected. BUSY fails nothing: the plugin takes the work later. Without the mutex. */
gpuhal_status gpuhal_queue_refused(gpuhal_queue *queue, gpuhal_status status);
/* Submits a timepoint to the plugin, as gpuhal_queue_submit() does work; on success the caller tracks it by one of the
 * next two. */
gpuhal_status gpuhal_queue_submit_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* Tracks a submitted timepoint. The queue may have failed meanwhile: then the timepoint has too. Completions go to the
 * front of the list. */
void gpuhal_queue_track_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint, gpuhal_completion **completions);
void gpuhal_queue_append_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint);

/* ---- reclaim.c */

/* Retires the completed work of all queues, when memory of the device is short. *out_pending: bytes that come free once
 * queued work has ended. */
void gpuhal_queues_reclaim(gpuhal_device *device, uint64_t *out_pending);
/* The work of all queues of an object at one time. */
typedef struct gpuhal_queue_marks {
    gpuhal_timepoint **list; /* with references */
    size_t count;
    bool refused; /* by a queue with work, which is not in the list: such as one in native access */
} gpuhal_queue_marks;
/* Records a timepoint in every queue with work. Returns HOST_MEMORY. */
gpuhal_status gpuhal_queues_mark(gpuhal *gpu, gpuhal_queue_marks *out_marks);
/* Waits until one of them has ended, which leaves the list. Returns false if none is left, or the time is over. */
bool gpuhal_queues_wait_mark(gpuhal_queue_marks *marks, uint64_t deadline_ns);
void gpuhal_queue_marks_free(gpuhal_queue_marks *marks);

/* ---- wait.c */

/* Makes the library notice the end of the timepoint although no thread polls. Returns 0, or errno if no thread can do
 * it. Not with the mutex held. */
int gpuhal_timepoint_request_notify(gpuhal_timepoint *timepoint);
/* Adds a completion to a timepoint, and owns it; notifies at once if the timepoint is done. Returns HOST_MEMORY, with
 * the completion freed, when no thread could notice the end. */
gpuhal_status gpuhal_timepoint_add_completion(gpuhal_timepoint *timepoint, gpuhal_completion *completion);
/* Blocks, without the mutex, until the plugin reports that a submitted timepoint is done. */
void gpuhal_timepoint_block(gpuhal_timepoint *timepoint);
/* Waits for a timepoint. Leaves calls of the plugin to the worker if it can, so that a driver that hangs does not keep
 * the caller. */
gpuhal_status gpuhal_timepoint_wait(gpuhal_timepoint *timepoint, uint64_t deadline_ns);
/* Returns the failure of a timepoint that is DONE, or waits until all objects that the work before it kept alive have
 * been given back. Returns TIMEOUT; NOT_READY for a deadline of 0. */
gpuhal_status gpuhal_timepoint_retire(gpuhal_timepoint *timepoint, uint64_t deadline_ns);

/* ---- submit.c */

/* Must be called before work with the buffer is enqueued: its pool must know which queues use the memory. */
static inline gpuhal_status gpuhal_queue_uses(gpuhal_queue *queue, gpuhal_buffer *buffer)
{
    bool known = !buffer || !buffer->is_part || !queue ||
                 atomic_load_explicit(&buffer->used_in, memory_order_relaxed) == queue;
    return __builtin_expect(known, 1) ? GPUHAL_OK : buffer->device->gpu->layers.use_part(buffer, queue);
}
/* Enqueues a transfer whose arguments were checked, or buffers to keep. Returns INVALID_ARGUMENT for a queue of a
 * device that has none of the buffers of a transfer. */
gpuhal_status gpuhal_queue_enqueue(gpuhal_queue *queue, const gpuhal_op *op);
/* Defers work to the worker. Returns BUSY during native access. */
gpuhal_status gpuhal_queue_defer(gpuhal_queue *queue, const gpuhal_op *op);
/* Records a timepoint after everything enqueued; flushes. */
gpuhal_status gpuhal_queue_record(gpuhal_queue *queue, bool timed, gpuhal_timepoint **out_point);
/* Does the same for an event of the application, which is observed. */
gpuhal_status gpuhal_queue_record_event(gpuhal_queue *queue, bool timed, gpuhal_timepoint **out_point);
/* Does the same for a caller that is going to wait and must be back in time: if the plugin does not promise that, or is
 * NOT_READY, the worker records it. */
gpuhal_status gpuhal_queue_record_to_wait(gpuhal_queue *queue, uint64_t deadline_ns, gpuhal_timepoint **out_point);
/* Makes everything enqueued from now on come after the timepoint; NULL: changes nothing. */
gpuhal_status gpuhal_queue_wait_for_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* Submits a transfer to the plugin: with the right to call and without the mutex. NOT_SUPPORTED, without a detail: the
 * worker must do it. NOT_READY, also without a detail: the worker tries again. Any other refusal leaves a gap in the
 * queue's order, so the queue has failed. On success the caller tracks it by the next function, with the mutex held. */
gpuhal_status gpuhal_queue_submit(gpuhal_queue *queue, const gpuhal_op *op);
void gpuhal_queue_track(gpuhal_queue *queue, const gpuhal_op *op);
/* Returns whether the library records one at the end of native access. Not with HONORS_TIMEOUTS: such drivers do not
 * block for room, and for some an event is a submission. */
static inline bool gpuhal_queue_records_access(const gpuhal_queue *queue)
{
    return !gpuhal_device_honors_timeouts(queue->device);
}
/* Records the library's own timepoint after everything submitted, if the plugin takes one now. `is_access`: the
 * application submitted the last of it, in native access. With the right to call and the mutex held. */
void gpuhal_queue_record_own_unlocks(gpuhal_queue *queue, bool is_access);

/* Polls the oldest submitted timepoint, and goes on as long as it is done. */
void gpuhal_queue_look_through(gpuhal_queue *queue);
/* Return facts for the layers above: the queue was destroyed, and its work and the work that it follows have ended; it
 * is usable and has nothing to do, as far as the library knows, which for the caller's own queue is never; it has
 * failed. */
bool gpuhal_queue_has_finished(gpuhal_queue *queue);
bool gpuhal_queue_is_quiet(gpuhal_queue *queue);
bool gpuhal_queue_is_broken(gpuhal_queue *queue);

/* ---- awaited.c */

/* Notes that the application has made the queue wait for the timepoint, and adds a reference. */
void gpuhal_queue_note_awaited(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* Returns the newest such timepoint of the other queue, with a reference; NULL: none is known. Calls no plugin. */
gpuhal_timepoint *gpuhal_queue_get_awaited(gpuhal_queue *queue, const gpuhal_queue *other);
/* Must be called when the queue ends. Not with the mutex held. */
void gpuhal_queue_forget_awaited(gpuhal_queue *queue);

/* ---- follow.c */

/* Does gpuhal_queue_wait_for_timepoint() for a queue that gets memory in use by the work before the timepoint: the
 * queue comes after that work also when it fails or is reset. Returns HOST_MEMORY. */
gpuhal_status gpuhal_queue_follow(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* Returns, with the mutex held, whether work that the queue follows may go on. */
bool gpuhal_queue_follows(const gpuhal_queue *queue);
/* Blocks until no such work goes on, or the device is lost, and forgets all of it. */
void gpuhal_queue_await_followed(gpuhal_queue *queue);

/* ---- vendor.c */

/* Gets a queue like this one from the plugin, if the plugin has queues. */
gpuhal_status gpuhal_queue_make_vendor(gpuhal_queue *queue, gpuhal_vendor_queue **out_vendor);
/* Gives all of the plugin's objects back, once the queue is closed, and takes it out of the object's list. */
void gpuhal_queue_finish(gpuhal_queue *queue);

/* ---- reset.c */

/* Makes a failed queue usable, or keeps the reason why not. On the worker, with the mutex held. */
void gpuhal_queue_run_reset_unlocks(gpuhal_queue *queue);

/* ---- worker.c */

/* The worker. */
void *gpuhal_queue_thread(void *user);
/* Does the worker's work until the queue is finished. Also on the thread that destroys the queue, if no worker can be
 * started. */
void gpuhal_queue_work(gpuhal_queue *queue);

/* ---- call.c */

/* Keeps a buffer until everything enqueued in the queue has ended, whatever state the queue is in: if it has failed,
 * until it is reset or finished. Returns HOST_MEMORY, DEVICE_LOST. */
gpuhal_status gpuhal_queue_hold(gpuhal_queue *queue, gpuhal_buffer *buffer);

/* ---- hang.c */

/* Fails all queues of a device that is lost, with this thread's last error; if the device hangs, also queues whose
 * worker is in its driver. Calls no plugin. */
void gpuhal_queues_lost(gpuhal_device *device);
/* Asks the driver whether work of the device's queues goes on. */
bool gpuhal_queues_go_on(gpuhal_device *device);

#endif
