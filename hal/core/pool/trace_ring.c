/* pool/trace_ring.c: the ring of records. Records are copied under the ring's mutex. They are therefore ordered by
 * time, and readers never see a partly written record. */
#include "pool/pool.h"

#include "base/error.h"

enum { RECORDS = 65536 };

/* Makes a system call only once per thread, and again after a fork. */
static uint32_t this_thread(void)
{
    static _Thread_local struct {
        uint32_t generation, id;
    } known;
    const uint32_t generation = gpuhal_os_fork_generation();
    if (known.generation != generation) {
        known.generation = generation;
        known.id = (uint32_t)gpuhal_os_thread_id();
    }
    return known.id;
}

void gpuhal_trace_init(gpuhal_trace *trace)
{
    gpuhal_mutex_init(&trace->mutex);
}

void gpuhal_trace_finish(gpuhal_trace *trace)
{
    if (trace->records) {
        gpuhal_os_pages_unmap(trace->records, RECORDS * sizeof *trace->records);
    }
    gpuhal_mutex_finish(&trace->mutex);
}

gpuhal_status gpuhal_trace_begin(gpuhal_trace *trace)
{
    gpuhal_mutex_lock(&trace->mutex);
    if (!trace->records) {
        trace->records = gpuhal_os_pages_map(RECORDS * sizeof *trace->records);
    }
    const bool good = trace->records != NULL;
    trace->begin = trace->count;
    atomic_store(&trace->on, good);
    gpuhal_mutex_unlock(&trace->mutex);
    return good ? GPUHAL_OK : gpuhal_error_host_memory();
}

void gpuhal_trace_add(const gpuhal_pool *pool, gpuhal_trace_record record)
{
    gpuhal_trace *trace = pool->trace;
    record.device = pool->device;
    record.pool = pool->number;
    record.thread = this_thread();
    record.used = gpuhal_pool_used_now(pool);
    record.reserved = gpuhal_amount_now(&pool->reserved);
    record.free_bytes = gpuhal_bins_free_bytes(pool->common);
    gpuhal_mutex_lock(&trace->mutex);
    record.time_ns = gpuhal_os_monotonic_ns();
    trace->records[trace->count++ % RECORDS] = record;
    gpuhal_mutex_unlock(&trace->mutex);
}

size_t gpuhal_trace_take(gpuhal_trace *trace, uint64_t *next, uint64_t end, gpuhal_trace_record *to, size_t space,
                         uint64_t *out_lost)
{
    size_t taken = 0;
    gpuhal_mutex_lock(&trace->mutex);
    const uint64_t oldest = trace->count > RECORDS ? trace->count - RECORDS : 0;
    const uint64_t first = oldest > trace->begin ? oldest : trace->begin;
    *out_lost = first > *next ? first - *next : 0;
    for (*next += *out_lost; taken < space && *next < end; (*next)++) {
        to[taken++] = trace->records[*next % RECORDS];
    }
    gpuhal_mutex_unlock(&trace->mutex);
    return taken;
}
