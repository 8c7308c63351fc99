/* queue/timeline.h: the trace of queues' work (gpuhal/trace.h).
 *
 * A gpuhal_traced, or piece, is created for each piece of traced work when the work is enqueued. The work has a pointer
 * to it until the plugin accepts the work, the worker has done the work, or the work fails. The piece is then appended
 * to the queue's list, in the order of the work. Once the plugin's event after the work is done, the piece is removed
 * from the front of the list: its times are read, its events are released, and its record is copied into the ring. So
 * the number of events is limited by the work in flight, and the ends of a queue's pieces become known in order. A
 * recorded application event is also a piece. It has no begin; its end is the recorded timepoint.
 */
#ifndef GPUHAL_QUEUE_TIMELINE_H
#define GPUHAL_QUEUE_TIMELINE_H

#include "device/device.h"
#include "queue/observer.h"

/* Maximum number of predecessors in other queues that a piece can have. */
enum { GPUHAL_TRACED_AFTER = 4 };

typedef enum { GPUHAL_CLOCK_NONE = 0, GPUHAL_CLOCK_HOST, GPUHAL_CLOCK_DEVICE } gpuhal_trace_clock;

/* timeline_file.c defines the keywords for form, usage and path. */
typedef enum {
    GPUHAL_USAGE_NONE = 0,
    GPUHAL_USAGE_WRITTEN,
    GPUHAL_USAGE_READ,
    GPUHAL_USAGE_FILLED,
    GPUHAL_USAGE_COPIED,
    GPUHAL_USAGE_PAIR
} gpuhal_trace_usage;

typedef struct gpuhal_traced_record {
    uint64_t number; /* counted per gpuhal object, from 1; 0: unused slot */
    uint64_t enqueued_ns, begin_ns, end_ns; /* gpuhal_os_monotonic_ns() */
    uint64_t bytes;
    uint64_t after[GPUHAL_TRACED_AFTER]; /* piece numbers in other queues; 0 if none */
    const gpuhal_device *device, *from, *to; /* from and to are set for copies between two devices, else NULL */
    char *name;                              /* name of the kernel or recording, else NULL; malloc'ed */
    uint32_t queue, groups[3];
    int16_t status;
    uint8_t form, usage, path, clock; /* a form of gpuhal_op_kind; a gpuhal_trace_usage; GPUHAL_TRACED_WORKER, _DIRECT,
                                       * or _PATH plus a gpuhal_path; a gpuhal_trace_clock */
} gpuhal_traced_record;

enum { GPUHAL_TRACED_WORKER = 0, GPUHAL_TRACED_DIRECT = 1, GPUHAL_TRACED_PATH = 2 };

typedef struct gpuhal_traced {
    struct gpuhal_traced *next;
    gpuhal_traced_record record;
    bool placed; /* the piece has its position in the queue's order */
    gpuhal_timepoint *begin, *end; /* before and after the plugin's work; NULL if none */
} gpuhal_traced;

/* The part of the trace that all queues of a gpuhal object share. */
typedef struct gpuhal_timeline {
    _Atomic bool on;
    _Atomic uint32_t queues; /* number created so far */
    gpuhal_mutex mutex;      /* protects the members below; no other mutex is locked while it is held */
    gpuhal_traced_record *ring;
    uint64_t capacity;
    uint64_t count, first; /* number of the newest piece, and of the first piece of this trace */
    uint64_t ended, dropped; /* counts of this trace's pieces that have ended, and that were overwritten in the ring */
} gpuhal_timeline;

/* A queue's part of the trace. The queue's mutex protects all members except number, base, base_ns and last_ns. Only
 * the thread that takes pieces from the list uses base, base_ns and last_ns. */
typedef struct gpuhal_queue_timeline {
    uint32_t number;
    bool taking;        /* a thread is taking pieces from the list */
    gpuhal_traced *first, **end;
    uint64_t last;                       /* number of the newest enqueued piece */
    uint64_t after[GPUHAL_TRACED_AFTER]; /* predecessors of the next piece */
    gpuhal_timepoint *base;              /* a timepoint at host time base_ns, or NULL */
    uint64_t base_ns, last_ns;           /* last_ns: end of the last piece that was taken */
} gpuhal_queue_timeline;

/* Called by gpuhal.c. Creating returns NULL if out of memory. */
gpuhal_timeline *gpuhal_timeline_create(void);
void gpuhal_timeline_destroy(gpuhal_timeline *timeline);

/* ---- timeline.c */

/* Begins a trace with an empty ring of `pieces` records; 0 means the default size. Returns INVALID_ARGUMENT or
 * HOST_MEMORY. To end the trace, clear `on`. */
gpuhal_status gpuhal_timeline_start(gpuhal_timeline *timeline, uint32_t pieces);
/* Makes the trace the observer of a new queue. If there is no memory for a piece later, the trace omits the piece. */
void gpuhal_timeline_observe(gpuhal_queue *queue);
/* Takes pieces that have ended from the queue's list, or all pieces if the queue is closed. If the queue is closed or
 * has failed, keeps no timepoint of a piece that was taken. The caller must not hold the mutex. */
void gpuhal_timeline_take(gpuhal_queue *queue);

/* ---- timeline_file.c */

/* If there was no trace, the file contains no events. */
gpuhal_status gpuhal_timeline_write(gpuhal *gpu, const char *path);
/* Implement GPUHAL_TRACE. A failure at close is logged. */
gpuhal_status gpuhal_timeline_begin_at_open(gpuhal *gpu);
void gpuhal_timeline_write_at_close(gpuhal *gpu);

#endif
