/* pool/trace_ring.h: the last operations of all pools of an object, in memory and as a file. */
#ifndef GPUHAL_POOL_TRACE_RING_H
#define GPUHAL_POOL_TRACE_RING_H

#include "os/os.h"

#include <gpuhal/pool.h>

/* The newest operations of all pools, in order. */
typedef struct gpuhal_trace {
    gpuhal_mutex mutex; /* protects the members that are not atomic; locked after a pool's */
    _Atomic bool on;
    struct gpuhal_trace_record *records; /* a ring; NULL: never begun */
    uint64_t begin, count;               /* numbers of the first record of this trace and of the next one */
} gpuhal_trace;

/* ---- trace_ring.c */

/* Their names are in trace_file.c. */
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

/* One operation; members that do not apply are 0. `used`, `reserved` and `free_bytes` are those of the pool,
 * afterwards. */
typedef struct gpuhal_trace_record {
    uint64_t time_ns; /* gpuhal_os_monotonic_ns() */
    const gpuhal_device *device;
    const gpuhal_queue *queue; /* only compared with others */
    uint64_t buffer;           /* number of the part */
    uint64_t bytes, offset;
    uint64_t used, reserved, free_bytes;
    uint32_t pool, segment, thread;
    uint16_t operation;
    int16_t status;
} gpuhal_trace_record;

void gpuhal_trace_init(gpuhal_trace *trace);
void gpuhal_trace_finish(gpuhal_trace *trace);
/* Begins with an empty ring; HOST_MEMORY. */
gpuhal_status gpuhal_trace_begin(gpuhal_trace *trace);
/* Adds a record, and fills in its other members. With the pool's mutex held. */
void gpuhal_trace_add(const gpuhal_pool *pool, gpuhal_trace_record record);
/* Copies up to `space` records from number `*next` on, and advances it. *out_lost: how many before them were
 * overwritten, or are of an earlier trace. Returns how many it copied, 0 from number `end` on. */
size_t gpuhal_trace_take(gpuhal_trace *trace, uint64_t *next, uint64_t end, gpuhal_trace_record *to, size_t space,
                         uint64_t *out_lost);

/* ---- trace_file.c */

/* Writes the file; without a trace only its first line. */
gpuhal_status gpuhal_trace_write_pools(gpuhal *gpu, const char *path);
/* Do as GPUHAL_POOL_TRACE asks. A failure at the end goes to the log. */
gpuhal_status gpuhal_trace_begin_at_open(gpuhal *gpu);
void gpuhal_trace_write_at_close(gpuhal *gpu);

#endif
