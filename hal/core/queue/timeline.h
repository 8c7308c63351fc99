/* queue/timeline.h: the trace of the work of queues (gpuhal/trace.h).
 *
 * A piece of work has a gpuhal_traced from its enqueueing on. The gpuhal_traced goes with the work, also through the
 * list of deferred work, until the plugin got the work, or the worker did it, or it failed. From then on it is in its
 * queue's list, in the order of the work. It leaves that list from the front, once the plugin's event after the work is
 * done: its times become numbers, its events are given back, and its record goes into the ring. So there are no more
 * events than work in flight, and the ends of a queue's pieces are known in their order. A recording of an event of the
 * application is a piece as well: it has no begin, and its end is its timepoint.
 */
#ifndef GPUHAL_QUEUE_TIMELINE_H
#define GPUHAL_QUEUE_TIMELINE_H

#include "device/device.h"
#include "queue/observer.h"

/* Other queues that a piece comes after. */
enum { GPUHAL_TRACED_AFTER = 4 };

typedef enum { GPUHAL_CLOCK_NONE = 0, GPUHAL_CLOCK_HOST, GPUHAL_CLOCK_DEVICE } gpuhal_trace_clock;

/* The words for form, usage and path are in timeline_file.c. */
typedef enum {
    GPUHAL_USAGE_NONE = 0,
    GPUHAL_USAGE_WRITTEN,
    GPUHAL_USAGE_READ,
    GPUHAL_USAGE_FILLED,
    GPUHAL_USAGE_COPIED,
    GPUHAL_USAGE_PAIR
} gpuhal_trace_usage;

/* The record of a piece. */
typedef struct gpuhal_traced_record {
    uint64_t number; /* among the object's pieces, from 1 on; 0: the place is empty */
    uint64_t enqueued_ns, begin_ns, end_ns; /* gpuhal_os_monotonic_ns() */
    uint64_t bytes;
    uint64_t after[GPUHAL_TRACED_AFTER]; /* numbers of pieces of other queues; 0: none */
    const gpuhal_device *device, *from, *to; /* from, to: of a copy between two, else NULL */
    char *name;                              /* of a kernel; malloc'ed */
    uint32_t queue, groups[3];
    int16_t status;
    uint8_t form, usage, path, clock; /* of gpuhal_op_kind; gpuhal_trace_usage; 0: the worker, 1: the plugin's queue, or
                                         GPUHAL_TRACED_PATH and a gpuhal_path; gpuhal_trace_clock */
} gpuhal_traced_record;

enum { GPUHAL_TRACED_WORKER = 0, GPUHAL_TRACED_DIRECT = 1, GPUHAL_TRACED_PATH = 2 };

typedef struct gpuhal_traced {
    struct gpuhal_traced *next;
    gpuhal_traced_record record;
    bool placed; /* it has its place in the queue's order */
    gpuhal_timepoint *begin, *end; /* around the plugin's work; NULL: none */
} gpuhal_traced;

/* The shared part of an object's queues. */
typedef struct gpuhal_timeline {
    _Atomic bool on;
    _Atomic uint32_t queues; /* created so far */
    gpuhal_mutex mutex;      /* protects the members below; no other mutex is locked meanwhile */
    gpuhal_traced_record *ring;
    uint64_t capacity;
    uint64_t count, first; /* numbers of the newest piece, and of this trace's oldest */
    uint64_t ended, dropped; /* of this trace: pieces not in flight any more; of them, overwritten */
} gpuhal_timeline;

/* A queue's part of the trace. The queue's mutex protects it, except `number`, and except base, base_ns and last_ns,
 * which only the thread that takes from the list uses. */
typedef struct gpuhal_queue_timeline {
    uint32_t number;
    bool taking;        /* a thread takes from the list */
    gpuhal_traced *first, **end;
    uint64_t last;                       /* number of the newest piece enqueued */
    uint64_t after[GPUHAL_TRACED_AFTER]; /* the pieces that the next piece comes after */
    gpuhal_timepoint *base;              /* a timepoint whose time on the host's clock is base_ns; NULL: none */
    uint64_t base_ns, last_ns;           /* last_ns: the end of the newest piece that was taken */
} gpuhal_queue_timeline;

/* Made and freed by gpuhal.c. NULL without memory. */
gpuhal_timeline *gpuhal_timeline_create(void);
void gpuhal_timeline_destroy(gpuhal_timeline *timeline);

/* ---- timeline.c */

/* Begins a trace with an empty ring of `pieces`; 0: the usual number. Returns INVALID_ARGUMENT, HOST_MEMORY. Clearing
 * `on` ends the trace. */
gpuhal_status gpuhal_timeline_start(gpuhal_timeline *timeline, uint32_t pieces);
/* Makes the trace the observer of a queue that is being created. Without memory a piece is missing. */
void gpuhal_timeline_observe(gpuhal_queue *queue);
/* Takes the ended pieces from the queue's list, and all pieces if the queue is closed. Without the mutex. */
void gpuhal_timeline_take(gpuhal_queue *queue);

/* ---- timeline_file.c */

/* Without a trace the file has no events. */
gpuhal_status gpuhal_timeline_write(gpuhal *gpu, const char *path);
/* Do the requests of GPUHAL_TRACE. A failure at the end goes to the log. */
gpuhal_status gpuhal_timeline_begin_at_open(gpuhal *gpu);
void gpuhal_timeline_write_at_close(gpuhal *gpu);

#endif
