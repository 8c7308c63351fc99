/* pool/trace_ring.h: the last operations of all pools of a gpuhal object, in memory and as a file. */
#ifndef GPUHAL_POOL_TRACE_RING_H
#define GPUHAL_POOL_TRACE_RING_H

#include "os/os.h"

#include <gpuhal/pool.h>

typedef struct gpuhal_trace {
    gpuhal_mutex mutex; /* protects the members that are not atomic; locked after a pool's */
    _Atomic bool on;
    struct gpuhal_trace_record *records; /* a ring; NULL if no trace was ever begun */
    uint64_t begin, count;               /* number of this trace's first record, and number of the next record */
} gpuhal_trace;

/* ---- trace_ring.c */

/* The operations' names are in trace_file.c. */
typedef enum gpuhal_trace_operation {
    GPUHAL_TRACE_CREATE,
    GPUHAL_TRACE_DESTROY,
    GPUHAL_TRACE_ALLOCATE,
    GPUHAL_TRACE_RELEASE,
    GPUHAL_TRACE_USE,
    GPUHAL_TRACE_GROW,
    GPUHAL_TRACE_TRIM,
    GPUHAL_TRACE_LIMIT
} gpuhal_trace_operation;

/* One operation; members that do not apply are 0. `used`, `reserved` and `free_bytes` are the pool's values after the
 * operation. */
typedef struct gpuhal_trace_record {
    uint64_t time_ns; /* gpuhal_os_monotonic_ns() */
    const gpuhal_device *device;
    const gpuhal_queue *queue; /* only compared, never dereferenced */
    uint64_t buffer;           /* the part's number */
    uint64_t bytes, offset;
    uint64_t used, reserved, free_bytes;
    uint32_t pool, segment, thread;
    uint16_t operation;
    int16_t status;
} gpuhal_trace_record;

void gpuhal_trace_init(gpuhal_trace *trace);
void gpuhal_trace_finish(gpuhal_trace *trace);
/* Begins a trace with an empty ring. May return HOST_MEMORY. */
gpuhal_status gpuhal_trace_begin(gpuhal_trace *trace);
/* Adds a record and fills in its other members. The caller holds the pool's mutex. */
void gpuhal_trace_add(const gpuhal_pool *pool, gpuhal_trace_record record);
/* Copies up to `space` records, starting at number `*next`, and advances `*next`. *out_lost is the number of earlier
 * records that were overwritten or belong to a previous trace. Returns the number of copied records, which is 0 once
 * `*next` reaches `end`. */
size_t gpuhal_trace_take(gpuhal_trace *trace, uint64_t *next, uint64_t end, gpuhal_trace_record *to, size_t space,
                         uint64_t *out_lost);

/* ---- trace_file.c */

/* Writes the file. Without a trace it contains only its first line. */
gpuhal_status gpuhal_trace_write_pools(gpuhal *gpu, const char *path);
/* Implement the variable GPUHAL_POOL_TRACE. A failure at close is only logged. */
gpuhal_status gpuhal_trace_begin_at_open(gpuhal *gpu);
void gpuhal_trace_write_at_close(gpuhal *gpu);

#endif
