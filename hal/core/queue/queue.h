/* queue/queue.h: the internals of a queue, for the files of this folder.
 *
 * Work that the plugin can enqueue is submitted to the plugin's queue on the caller's thread. Other work is
 * appended to a list of deferred work: work that needs blocking calls, work that the plugin cannot accept now,
 * application functions, and waits for events that the plugin's queue cannot wait for itself. While this list is not
 * empty, all work is appended to it. The queue's worker thread takes work from the front of the list. The worker
 * submits the work if possible; otherwise it runs the work once all earlier submissions have completed. If the plugin
 * has no queues, the worker runs all work.
 *
 * `mutex` protects the queue and its timepoints. It is never held during a plugin call, a callback or a release. Only
 * one thread at a time calls the plugin on its queue: the thread that has the right to call or is on the fast path
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

/* The objects that a launch uses: a kernel and any number of buffers. The layer above creates these structures; its own
 * structure has a gpuhal_uses as the first member. The buffers are whole buffers, never suballocations. The structure
 * that a launch passes to an enqueueing call is not reference-counted and holds no references; it is valid only during
 * the call. A run of a recording passes a reference-counted structure. */
typedef struct gpuhal_uses {
    _Atomic uint32_t references;
    uint32_t count;
    /* The next uses in the same submission. Successive launches with the same kernel and buffers share one
     * (fast_path.c). */
    _Atomic(struct gpuhal_uses *) next;
    struct gpuhal_kernel *kernel;
    struct gpuhal_use {
        gpuhal_buffer *buffer;
        bool writes;
    } *buffers;
    const struct gpuhal_uses_kind *kind;
    bool first;       /* the driver may be compiling the kernel, or a recording's kernels, until this work has ended */
    bool alone;       /* a run of a recording: the submission has no other uses, and there is no kernel */
    bool needs_clean; /* a buffer's memory must be made coherent around every access */
    const char *name; /* name of the kernel or recording */
    const uint32_t *groups; /* three values; NULL in copies made by `keep` and for a run of a recording */
    /* Only with `alone`: `submit` passes steps to the plugin until the plugin has accepted `room` steps, `at_once` of
     * them with each call; only if `room` is smaller than `at_once`, it is exceeded. `submit` sets the number of steps
     * that the plugin accepted, and whether steps remain. The next call continues with the first remaining step. */
    uint32_t room, at_once, accepted;
    bool remains;
    bool begun; /* only with `alone`: the plugin has accepted some of the steps, and steps remained after that */
} gpuhal_uses;

/* Operations that the layer above provides for its structure. A new copy has one reference, and holds references to the
 * kernel and the buffers. The copying functions return NULL if out of memory. For a run of a recording,
 * `make_lasting` adds a reference to the same structure, and `keep` is NULL. */
typedef struct gpuhal_uses_kind {
    /* Copies uses for work that may run after the call. */
    gpuhal_uses *(*make_lasting)(const gpuhal_uses *uses);
    /* Makes a copy that only keeps the buffers and the kernel alive, for work that the plugin receives during the
     * call. */
    gpuhal_uses *(*keep)(const gpuhal_uses *uses);
    /* Called when the last reference to a copy is released. Calls no application function. */
    void (*destroy)(gpuhal_uses *uses);
} gpuhal_uses_kind;

typedef struct gpuhal_op_kind {
    /* Enqueues the work on the plugin's queue. Returns NOT_SUPPORTED if the worker must use `run`, or NOT_READY if the
     * caller must retry later. Neither status sets an error detail or has side effects, except for the accepted steps
     * of a recording. If `submit` is NULL, the worker always uses `run`. */
    gpuhal_status (*submit)(gpuhal_plugin_queue *queue, const gpuhal_op *op);
    /* Blocks until the work, or the remaining steps of a recording, are done. */
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
        GPUHAL_OP_RECORDING,
        GPUHAL_OP_EVENT /* a recorded event; only used in traces, never in an op_kind */
    } form;
} gpuhal_op_kind;

/* A piece of work. The queue copies it and retains the buffers. */
struct gpuhal_op {
    const gpuhal_op_kind *kind; /* if NULL, one of the next two members is set */
    gpuhal_timepoint *record;       /* timepoint to submit, or to finish if the plugin has no queues */
    gpuhal_timepoint *await;        /* timepoint of another queue that later work must wait for */
    gpuhal_buffer *to, *from;   /* either may be NULL */
    gpuhal_buffer *kept;        /* a buffer to keep alive until the work has ended */
    gpuhal_uses *uses;          /* set for a launch or a run of a recording; otherwise NULL */
    void *observed;             /* the observer's pointer; NULL if not observed */
    uint64_t to_offset, from_offset, bytes;
    gpuhal_counter *counter;    /* counts the bytes once the work is submitted; `run` counts them itself */
    union {                     /* selected by kind->form; small, because every transfer call fills in a gpuhal_op */
        const void *source;     /* host memory; belongs to the caller until the work is done */
        void *target;
        struct {
            uint32_t pattern, pattern_bytes;
        };
        struct { /* copied with the work */
            const gpuhal_rect *to_rect, *from_rect;
            const uint64_t *extent;
        };
        struct { /* freed with the work */
            void *job;
            void (*free_job)(void *job);
        };
        struct { /* an application function */
            gpuhal_queue *queue;
            void *user;
            union {
                gpuhal_call_fn *fn;
                gpuhal_native_fn *native_fn;
            };
        };
    };
};

/* A list element of deferred work. Many of these may exist if an application enqueues faster than its device works, so
 * rarely used members are not part of the structure. */
typedef struct gpuhal_deferred {
    struct gpuhal_deferred *next;
    gpuhal_op op;
    bool on_host; /* the worker must use `run`, not `submit`; for a wait, the completion is set */
    struct gpuhal_deferred_rect {
        gpuhal_rect rects[2];
        uint64_t extent[3];
    } rect[]; /* one element for GPUHAL_OP_RECT, otherwise none */
} gpuhal_deferred;

/* The objects that submitted work keeps alive. */
typedef struct gpuhal_submission {
    uint64_t number; /* number of its last piece of work; UINT64_MAX while more work may be added */
    gpuhal_buffer *to, *from, *kept;
    gpuhal_uses *uses;         /* head of a list */
    gpuhal_timepoint *awaited; /* a timepoint that the plugin's queue waits for; this submission is a user of its
                                * event */
} gpuhal_submission;

typedef struct gpuhal_vendor_queue {
    _Atomic uint32_t references; /* held by the queue, and by each timepoint with an event of this plugin queue */
    gpuhal_plugin_queue *queue;
} gpuhal_vendor_queue;

enum { GPUHAL_SPARE_EVENTS = 16 };

/* After this many submissions without a timepoint, the library records one of its own. If a driver blocks in an enqueue
 * call because its ring is full, the timepoint shows whether earlier work makes progress. With the timepoint, completed
 * work can also be retired when no thread waits. All drivers that block have longer rings. */
enum { GPUHAL_TIMEPOINT_EVERY = 256 };

/* Maximum number of other queues whose newest awaited timepoint a queue keeps (awaited.c). */
enum { GPUHAL_AWAITED = 8 };

struct gpuhal_queue {
    /* Members used by the fast path are kept together. */
    gpuhal_device *device;
    gpuhal_plugin_queue *vendor; /* NULL if the plugin has no queues, or once the queue is finished */
    _Atomic uint32_t fast_path;       /* GPUHAL_FAST_PATH_ bits, see fast_path.c */
    gpuhal_buffer *fast_to, *fast_from; /* buffers of the newest submission, while the fast path is open */
    gpuhal_uses *fast_uses;             /* last element of the newest submission's list */
    _Atomic uint64_t submitted;  /* number of the newest submission; written with the right to call, or with the mutex
                                  * held while no other thread calls the plugin */
    uint64_t recorded; /* number of the newest submission that has a timepoint after it; written with the right to
                        * call */
    const _Atomic bool *observing; /* whether new work is observed */
    const gpuhal_observer *observer;

    _Atomic uint32_t
        references; /* references to the structure: by the user, the worker, timepoints, completions of other
                     * timepoints, and the layers above, such as pools and recordings */
    int32_t priority;
    uint32_t flags;
    void *(*thread)(void *queue); /* gpuhal_queue_thread(); a pointer because deferred.c must not call worker.c */
    bool adopted;
    gpuhal_native adopt; /* the caller's queue, if adopted */
    gpuhal_queue *next;  /* in the completion service's list */
    uint64_t place;      /* above the places of all queues that were added earlier */

    gpuhal_mutex mutex;         /* gpuhal_queue_lock() also closes the fast path; gpuhal_mutex_lock() leaves it open */
    gpuhal_condition condition; /* a member below changed */
    uint32_t waiting[GPUHAL_WAITING_PLACES]; /* number of threads waiting for the condition, by place */

    /* The current state in each region of states.inc. Changed by gpuhal_queue_change(). */
    gpuhal_queue_state life, health, worker;
    gpuhal_queue_state right; /* the fast path grants the right to call without this member */
    bool joined;       /* the current call adds its work to the newest submission, which has the same buffers */
    uint64_t retry_ns; /* the newest pause before a retry; 0 once the first deferred work was submitted or
                        * has failed */

    gpuhal_deferred *deferred, **deferred_end;
    _Atomic uint64_t done; /* all submissions up to this number are known to have ended; also read without the mutex */
    gpuhal_timepoint *timepoints, **timepoints_end; /* submitted, not known to be done; oldest first */
    gpuhal_timepoint *ended;     /* done; if armed, released only after the plugin has called back */
    gpuhal_deferred *dropped;    /* to be freed */
    uint64_t retiring; /* oldest submission that is being retired; UINT64_MAX if only timepoints or dropped
                        * work are; 0 if nothing is */
    gpuhal_submission *submissions;  /* ring buffer */
    size_t first_submission, submission_count, submission_space;
    gpuhal_vendor_queue *counted; /* `vendor` with its reference count; changed with the right to call and the mutex
                                   * held */
    gpuhal_plugin_event *spare[2][GPUHAL_SPARE_EVENTS]; /* untimed and timed events of `vendor` */
    uint32_t spare_count[2];

    gpuhal_timepoint *awaited[GPUHAL_AWAITED]; /* newest awaited timepoints, each of another queue; awaited.c */
    uint32_t awaited_next;                     /* index of the next entry to replace */
    gpuhal_timepoint **followed; /* see follow.c */
    uint32_t followed_count;
    _Atomic bool in_flight; /* the queue has failed and the driver may still be executing its work */

    gpuhal_queue_timeline trace; /* the observer's data */
    _Atomic bool has_times;      /* the plugin can report times for this queue's events */

    gpuhal_failure *failure;     /* why the queue failed */
    gpuhal_failure *refusal;   /* why the reset failed */
    _Atomic uint64_t caller; /* thread that is running an application function for this queue; 0 if none */
    bool busy;               /* counted as a queue with work, see device/busy.c */
    gpuhal_atomic_flag asking; /* a thread is polling awaited timepoints to find the original failure */
    bool probed; /* the watchdog checks for progress: the worker records a timepoint and waits for it */
    bool uncounted; /* the gpuhal object does not count this worker, because it is stuck, has ended, or is an
                     * application thread */
};

/* Defined in state.c. Updates the device's busy time if the application requested it. Called with the mutex held when
 * the queue may have received or finished work. */
void gpuhal_queue_count_busy(gpuhal_queue *queue);
static inline void gpuhal_queue_note_busy(gpuhal_queue *queue)
{
    if (__builtin_expect(atomic_load_explicit(&queue->device->busy.wanted, memory_order_relaxed), 0)) {
        gpuhal_queue_count_busy(queue);
    }
}

/* Costs one load while the queue is not observed. */
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

static inline bool gpuhal_queue_has_deferred(const gpuhal_queue *queue)
{
    return queue->deferred || queue->worker == GPUHAL_QUEUE_RUNNING;
}

static inline bool gpuhal_queue_is_closed(const gpuhal_queue *queue)
{
    return queue->life == GPUHAL_QUEUE_CLOSED || queue->life == GPUHAL_QUEUE_FINISHED;
}

/* The caller has the right to call, or holds the mutex while no thread has the right. The first function returns the
 * number of submissions after the newest timepoint. The second returns whether the library must record its own
 * timepoint now. */
static inline uint64_t gpuhal_queue_unrecorded(const gpuhal_queue *queue)
{
    return atomic_load_explicit(&queue->submitted, memory_order_relaxed) - queue->recorded;
}
static inline bool gpuhal_queue_needs_timepoint(const gpuhal_queue *queue)
{
    return gpuhal_queue_unrecorded(queue) >= GPUHAL_TIMEPOINT_EVERY;
}

/* Returns whether a thread waits on the condition for anything other than new work. */
static inline bool gpuhal_queue_has_waiters(const gpuhal_queue *queue)
{
    uint32_t waiters = 0;
    for (int place = 0; place < GPUHAL_WAITS_WORK; place++) {
        waiters += queue->waiting[place];
    }
    return waiters > 0;
}

/* The functions of each file follow, lowest layer first. Each file may call only functions of the files before it,
 * except reclaim.c, which also calls wait.c and submit.c. */

/* ---- uses.c: these functions accept NULL, except gpuhal_uses_next() */

gpuhal_uses *gpuhal_uses_retain(gpuhal_uses *uses);
/* Returns whether both uses have the same kernel and the same buffers in the same order. */
bool gpuhal_uses_are_alike(const gpuhal_uses *one, const gpuhal_uses *other);
void gpuhal_uses_release(gpuhal_uses *uses);
/* Enters all buffers, as gpuhal_buffers_enter() does. On failure no buffer is entered. */
gpuhal_status gpuhal_uses_enter(const gpuhal_uses *uses);
void gpuhal_uses_leave(const gpuhal_uses *uses);
/* May be called while the fast path appends to the list. */
static inline gpuhal_uses *gpuhal_uses_next(const gpuhal_uses *uses)
{
    return atomic_load_explicit(&uses->next, memory_order_acquire);
}
bool gpuhal_uses_are_mapped(const gpuhal_uses *uses);

/* ---- fast_path.c */

enum { GPUHAL_FAST_PATH_TAKEN = 1u, GPUHAL_FAST_PATH_CLOSED = 2u };
/* Locks the mutex and closes the fast path. */
void gpuhal_queue_lock(gpuhal_queue *queue);
/* UINT64_MAX means no deadline. */
void gpuhal_queue_wait_at(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* The caller holds the mutex. */
bool gpuhal_queue_is_called(const gpuhal_queue *queue);
/* Opens the fast path, if possible, for more work that can join the newest submission. Must be called right after work
 * was submitted or deferred, with the mutex held. */
void gpuhal_queue_open_fast_path(gpuhal_queue *queue);
/* If the fast path is open and the work can join the newest submission, submits the work, sets *out_status to the
 * plugin's result and returns true. If the result is not OK, the caller then has the right to call, as after
 * gpuhal_queue_begin_call_unlocks() and gpuhal_queue_reserve(). */
bool gpuhal_queue_try_fast_path(gpuhal_queue *queue, const gpuhal_op *op, gpuhal_status *out_status);
gpuhal_submission *gpuhal_queue_last_submission(gpuhal_queue *queue);
/* Seals the newest submission if it is open: it gets its number. gpuhal_queue_reserve() or
 * gpuhal_queue_open_fast_path() may open it again for more work. The caller holds the mutex. */
void gpuhal_queue_seal_submission(gpuhal_queue *queue);

/* ---- state.c */

gpuhal_queue *gpuhal_queue_retain(gpuhal_queue *queue);
void gpuhal_queue_release(gpuhal_queue *queue);
/* Returns OK, or FORKED or DEVICE_LOST if calls on the queue must be refused. */
static inline gpuhal_status gpuhal_queue_check(const gpuhal_queue *queue)
{
    return gpuhal_device_check(queue->device);
}
/* Returns whether the plugin promises to return in time, so that application threads may call it to record, query and
 * block. */
static inline bool gpuhal_device_honors_timeouts(const gpuhal_device *device)
{
    return device->plugin->flags & GPUHAL_PLUGIN_HONORS_TIMEOUTS;
}
/* Sets and returns BUSY because the application has native access. */
gpuhal_status gpuhal_queue_native_error(const gpuhal_queue *queue);
/* Returns OK if work can be deferred now, else the queue's failure or BUSY. The caller holds the mutex. */
gpuhal_status gpuhal_queue_refusal(const gpuhal_queue *queue);
/* Sets and returns BUSY if this thread is running an application function for the queue, because waiting for the queue
 * would deadlock. */
gpuhal_status gpuhal_queue_own_call(const gpuhal_queue *queue);
void gpuhal_queue_wake(gpuhal_queue *queue);
/* Unlocks the mutex, and then wakes the worker if work is deferred. If it were woken before, it would block on the
 * mutex, and the unlock would have to wake it again. */
void gpuhal_queue_unlock_and_wake(gpuhal_queue *queue);
/* Sets and returns TIMEOUT with the message `what`. If the driver may still be compiling, adds the name of the kernel
 * or recording. The caller holds the mutex. */
gpuhal_status gpuhal_queue_late(gpuhal_queue *queue, const char *what);
/* Waits for a change, at most until the deadline, and returns OK. If the deadline has passed before the wait, returns
 * TIMEOUT. The caller holds the mutex. */
gpuhal_status gpuhal_queue_wait_until(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* Waits until the current plugin call may have ended. Returns BUSY during native access, TIMEOUT or DEVICE_LOST. */
gpuhal_status gpuhal_queue_wait_for_call(gpuhal_queue *queue, gpuhal_queue_place place, uint64_t deadline_ns);
/* Acquire and release the right to call the plugin on `vendor`. The caller holds the mutex. Acquiring returns BUSY
 * during native access, TIMEOUT or DEVICE_LOST. */
gpuhal_status gpuhal_queue_begin_call_unlocks(gpuhal_queue *queue, uint64_t deadline_ns);
/* Acquires the right to call for the worker. Waits for the end of native access, because the worker's work may be
 * older. The caller holds the mutex. */
gpuhal_status gpuhal_queue_begin_late_call(gpuhal_queue *queue);
void gpuhal_queue_end_call(gpuhal_queue *queue);
/* Makes room for a submission, or sets `joined` if the work can join the newest submission. Returns false if out of
 * memory. The caller holds the mutex, and no other thread calls the plugin on this queue. */
bool gpuhal_queue_reserve(gpuhal_queue *queue, const gpuhal_op *op);
/* The caller holds the mutex. The second function returns whether the oldest submission has ended, and the third
 * whether completed work can be retired. */
bool gpuhal_queue_is_idle(const gpuhal_queue *queue);
static inline bool gpuhal_queue_oldest_has_ended(const gpuhal_queue *queue)
{
    return queue->submission_count > 0 && queue->submissions[queue->first_submission].number <= queue->done;
}
bool gpuhal_queue_has_completed(const gpuhal_queue *queue);

/* ---- vendor_event.c: calls the plugin, so call none of these functions with the mutex held, except
 * gpuhal_timepoint_use_event() */

/* Returns a structure with one reference, or NULL if out of memory. The caller fills in the plugin queue. */
gpuhal_vendor_queue *gpuhal_vendor_queue_create(void);
/* Destroys the spare events and releases the plugin's queue, which is destroyed with the last event that was recorded
 * in it. The caller has the right to call, or the queue is closed. */
void gpuhal_queue_drop_vendor(gpuhal_queue *queue);
/* Returns whether there are events of the plugin's queue other than spare events, so that releasing the plugin's queue
 * would not destroy it. The caller holds the mutex. */
bool gpuhal_queue_has_events(const gpuhal_queue *queue);
/* Returns NULL if there is no spare event. The caller has the right to call. */
gpuhal_plugin_event *gpuhal_queue_take_event(gpuhal_queue *queue, bool timed);
/* Keeps an unrecorded event for the next timepoint, or destroys it. The caller has the right to call. */
void gpuhal_queue_put_event(gpuhal_queue *queue, gpuhal_plugin_event *event, bool timed);
/* Assigns the recorded event to the timepoint; the timepoint's queue is the first user of the event. The caller has the
 * right to call. */
void gpuhal_timepoint_give_event(gpuhal_timepoint *timepoint, gpuhal_plugin_event *event);
/* Begin and end the use of the timepoint's event in a plugin call. gpuhal_timepoint_use_event() returns false if the
 * timepoint has no event yet or any more. */
bool gpuhal_timepoint_use_event(gpuhal_timepoint *timepoint);
void gpuhal_timepoint_leave_event(gpuhal_timepoint *timepoint);

/* ---- timepoint.c */

/* Measures the time between two timed timepoints that are done. Returns INVALID_ARGUMENT if their order is reversed or
 * they have no clock in common, or the plugin's error. */
gpuhal_status gpuhal_timepoint_elapsed(const gpuhal_timepoint *from, const gpuhal_timepoint *to, uint64_t *out_ns);

/* ---- deferred.c */

/* Starts the worker, unless there is one. Returns 0 or errno. The caller holds the mutex. */
int gpuhal_queue_need_thread(gpuhal_queue *queue);
/* The caller holds the mutex, and releases it with gpuhal_queue_unlock_and_wake(). */
gpuhal_status gpuhal_queue_append_deferred(gpuhal_queue *queue, const gpuhal_op *op, bool on_host);
void gpuhal_deferred_free(gpuhal_deferred *deferred);

/* ---- retire.c */

/* Retires completed work. Returns true if there was completed work and no other thread was retiring it. Must not be
 * called with the mutex held or in a driver callback, since it calls the plugin. */
bool gpuhal_queue_retire(gpuhal_queue *queue);
/* Does the same for a caller that holds the mutex. */
bool gpuhal_queue_retire_unlocks(gpuhal_queue *queue);
/* Waits until all objects kept alive by ended submissions up to `number` have been released, by this thread or another.
 * Returns OK, TIMEOUT, DEVICE_LOST, or NOT_READY if the deadline is 0. Returns OK without a wait if the device cannot
 * be reached. */
gpuhal_status gpuhal_queue_wait_retired(gpuhal_queue *queue, uint64_t number, uint64_t deadline_ns);

/* ---- complete.c */

/* Fails the queue, all deferred work and, if `submitted` is set, all submitted timepoints. The driver may still be
 * executing submitted work, so its buffers are kept unless the device is lost. Prepends completions to *completions.
 * The caller holds the mutex. */
void gpuhal_queue_fail(gpuhal_queue *queue, gpuhal_failure *failure, bool submitted, gpuhal_completion **completions);
/* Does the same for a caller without the mutex, and notifies the completions. */
void gpuhal_queue_break(gpuhal_queue *queue, gpuhal_failure *failure, bool submitted);
/* Applies the plugin's result for a submitted timepoint: ends this and all earlier timepoints, or fails the queue. The
 * caller must not hold the mutex. */
void gpuhal_timepoint_settle(gpuhal_timepoint *timepoint, gpuhal_status status);
/* Does the same in a driver callback, without retiring anything. */
void gpuhal_timepoint_settle_notified(gpuhal_timepoint *timepoint, gpuhal_status status);
/* Like gpuhal_timepoint_settle(), for a failure. To find the original failure, first polls the timepoints that the
 * queue waited for. */
void gpuhal_timepoint_failed(gpuhal_timepoint *timepoint, gpuhal_status status);
/* Queries the plugin if the timepoint is SUBMITTED. Returns OK, NOT_READY, the timepoint's failure, or FORKED or
 * DEVICE_LOST. */
gpuhal_status gpuhal_timepoint_poll(gpuhal_timepoint *timepoint);

/* ---- record.c */

/* Fails the queue with this thread's last error because the plugin refused a call. Earlier submissions are not
 * affected. BUSY does not fail the queue. The caller must not hold the mutex. */
gpuhal_status gpuhal_queue_refused(gpuhal_queue *queue, gpuhal_status status);
/* Submits a timepoint to the plugin, as gpuhal_queue_submit() submits work. On success the caller must track the
 * timepoint with gpuhal_queue_track_timepoint() or gpuhal_queue_append_timepoint(). */
gpuhal_status gpuhal_queue_submit_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* The two steps of gpuhal_queue_submit_timepoint(): the first gets a spare event or a new one, the second records it.
 * If the plugin does not record the event, the second step returns the event to the queue. */
gpuhal_status gpuhal_queue_make_event(gpuhal_queue *queue, bool timed, gpuhal_plugin_event **out_event);
gpuhal_status gpuhal_queue_record_event_in(gpuhal_queue *queue, gpuhal_timepoint *timepoint,
                                           gpuhal_plugin_event *event);
/* Track a submitted timepoint. If the queue has failed in the meantime, the first function fails the timepoint as well,
 * and prepends its completions to the list. */
void gpuhal_queue_track_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint, gpuhal_completion **completions);
void gpuhal_queue_append_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint);

/* ---- reclaim.c */

/* Retires the completed work of all queues when device memory is short. Sets *out_pending to the number of bytes that
 * will be freed once queued work has ended. */
void gpuhal_queues_reclaim(gpuhal_device *device, uint64_t *out_pending);
/* Timepoints that mark the current end of the work in all queues of an object. */
typedef struct gpuhal_queue_marks {
    gpuhal_timepoint **list; /* with references */
    size_t count;
    bool refused; /* the list lacks a queue that may have work and refused a timepoint, e.g. during native access */
} gpuhal_queue_marks;
/* Records a timepoint in every queue that may have work; that includes adopted queues. May return HOST_MEMORY. */
gpuhal_status gpuhal_queues_mark(gpuhal *gpu, gpuhal_queue_marks *out_marks);
/* Waits until one of the timepoints has ended, and removes it from the list. Also removes timepoints whose wait fails,
 * e.g. with BUSY. Returns false if the list is empty or the deadline has passed. */
bool gpuhal_queues_wait_mark(gpuhal_queue_marks *marks, uint64_t deadline_ns);
void gpuhal_queue_marks_free(gpuhal_queue_marks *marks);

/* ---- wait.c */

/* Makes sure that the library notices the end of the timepoint even if no thread polls. Returns 0, or errno if no
 * thread could be started. The caller must not hold the mutex. */
int gpuhal_timepoint_request_notify(gpuhal_timepoint *timepoint);
/* Adds a completion to a timepoint and takes ownership of the completion. If the timepoint is done, notifies
 * immediately. If no thread could be started to notice the timepoint's end, frees the completion and returns
 * HOST_MEMORY. */
gpuhal_status gpuhal_timepoint_add_completion(gpuhal_timepoint *timepoint, gpuhal_completion *completion);
/* Blocks until the plugin reports that a submitted timepoint is done. The caller must not hold the mutex. */
void gpuhal_timepoint_block(gpuhal_timepoint *timepoint);
/* Waits for a timepoint. Blocks in the plugin on this thread only if the plugin honors timeouts. Otherwise the plugin's
 * notification or the worker ends the wait, so that a hanging driver does not block the caller. If no worker can be
 * started, this thread polls the plugin. */
gpuhal_status gpuhal_timepoint_wait(gpuhal_timepoint *timepoint, uint64_t deadline_ns);
/* For a timepoint that is DONE: returns its failure if it has one. Otherwise waits until all objects kept alive by the
 * work before it have been released. Returns TIMEOUT at the deadline, or NOT_READY if the deadline is 0. */
gpuhal_status gpuhal_timepoint_retire(gpuhal_timepoint *timepoint, uint64_t deadline_ns);

/* ---- submit.c */

/* Must be called before work with the buffer is enqueued, because the buffer's pool must know which queues use the
 * memory. */
static inline gpuhal_status gpuhal_queue_uses(gpuhal_queue *queue, gpuhal_buffer *buffer)
{
    bool known = !buffer || !buffer->is_part || !queue ||
                 atomic_load_explicit(&buffer->used_in, memory_order_relaxed) == queue;
    return __builtin_expect(known, 1) ? GPUHAL_OK : buffer->device->gpu->layers.use_part(buffer, queue);
}
/* Enqueues a transfer, a file job, a launch or a run of a recording whose arguments have been checked, or work that
 * only keeps buffers alive. Returns INVALID_ARGUMENT if none of the buffers of a transfer or a job belongs to the
 * queue's device. */
gpuhal_status gpuhal_queue_enqueue(gpuhal_queue *queue, const gpuhal_op *op);
/* Returns BUSY during native access. */
gpuhal_status gpuhal_queue_defer(gpuhal_queue *queue, const gpuhal_op *op);
/* Records a timepoint after all enqueued work, and flushes the plugin's queue. */
gpuhal_status gpuhal_queue_record(gpuhal_queue *queue, bool timed, gpuhal_timepoint **out_point);
/* Does the same for an application event. The recording is observed. */
gpuhal_status gpuhal_queue_record_event(gpuhal_queue *queue, bool timed, gpuhal_timepoint **out_point);
/* Like gpuhal_queue_record(), for a caller that will wait for the timepoint until the deadline. If the plugin does not
 * honor timeouts or returns NOT_READY, the worker records the timepoint. */
gpuhal_status gpuhal_queue_record_to_wait(gpuhal_queue *queue, uint64_t deadline_ns, gpuhal_timepoint **out_point);
/* Makes all work that is enqueued from now on wait for the timepoint. Accepts NULL. */
gpuhal_status gpuhal_queue_wait_for_timepoint(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* Submits work to the plugin, with the right to call and without the mutex. Returns NOT_SUPPORTED if the worker
 * must do the work, or NOT_READY if the worker must retry. Any other refusal by the plugin, except BUSY, leaves a gap
 * in the queue's order and fails the queue. On success the caller must call the next function with the mutex held. */
gpuhal_status gpuhal_queue_submit(gpuhal_queue *queue, const gpuhal_op *op);
void gpuhal_queue_track(gpuhal_queue *queue, const gpuhal_op *op);
/* Returns whether the library records a timepoint at the end of native access. Drivers with HONORS_TIMEOUTS do not need
 * this timepoint, because they do not block when their ring is full. For some of these drivers each event is also a
 * submission. */
static inline bool gpuhal_queue_records_access(const gpuhal_queue *queue)
{
    return !gpuhal_device_honors_timeouts(queue->device);
}
/* Records the library's own timepoint after all submissions, if the plugin accepts it now. `is_access` is true if the
 * last submission stands for the application's submissions during native access. The caller has the right to call and
 * holds the mutex. */
void gpuhal_queue_record_own_unlocks(gpuhal_queue *queue, bool is_access);

/* Defined in reclaim.c. Polls submitted timepoints, oldest first, up to the first timepoint that is not done. */
void gpuhal_queue_look_through(gpuhal_queue *queue);
/* Defined in state.c. gpuhal_queue_has_finished() returns whether the queue was destroyed, its work has ended, and the
 * work that it follows has ended. gpuhal_queue_has_native() returns whether the queue has a vendor's object.
 * gpuhal_queue_is_quiet() returns whether the queue is usable and idle as far as the library knows; never true for an
 * adopted queue. gpuhal_queue_is_broken() returns whether the queue has failed and was not reset since. */
bool gpuhal_queue_has_finished(gpuhal_queue *queue);
bool gpuhal_queue_has_native(gpuhal_queue *queue);
bool gpuhal_queue_is_quiet(gpuhal_queue *queue);
bool gpuhal_queue_is_broken(gpuhal_queue *queue);

/* ---- awaited.c */

/* Records that the application made the queue wait for the timepoint, and adds a reference to the timepoint. */
void gpuhal_queue_note_awaited(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* Returns the newest timepoint of the other queue that the application made this queue wait for, with a reference.
 * Returns NULL if no such timepoint is recorded. Calls no plugin. */
gpuhal_timepoint *gpuhal_queue_get_awaited(gpuhal_queue *queue, const gpuhal_queue *other);
/* Must be called when the queue is finished, without the mutex. */
void gpuhal_queue_forget_awaited(gpuhal_queue *queue);

/* ---- follow.c */

/* Calls gpuhal_queue_wait_for_timepoint() for a queue that takes over memory of a pool or a recording that work before
 * the timepoint still uses. The order is guaranteed even if the queue fails or is reset. May return HOST_MEMORY. */
gpuhal_status gpuhal_queue_follow(gpuhal_queue *queue, gpuhal_timepoint *timepoint);
/* Returns whether work that the queue follows may still be executing. The caller holds the mutex. */
bool gpuhal_queue_follows(const gpuhal_queue *queue);
/* Blocks until no work that the queue follows is executing or the device is lost. Then clears the list of followed
 * timepoints. */
void gpuhal_queue_await_followed(gpuhal_queue *queue);

/* ---- vendor.c */

/* Creates a plugin queue with this queue's settings, if the plugin has queues. */
gpuhal_status gpuhal_queue_make_vendor(gpuhal_queue *queue, gpuhal_vendor_queue **out_vendor);
/* Waits until all submitted timepoints of a failed queue have ended. If there still are events of the plugin's queue,
 * then waits for a while. Returns true if there is none left or the device is lost. Then releasing the plugin's queue
 * destroys it, which shows the end of all its work. Runs on the worker, which holds the mutex. */
bool gpuhal_queue_await_events_unlocks(gpuhal_queue *queue);
/* Releases the plugin's queue of a failed queue, and counts all its work as ended. If `renews` is set, first creates a
 * new plugin queue. The work must have ended, or gpuhal_queue_await_events_unlocks() must have returned true. Runs on
 * the worker, which holds the mutex. */
gpuhal_status gpuhal_queue_replace_vendor_unlocks(gpuhal_queue *queue, bool renews);
/* Releases all plugin objects of a closed queue, and removes it from the gpuhal object's list. */
void gpuhal_queue_finish(gpuhal_queue *queue);

/* ---- reset.c */

/* Makes a failed queue usable, or saves the reason for the failed reset. Runs on the worker, which holds the mutex. */
void gpuhal_queue_run_reset_unlocks(gpuhal_queue *queue);

/* ---- worker.c */

void *gpuhal_queue_thread(void *user);
/* Does the worker's job until the queue is finished. If no worker can be started, or an idle queue has no worker, the
 * thread that destroys the queue calls this function. */
void gpuhal_queue_work(gpuhal_queue *queue);

/* ---- call.c */

/* Keeps a buffer alive until all work enqueued so far has ended. If the queue has failed, keeps the buffer alive until
 * the queue is reset or finished. May return HOST_MEMORY or DEVICE_LOST. */
gpuhal_status gpuhal_queue_hold(gpuhal_queue *queue, gpuhal_buffer *buffer);

/* ---- transfer.c */

/* Check the arguments and describe the work, which may be enqueued later or several times. The buffers are not
 * retained. Set the error detail. */
gpuhal_status gpuhal_copy_make_op(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset,
                                  uint64_t bytes, gpuhal_op *out_op);
gpuhal_status gpuhal_fill_make_op(gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes, uint32_t pattern,
                                  uint32_t pattern_bytes, gpuhal_op *out_op);
/* Returns whether the plugin can enqueue this copy within a device, or this fill, without the core's fallback. */
bool gpuhal_transfer_is_plain(const gpuhal_op *op);

/* ---- hang.c */

/* Fails all queues of a lost device with this thread's last error. If the device hangs, also fails other queues whose
 * worker is inside this device's driver. Calls no plugin. */
void gpuhal_queues_lost(gpuhal_device *device);
/* Returns whether work of the device's queues is still executing, according to the driver. */
bool gpuhal_queues_go_on(gpuhal_device *device);

#endif
